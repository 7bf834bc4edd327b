//! What is asked of figures: when a mean is known well enough, and which scenario is the best.

use std::cmp::Ordering;

use dualq_report::{Measure, Samples, Unit};
use dualq_scenario::Scenario;
use dualq_units::{Rate, tc_time};
use dualq_worlds::Run;

/// What is wrong with the words of an aim or an end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AimError(String);

/// When no more seeds are added to a scenario: `ci(probe.p99) < 5%`, of the mean, or `ci(probe.p99) < 2ms`.
#[derive(Debug)]
pub struct Until {
    measure: Measure,
    bound: Bound,
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Of the mean.
    Share(f64),
    /// In the figure's unit.
    Absolute(f64),
}

/// What is best: what figures may be at most or at least, then which is to be the greatest or the least.
/// `probe.p99 < 20ms, max goodput`.
#[derive(Debug)]
pub struct Aim {
    limits: Vec<Limit>,
    goal: Measure,
    greatest: bool,
    words: String,
}

#[derive(Debug)]
struct Limit {
    measure: Measure,
    below: bool,
    bound: f64,
}

/// How good a scenario is by an aim: better ones are less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// By how much its figures miss their limits, each as a share of the limit; 0 if they keep them.
    pub misses: f64,
    /// The figure that is to be the greatest or the least, as what is to be least.
    pub cost: f64,
}

/// A number in the words of a figure's unit.
fn number(word: &str, unit: Unit) -> Option<f64> {
    let word = word.trim();
    let read = match unit {
        Unit::Millis => tc_time::parse_span(word).ok().map(|time| time.as_secs_f64() * 1e3),
        Unit::Megabits => {
            let bits = word.parse::<Rate>().ok().map(Rate::as_bits_per_second);
            bits.map(|bits| bits as f64 / 1e6)
        }
        Unit::Count => word.parse::<u64>().ok().map(|count| count as f64),
        Unit::Ratio => {
            let percent = || Some(word.strip_suffix('%')?.parse::<f64>().ok()? / 100.0);
            percent().or_else(|| word.parse().ok())
        }
    };
    // A bare number is a time or a rate in units that nobody means.
    let bare = matches!(unit, Unit::Millis | Unit::Megabits) && word.parse::<f64>().is_ok();
    read.filter(|read| read.is_finite() && *read >= 0.0 && !bare)
}

/// What such words look like.
const fn example(unit: Unit) -> &'static str {
    match unit {
        Unit::Millis => "a time, such as 20ms",
        Unit::Megabits => "a rate, such as 10mbit",
        Unit::Count => "a whole number",
        Unit::Ratio => "a share, such as 0.9 or 90%",
    }
}

fn find(name: &str, scenarios: &[&Scenario]) -> Result<Measure, AimError> {
    Measure::find(name.trim(), scenarios).map_err(AimError)
}

fn mean(measure: &Measure, runs: &[Run]) -> Option<f64> {
    Samples(runs.iter().filter_map(|run| measure.of(run)).collect()).mean()
}

impl Limit {
    fn room(&self, runs: &[Run]) -> f64 {
        let Some(mean) = mean(&self.measure, runs) else { return -1.0 };
        let room = if self.below { self.bound - mean } else { mean - self.bound };
        room / self.bound.max(f64::MIN_POSITIVE)
    }
}

impl Until {
    /// Reads `ci(FIGURE) < BOUND`: half of the interval that holds the mean over the seeds with 95 % confidence, as a share of the mean
    /// or in the figure's unit. Figures are those that the scenarios have.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(words: &str, scenarios: &[&Scenario]) -> Result<Self, AimError> {
        let parts = words.split_once('<').and_then(|(figure, bound)| {
            Some((figure.trim().strip_prefix("ci(")?.strip_suffix(')')?, bound.trim()))
        });
        let Some((figure, bound)) = parts else {
            return Err(AimError(format!(
                "{words:?}: give ci(FIGURE) < BOUND, such as ci(probe.p99) < 5%"
            )));
        };
        let measure = find(figure, scenarios)?;
        let share = || Some(bound.strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0);
        let bound = match share().filter(|share| share.is_finite()) {
            Some(share) => Bound::Share(share),
            None => {
                let unit = measure.column().unit;
                Bound::Absolute(number(bound, unit).ok_or_else(|| {
                    let amount = match unit {
                        // Here percent are of the mean.
                        Unit::Ratio => "a number, such as 0.02",
                        unit => example(unit),
                    };
                    AimError(format!(
                        "{bound:?}: give {amount}, or a share of the mean, such as 5%"
                    ))
                })?)
            }
        };
        match bound {
            Bound::Share(least) | Bound::Absolute(least) if least <= 0.0 => {
                Err(AimError(format!("{words:?}: no mean is known to 0 or less; give more")))
            }
            _ => Ok(Self { measure, bound, words: words.to_owned() }),
        }
    }

    /// Its figure of a run.
    #[must_use]
    pub fn of(&self, run: &Run) -> Option<f64> {
        self.measure.of(run)
    }

    /// Whether the mean is known well enough. Of one sample nothing is known; of a figure that no run has there is nothing to know.
    #[must_use]
    pub fn holds(&self, samples: &Samples) -> bool {
        let Some(mean) = samples.mean() else { return true };
        let most = match self.bound {
            Bound::Share(share) => share * mean.abs(),
            Bound::Absolute(most) => most,
        };
        // Of a mean of 0 that never varied, the interval is 0 too.
        samples.interval().is_some_and(|interval| interval <= most)
    }

    /// As it was given.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl Aim {
    /// Reads limits, if any, and what is to be the greatest or the least, with commas: `probe.p99 < 20ms, fairness > 0.8, max goodput`.
    /// Figures are those that the scenarios have.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(words: &str, scenarios: &[&Scenario]) -> Result<Self, AimError> {
        let such = "such as \"probe.p99 < 20ms, max goodput\"";
        let mut limits = Vec::new();
        let mut goal = None;
        for part in words.split(',').map(str::trim) {
            if goal.is_some() {
                return Err(AimError(format!(
                    "{words:?}: max or min is the last, and there is one, {such}"
                )));
            }
            let (first, rest) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            if first == "max" || first == "min" {
                goal = Some((find(rest, scenarios)?, first == "max"));
                continue;
            }
            let below = part.contains('<');
            let Some((figure, bound)) = part.split_once(['<', '>']) else {
                return Err(AimError(format!(
                    "{part:?}: give FIGURE < BOUND, FIGURE > BOUND, max FIGURE or min FIGURE, {such}"
                )));
            };
            let measure = find(figure, scenarios)?;
            let unit = measure.column().unit;
            let bound = number(bound, unit)
                .ok_or_else(|| AimError(format!("{:?}: give {}", bound.trim(), example(unit))))?;
            limits.push(Limit { measure, below, bound });
        }
        let Some((goal, greatest)) = goal else {
            return Err(AimError(format!(
                "{words:?}: say at the end what is to be the greatest or the least, {such}"
            )));
        };
        Ok(Self { limits, goal, greatest, words: words.to_owned() })
    }

    /// How good runs of one scenario are, by the means over them. A figure that none of them has misses its limit altogether.
    #[must_use]
    pub fn score(&self, runs: &[Run]) -> Score {
        let miss = |limit: &Limit| (-limit.room(runs)).max(0.0);
        let cost = mean(&self.goal, runs);
        let cost = cost.map_or(f64::MAX, |mean| if self.greatest { -mean } else { mean });
        Score { misses: self.limits.iter().map(miss).sum(), cost }
    }

    /// How many limits there are.
    pub(crate) fn limits(&self) -> usize {
        self.limits.len()
    }

    /// How far a figure is from its limit on the right side, as a share of the limit; below 0 on the wrong one.
    pub(crate) fn room(&self, limit: usize, runs: &[Run]) -> f64 {
        self.limits[limit].room(runs)
    }

    /// The figures that it asks for: those with limits, then the one that is to be the greatest or the least.
    pub fn measures(&self) -> impl Iterator<Item = &Measure> {
        self.limits.iter().map(|limit| &limit.measure).chain([&self.goal])
    }

    /// The figure that is to be the greatest or the least.
    #[must_use]
    pub fn goal(&self) -> &Measure {
        &self.goal
    }

    /// As it was given.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl Score {
    /// Whether all limits are kept.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.misses <= 0.0
    }

    /// Whether any run has the figure that is to be the greatest or the least.
    #[must_use]
    pub fn has_goal(&self) -> bool {
        self.cost < f64::MAX
    }

    /// Which is better: what misses less, then what costs less.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        self.misses.total_cmp(&other.misses).then(self.cost.total_cmp(&other.cost))
    }
}

#[cfg(test)]
mod tests {
    use dualq_scenario::Sweep;

    use super::*;

    fn scenario() -> Scenario {
        let two = "[[flow]]\ncc = 'cubic'\n[[flow]]\ncc = 'bbr'\n[[udp]]\nkind = 'voice'";
        Sweep::parse(two).unwrap().variants().remove(0).scenario
    }

    fn run(goodput: f64, p99: Option<f64>) -> Run {
        let scenario = scenario();
        let mut outcome = dualq_scenario::Outcome { goodput_mbit: goodput, ..Default::default() };
        outcome.probe = vec![dualq_scenario::ProbeOutcome {
            n: p99.map_or(0, |_| 9),
            p99_ms: p99.unwrap_or(0.0),
            ..Default::default()
        }];
        let (settings, world) = (dualq_worlds::Settings::default(), "model".to_owned());
        Run { settings, world, seed: 1, scenario, outcome, kernel: None }
    }

    #[test]
    fn limits_come_first_then_the_goal() {
        let scenario = scenario();
        let aim =
            Aim::parse("probe.p99 < 20ms, goodput > 10mbit, max goodput", &[&scenario]).unwrap();
        let score = |goodput, p99| aim.score(&[run(goodput, p99)]);
        let order = [
            score(48.0, Some(19.0)),
            score(47.0, Some(1.0)),
            // Half above one limit.
            score(49.0, Some(30.0)),
            // Both are missed by a tenth and by half.
            score(9.0, Some(30.0)),
            score(49.0, None),
        ];
        assert!(order[1].keeps() && !order[2].keeps());
        for pair in order.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
        let names: Vec<&str> = aim.measures().map(Measure::name).collect();
        assert_eq!(names, ["probe.0.p99", "goodput", "goodput"]);
        let least = Aim::parse("min flow.1.goodput", &[&scenario]).unwrap();
        assert!(least.score(&[run(1.0, None)]).keeps());
    }

    #[test]
    fn a_mean_is_known_when_its_interval_is_small() {
        let scenario = scenario();
        let until = |words| Until::parse(words, &[&scenario]).unwrap();
        let samples = |values: &[f64]| Samples(values.to_vec());
        // 4.303 of a deviation of 0.1 over the root of 3: 2.48 % of the mean.
        let three = samples(&[9.9, 10.0, 10.1]);
        assert!(until("ci(probe.p99) < 2.5%").holds(&three));
        assert!(!until("ci(probe.p99) < 2.4%").holds(&three));
        assert!(until("ci(probe.p99)<250us").holds(&three));
        assert!(!until("ci(probe.p99) < 240us").holds(&three));
        // One says nothing; zeros are zero; what nobody has is not waited for.
        assert!(!until("ci(queue.drops) < 5%").holds(&samples(&[10.0])));
        assert!(until("ci(queue.drops) < 5%").holds(&samples(&[0.0, 0.0])));
        assert!(until("ci(queue.drops) < 5%").holds(&samples(&[])));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let scenario = scenario();
        let wrong = [
            ("", "\"\": give FIGURE < BOUND"),
            ("probe.p99 < 20ms", "\"probe.p99 < 20ms\": say at the end what is to be"),
            (
                "max goodput, probe.p99 < 20ms",
                "\"max goodput, probe.p99 < 20ms\": max or min is the last",
            ),
            (
                "max goodputs",
                "no figure is called \"goodputs\"; there are goodput, flow.goodput, flow.1.goodput, fairness",
            ),
            ("probe.p99 < 20, max goodput", "\"20\": give a time, such as 20ms"),
            ("goodput > 5ms, max goodput", "\"5ms\": give a rate, such as 10mbit"),
            ("fairness > x, max goodput", "\"x\": give a share, such as 0.9 or 90%"),
            ("queue.drops < -1, max goodput", "\"-1\": give a whole number"),
        ];
        for (words, expected) in wrong {
            let said = Aim::parse(words, &[&scenario]).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
        let ends = [
            ("probe.p99 < 5%", "\"probe.p99 < 5%\": give ci(FIGURE) < BOUND"),
            ("ci(x) < 5%", "no figure is called \"x\""),
            ("ci(probe.p99) < 0%", "\"ci(probe.p99) < 0%\": no mean is known to 0"),
            (
                "ci(probe.p99) < 5",
                "\"5\": give a time, such as 20ms, or a share of the mean, such as 5%",
            ),
            ("ci(fairness) < x", "\"x\": give a number, such as 0.02, or a share of the mean"),
        ];
        for (words, expected) in ends {
            let said = Until::parse(words, &[&scenario]).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
