//! How much of series is kept, so that a page stays small however long and many the runs are.

use dualq_scenario::Scenario;
use dualq_scenario::summary::MOST_SINGLE_FLOWS;
use serde::Serialize;

use crate::report::Report;
use crate::thin::Thinning;

/// So many numbers of series are in a page at most: some 3 MB.
const MOST_NUMBERS: usize = 450_000;

/// A line that is drawn needs no more points than a screen has columns, twice.
const MOST_POINTS: usize = 2400;

/// Fewer make no picture.
const LEAST_POINTS: usize = 60;

/// How much of each row is kept.
pub(super) struct Budget {
    /// Points of each line.
    thinning: Thinning,
    /// Rows that are drawn, in each report.
    pub(super) drawn: usize,
    left_out: usize,
    is_thinned: bool,
}

/// A line of a row: the values at its times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Line(pub(super) Vec<Option<f64>>);

/// What a row draws of a scenario: lists of the series.
fn lists(scenario: &Scenario) -> usize {
    // Four of each group; of the queue delay, packets, probability, drops and marks; the times.
    let flows: usize = scenario.flow.iter().map(|group| group.count as usize).sum();
    let single = if flows as u64 <= MOST_SINGLE_FLOWS { flows } else { 0 };
    4 * scenario.flow.len() + single + scenario.probe.len() + 6
}

impl Budget {
    /// `most_drawn` rows of all reports together are drawn.
    pub(super) fn of(reports: &[Report<'_>], most_drawn: usize) -> Self {
        let drawn = (most_drawn / reports.len().max(1)).max(1);
        let (mut numbers, mut longest, mut left_out) = (0, 0, 0);
        for report in reports {
            let worlds = report.results.worlds().len();
            left_out += report.figures.rows.len().saturating_sub(drawn);
            for (place, scenario) in report.ranked.iter().flatten().enumerate() {
                if place * worlds < drawn {
                    let runs = &report.scenarios[*scenario];
                    numbers += lists(runs.scenario()) * worlds;
                    longest = longest.max(runs.runs()[0].outcome.series.t_s.len());
                }
            }
        }
        let points = (MOST_NUMBERS / numbers.max(1)).clamp(LEAST_POINTS, MOST_POINTS);
        let thinning = Thinning { points };
        Self { thinning, drawn, left_out, is_thinned: longest > points }
    }

    /// What was left out.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.is_thinned {
            words.push(format!(
                "Lines over time are thinned to {} points each: of so many intervals in a row the least and the greatest are kept.",
                self.thinning.points
            ));
        }
        if self.left_out > 0 {
            words.push(format!(
                "{} rows have figures only: lines and distributions are kept of the {} that are ranked best of each scenario file.",
                self.left_out, self.drawn
            ));
        }
        words
    }

    /// The times of the points that are kept.
    pub(super) fn times(&self, t_s: &[f64]) -> Vec<f64> {
        self.thinning.times(t_s)
    }

    /// The values there.
    pub(super) fn line(&self, values: impl ExactSizeIterator<Item = Option<f64>>) -> Line {
        Line(self.thinning.line(values))
    }
}
