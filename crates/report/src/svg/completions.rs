//! How long transfers took, how many ended, and by size how the times are distributed.

use std::collections::BTreeMap;

use super::axis::{Axis, plain};
use super::bars::{Rows, grid};
use super::canvas::{Anchor, Canvas, WIDTH};
use super::distribution::steps;
use super::plot::{Line, Look, Plot, legend};
use super::rows::{Shown, some};
use super::{Caption, Picture, lines};
use crate::transfers::{self, Sizes};

/// So many rows fit a page.
const MOST_ROWS: usize = 32;

/// The transfers of a row, of all seeds together.
struct Transfers {
    all: usize,
    /// How long those took that ended, in seconds, ascending.
    done: Vec<f64>,
}

impl Transfers {
    fn of(row: &Shown<'_>) -> Self {
        let (mut all, mut done) = (0, Vec::new());
        for run in row.runs {
            let groups = run.scenario.flow.iter().zip(&run.outcome.flow);
            for (_, outcome) in groups.filter(|(group, _)| group.size.is_some()) {
                all += outcome.completion_s.len();
                done.extend(outcome.completion_s.iter().flatten().copied());
            }
        }
        done.sort_unstable_by(f64::total_cmp);
        Self { all, done }
    }

    fn median(&self) -> Option<f64> {
        self.done.get(self.done.len().saturating_sub(1) / 2).copied()
    }
}

/// The median and the longest time of each row's transfers. None if there are no transfers.
pub(super) fn completions(all: &[Shown<'_>], caption: &Caption) -> Option<Picture> {
    let (rows, left_out) = some(all, MOST_ROWS);
    let transfers: Vec<Transfers> = rows.iter().map(|row| Transfers::of(row)).collect();
    if transfers.iter().all(|transfers| transfers.all == 0) {
        return None;
    }
    let title = "Completion times of transfers";
    let mut canvas = Canvas::default();
    let top = caption.head(&mut canvas, title) + 20.0;
    let bars = Rows::of(&mut canvas, &rows, top);
    let longest = transfers.iter().filter_map(|transfers| transfers.done.last()).copied();
    let (unit, times) = match longest.clone().fold(0.0, f64::max) {
        longest if longest < 1.0 => ("ms", 1e3),
        _ => ("s", 1.0),
    };
    let most = longest.fold(0.0, f64::max) * times;
    // Beside the longest bar stand its numbers.
    let axis = Axis {
        least: 0.0,
        most: if most > 0.0 { most } else { 1.0 },
        from: bars.begins,
        to: WIDTH - 190.0,
        log: false,
    };
    let above = format!("Time ({unit}): median · longest, and how many ended");
    canvas.text((bars.begins, top - 7.0), Anchor::Start, "b", &above);
    grid(&mut canvas, &axis, &bars);
    for (place, Transfers { all, done }) in transfers.iter().enumerate() {
        let y = bars.middle(place);
        let ended = format!("{} of {all}", done.len());
        let (Some(median), Some(longest)) = (transfers[place].median(), done.last()) else {
            canvas.text((bars.begins + 4.0, y + 4.0), Anchor::Start, "s o", &ended);
            continue;
        };
        let (median, longest) = (median * times, longest * times);
        let reach = axis.place(longest) - bars.begins;
        canvas.rect((bars.begins, y - 8.0), (reach.max(1.0), 16.0), "q c5");
        let inner = (axis.place(median) - bars.begins).max(1.0);
        canvas.rect((bars.begins, y - 4.0), (inner, 8.0), "f c5");
        let numbers = format!("{} · {}, {ended}", plain(median), plain(longest));
        canvas.text((bars.begins + reach + 6.0, y + 4.0), Anchor::Start, "s o", &numbers);
    }
    let mut said = vec!["From the start of a transfer to its last acknowledged byte; of flows that send again and again the last time.".to_owned()];
    if rows.iter().any(|row| row.runs.len() > 1) {
        said.push("All seeds together.".to_owned());
    }
    said.extend(left_out);
    Some(caption.finish(canvas, "completions", title, bars.bottom() + 22.0, &said))
}

/// For each class of sizes how long its transfers took. None if there are no transfers, or their times were not kept.
pub(super) fn by_size(all: &[Shown<'_>], caption: &Caption) -> Option<Picture> {
    let (rows, left_out) = some(all, lines::MOST_ROWS);
    let mut classes: BTreeMap<Sizes, Vec<Line>> = BTreeMap::new();
    for (colour, row) in rows.iter().enumerate() {
        let scenario = &row.runs[0].scenario;
        let groups = 0..scenario.flow.len();
        for class in groups.flat_map(|group| transfers::classes(scenario, row.runs, group)) {
            let Some(of_all) = class.of_all() else { continue };
            let lines = classes.entry(class.sizes).or_default();
            let dash = lines.iter().filter(|line| line.look.colour == colour).count();
            let points = steps(&of_all, 0.0, false);
            lines.push(Line { points, look: Look { colour, dash } });
        }
    }
    let times = || classes.values().flatten().flat_map(|line| &line.points).map(|(ms, _)| *ms);
    let longest = times().reduce(f64::max)?;
    let shortest = times().fold(longest, f64::min);
    for line in classes.values_mut().flatten() {
        // Nothing takes less than the shortest, and what has not ended by the longest of all never does.
        if let (Some((first, _)), Some((_, share))) = (line.points.first(), line.points.last()) {
            let (first, share) = (*first, *share);
            line.points.insert(0, (first, Some(0.0)));
            line.points.push((longest, share));
        }
    }
    let title = "Completion times of transfers by size, CDF";
    let mut canvas = Canvas::default();
    let top = caption.head(&mut canvas, title);
    let mut y = legend(&mut canvas, top, &lines::entries(&rows)) + 6.0;
    let count = classes.len();
    for (number, (sizes, lines)) in classes.into_iter().enumerate() {
        let plot = Plot {
            title: &sizes.words(),
            unit: "share of all transfers of this size that took no longer",
            lines,
            x: (shortest, longest.max(shortest * 2.0), true),
            y: (0.0, 1.0, false),
            stepped: true,
            x_label: (number + 1 == count).then_some("time (ms)"),
            ..Plot::default()
        };
        y = plot.draw(&mut canvas, y, if count > 1 { 110.0 } else { 220.0 }) + 8.0;
    }
    let mut said =
        vec!["A curve that ends below 1 is of transfers of which not all ended.".to_owned()];
    if rows.iter().any(|row| row.runs.len() > 1) {
        said.push("All seeds together.".to_owned());
    }
    said.extend(left_out);
    Some(caption.finish(canvas, "completions-cdf", title, y, &said))
}
