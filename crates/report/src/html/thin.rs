//! How much of series is kept, so that a page stays small however long and many the runs are.

use dualq_scenario::Scenario;
use dualq_scenario::summary::MOST_SINGLE_FLOWS;
use serde::Serialize;

use crate::report::Report;

/// So many numbers of series are in a page at most: some 3 MB.
const MOST_NUMBERS: usize = 450_000;

/// A line that is drawn needs no more points than a screen has columns, twice.
const MOST_POINTS: usize = 2400;

/// Fewer make no picture.
const LEAST_POINTS: usize = 60;

/// How much of each row is kept.
pub(super) struct Budget {
    /// Points of each line.
    points: usize,
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
        Self { points, drawn, left_out, is_thinned: longest > points }
    }

    /// What was left out.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.is_thinned {
            words.push(format!(
                "Lines over time are thinned to {} points each: of so many intervals in a row the least and the greatest are kept.",
                self.points
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

    /// So many intervals in a row become two points.
    fn bucket(&self, intervals: usize) -> Option<usize> {
        (intervals > self.points).then(|| intervals.div_ceil((self.points / 2).max(1)))
    }

    /// The times of the points that are kept.
    pub(super) fn times(&self, t_s: &[f64]) -> Vec<f64> {
        match self.bucket(t_s.len()) {
            None => t_s.to_vec(),
            Some(bucket) => t_s
                .chunks(bucket)
                .flat_map(|times| [times.first(), times.get(1).and(times.last())])
                .flatten()
                .copied()
                .collect(),
        }
    }

    /// The values there: of each bucket the least and the greatest, in the order in which they came.
    pub(super) fn line(&self, values: impl ExactSizeIterator<Item = Option<f64>>) -> Line {
        let Some(bucket) = self.bucket(values.len()) else { return Line(values.collect()) };
        let values: Vec<Option<f64>> = values.collect();
        let mut kept = Vec::new();
        for chunk in values.chunks(bucket) {
            let there = || chunk.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
            let by_value = |one: &(usize, f64), other: &(usize, f64)| one.1.total_cmp(&other.1);
            let (least, most) = (there().min_by(by_value), there().max_by(by_value));
            let (first, last) = if least.map(|(at, _)| at) <= most.map(|(at, _)| at) {
                (least, most)
            } else {
                (most, least)
            };
            kept.push(first.map(|(_, value)| value));
            if chunk.len() > 1 {
                kept.push(last.map(|(_, value)| value));
            }
        }
        Line(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(points: usize) -> Budget {
        Budget { points, drawn: 1, left_out: 0, is_thinned: true }
    }

    #[test]
    fn of_each_bucket_the_extremes_stay_in_their_order() {
        let budget = budget(4);
        let times: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(budget.times(&times), [1.0, 5.0, 6.0, 9.0]);
        let values = [3.0, 9.0, 1.0, 4.0, 5.0, 2.0, 2.0, 8.0, 3.0].map(Some);
        assert_eq!(budget.line(values.into_iter()).0, [9.0, 1.0, 2.0, 8.0].map(Some));
        let gaps = [None, Some(1.0), None, None, None, None, None, None, None];
        assert_eq!(budget.line(gaps.into_iter()).0, [Some(1.0), Some(1.0), None, None]);
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let budget = budget(9);
        let values: Vec<Option<f64>> = (1..=9).map(|n| Some(f64::from(n))).collect();
        assert_eq!(budget.line(values.iter().copied()).0, values);
    }

    #[test]
    fn times_and_values_are_as_many_at_any_length() {
        for points in 2..12 {
            for length in 0..60_u32 {
                let times: Vec<f64> = (0..length).map(f64::from).collect();
                let line = budget(points).line(times.iter().map(|time| Some(*time)));
                assert_eq!(budget(points).times(&times).len(), line.0.len(), "{points} {length}");
                assert!(line.0.len() <= points.max(2) + 2, "{points} {length}");
            }
        }
    }
}
