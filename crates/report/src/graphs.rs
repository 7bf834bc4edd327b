//! Small pictures for a terminal, in Unicode's block elements: for each row a bar of the probe's delay above the base, and how that
//! went over time. All rows have the same scales.

use dualq_scenario::Outcome;
use dualq_worlds::Run;

use crate::figures::{Samples, base_ms};
use crate::grid::{Grid, Group};
use crate::report::Report;

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BAR: usize = 10;
const LINE: usize = 24;

/// The pictures of all rows of a table.
pub(crate) struct Graphs {
    /// The longest mean delay above the base, and the longest at any time.
    most_mean: f64,
    most: f64,
    cells: Vec<[String; 2]>,
}

/// The first probe's mean delay above the base.
fn mean_above(run: &Run) -> Option<f64> {
    let probe = run.outcome.probe.first().filter(|probe| probe.n > 0)?;
    Some((probe.mean_ms - base_ms(&run.scenario)).max(0.0))
}

/// Its delays above the base from the warm-up on: of each part of the time the longest.
fn over_time(run: &Run) -> Vec<Option<f64>> {
    let Outcome { series, .. } = &run.outcome;
    let Some(rtt_ms) = series.rtt_ms.first() else { return Vec::new() };
    let (base, warmup) = (base_ms(&run.scenario), run.scenario.warmup.as_secs_f64());
    let begins = series.t_s.partition_point(|t_s| *t_s <= warmup);
    let measured = rtt_ms.get(begins..).unwrap_or_default();
    let part = |at: usize| {
        let (from, to) = (at * measured.len() / LINE, (at + 1) * measured.len() / LINE);
        measured[from..to.max(from + 1).min(measured.len())].iter().copied().flatten()
    };
    let longest = |at: usize| part(at).map(|rtt| (rtt - base).max(0.0)).reduce(f64::max);
    if measured.is_empty() { Vec::new() } else { (0..LINE).map(longest).collect() }
}

impl Graphs {
    /// The scales; none if no probe was answered.
    pub(crate) fn of(report: &Report<'_>) -> Option<Self> {
        let runs = || report.results.runs().iter();
        let most_mean = runs().filter_map(mean_above).reduce(f64::max)?;
        let most = runs().flat_map(over_time).flatten().fold(0.0, f64::max);
        Some(Self { most_mean, most, cells: Vec::new() })
    }

    /// A scenario's lines in the table, of which the first of each world has pictures: those of its first seed.
    pub(crate) fn add(&mut self, report: &Report<'_>, scenario: usize, lines: usize) {
        let worlds: Vec<&[Run]> = report.scenarios[scenario].worlds().collect();
        let seeds_line = usize::from(report.results.seeds().count() > 1);
        let begins = self.cells.len();
        self.cells.resize(begins + lines, [String::new(), String::new()]);
        // Behind the first world each has a line of how far it is apart.
        let place = |world: usize| world * (1 + seeds_line) + world.saturating_sub(1);
        for (world, runs) in worlds.iter().enumerate() {
            // A probe that is never answered is not answered at once.
            let mean = Samples(runs.iter().filter_map(mean_above).collect()).mean();
            let bar = mean.map_or_else(String::new, |mean| bar(mean, self.most_mean));
            let cells = [bar, sparkline(&over_time(&runs[0]), self.most)];
            if let Some(place) = self.cells.get_mut(begins + place(world)) {
                *place = cells;
            }
        }
    }

    /// Puts them beside the figures.
    pub(crate) fn beside(self, grid: &mut Grid) {
        let names = vec!["above base".to_owned(), format!("over time, to {:.1} ms", self.most)];
        grid.groups.push(Group { title: "probe".to_owned(), names });
        for (row, cells) in grid.rows.iter_mut().zip(self.cells) {
            row.extend(cells);
        }
    }
}

/// A bar, to an eighth of a cell; something is more than nothing.
fn bar(value: f64, most: f64) -> String {
    let eighths = (value / most * (BAR * 8) as f64).round();
    let eighths = if eighths.is_finite() { (eighths as usize).clamp(1, BAR * 8) } else { 0 };
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    let blank = BAR - bar.chars().count();
    bar + &" ".repeat(blank)
}

/// A sparkline, as high as `most`; what was not measured is blank.
#[must_use]
pub fn sparkline(values: &[Option<f64>], most: f64) -> String {
    let height = |value: f64| ((value / most.max(f64::MIN_POSITIVE) * 8.0) as usize).min(7);
    values.iter().map(|value| value.map_or(' ', |value| HEIGHTS[height(value)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_lines_are_of_one_scale() {
        assert_eq!(bar(10.0, 10.0), "█".repeat(10));
        assert_eq!(bar(5.5, 10.0), "█████▌    ");
        assert_eq!(bar(0.0, 10.0), "▏         ");
        assert_eq!(bar(0.0, 0.0), " ".repeat(10));
        assert_eq!(sparkline(&[Some(0.0), None, Some(5.0), Some(10.0)], 10.0), "▁ ▅█");
    }
}
