//! Pictures of bars: the comparison of all rows, and who gets how much of the goodput.

use dualq_scenario::{FlowGroup, ProbeOutcome};
use dualq_worlds::Run;

use super::axis::{Axis, plain};
use super::canvas::{Anchor, COLOURS, Canvas, WIDTH, fitted, width, wrapped};
use super::rows::{Shown, some};
use super::{Caption, Picture};
use crate::figures::{Samples, base_ms};
use crate::report::Report;

/// So many rows fit a page.
const MOST_ROWS: usize = 32;

/// From row to row, and where some words take two lines.
const STEPS: [f64; 2] = [22.0, 28.0];

/// The words beside bars take no more than this.
pub(super) const MOST_WORDS: f64 = 210.0;

/// Where pictures without an axis on the left begin.
pub(super) const LEFT: f64 = 12.0;

/// The first probe's figure above the base, of each seed.
fn above(runs: &[Run], of: fn(&ProbeOutcome) -> f64) -> Samples {
    let measured = |run: &Run| {
        let probe = run.outcome.probe.first().filter(|probe| probe.n > 0)?;
        Some((of(probe) - base_ms(&run.scenario)).max(0.0))
    };
    Samples(runs.iter().filter_map(measured).collect())
}

fn goodput(runs: &[Run]) -> Samples {
    Samples(runs.iter().map(|run| run.outcome.goodput_mbit).collect())
}

/// Rows below each other: where they begin, how high each is, where bars may begin.
pub(super) struct Rows {
    top: f64,
    step: f64,
    pub(super) begins: f64,
    count: usize,
}

impl Rows {
    /// Writes the words of each row, on two lines where one is too short.
    pub(super) fn of(canvas: &mut Canvas, rows: &[&Shown<'_>], top: f64) -> Self {
        let widest = rows.iter().map(|row| width(&row.label, 12.0)).fold(0.0, f64::max);
        let room = widest.min(MOST_WORDS);
        let step = STEPS[usize::from(widest > MOST_WORDS)];
        let all = Self { top, step, begins: LEFT + room + 12.0, count: rows.len() };
        for (place, row) in rows.iter().enumerate() {
            let middle = all.middle(place);
            if width(&row.label, 12.0) <= room {
                canvas.text((LEFT, middle + 4.0), Anchor::Start, "", &row.label);
                continue;
            }
            let mut lines = wrapped(&row.label, 12.0, room);
            let rest = if lines.len() > 1 { lines.split_off(1).join(" ") } else { String::new() };
            for (line, y) in lines.iter().chain([&rest]).zip([middle - 3.0, middle + 11.0]) {
                canvas.text((LEFT, y), Anchor::Start, "", &fitted(line, 12.0, room));
            }
        }
        all
    }

    pub(super) fn middle(&self, place: usize) -> f64 {
        self.top + (place as f64 + 0.5) * self.step
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.count as f64 * self.step
    }
}

/// Lines at round values behind bars, with the values below.
pub(super) fn grid(canvas: &mut Canvas, axis: &Axis, rows: &Rows) {
    let (top, bottom) = (rows.top, rows.bottom());
    for tick in axis.ticks(((axis.to - axis.from) / 50.0).max(2.0)) {
        let place = axis.place(tick);
        canvas.line((place, top), (place, bottom), "g");
        canvas.text((place, bottom + 14.0), Anchor::Middle, "s", &plain(tick));
    }
}

/// A deviation either way of a bar's end.
fn whisker(canvas: &mut Canvas, axis: &Axis, y: f64, samples: &Samples) {
    let Some((mean, deviation)) = samples.mean().zip(samples.deviation()) else { return };
    let (from, to) = (axis.place(mean - deviation), axis.place(mean + deviation));
    canvas.line((from, y), (to, y), "e");
    for end in [from, to] {
        canvas.line((end, y - 3.0), (end, y + 3.0), "e");
    }
}

/// The delay above the base and the goodput of each row.
pub(super) fn comparison(report: &Report<'_>, all: &[Shown<'_>], caption: &Caption) -> Picture {
    let (rows, left_out) = some(all, MOST_ROWS);
    let mut canvas = Canvas::default();
    let top = caption.head(&mut canvas, "Latency under load and goodput") + 20.0;
    let bars = Rows::of(&mut canvas, &rows, top);
    let begins = bars.begins;
    let p50 = |row: &Shown<'_>| above(row.runs, |probe| probe.p50_ms);
    let p99 = |row: &Shown<'_>| above(row.runs, |probe| probe.p99_ms);
    let longest = rows.iter().filter_map(|row| p99(row).mean()).reduce(f64::max);
    let end = WIDTH - 52.0;
    let goodput_from = if longest.is_some() { begins + (end - begins) * 0.64 } else { begins };
    let mut said = Vec::new();
    if let Some(longest) = longest {
        let numbers = |row: &Shown<'_>| {
            let (p50, p99) = (p50(row).mean()?, p99(row).mean()?);
            Some(format!("{p50:.2} · {p99:.2}"))
        };
        // Beside the longest bar stand its numbers.
        let widest =
            rows.iter().filter_map(|row| numbers(row)).map(|numbers| width(&numbers, 11.0));
        let room = widest.map(|widest| widest + 12.0).fold(92.0, f64::max);
        let axis = Axis {
            least: 0.0,
            most: longest.max(0.1),
            from: begins,
            to: goodput_from - room,
            log: false,
        };
        canvas.text((begins, top - 7.0), Anchor::Start, "b", "Delay above base (ms): p50 · p99");
        grid(&mut canvas, &axis, &bars);
        for (place, row) in rows.iter().enumerate() {
            let y = bars.middle(place);
            let (p50, p99) = (p50(row), p99(row));
            let Some((median, tail)) = p50.mean().zip(p99.mean()) else {
                canvas.text((begins + 4.0, y + 4.0), Anchor::Start, "s", "no answers");
                continue;
            };
            let reach = axis.place(tail) - begins;
            canvas.rect((begins, y - 8.0), (reach.max(1.0), 16.0), "q c0");
            let inner = (axis.place(median) - begins).max(1.0);
            canvas.rect((begins, y - 4.0), (inner, 8.0), "f c0");
            whisker(&mut canvas, &axis, y, &p50);
            let numbers = numbers(row).unwrap_or_default();
            canvas.text((begins + reach + 6.0, y + 4.0), Anchor::Start, "s o", &numbers);
        }
        said.push("Delay of the first probe above the base round-trip time: the median within the 99th percentile.");
    }
    let most = rows.iter().filter_map(|row| goodput(row.runs).mean()).fold(0.1, f64::max);
    let axis = Axis { least: 0.0, most, from: goodput_from, to: end, log: false };
    canvas.text((goodput_from, top - 7.0), Anchor::Start, "b", "Goodput (Mbit/s)");
    grid(&mut canvas, &axis, &bars);
    for (place, row) in rows.iter().enumerate() {
        let y = bars.middle(place);
        let samples = goodput(row.runs);
        let mean = samples.mean().unwrap_or(0.0);
        let reach = (axis.place(mean) - goodput_from).max(1.0);
        canvas.rect((goodput_from, y - 6.0), (reach, 12.0), "f c4");
        whisker(&mut canvas, &axis, y, &samples);
        let spread = samples
            .deviation()
            .map_or(0.0, |deviation| axis.place(mean + deviation) - axis.place(mean));
        canvas.text(
            (goodput_from + reach + spread + 5.0, y + 4.0),
            Anchor::Start,
            "s",
            &plain(mean),
        );
    }
    if report.results.seeds().count() > 1 {
        said.push("Means of the seeds, and one standard deviation either way.");
    }
    let mut said: Vec<String> = said.into_iter().map(str::to_owned).collect();
    said.extend(left_out);
    let below = bars.bottom() + 22.0;
    caption.finish(canvas, "comparison", "Latency under load and goodput", below, &said)
}

/// Who gets how much: a bar for each row, a part for each group of flows, or for each flow where there is one group. None if nobody shares.
pub(super) fn shares(report: &Report<'_>, all: &[Shown<'_>], caption: &Caption) -> Option<Picture> {
    let (rows, left_out) = some(all, MOST_ROWS);
    let parts = |row: &Shown<'_>| -> Vec<f64> {
        let groups = row.runs[0].scenario.flow.len();
        let mean = |of: &dyn Fn(&Run) -> Option<f64>| {
            Samples(row.runs.iter().filter_map(of).collect()).mean().unwrap_or(0.0)
        };
        if groups > 1 {
            (0..groups)
                .map(|at| mean(&|run| run.outcome.flow.get(at).map(|flow| flow.total_mbit)))
                .collect()
        } else {
            let flow =
                |run: &Run| run.outcome.flow.first().map_or(0, |flow| flow.goodput_mbit.len());
            let flows = row.runs.first().map_or(0, flow);
            let one =
                |run: &Run, at: usize| run.outcome.flow.first()?.goodput_mbit.get(at).copied();
            (0..flows).map(|at| mean(&|run| one(run, at))).collect()
        }
    };
    let parts: Vec<Vec<f64>> = rows.iter().map(|row| parts(row)).collect();
    let most = parts.iter().map(|parts| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if most <= 0.0 || parts.iter().all(|parts| parts.len() < 2) {
        return None;
    }
    let mut canvas = Canvas::default();
    let mut top = caption.head(&mut canvas, "Shares of the goodput");
    let groups = report
        .scenarios
        .first()
        .map(|runs| &runs.scenario().flow)
        .filter(|groups| groups.len() > 1);
    let same = |number: usize| {
        let name = |row: &&Shown<'_>| {
            row.runs[0]
                .scenario
                .flow
                .get(number)
                .map(|group| (group.count, group.cc.name().to_owned()))
        };
        let first = rows.first().and_then(name);
        rows.iter().all(|row| name(row) == first).then_some(first).flatten()
    };
    let mut what = "Each part is a flow.".to_owned();
    if let Some(groups) = groups {
        let name = |(number, group): (usize, &FlowGroup)| match same(number) {
            Some((count, cc)) if count > 1 => format!("{count} × {cc}"),
            Some((_, cc)) => cc,
            None if group.count > 1 => format!("group {}: {} flows", number + 1, group.count),
            None => format!("group {}", number + 1),
        };
        let mut names: Vec<String> = groups.iter().enumerate().map(name).collect();
        // Those of one name are told apart by their numbers, as tables have them.
        if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
            let numbered = |(at, name): (usize, String)| format!("{}: {name}", at + 1);
            names = names.into_iter().enumerate().map(numbered).collect();
        }
        let mut x = LEFT;
        for (number, name) in names.into_iter().enumerate() {
            let wide = width(&name, 12.0) + 18.0;
            if x > LEFT && x + wide > WIDTH - 8.0 {
                (x, top) = (LEFT, top + 17.0);
            }
            canvas.rect((x, top + 3.0), (12.0, 12.0), &format!("f c{}", number % COLOURS));
            canvas.text((x + 18.0, top + 13.0), Anchor::Start, "", &name);
            x += wide + 16.0;
        }
        top += 24.0;
        "Each part is a group of flows, with its share.".clone_into(&mut what);
    }
    top += 18.0;
    let bars = Rows::of(&mut canvas, &rows, top);
    let begins = bars.begins;
    let end = WIDTH - 76.0;
    let axis = Axis { least: 0.0, most: 100.0, from: begins, to: end, log: false };
    canvas.text((begins, top - 7.0), Anchor::Start, "b", "Share (%)");
    canvas.text((WIDTH - 12.0, top - 7.0), Anchor::End, "b", "of Mbit/s");
    grid(&mut canvas, &axis, &bars);
    for (place, parts) in parts.iter().enumerate() {
        let (y, total) = (bars.middle(place), parts.iter().sum::<f64>());
        canvas.text((WIDTH - 12.0, y + 4.0), Anchor::End, "", &plain(total));
        let mut from = 0.0;
        for (number, part) in parts.iter().enumerate() {
            let percent = 100.0 * part / total.max(f64::MIN_POSITIVE);
            let (left, right) = (axis.place(from), axis.place(from + percent));
            from += percent;
            let colour = if groups.is_some() { number % COLOURS } else { 0 };
            // Apart from the next by a gap, where it is wide enough to have one.
            let wide = (right - left - 1.0).max(((right - left) * 0.6).min(1.0));
            canvas.rect((left, y - 8.0), (wide, 16.0), &format!("f c{colour}"));
            let share = format!("{percent:.0} %");
            if groups.is_some() && width(&share, 11.0) + 6.0 < wide {
                canvas.text((left + wide / 2.0, y + 4.0), Anchor::Middle, "w", &share);
            }
        }
    }
    let below = bars.bottom() + 22.0;
    let mut said = vec![what];
    said.extend(left_out);
    Some(caption.finish(canvas, "shares", "Shares of the goodput", below, &said))
}
