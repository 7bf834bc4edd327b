//! Cumulative distribution functions of delays, in so many steps that a picture of them looks the same as of all samples.

use hdrhistogram::Histogram;

use super::{millionths, millis};
use crate::outcome::DelayDistribution;

/// The quantiles that are kept: each per cent, and towards either end ten times denser for each power of ten.
fn quantiles() -> impl Iterator<Item = f64> {
    let body = (1..100).map(|percent| f64::from(percent) / 100.0);
    let tail = |digits: i32| {
        let step = 10_f64.powi(-digits);
        (1..10).map(move |nines| 1.0 - 10.0 * step + f64::from(nines) * step)
    };
    body.chain((3..=6).flat_map(tail))
}

impl DelayDistribution {
    /// Of samples in nanoseconds; nothing of nothing.
    #[must_use]
    pub fn of_samples(mut nanos: Vec<u64>) -> Option<Self> {
        nanos.sort_unstable();
        (!nanos.is_empty()).then(|| Self::of_sorted(&nanos))
    }

    /// Of sorted samples in nanoseconds, of which there is at least one.
    pub(super) fn of_sorted(sorted: &[u64]) -> Self {
        let count = sorted.len();
        let at = |quantile: f64| {
            let rank = (count as f64 * quantile).ceil() as usize;
            let nanos = sorted[rank.clamp(1, count) - 1];
            (nanos, sorted.partition_point(|sample| *sample <= nanos) as u64)
        };
        Self::of(count as u64, (sorted[0], sorted[count - 1]), at)
    }

    /// Of a histogram of nanoseconds, which is not empty, and whose longest is known exactly.
    pub(super) fn of_histogram(nanos: &Histogram<u64>, longest_ns: u64) -> Self {
        let count = nanos.len();
        let at = |quantile: f64| {
            let at = nanos.value_at_quantile(quantile).min(longest_ns);
            (at, nanos.count_between(0, at))
        };
        Self::of(count, (nanos.min(), longest_ns), at)
    }

    /// `at` gives the time at a quantile, and how many samples are no longer.
    fn of(samples: u64, (least, most): (u64, u64), at: impl Fn(f64) -> (u64, u64)) -> Self {
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let mut add = |nanos: u64, below: u64| {
            let step = (millis(nanos as f64), millionths(below as f64 / samples as f64));
            match steps.last_mut() {
                // Times that are the same to the microsecond are one step.
                Some(last) if last.0 >= step.0 => last.1 = last.1.max(step.1),
                _ => steps.push(step),
            }
        };
        // A curve begins where nothing is shorter.
        add(least, 0);
        for quantile in quantiles() {
            let (nanos, below) = at(quantile);
            add(nanos, below);
        }
        add(most, samples);
        let (ms, share) = steps.into_iter().unzip();
        Self { samples, ms, share }
    }

    /// Whether it can be one: as many times as shares, both ascending, and shares of 1.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let Self { ms, share, .. } = self;
        let ascend = ms.is_sorted() && share.is_sorted();
        let of_one = share.iter().all(|share| (0.0..=1.0).contains(share));
        !ms.is_empty() && ms.len() == share.len() && ascend && of_one
    }

    /// Several as one, each with the weight of its samples; nothing of nothing.
    #[must_use]
    pub fn pooled<'a>(of: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let all: Vec<&Self> = of.into_iter().filter(|one| one.samples > 0).collect();
        if let [one] = all.as_slice() {
            return Some((*one).clone());
        }
        let samples: u64 = all.iter().map(|one| one.samples).sum();
        let mut ms: Vec<f64> = all.iter().flat_map(|one| one.ms.iter().copied()).collect();
        ms.sort_unstable_by(f64::total_cmp);
        ms.dedup_by(|next, kept| next.total_cmp(kept).is_eq());
        let share = |at: &f64| {
            let below = all.iter().map(|one| one.share_below(*at) * one.samples as f64);
            millionths(below.sum::<f64>() / samples as f64)
        };
        let share = ms.iter().map(share).collect();
        (samples > 0).then_some(Self { samples, ms, share })
    }

    /// The share that was no longer than so many milliseconds.
    #[must_use]
    pub fn share_below(&self, ms: f64) -> f64 {
        match self.ms.partition_point(|step| *step <= ms) {
            0 => 0.0,
            steps => self.share.get(steps - 1).copied().unwrap_or(1.0),
        }
    }

    /// The shortest time that at least this share was no longer than.
    #[must_use]
    pub fn at(&self, share: f64) -> Option<f64> {
        let step = self.share.partition_point(|below| *below < share);
        self.ms.get(step.min(self.ms.len().checked_sub(1)?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_those_of_all_samples() {
        let sorted: Vec<u64> = (1..=1000).map(|n| n * 1_000_000).collect();
        let of_all = DelayDistribution::of_sorted(&sorted);
        assert_eq!(of_all.samples, 1000);
        assert_eq!(
            (of_all.at(0.5), of_all.at(0.99), of_all.at(1.0)),
            (Some(500.0), Some(990.0), Some(1000.0))
        );
        assert_eq!(of_all.share_below(0.5).to_string(), "0");
        assert_eq!(of_all.share_below(990.5).to_string(), "0.99");
        assert!(of_all.ms.len() < 200 && of_all.ms.is_sorted() && of_all.share.is_sorted());
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        sorted.iter().for_each(|nanos| histogram.record(*nanos).unwrap());
        let of_histogram = DelayDistribution::of_histogram(&histogram, 1_000_000_000);
        for share in [0.01, 0.5, 0.95, 0.999, 1.0] {
            let (one, other) = (of_all.at(share).unwrap(), of_histogram.at(share).unwrap());
            assert!((one - other).abs() <= 0.002 * one, "{share}: {one} and {other}");
        }
    }

    #[test]
    fn what_cannot_be_one_is_told() {
        let sound = |ms: &[f64], share: &[f64]| {
            DelayDistribution { samples: 3, ms: ms.to_vec(), share: share.to_vec() }.is_sound()
        };
        assert!(sound(&[1.0, 2.0], &[0.5, 1.0]));
        assert!(
            !sound(&[], &[]) && !sound(&[1.0], &[0.5, 1.0]) && !sound(&[2.0, 1.0], &[0.5, 1.0])
        );
        assert!(!sound(&[1.0, 2.0], &[1.0, 0.5]) && !sound(&[1.0, 2.0], &[0.5, 4.1]));
        assert!(!sound(&[1.0], &[-0.1]) && !sound(&[1.0], &[f64::NAN]));
    }

    #[test]
    fn one_sample_is_one_step() {
        let one = DelayDistribution::of_sorted(&[2_000_000]);
        assert_eq!((one.ms, one.share), (vec![2.0], vec![1.0]));
    }

    #[test]
    fn pooled_ones_weigh_by_their_samples() {
        let one = DelayDistribution::of_sorted(&[1_000_000; 3]);
        let other = DelayDistribution::of_sorted(&[2_000_000]);
        let pooled = DelayDistribution::pooled([&one, &other]).unwrap();
        assert_eq!((pooled.samples, pooled.ms, pooled.share), (4, vec![1.0, 2.0], vec![0.75, 1.0]));
        assert_eq!(DelayDistribution::pooled([]), None);
    }
}
