//! Delay against goodput: the scenarios of which no other is better in both.

use dualq_scenario::Scenario;
use dualq_worlds::{Run, ScenarioRuns};

use crate::figures::{Measure, Samples};
use crate::rank;
use crate::report::Report;
use crate::sweep;
use crate::words::one_line;

/// Fewer scenarios have no front worth a look.
const FEWEST_TO_DRAW: usize = 3;

/// More names than this are no easier to read than the table.
const MOST_NAMED: usize = 8;

/// Delay and goodput of scenarios, in the world that was named first.
#[derive(Debug)]
pub struct Front {
    /// The delay: the first probe's 99th percentile.
    pub delay: Measure,
    /// The goodput of all flows.
    pub goodput: Measure,
    /// The means of both, of each scenario that has them by its number.
    pub points: Vec<(usize, f64, f64)>,
    /// The numbers of the scenarios of which no other has both less delay and more goodput, the least delay first.
    pub scenarios: Vec<usize>,
}

fn mean(measure: &Measure, runs: &[Run]) -> Option<f64> {
    Samples(runs.iter().filter_map(|run| measure.of(run)).collect()).mean()
}

impl Front {
    /// The front of these; none if they have no probe.
    #[must_use]
    pub fn of(scenarios: &[ScenarioRuns<'_>]) -> Option<Self> {
        let all: Vec<&Scenario> = scenarios.iter().map(ScenarioRuns::scenario).collect();
        let find = |name| Measure::find(name, &all).ok();
        let (delay, goodput) = (find("probe.p99")?, find("goodput")?);
        let both = |(number, runs): (usize, &ScenarioRuns<'_>)| {
            let runs = runs.first_world();
            Some((number, mean(&delay, runs)?, mean(&goodput, runs)?))
        };
        let points: Vec<(usize, f64, f64)> =
            scenarios.iter().enumerate().filter_map(both).collect();
        let scenarios = front(&points);
        Some(Self { delay, goodput, points, scenarios })
    }

    /// The front of a report, if it is worth a picture.
    pub(crate) fn drawn(report: &Report<'_>) -> Option<Self> {
        Self::of(&report.scenarios).filter(|front| front.points.len() >= FEWEST_TO_DRAW)
    }

    /// The axis of delays: from where to where, so that no dot stands on the edge, and whether by its logarithm.
    pub(crate) fn delays(&self) -> (f64, f64, bool) {
        let all = || self.points.iter().map(|(_, delay, _)| *delay);
        let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        if sweep::is_wide((least, most)) {
            return (least / 1.2, most * 1.2, true);
        }
        let beside = 0.04 * (most - least).max(0.01 * most);
        ((least - beside).max(0.0), most + beside, false)
    }

    /// What a picture of it says: dots have no names, so those on the line are named here where they are few.
    pub(crate) fn words(&self, report: &Report<'_>) -> String {
        let (on, all) = (self.scenarios.len(), self.points.len());
        let mut words = format!(
            "On the line are {on} of {all} scenarios: no other has both less delay and more goodput."
        );
        if on <= MOST_NAMED {
            let label = |number: &usize| one_line(&rank::label(&report.scenarios[*number]));
            let labels: Vec<String> = self.scenarios.iter().map(label).collect();
            words += &format!(" From the left: {}.", labels.join("; "));
        }
        words
    }
}

/// Of numbered points those of which no other has both less of the first value and more of the second; the least of the first leads.
fn front(points: &[(usize, f64, f64)]) -> Vec<usize> {
    let mut points = points.to_vec();
    points.sort_by(|(_, delay, gain), (_, other, more)| {
        delay.total_cmp(other).then(more.total_cmp(gain))
    });
    let mut best = f64::NEG_INFINITY;
    points.retain(|(_, _, gain)| {
        let gains = *gain > best;
        best = best.max(*gain);
        gains
    });
    points.into_iter().map(|(number, ..)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_has_what_nothing_beats() {
        let points = [
            (5.0, 40.0),
            (3.0, 30.0),
            (4.0, 30.0),
            (9.0, 49.0),
            (9.0, 48.0),
            (1.0, 10.0),
            (10.0, 49.0),
        ];
        let numbered = points.into_iter().enumerate();
        let points: Vec<_> =
            numbered.map(|(number, (delay, gain))| (number, delay, gain)).collect();
        assert_eq!(front(&points), [5, 1, 0, 3]);
        assert_eq!(front(&[]), Vec::<usize>::new());
    }
}
