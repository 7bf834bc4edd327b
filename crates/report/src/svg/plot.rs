//! Lines over an axis: what all pictures of time and of distributions are made of.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::axis::{Axis, plain};
use super::canvas::{Anchor, BOLD, COLOURS, Canvas, WIDTH, at, fitted, width};

/// Beside the axes: room for the numbers on the left, and for half of the last one on the right.
pub(crate) const LEFT: f64 = 52.0;
pub(crate) const RIGHT: f64 = WIDTH - 20.0;

/// A line: the values at their places, with gaps.
pub(crate) struct Line {
    pub(crate) points: Vec<(f64, Option<f64>)>,
    pub(crate) look: Look,
}

/// What tells a line from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colour: usize,
    pub(crate) dash: usize,
}

impl Look {
    /// As a class of the document's styles.
    fn class(self) -> String {
        let (colour, dash) = (self.colour % COLOURS, (self.dash + self.colour / COLOURS) % 4);
        if dash == 0 { format!("c{colour} l") } else { format!("c{colour} l d{dash}") }
    }
}

/// How far values at a place spread, with a dot in the middle.
pub(crate) struct Spread {
    pub(crate) x: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) look: Look,
}

/// One chart.
#[derive(Default)]
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) lines: Vec<Line>,
    pub(crate) spreads: Vec<Spread>,
    /// What the axes show: from, to, and whether on a logarithmic scale.
    pub(crate) x: (f64, f64, bool),
    pub(crate) y: (f64, f64, bool),
    /// Values across, with what they are.
    pub(crate) marks: Vec<(f64, String)>,
    /// What is before is in no figure.
    pub(crate) warmup: f64,
    /// Whether a value holds until the next.
    pub(crate) stepped: bool,
    /// What stands at 0, 1, 2 and so on below the axis, instead of numbers.
    pub(crate) names: &'a [String],
    /// What stands below the axis; nothing if another chart follows that has the same.
    pub(crate) x_label: Option<&'a str>,
}

impl Plot<'_> {
    /// Draws it from `top` on, with axes of this height. Says where it ends.
    pub(crate) fn draw(&self, canvas: &mut Canvas, top: f64, height: f64) -> f64 {
        let beside = LEFT - 40.0 + width(self.title, 12.0 * BOLD) + 8.0;
        let unit = fitted(self.unit, 11.0, WIDTH - 8.0 - beside);
        canvas.title((LEFT - 40.0, top + 12.0), self.title, &unit);
        let (upper, lower) = (top + 22.0, top + 22.0 + height);
        let x = Axis { least: self.x.0, most: self.x.1, from: LEFT, to: RIGHT, log: self.x.2 };
        let y = Axis { least: self.y.0, most: self.y.1, from: lower, to: upper, log: self.y.2 };
        if self.warmup > x.least.max(0.0) {
            let shaded = x.place(self.warmup) - LEFT;
            canvas.rect((LEFT, upper), (shaded, height), "z");
        }
        for tick in y.ticks((height / 18.0).max(2.0)) {
            let place = y.place(tick);
            canvas.line((LEFT, place), (RIGHT, place), "g");
            canvas.text((LEFT - 6.0, place + 4.0), Anchor::End, "s", &plain(tick));
        }
        for (tick, name) in self.ticks(&x) {
            let place = x.place(tick);
            canvas.line((place, upper), (place, lower), "g");
            canvas.text((place, lower + 15.0), Anchor::Middle, "s", &name);
        }
        for (value, said) in &self.marks {
            let place = y.place(*value);
            canvas.line((LEFT, place), (RIGHT, place), "x");
            // Above the line unless it is at the top.
            let above = if place - upper > 14.0 { -4.0 } else { 12.0 };
            canvas.text((RIGHT - 4.0, place + above), Anchor::End, "s o", said);
        }
        for line in &self.lines {
            let d = self.way(line, &x, &y);
            let there = line.points.iter().filter(|(_, value)| value.is_some()).count();
            match there {
                0 => {}
                // The run of one interval has nothing else to see.
                1 => canvas.path(&d, &format!("{} n", line.look.class())),
                _ => canvas.path(&d, &line.look.class()),
            }
        }
        for Spread { x: at_x, from, to, look } in &self.spreads {
            let (across, low, high) = (x.place(*at_x), y.place(*from), y.place(*to));
            let class = look.class();
            canvas.path(
                &format!("M{},{}h0", at(across), at((low + high) / 2.0)),
                &format!("{class} n"),
            );
            if from < to {
                canvas.line((across, low), (across, high), &class);
            }
        }
        let below = lower + 20.0;
        let Some(label) = self.x_label else { return below };
        canvas.text(((LEFT + RIGHT) / 2.0, lower + 31.0), Anchor::Middle, "s", label);
        below + 16.0
    }

    /// Where the axis has lines, and what stands there: names as many as there is room for.
    fn ticks(&self, x: &Axis) -> Vec<(f64, String)> {
        if self.names.is_empty() {
            return x.ticks(8.0).into_iter().map(|tick| (tick, plain(tick))).collect();
        }
        let widest = self.names.iter().map(|name| width(name, 11.0)).fold(0.0, f64::max) + 8.0;
        let every = (widest / (x.place(1.0) - x.place(0.0)).max(1.0)).ceil().max(1.0) as usize;
        let names = self.names.iter().enumerate().step_by(every);
        names.map(|(place, name)| (place as f64, name.clone())).collect()
    }

    /// A line as a path. What would not be seen beside the point before is left out.
    fn way(&self, line: &Line, x: &Axis, y: &Axis) -> String {
        let mut d = String::new();
        let mut last: Option<(f64, f64)> = None;
        for (number, (at_x, value)) in line.points.iter().enumerate() {
            let Some(value) = value else {
                last = None;
                continue;
            };
            let point = (x.place(*at_x), y.place(*value));
            let is_last = line.points.get(number + 1).is_none_or(|(_, next)| next.is_none());
            match last {
                None => {
                    let _ = write!(d, "M{},{}", at(point.0), at(point.1));
                    // A point by itself is a dot of a line.
                    if is_last {
                        d.push_str("h1");
                    }
                }
                Some(before) => {
                    let far = (point.0 - before.0).abs() + (point.1 - before.1).abs();
                    if far < 0.6 && !is_last {
                        continue;
                    }
                    if self.stepped {
                        let _ = write!(d, "H{}V{}", at(point.0), at(point.1));
                    } else {
                        let _ = write!(d, "L{},{}", at(point.0), at(point.1));
                    }
                }
            }
            last = Some(point);
        }
        d
    }
}

/// What tells lines apart, in words: entries of a piece of line and a name, as many beside each other as there is room. Says where it ends.
pub(crate) fn legend(canvas: &mut Canvas, top: f64, entries: &[(Look, String)]) -> f64 {
    let (left, right) = (LEFT - 40.0, WIDTH - 8.0);
    let (mut x, mut y) = (left, top + 12.0);
    for (look, name) in entries {
        let name = fitted(name, 12.0, right - left - 30.0);
        let wide = 30.0 + width(&name, 12.0);
        if x > left && x + wide > right {
            (x, y) = (left, y + 17.0);
        }
        canvas.line((x, y - 4.0), (x + 24.0, y - 4.0), &format!("{} k", look.class()));
        canvas.text((x + 29.0, y), Anchor::Start, "", &name);
        x += wide + 14.0;
    }
    y + 10.0
}

/// Less is as little on the axes of a scatter.
const LEAST: f64 = 0.1;

/// Points in a square with logarithmic axes and the line on which both are the same: dots for those that are well, crosses for all
/// others. Says where it ends.
pub(crate) fn scatter(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    side: f64,
    points: &[(f64, f64, bool)],
) -> f64 {
    let most = points.iter().map(|(x, y, _)| x.max(*y)).fold(10.0 * LEAST, f64::max) * 1.2;
    let x = Axis { least: LEAST, most, from: left, to: left + side, log: true };
    let y = Axis { least: LEAST, most, from: top + side, to: top, log: true };
    for tick in x.ticks(4.0) {
        // Of few decades there are ticks between these, which have no room here.
        if (tick.log10() - tick.log10().round()).abs() > 1e-9 {
            continue;
        }
        let (across, up) = (x.place(tick), y.place(tick));
        canvas.line((across, top), (across, top + side), "g");
        canvas.line((left, up), (left + side, up), "g");
        canvas.text((across, top + side + 15.0), Anchor::Middle, "s", &short(tick));
        canvas.text((left - 5.0, up + 4.0), Anchor::End, "s", &short(tick));
    }
    canvas.line((left, top + side), (left + side, top), "x");
    let (mut dots, mut crosses) = (String::new(), String::new());
    let mut drawn = BTreeSet::new();
    for (one, other, well) in points {
        let (across, up) = (x.place(one.max(LEAST)), y.place(other.max(LEAST)));
        // Of those that would cover each other one is drawn: there may be a hundred thousand.
        let apart = if *well { 1.0 } else { 3.0 };
        if !drawn.insert((*well, (across / apart) as i32, (up / apart) as i32)) {
            continue;
        }
        if *well {
            let _ = write!(dots, "M{},{}h0", at(across), at(up));
        } else {
            let (before, above) = (at(across - 4.0), at(up - 4.0));
            let _ = write!(crosses, "M{before},{above}l8,8m0,-8l-8,8");
        }
    }
    canvas.path(&dots, "c0 l n");
    canvas.path(&crosses, "c1 l");
    top + side + 22.0
}

/// Powers of ten, thousands as k and M.
fn short(tick: f64) -> String {
    match tick {
        tick if tick >= 0.999e6 => format!("{}M", plain(tick / 1e6)),
        tick if tick >= 0.999e3 => format!("{}k", plain(tick / 1e3)),
        tick => plain(tick),
    }
}
