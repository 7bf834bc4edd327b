//! From when a series is steady, and how well its mean is known by then.

use dualq_units::student;

use super::distribution::mean_and_deviation;

/// Samples of a batch: neighbours are alike, batches hardly.
const BATCH: usize = 5;
/// With fewer batches nothing is said of a mean.
const FEWEST_BATCHES: usize = 4;
/// The steady part of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// How many samples belong to the ramp-up before it.
    pub begins: usize,
    /// The mean of the steady part.
    pub mean: f64,
    /// Its standard deviation from batch to batch.
    pub deviation: f64,
    /// By how much the mean of its second half is above that of its first.
    pub drift: f64,
    /// The mean is known to so much more or less, with 95 % confidence; `None` of too few samples.
    pub interval: Option<f64>,
}

impl Steady {
    /// Finds it by the rule MSER-5 (K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation
    /// 69(6), 1997): means of five samples each, of which as many are left out at the beginning, at most half, as make the mean of the
    /// others best known. None of a series that is shorter than a batch.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let batches = batches(samples);
        let error = |left_out: &usize| {
            let rest = &batches[*left_out..];
            let (mean, _) = mean_and_deviation(rest);
            let squares: f64 = rest.iter().map(|batch| (batch - mean).powi(2)).sum();
            squares / (rest.len() as f64).powi(2)
        };
        let begins =
            (0..=batches.len().checked_sub(1)? / 2).min_by(|a, b| error(a).total_cmp(&error(b)))?;
        Some(Self::of_batches(&batches, begins))
    }

    /// The same of a series that is steady from its beginning on.
    #[must_use]
    pub fn of_all(samples: &[f64]) -> Option<Self> {
        let batches = batches(samples);
        (!batches.is_empty()).then(|| Self::of_batches(&batches, 0))
    }

    fn of_batches(batches: &[f64], begins: usize) -> Self {
        let rest = &batches[begins..];
        let (mean, deviation) = mean_and_deviation(rest);
        let interval = (rest.len() >= FEWEST_BATCHES)
            .then(|| student(rest.len()) * deviation / (rest.len() as f64).sqrt());
        let (first, second) = rest.split_at(rest.len() / 2);
        let drift = if first.is_empty() {
            0.0
        } else {
            mean_and_deviation(second).0 - mean_and_deviation(first).0
        };
        Self { begins: begins * BATCH, mean, deviation, drift, interval }
    }

    /// Whether the mean is known to this share of it, or to that much, and has not moved by more: what grows all the time, as a queue that
    /// fills, has a mean, but it says little.
    #[must_use]
    pub fn stands(&self, share: f64, absolute: f64) -> bool {
        let most = (share * self.mean).max(absolute);
        self.drift.abs() <= most && self.interval.is_some_and(|interval| interval <= most)
    }
}

fn batches(samples: &[f64]) -> Vec<f64> {
    samples.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_left_out() {
        let mut samples: Vec<f64> = (0..15).map(|step| f64::from(step) * 6.0).collect();
        samples.extend((0..45).map(|step| 96.0 + f64::from(step % 3)));
        let steady = Steady::of(&samples).unwrap();
        assert_eq!(steady.begins, 15);
        assert!((steady.mean - 97.0).abs() < 0.2, "{steady:?}");
        assert!(steady.stands(0.01, 0.0) && !steady.stands(0.0001, 0.0));
    }

    #[test]
    fn what_grows_all_the_time_does_not_stand() {
        let growing: Vec<f64> = (0..100).map(|step| 100.0 + f64::from(step) * 0.8).collect();
        let steady = Steady::of(&growing).unwrap();
        assert!(
            steady.interval.unwrap() < 0.1 * steady.mean && !steady.stands(0.1, 0.0),
            "{steady:?}"
        );
    }

    #[test]
    fn few_samples_do_not_stand_and_none_are_nothing() {
        assert_eq!(Steady::of(&[1.0; 4]), None);
        let steady = Steady::of(&[1.0; 15]).unwrap();
        assert_eq!((steady.interval, steady.stands(1.0, 1.0)), (None, false));
        assert!(Steady::of(&[1.0; 20]).unwrap().stands(0.01, 0.0));
    }

    /// The interval holds the true mean about as often as it says, of samples that do not depend on one another.
    #[test]
    fn the_interval_holds_the_mean_in_19_of_20_series() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut held = 0;
        for _ in 0..1000 {
            let samples: Vec<f64> = (0..100).map(|_| uniform()).collect();
            let steady = Steady::of(&samples).unwrap();
            held += u32::from((steady.mean - 0.5).abs() <= steady.interval.unwrap());
        }
        // The rule looks for the quietest rest, which costs some of the confidence.
        assert!((850..=990).contains(&held), "{held}");
    }
}
