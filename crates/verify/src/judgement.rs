//! What follows from rounds of before and after.

use dualq_host::plan::{Aim, EQUAL, FELT_MS};
use serde::Serialize;

use crate::rank::Shift;

/// After so many rounds it is looked whether there is an answer, and so often chance alone may then say that there is one, each way: together no
/// more than [`ERROR`], however much the looks have to do with each other.
const LOOKS: [(usize, f64); 4] = [(7, 0.007_9), (10, 0.005_7), (14, 0.005_7), (20, 0.005_7)];
/// How often chance alone may say "helped", and "hurt".
const ERROR: f64 = 0.025;
/// There are no more.
pub const MOST_ROUNDS: usize = LOOKS[LOOKS.len() - 1].0;
/// More throughput than this no short queue is worth. A plan's shaper takes half of it.
const LOST: f64 = 0.1;

/// What was measured once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The 95th percentile of a probe's round trips under load, above the base, in milliseconds.
    pub latency_ms: f64,
    /// What all flows got together, in Mbit/s.
    pub goodput_mbit: f64,
    /// Jain's index of them.
    pub fairness: f64,
}

/// Both once, in random order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Without the change.
    pub before: Figures,
    /// With it.
    pub after: Figures,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is better.
    Helped,
    /// It is worse, or too much throughput is lost for what is better.
    Hurt,
    /// The difference is less than a fifth, or the rounds differ too much.
    CannotBeTold,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Helped => "helped",
            Self::Hurt => "hurt",
            Self::CannotBeTold => "cannot be told",
        }
    }
}

/// After by before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub ratio: f64,
    /// It is hardly less; none if there are too few rounds to say.
    pub low: Option<f64>,
    /// It is hardly more.
    pub high: Option<f64>,
}

impl Interval {
    fn of(ratios: impl Iterator<Item = f64>, error: f64) -> Self {
        let logs: Vec<f64> = ratios.map(f64::ln).collect();
        let Shift { estimate, low, high } = Shift::of(&logs, error);
        let bound = |log: f64| log.is_finite().then(|| log.exp());
        Self { ratio: estimate.exp(), low: bound(low), high: bound(high) }
    }

    fn is_below(&self, ratio: f64) -> bool {
        self.high.is_some_and(|high| high < ratio)
    }

    fn is_above(&self, ratio: f64) -> bool {
        self.low.is_some_and(|low| low > ratio)
    }

    fn is_about_one(&self) -> bool {
        self.is_above(1.0 / EQUAL) && self.is_below(EQUAL)
    }
}

/// What the rounds say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// In a word.
    pub verdict: Verdict,
    /// The figure of the aim, after by before: of latency less is better, of throughput and fairness more.
    pub change: Interval,
    /// Goodput, after by before.
    pub goodput: Interval,
    /// How sure the intervals are, from 0 to 1.
    pub confidence: f64,
    /// How many rounds there were.
    pub rounds: usize,
}

/// The figure that an aim is about, so that ratios make sense.
fn figure(aim: Aim, figures: &Figures) -> f64 {
    match aim {
        Aim::Latency => figures.latency_ms.max(0.0) + FELT_MS,
        Aim::Throughput => figures.goodput_mbit.max(f64::MIN_POSITIVE),
        Aim::Fair => figures.fairness.max(f64::MIN_POSITIVE),
    }
}

/// What a look may err, each way; none if it is not time to look. Who has to stop may err as much as is left.
fn error(rounds: usize, is_last: bool) -> Option<f64> {
    let now = LOOKS.iter().find(|(at, _)| *at == rounds).map(|(_, error)| *error);
    let spent: f64 = LOOKS.iter().filter(|(at, _)| *at < rounds).map(|(_, error)| error).sum();
    if is_last { Some(ERROR - spent) } else { now }
}

impl Judgement {
    /// What the rounds so far say by an aim; `None` while there have to be more. The last one is an answer, and be it that it cannot be told.
    #[must_use]
    pub fn of(aim: Aim, rounds: &[Round], is_last: bool) -> Option<Self> {
        let is_last = is_last || rounds.len() >= MOST_ROUNDS;
        let error = error(rounds.len(), is_last).filter(|_| !rounds.is_empty())?;
        let change = |of: &dyn Fn(&Figures) -> f64| {
            Interval::of(rounds.iter().map(|round| of(&round.after) / of(&round.before)), error)
        };
        let goodput = change(&|figures| figure(Aim::Throughput, figures));
        let change = change(&|figures| figure(aim, figures));
        let (is_better, is_worse) = match aim {
            Aim::Latency => (change.is_below(1.0), change.is_above(1.0)),
            Aim::Throughput | Aim::Fair => (change.is_above(1.0), change.is_below(1.0)),
        };
        let verdict = if is_worse || goodput.is_below(1.0 - LOST) {
            Verdict::Hurt
        } else if is_better {
            Verdict::Helped
        } else if is_last || change.is_about_one() {
            Verdict::CannotBeTold
        } else {
            return None;
        };
        let confidence = 1.0 - 2.0 * error;
        Some(Self { verdict, change, goodput, confidence, rounds: rounds.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_err_no_more_than_all_may() {
        assert!(LOOKS.iter().map(|(_, error)| error).sum::<f64>() <= ERROR);
        assert!(LOOKS.is_sorted());
        assert_eq!((error(7, false), error(8, false)), (Some(0.007_9), None));
        // Who stops early has more left.
        assert_eq!((error(5, true), error(8, true)), (Some(0.025), Some(0.025 - 0.007_9)));
    }
}
