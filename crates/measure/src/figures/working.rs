//! When a path is in working conditions (draft-ietf-ippm-responsiveness-08 §5.4), and how sure that is (§5.4.1).

use serde::{Deserialize, Serialize};

use super::distribution::mean_and_deviation;

/// `ID`, how long an interval is, in seconds: of versions 02 to 08. In -09 (July 2026) it is 5 s, "for now", and nothing could be stable before 50 s.
pub const INTERVAL_S: f64 = 1.0;
/// `MAD`, of how many intervals averages are, and how many of these have to be alike.
const WINDOW: usize = 4;
/// `SDT`, the share of the last that their standard deviation is less than when they are.
const TOLERANCE: f64 = 0.05;
/// `INP`, the flows at first; `INC`, those that come with each interval; `MNP`, the most, all of them in each direction.
const FIRST_FLOWS: u32 = 1;
const MORE_FLOWS: u32 = 1;
const MOST_FLOWS: u32 = 16;

/// Whether flows that grow in number have loaded the path to the full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkingConditions {
    /// Flows in each direction at the end.
    pub flows: u32,
    /// Of goodput; of both directions at once, that of each.
    pub goodput: Stability,
    /// Of responsiveness, which is looked at from when goodput is stable.
    pub responsiveness: Stability,
}

/// Whether something is the same from interval to interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stability {
    /// How sure it is.
    pub confidence: Confidence,
    /// Since when, in seconds since the stage began, if it is: the end of the interval in which that was found.
    pub stable_s: Option<f64>,
}

/// How sure a figure is (§5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// There were too few intervals to tell whether it is stable.
    Low,
    /// There were enough, and it is not.
    Medium,
    /// It is stable.
    High,
}

impl Confidence {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl WorkingConditions {
    /// How many flows a direction has after so many intervals, at most `most`.
    #[must_use]
    pub fn flows_after(intervals: u32, most: u32) -> u32 {
        let flows = FIRST_FLOWS.saturating_add(MORE_FLOWS.saturating_mul(intervals));
        flows.min(most.clamp(FIRST_FLOWS, MOST_FLOWS))
    }

    /// Of the goodput of each direction that is loaded, in Mbit/s, and of the responsiveness, in round trips per minute, in each interval
    /// ([`rpm_window_s`](Self::rpm_window_s)).
    #[must_use]
    pub fn of(flows: u32, goodput_mbit: &[Vec<f64>], rpm: &[Option<f64>]) -> Self {
        let averages: Vec<Vec<Option<f64>>> =
            goodput_mbit.iter().map(|way| moving_averages(way)).collect();
        let intervals = averages.iter().map(Vec::len).min().unwrap_or(0);
        let all_are_alike = |last: &usize| averages.iter().all(|way| are_alike(&way[..=*last]));
        let saturated = (0..intervals).find(all_are_alike);
        let tracked = &rpm[saturated.unwrap_or(rpm.len()).min(rpm.len())..];
        let stable = (0..tracked.len()).find(|last| are_alike(&tracked[..=*last]));
        let stable = stable.map(|at| saturated.unwrap_or(0) + at);
        Self {
            flows,
            goodput: Stability::of(intervals, saturated),
            responsiveness: Stability::of(tracked.len(), stable),
        }
    }

    /// The responsiveness of an interval is of the probes that were answered after the first of these times and until the second, in seconds since the stage
    /// began: in this interval and those before it.
    #[must_use]
    pub fn rpm_window_s(interval: usize) -> (f64, f64) {
        let end = interval + 1;
        (end.saturating_sub(WINDOW) as f64 * INTERVAL_S, end as f64 * INTERVAL_S)
    }

    /// Whether there is nothing left to wait for.
    #[must_use]
    pub const fn are_reached(&self) -> bool {
        self.responsiveness.stable_s.is_some()
    }

    /// Of which of so many intervals the responsiveness is the result.
    #[must_use]
    pub fn result(&self, intervals: usize) -> Option<usize> {
        let stable = self.responsiveness.stable_s.map(|at_s| (at_s / INTERVAL_S).round() as usize);
        stable.unwrap_or(intervals).checked_sub(1)
    }

    /// From when on figures are of working conditions, in seconds, if the stage ends then: since goodput is stable, and of as many intervals as an average
    /// at least.
    #[must_use]
    pub fn since_s(&self, end_s: f64) -> f64 {
        let latest_s = (end_s - WINDOW as f64 * INTERVAL_S).max(0.0);
        self.goodput.stable_s.map_or(0.0, |at_s| at_s.min(latest_s))
    }
}

impl Stability {
    /// Of something that was looked at for so many intervals, and was stable by the end of that one, if it was.
    fn of(intervals: usize, stable: Option<usize>) -> Self {
        let confidence = match stable {
            Some(_) => Confidence::High,
            None if intervals < WINDOW => Confidence::Low,
            None => Confidence::Medium,
        };
        Self { confidence, stable_s: stable.map(|at| (at + 1) as f64 * INTERVAL_S) }
    }
}

/// The mean of each interval and those before it; none where these are too few.
fn moving_averages(values: &[f64]) -> Vec<Option<f64>> {
    let of = |end: usize| {
        let window = &values[end.checked_sub(WINDOW)?..end];
        Some(window.iter().sum::<f64>() / WINDOW as f64)
    };
    (1..=values.len()).map(of).collect()
}

/// Whether the last of these are there, and differ by little. The deviation is that of a sample, for the draft does not say.
fn are_alike(values: &[Option<f64>]) -> bool {
    let Some(from) = values.len().checked_sub(WINDOW) else { return false };
    let last: Option<Vec<f64>> = values[from..].iter().copied().collect();
    last.is_some_and(|last| mean_and_deviation(&last).1 < TOLERANCE * last[WINDOW - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stability(confidence: Confidence, stable_s: Option<f64>) -> Stability {
        Stability { confidence, stable_s }
    }

    fn of(goodput: &[f64], rpm: &[f64]) -> (Stability, Stability) {
        let rpm: Vec<Option<f64>> = rpm.iter().copied().map(Some).collect();
        let conditions = WorkingConditions::of(3, &[goodput.to_vec()], &rpm);
        assert_eq!(conditions.flows, 3);
        (conditions.goodput, conditions.responsiveness)
    }

    const LOW: Stability = Stability { confidence: Confidence::Low, stable_s: None };
    const MEDIUM: Stability = Stability { confidence: Confidence::Medium, stable_s: None };

    /// Four averages of four intervals take seven, and four responsivenesses, of which the first is that interval's, three more.
    #[test]
    fn what_never_changes_is_stable_after_ten_intervals() {
        for (intervals, expected) in [
            (0, (LOW, LOW)),
            (3, (LOW, LOW)),
            (4, (MEDIUM, LOW)),
            (6, (MEDIUM, LOW)),
            (7, (stability(Confidence::High, Some(7.0)), LOW)),
            (9, (stability(Confidence::High, Some(7.0)), LOW)),
            (10, (stability(Confidence::High, Some(7.0)), stability(Confidence::High, Some(10.0)))),
        ] {
            let (goodput, rpm) = (vec![20.0; intervals], vec![600.0; intervals]);
            assert_eq!(of(&goodput, &rpm), expected, "{intervals}");
        }
    }

    /// Averages 17.5, 20, 20, 20 have a deviation of 1.25, and 1 is 5 % of the last; one interval later there are only 20s.
    #[test]
    fn a_ramp_puts_goodput_off() {
        let ramp = [10.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0];
        assert_eq!(of(&ramp[..7], &[600.0; 7]).0, MEDIUM);
        assert_eq!(of(&ramp, &[600.0; 8]).0, stability(Confidence::High, Some(8.0)));
        // From 13, deviations are 0.875.
        let short = [13.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0];
        assert_eq!(of(&short, &[600.0; 7]).0, stability(Confidence::High, Some(7.0)));
    }

    /// It is measured against the last: 100, 100, 100, 110 have a deviation of 5, of 110, and the same backwards 5 of 100, which is not less.
    #[test]
    fn responsiveness_is_measured_against_the_last() {
        let goodput = [20.0; 11];
        let rpm = |last: [f64; 5]| [&[900.0; 6][..], &last].concat();
        let up = of(&goodput, &rpm([100.0, 100.0, 100.0, 110.0, 500.0]));
        assert_eq!(up.1, stability(Confidence::High, Some(10.0)));
        let down = of(&goodput[..10], &rpm([110.0, 100.0, 100.0, 100.0, 0.0])[..10]);
        assert_eq!(down.1, MEDIUM);
    }

    /// What was alike before goodput was stable does not count.
    #[test]
    fn responsiveness_is_looked_at_once_goodput_is_stable() {
        let rpm = [500.0, 500.0, 500.0, 500.0, 500.0, 500.0, 500.0, 100.0, 300.0, 500.0];
        assert_eq!(of(&[20.0; 10], &rpm).1, MEDIUM);
        let restless: Vec<f64> = (0..20).map(|at| if at % 8 < 4 { 5.0 } else { 40.0 }).collect();
        assert_eq!(of(&restless, &[600.0; 20]), (MEDIUM, LOW));
    }

    #[test]
    fn both_directions_have_to_be_stable() {
        let (quick, slow) = (vec![20.0; 12], [vec![1.0; 3], vec![8.0; 9]].concat());
        let rpm = [Some(600.0); 12];
        let alone = WorkingConditions::of(1, std::slice::from_ref(&slow), &rpm);
        let both = WorkingConditions::of(1, &[quick, slow], &rpm);
        // From 1, 1, 1, 8 on: 2.75, 4.5, 6.25, 8, 8, 8, 8.
        assert_eq!(both.goodput, stability(Confidence::High, Some(10.0)));
        assert_eq!(both, alone);
    }

    #[test]
    fn an_interval_without_probes_is_not_stable() {
        let mut rpm = vec![Some(600.0); 14];
        rpm[8] = None;
        let conditions = WorkingConditions::of(1, &[vec![20.0; 14]], &rpm);
        assert_eq!(conditions.responsiveness, stability(Confidence::High, Some(13.0)));
        // Nothing that moves is nothing that is stable.
        assert_eq!(of(&[0.0; 10], &[0.0; 10]), (MEDIUM, LOW));
    }

    #[test]
    fn flows_come_one_by_one_up_to_sixteen_or_to_what_the_server_allows() {
        let flows =
            |most| [0, 1, 2, 14, 15, 16, 4000].map(|at| WorkingConditions::flows_after(at, most));
        assert_eq!(flows(32), [1, 2, 3, 15, 16, 16, 16]);
        assert_eq!(flows(2), [1, 2, 2, 2, 2, 2, 2]);
        assert_eq!(flows(0), [1; 7]);
    }

    #[test]
    fn figures_are_of_when_goodput_was_stable_and_of_four_intervals_at_least() {
        let of = |intervals| {
            WorkingConditions::of(1, &[vec![20.0; intervals]], &[Some(600.0); 20][..intervals])
        };
        let since_s = |intervals, end_s| of(intervals).since_s(end_s);
        assert_eq!((since_s(10, 10.0), since_s(10, 10.5), since_s(10, 12.0)), (6.0, 6.5, 7.0));
        assert_eq!((since_s(6, 6.5), since_s(7, 3.0)), (0.0, 0.0));
        assert_eq!(
            [0, 6, 9, 10, 12].map(|n| of(n).result(n)),
            [None, Some(5), Some(8), Some(9), Some(9)]
        );
        assert_eq!(
            [0, 3, 9].map(WorkingConditions::rpm_window_s),
            [(0.0, 1.0), (0.0, 4.0), (6.0, 10.0)]
        );
    }
}
