//! How times are distributed, as Prometheus counts them.

use std::time::Duration;

/// The upper ends of the classes: 100 µs to 10 s, about three to a factor of ten.
pub(crate) const BOUNDS: [Duration; 16] = [
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// How many times were as long, and how long all were together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// For each class those of it alone, and at the end those beyond all.
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    pub(crate) fn add(&mut self, time: Duration) {
        let class = BOUNDS.partition_point(|bound| *bound < time);
        self.counts[class] += 1;
        self.sum += time;
    }

    /// The upper end of each class with all times up to it.
    pub(crate) fn up_to(&self) -> impl Iterator<Item = (Duration, u64)> {
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS.into_iter().zip(sums)
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) const fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_for_its_class_and_all_above() {
        let mut histogram = Histogram::default();
        // The upper end belongs to the class.
        for micros in [100, 101, 50_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let up_to: Vec<u64> = histogram.up_to().map(|(_, count)| count).collect();
        assert_eq!(up_to[..3], [1, 2, 2]);
        assert_eq!((up_to[BOUNDS.len() - 1], histogram.count()), (2, 3));
        assert_eq!(histogram.sum(), Duration::from_micros(50_000_201));
        assert!(BOUNDS.is_sorted());
    }
}
