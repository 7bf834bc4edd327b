//! Results over the settings that vary: lines with their spread over one number, heat maps over two settings.

use std::borrow::Cow;

use super::axis::plain;
use super::bars::{LEFT, MOST_WORDS};
use super::canvas::{Anchor, BOLD, Canvas, HEAT_STEPS, WIDTH, fitted, width};
use super::plot::{Line, Look, Plot, Spread, legend};
use super::{Caption, Picture};
use crate::figures::{Column, Figures, Samples};
use crate::report::Report;
use crate::sweep::{self, Setting, is_wide, share};
use crate::words::one_line;

/// More figures are in a picture of their own.
const MOST_FIGURES: usize = 8;

/// More combinations of other settings are not drawn.
const MOST_PANELS: usize = 16;

/// Between heat maps beside each other.
const GAP: f64 = 24.0;

/// A heat map's cell is no wider, and no higher.
const CELL: (f64, f64) = (92.0, 22.0);

/// So high are all rows of a heat map together, where these are many.
const MOST_HEIGHT: f64 = 640.0;

/// Lower cells have no room for a number.
const LEAST_HEIGHT: f64 = 13.0;

/// What is drawn, of all rows.
struct Drawn<'a> {
    figures: &'a Figures,
    /// The settings of each row that is shown, and which of the figures' rows it is.
    rows: Vec<Vec<String>>,
    of_panel: Vec<usize>,
    worlds: Vec<String>,
    columns: Vec<(usize, &'a Column)>,
    said: Vec<String>,
    /// What the picture is called.
    name: Cow<'static, str>,
}

/// Figures over one or two settings, in pictures of so many; where more settings vary, the same of each combination of the others.
pub(super) fn sweep(report: &Report<'_>, caption: &Caption) -> Vec<Picture> {
    let figures = &report.figures;
    let Some(first) = figures.rows.first() else { return Vec::new() };
    let names: Vec<String> = first.settings.0.iter().map(|(what, _)| one_line(what)).collect();
    let values =
        |row: &crate::Row| row.settings.0.iter().map(|(_, value)| one_line(value)).collect();
    let all: Vec<Vec<String>> = figures.rows.iter().map(values).collect();
    let columns = first_of_groups(figures);
    let worlds: Vec<String> = report.results.worlds().map(|(world, _)| one_line(world)).collect();
    let panels = sweep::panels(&names, &all);
    let mut pictures = Vec::new();
    for (number, panel) in panels.iter().take(MOST_PANELS).enumerate() {
        let rows: Vec<Vec<String>> = panel.rows.iter().map(|row| all[*row].clone()).collect();
        let axes = sweep::axes(&names, &rows);
        for (page, shown) in columns.chunks(MOST_FIGURES).enumerate() {
            let mut said = Vec::new();
            if !panel.words.is_empty() {
                let (number, of) = (number + 1, panels.len());
                said.push(format!("Where {}: {number} of {of} combinations.", panel.words));
                if of > MOST_PANELS {
                    said.push(format!("Only the first {MOST_PANELS} are drawn."));
                }
            }
            if report.results.seeds().count() > 1 {
                said.push("Means of the seeds.".to_owned());
            }
            if columns.len() > MOST_FIGURES {
                let first = page * MOST_FIGURES + 1;
                let (last, of) = (first + shown.len() - 1, columns.len());
                said.push(format!(
                    "Figures {first} to {last} of {of} that vary, one of each group."
                ));
            }
            let name = match pictures.len() {
                0 => "sweep".into(),
                before => format!("sweep-{}", before + 1).into(),
            };
            let columns = shown.to_vec();
            let of_panel = panel.rows.clone();
            let (rows, worlds) = (rows.clone(), worlds.clone());
            let drawn = Drawn { figures, rows, of_panel, worlds, columns, said, name };
            pictures.extend(match axes.as_slice() {
                [setting] => Some(drawn.lines(setting, caption)),
                [down, across] => Some(drawn.maps(down, across, caption)),
                _ => None,
            });
        }
    }
    pictures
}

/// Of each group of figures one that is not the same everywhere: of round trips what is above the base, else the first.
fn first_of_groups(figures: &Figures) -> Vec<(usize, &Column)> {
    let mut groups: Vec<(usize, &Column)> = Vec::new();
    for (at, column) in figures.columns.iter().enumerate() {
        let mut means = figures.rows.iter().filter_map(|row| row.values[at].mean());
        let first = means.next();
        if column.aside || means.all(|mean| Some(mean) == first) {
            continue;
        }
        match groups.last_mut().filter(|(_, last)| last.group == column.group) {
            Some(last) if column.name == "above base" => *last = (at, column),
            Some(_) => {}
            None => groups.push((at, column)),
        }
    }
    groups
}

impl<'a> Drawn<'a> {
    /// A figure where settings have these values.
    fn samples(
        &self,
        column: usize,
        world: &str,
        wanted: &[(&Setting, &String)],
    ) -> Option<&'a Samples> {
        let fits = |at: &usize| {
            let has =
                |(setting, value): &(&Setting, &String)| self.rows[*at][setting.at] == **value;
            self.figures.rows[self.of_panel[*at]].world == world && wanted.iter().all(has)
        };
        let row = (0..self.rows.len()).find(fits)?;
        Some(&self.figures.rows[self.of_panel[row]].values[column])
    }

    fn lines(&self, setting: &Setting, caption: &Caption) -> Picture {
        let title = format!("By {}", setting.name);
        let mut canvas = Canvas::default();
        let mut y = caption.head(&mut canvas, &title);
        let looks = self.worlds.iter().enumerate();
        let looks: Vec<(Look, String)> =
            looks.map(|(colour, world)| (Look { colour, dash: 0 }, world.clone())).collect();
        if looks.len() > 1 {
            y = legend(&mut canvas, y, &looks) + 6.0;
        }
        let mut has_spread = false;
        for (number, (at, column)) in self.columns.iter().enumerate() {
            let (mut lines, mut spreads) = (Vec::new(), Vec::new());
            for (look, world) in &looks {
                let samples = |value: &String| self.samples(*at, world, &[(setting, value)]);
                let points = setting.values.iter().enumerate().map(|(place, value)| {
                    let samples = samples(value);
                    let mean = samples.and_then(Samples::mean);
                    let deviation = samples.and_then(Samples::deviation);
                    spreads.extend(mean.map(|mean| {
                        let deviation = deviation.unwrap_or(0.0);
                        let (from, to) = (mean - deviation, mean + deviation);
                        Spread { x: place as f64, from, to, look: *look }
                    }));
                    (place as f64, mean)
                });
                lines.push(Line { points: points.collect(), look: *look });
            }
            has_spread |= spreads.iter().any(|spread| spread.from < spread.to);
            let most = spreads.iter().map(|spread| spread.to).fold(0.0, f64::max);
            let least = spreads.iter().map(|spread| spread.from).fold(0.0, f64::min);
            let last = number + 1 == self.columns.len();
            let plot = Plot {
                title: &column.words(),
                lines,
                spreads,
                x: (-0.3, setting.values.len() as f64 - 0.7, false),
                y: (least, if most > least { most * 1.06 } else { 1.0 }, false),
                names: &setting.values,
                x_label: last.then_some(setting.name.as_str()),
                ..Plot::default()
            };
            y = plot.draw(&mut canvas, y, 110.0) + 8.0;
        }
        let mut said = self.said.clone();
        if has_spread {
            said.push("One standard deviation either way.".to_owned());
        }
        caption.finish(canvas, self.name.clone(), &title, y, &said)
    }

    fn maps(&self, down: &Setting, across: &Setting, caption: &Caption) -> Picture {
        let title = format!("By {} and {}", down.name, across.name);
        let mut canvas = Canvas::with_heat();
        let top = caption.head(&mut canvas, &title) + 4.0;
        let maps: Vec<Map> = self
            .columns
            .iter()
            .flat_map(|column| self.worlds.iter().map(move |world| (column, world)))
            .map(|((at, column), world)| Map::of(self, (*at, column), world, (down, across)))
            .collect();
        let layout = Layout::of(&maps, down, across);
        let mut below = top;
        for (number, map) in maps.iter().enumerate() {
            let (row, place) = (number / layout.beside, number % layout.beside);
            let left = LEFT + place as f64 * (layout.wide + GAP);
            let y = top + row as f64 * layout.high();
            map.draw(&mut canvas, (left, y), &layout, (down, across));
            below = y + layout.high();
        }
        let mut said = vec![format!("Down: {}; across: {}.", down.name, across.name)];
        if maps.iter().any(|map| map.log) {
            said.push(
                "Where values are far apart the steps of colours are logarithmic.".to_owned(),
            );
        }
        said.extend(self.said.iter().cloned());
        caption.finish(canvas, self.name.clone(), &title, below - 12.0, &said)
    }
}

/// A figure over two settings in one world.
struct Map {
    title: String,
    /// Rows of values, each as it is written.
    cells: Vec<Vec<Option<(f64, String)>>>,
    range: (f64, f64),
    log: bool,
}

impl Map {
    fn of(
        drawn: &Drawn<'_>,
        (at, column): (usize, &Column),
        world: &str,
        (down, across): (&Setting, &Setting),
    ) -> Self {
        let cell = |one: &String, other: &String| {
            let samples = drawn.samples(at, world, &[(down, one), (across, other)])?;
            Some((samples.mean()?, column.show(samples)))
        };
        let row = |one| across.values.iter().map(|other| cell(one, other)).collect();
        let cells: Vec<Vec<Option<(f64, String)>>> = down.values.iter().map(row).collect();
        // The same colours in all worlds.
        let means = || drawn.figures.rows.iter().filter_map(|row| row.values[at].mean());
        let range = (means().fold(f64::MAX, f64::min), means().fold(f64::MIN, f64::max));
        let title = match drawn.worlds.len() {
            1 => column.words(),
            _ => format!("{} · {world}", column.words()),
        };
        Self { title, cells, range, log: is_wide(range) }
    }

    fn draw(
        &self,
        canvas: &mut Canvas,
        (left, top): (f64, f64),
        layout: &Layout,
        (down, across): (&Setting, &Setting),
    ) {
        canvas.text(
            (left, top + 12.0),
            Anchor::Start,
            "b",
            &fitted(&self.title, 12.0 * BOLD, layout.wide),
        );
        self.scale(canvas, (left, top + 26.0));
        let (begins, upper) = (left + layout.words, top + HEAD);
        let (wide, high) = layout.cell;
        for (place, value) in across.values.iter().enumerate().step_by(layout.every.1) {
            let middle = begins + (place as f64 + 0.5) * wide;
            canvas.text((middle, upper - 5.0), Anchor::Middle, "v", value);
        }
        for (row, (value, cells)) in down.values.iter().zip(&self.cells).enumerate() {
            let y = upper + row as f64 * high;
            if row.is_multiple_of(layout.every.0) {
                let value = fitted(value, 11.0, layout.words - 8.0);
                canvas.text((left, y + high / 2.0 + 4.0), Anchor::Start, "v", &value);
            }
            for (place, cell) in cells.iter().enumerate() {
                let x = begins + place as f64 * wide;
                let middle = (x + wide / 2.0, y + high / 2.0 + 4.0);
                let Some((value, text)) = cell else {
                    if layout.numbers {
                        canvas.text(middle, Anchor::Middle, "s", "–");
                    }
                    continue;
                };
                let step = share(*value, self.range, self.log) * HEAT_STEPS as f64;
                let step = (step as usize).min(HEAT_STEPS - 1);
                // Apart from the next by a gap, where there is room for one.
                let gap = if high > 6.0 && wide > 6.0 { 1.0 } else { 0.0 };
                canvas.rect((x, y), (wide - gap, high - gap), &format!("h{step}"));
                if layout.numbers {
                    // On the stronger half of the colours the paper's is read better.
                    let class = if step > HEAT_STEPS / 2 { "w" } else { "v" };
                    canvas.text(middle, Anchor::Middle, class, text);
                }
            }
        }
    }

    /// Which colour is how much.
    fn scale(&self, canvas: &mut Canvas, (left, y): (f64, f64)) {
        let (least, most) = (plain(self.range.0), plain(self.range.1));
        canvas.text((left, y), Anchor::Start, "s", &least);
        let mut x = left + width(&least, 11.0) + 5.0;
        for step in 0..HEAT_STEPS {
            canvas.rect((x, y - 9.0), (13.0, 10.0), &format!("h{step}"));
            x += 13.0;
        }
        canvas.text((x + 5.0, y), Anchor::Start, "s", &most);
    }
}

/// Above a heat map's cells: title, scale, names.
const HEAD: f64 = 50.0;

/// Where the parts of all heat maps of a picture are.
struct Layout {
    /// How many are beside each other.
    beside: usize,
    /// How wide each is, and of that the words of rows.
    wide: f64,
    words: f64,
    cell: (f64, f64),
    rows: usize,
    /// Of so many rows and columns one has its name.
    every: (usize, usize),
    numbers: bool,
}

impl Layout {
    fn of(maps: &[Map], down: &Setting, across: &Setting) -> Self {
        let widest = |words: &mut dyn Iterator<Item = &String>| {
            words.map(|word| width(word, 11.0)).fold(0.0, f64::max)
        };
        let words = widest(&mut down.values.iter()).min(MOST_WORDS) + 8.0;
        let names = widest(&mut across.values.iter()) + 6.0;
        let cells = maps.iter().flat_map(|map| map.cells.iter().flatten().flatten());
        let numbers = widest(&mut cells.map(|(_, text)| text)) + 6.0;
        let (rows, columns) = (down.values.len(), across.values.len());
        let all = WIDTH - 2.0 * LEFT;
        let half = (all - GAP) / 2.0;
        let fits = words + columns as f64 * names.max(numbers) <= half;
        let (beside, wide) = if fits { (2, half) } else { (1, all) };
        let high = (MOST_HEIGHT / rows as f64).clamp(3.0, CELL.1);
        let cell = (((wide - words) / columns as f64).min(CELL.0), high);
        let every = |room: f64, step: f64| ((room / step).ceil() as usize).max(1);
        Self {
            beside,
            wide,
            words,
            cell,
            rows,
            every: (every(LEAST_HEIGHT, cell.1), every(names, cell.0)),
            numbers: numbers <= cell.0 && high >= LEAST_HEIGHT,
        }
    }

    fn high(&self) -> f64 {
        HEAD + self.rows as f64 * self.cell.1 + 18.0
    }
}
