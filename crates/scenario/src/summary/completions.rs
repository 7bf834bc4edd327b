//! How long transfers of different sizes took.

use std::time::Duration;

use super::millionths;
use crate::outcome::{Completions, DelayDistribution};

/// Where classes of sizes begin, in bytes.
const CLASSES: [u64; 5] = [0, 10_000, 100_000, 1_000_000, 10_000_000];

impl Completions {
    /// Summarises transfers, given with their bytes and, if they are done, the time that they took; `distributions` as the scenario says.
    /// Classes without any are left out.
    #[must_use]
    pub fn by_class(transfers: &[(u64, Option<Duration>)], distributions: bool) -> Vec<Self> {
        let ends = CLASSES[1..].iter().copied().map(Some).chain([None]);
        let class = |(from_bytes, below_bytes): (u64, Option<u64>)| {
            let within = |bytes: u64| {
                bytes >= from_bytes && below_bytes.is_none_or(|below_bytes| bytes < below_bytes)
            };
            let all = || transfers.iter().filter(|(bytes, _)| within(*bytes));
            let mut took: Vec<f64> =
                all().filter_map(|(_, took)| Some((*took)?.as_secs_f64())).collect();
            took.sort_by(f64::total_cmp);
            let nanos = || all().filter_map(|(_, took)| u64::try_from((*took)?.as_nanos()).ok());
            let count = took.len();
            let at = |share: f64| {
                let index = ((count as f64 * share) as usize).min(count.saturating_sub(1));
                took.get(index).copied().map(millionths)
            };
            let mean = (count > 0).then(|| took.iter().sum::<f64>() / count as f64);
            Self {
                from_bytes,
                below_bytes,
                transfers: all().count() as u64,
                done: count as u64,
                mean_s: mean.map(millionths),
                p50_s: at(0.5),
                p95_s: at(0.95),
                p99_s: at(0.99),
                max_s: at(1.0),
                distribution: distributions
                    .then(|| DelayDistribution::of_samples(nanos().collect()))
                    .flatten(),
            }
        };
        CLASSES.into_iter().zip(ends).map(class).filter(|class| class.transfers > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transfer_has_one_class() {
        let secs = |seconds| Some(Duration::from_secs(seconds));
        let transfers =
            [(9_999, secs(1)), (10_000, secs(2)), (99_999, secs(4)), (50_000_000, None)];
        let classes = Completions::by_class(&transfers, true);
        let counts = |of: fn(&Completions) -> u64| classes.iter().map(of).collect::<Vec<_>>();
        assert_eq!(counts(|class| class.from_bytes), [0, 10_000, 10_000_000]);
        assert_eq!(counts(|class| class.transfers), [1, 2, 1]);
        assert_eq!(counts(|class| class.done), [1, 2, 0]);
        let second = (classes[1].mean_s, classes[1].p50_s, classes[1].max_s);
        assert_eq!(second, (Some(3.0), Some(4.0), Some(4.0)));
        assert_eq!((classes[2].mean_s, classes[2].p50_s, classes[2].max_s), (None, None, None));
        assert_eq!(classes[2].below_bytes, None);
        let of_second = classes[1].distribution.as_ref().unwrap();
        assert_eq!((&of_second.ms, &of_second.share), (&vec![2000.0, 4000.0], &vec![0.5, 1.0]));
        assert_eq!(classes[2].distribution, None, "none was done");
        let without = Completions::by_class(&transfers, false);
        assert!(without.iter().all(|class| class.distribution.is_none()));
    }
}
