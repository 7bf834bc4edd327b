//! Pictures of what happened when.

use dualq_scenario::Series;
use dualq_worlds::Run;

use super::canvas::Canvas;
use super::plot::{Line, Look, Plot, legend};
use super::rows::{Shown, some};
use super::{Caption, Picture};
use crate::figures::base_ms;
use crate::thin::Thinning;

/// More lines than this are hard to tell apart.
pub(crate) const MOST_ROWS: usize = 7;

/// Twice as many points as there are places on the axis would not be seen.
pub(crate) const THINNING: Thinning = Thinning { points: 560 };

/// The legend of rows.
pub(super) fn entries(rows: &[&Shown<'_>]) -> Vec<(Look, String)> {
    let entry = |(colour, row): (usize, &&Shown<'_>)| (Look { colour, dash: 0 }, row.label.clone());
    rows.iter().enumerate().map(entry).collect()
}

/// What a chart over time has of a run: a line, or one for each group or probe.
type Lists = fn(&Series) -> Vec<Vec<Option<f64>>>;

fn there(list: &[f64]) -> Vec<Option<f64>> {
    list.iter().copied().map(Some).collect()
}

fn counts(list: &[u64]) -> Vec<Option<f64>> {
    list.iter().map(|count| Some(*count as f64)).collect()
}

/// What is drawn over time.
struct OverTime {
    title: &'static str,
    unit: &'static str,
    lists: Lists,
    /// Whether it is of round trips, which have a base.
    base: bool,
}

const MAIN: [OverTime; 3] = [
    OverTime {
        title: "Goodput",
        unit: "Mbit/s, of each group of flows",
        lists: |series| series.goodput_mbit.iter().map(|list| there(list)).collect(),
        base: false,
    },
    OverTime {
        title: "Probe's round-trip time",
        unit: "ms, the last of each interval",
        lists: |series| series.rtt_ms.clone(),
        base: true,
    },
    OverTime {
        title: "Queue delay",
        unit: "ms, mean of each interval",
        lists: |series| vec![series.queue_delay_ms.clone()],
        base: false,
    },
];

const SIGNALS: [OverTime; 3] = [
    OverTime {
        title: "Probability of marks or drops",
        unit: "of 1",
        lists: |series| vec![series.probability.clone()],
        base: false,
    },
    OverTime {
        title: "CE marks",
        unit: "in each interval",
        lists: |series| vec![counts(&series.queue_marks)],
        base: false,
    },
    OverTime {
        title: "Drops",
        unit: "packets in each interval",
        lists: |series| vec![counts(&series.queue_drops)],
        base: false,
    },
];

/// Goodput, round trips and queue delay on one axis of time.
pub(super) fn time(all: &[Shown<'_>], caption: &Caption) -> Option<Picture> {
    over_time(all, caption, "time", "Over time", &MAIN)
}

/// Probability, marks and drops on one axis of time.
pub(super) fn signals(all: &[Shown<'_>], caption: &Caption) -> Option<Picture> {
    over_time(all, caption, "signals", "What the queue does over time", &SIGNALS)
}

fn over_time(
    all: &[Shown<'_>],
    caption: &Caption,
    name: &'static str,
    title: &str,
    charts: &[OverTime],
) -> Option<Picture> {
    let (rows, left_out) = some(all, MOST_ROWS);
    let runs: Vec<&Run> = rows.iter().map(|row| &row.runs[0]).collect();
    let end =
        runs.iter().filter_map(|run| run.outcome.series.t_s.last()).copied().fold(0.0, f64::max);
    let lines = |chart: &OverTime| -> Vec<Line> {
        let of = |(colour, run): (usize, &&Run)| {
            let series = &run.outcome.series;
            let times = THINNING.times(&series.t_s);
            let line = |(dash, values): (usize, Vec<Option<f64>>)| {
                let values = THINNING.line(values.into_iter());
                Line {
                    points: times.iter().copied().zip(values).collect(),
                    look: Look { colour, dash },
                }
            };
            (chart.lists)(series).into_iter().enumerate().map(line).collect::<Vec<_>>()
        };
        runs.iter().enumerate().flat_map(of).collect()
    };
    let most = |lines: &[Line]| {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .filter_map(|(_, value)| *value)
            .fold(0.0, f64::max)
    };
    // Where nothing ever happens there is no chart.
    let charts: Vec<(&OverTime, Vec<Line>)> = charts
        .iter()
        .map(|chart| (chart, lines(chart)))
        .filter(|(_, lines)| most(lines) > 0.0)
        .collect();
    if charts.is_empty() || end <= 0.0 {
        return None;
    }
    let mut canvas = Canvas::default();
    let top = caption.head(&mut canvas, title);
    let mut y = legend(&mut canvas, top, &entries(&rows)) + 6.0;
    let mut bases: Vec<f64> = runs.iter().map(|run| base_ms(&run.scenario)).collect();
    bases.dedup();
    let mut warmups: Vec<f64> = runs.iter().map(|run| run.scenario.warmup.as_secs_f64()).collect();
    warmups.dedup();
    let warmup = if let [warmup] = warmups.as_slice() { *warmup } else { 0.0 };
    let count = charts.len();
    for (number, (chart, lines)) in charts.into_iter().enumerate() {
        let most = most(&lines);
        let base = if chart.base { bases.first().copied() } else { None };
        // One base can be marked; of several each is another row's.
        let marks = base.filter(|_| bases.len() == 1);
        let plot = Plot {
            title: chart.title,
            unit: chart.unit,
            lines,
            x: (0.0, end, false),
            y: (0.0, most * 1.06, false),
            marks: marks.map(|base| (base, format!("base {base:.2} ms"))).into_iter().collect(),
            warmup,
            stepped: false,
            x_label: (number + 1 == count).then_some("time (s)"),
            ..Plot::default()
        };
        y = plot.draw(&mut canvas, y, 110.0) + 8.0;
    }
    let mut said = Vec::new();
    if rows.iter().any(|row| row.runs.len() > 1) {
        said.push("Lines are of the first seed.".to_owned());
    }
    if runs.iter().any(|run| run.scenario.flow.len() > 1) && name == "time" {
        said.push("Groups of flows after the first are dashed.".to_owned());
    }
    if warmup > 0.0 {
        said.push("What is shaded is the warm-up, which no figure counts.".to_owned());
    }
    if runs.iter().any(|run| run.outcome.series.t_s.len() > THINNING.points) {
        said.push(
            "Thinned: of intervals in a row the least and the greatest are drawn.".to_owned(),
        );
    }
    said.extend(left_out);
    Some(caption.finish(canvas, name, title, y, &said))
}
