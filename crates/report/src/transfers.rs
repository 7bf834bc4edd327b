//! Transfers by classes of size: how many ended, and how long these took.

use dualq_scenario::{DelayDistribution, FlowOutcome, Scenario, Size};
use dualq_worlds::Run;

use crate::figures::Samples;
use crate::svg::axis::plain;

/// The transfers of one class of a group of flows, of all seeds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) sizes: Sizes,
    pub(crate) transfers: u64,
    pub(crate) done: u64,
    /// Of those that ended, the mean of the seeds' medians and 99th percentiles, in milliseconds.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// How long those took that ended; none without any, or where it was not kept.
    pub(crate) took: Option<DelayDistribution>,
}

/// Which transfers are in a class: by their bytes, from the first number on and below the second. Of one size both are that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sizes(u64, Option<u64>);

impl Sizes {
    pub(crate) fn words(self) -> String {
        let size = |bytes: u64| match bytes {
            0..1_000 => format!("{bytes} bytes"),
            1_000..1_000_000 => format!("{} kB", plain(bytes as f64 / 1e3)),
            _ => format!("{} MB", plain(bytes as f64 / 1e6)),
        };
        match self {
            Self(from, None) => format!("{} or more", size(from)),
            Self(from, Some(below)) if from == below => size(from),
            Self(0, Some(below)) => format!("below {}", size(below)),
            Self(from, Some(below)) => format!("{} to {}", size(from), size(below)),
        }
    }
}

/// What a class has of one seed.
struct Part {
    sizes: Sizes,
    transfers: u64,
    done: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    took: Option<DelayDistribution>,
}

/// The classes of a group of flows, by size; none if its flows have no end.
pub(crate) fn classes(scenario: &Scenario, runs: &[Run], number: usize) -> Vec<Class> {
    let Some(size) = scenario.flow.get(number).and_then(|group| group.size.as_ref()) else {
        return Vec::new();
    };
    let of = runs.iter().filter_map(|run| run.outcome.flow.get(number));
    let parts: Vec<Part> = of.flat_map(|flow| parts(flow, size)).collect();
    let mut sizes: Vec<Sizes> = parts.iter().map(|part| part.sizes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let class = |sizes: Sizes| {
        let of = || parts.iter().filter(move |part| part.sizes == sizes);
        // Older documents have zeros where none was done.
        let mean = |of_part: fn(&Part) -> Option<f64>| {
            Samples(of().filter(|part| part.done > 0).filter_map(of_part).collect()).mean()
        };
        Class {
            sizes,
            transfers: of().fold(0, |sum, part| part.transfers.saturating_add(sum)),
            done: of().fold(0, |sum, part| part.done.saturating_add(sum)),
            p50_ms: mean(|part| part.p50_ms),
            p99_ms: mean(|part| part.p99_ms),
            took: DelayDistribution::pooled(of().filter_map(|part| part.took.as_ref())),
        }
    };
    sizes.into_iter().map(class).collect()
}

/// The classes of one seed. Where all transfers are of one size and made once, outcomes have no classes but each time.
fn parts(flow: &FlowOutcome, size: &Size) -> Vec<Part> {
    if let (Size::Fixed(bytes), true) = (size, flow.completions.is_empty()) {
        let ended = flow.completion_s.iter().flatten();
        let nanos: Vec<u64> = ended.map(|seconds| (seconds * 1e9).round() as u64).collect();
        let done = nanos.len() as u64;
        let took = DelayDistribution::of_samples(nanos);
        let at = |share| took.as_ref().and_then(|took| took.at(share));
        return vec![Part {
            sizes: Sizes(bytes.0, Some(bytes.0)),
            transfers: flow.completion_s.len() as u64,
            done,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            took,
        }];
    }
    let part = |class: &dualq_scenario::Completions| Part {
        sizes: match size {
            Size::Fixed(bytes) => Sizes(bytes.0, Some(bytes.0)),
            _ => Sizes(class.from_bytes, class.below_bytes),
        },
        transfers: class.transfers,
        done: class.done,
        p50_ms: class.p50_s.map(|seconds| seconds * 1e3),
        p99_ms: class.p99_s.map(|seconds| seconds * 1e3),
        took: class.distribution.clone(),
    };
    flow.completions.iter().map(part).collect()
}

impl Class {
    /// The distribution with shares of all transfers, also of those that did not end.
    pub(crate) fn of_all(&self) -> Option<DelayDistribution> {
        let mut took = self.took.clone()?;
        let ended = self.done as f64 / self.transfers.max(1) as f64;
        for share in &mut took.share {
            *share = dualq_scenario::summary::millionths(*share * ended);
        }
        Some(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualq_units::Bytes;

    fn flow(completion_s: &[Option<f64>]) -> FlowOutcome {
        FlowOutcome { completion_s: completion_s.to_vec(), ..FlowOutcome::default() }
    }

    #[test]
    fn transfers_of_one_size_are_one_class() {
        let flow = flow(&[Some(0.25), None, Some(0.1), None]);
        let parts = parts(&flow, &Size::Fixed(Bytes(51_200)));
        let [part] = parts.as_slice() else { panic!("{}", parts.len()) };
        assert_eq!((part.transfers, part.done, part.p50_ms), (4, 2, Some(100.0)));
        assert_eq!(part.sizes.words(), "51.2 kB");
        let class = Class {
            sizes: part.sizes,
            transfers: part.transfers,
            done: part.done,
            p50_ms: None,
            p99_ms: None,
            took: part.took.clone(),
        };
        let of_all = class.of_all().unwrap();
        assert_eq!((of_all.ms, of_all.share), (vec![100.0, 250.0], vec![0.25, 0.5]));
    }

    #[test]
    fn classes_are_said_in_words() {
        let words = |from, below| Sizes(from, below).words();
        assert_eq!(words(0, Some(10_000)), "below 10 kB");
        assert_eq!(words(100_000, Some(1_000_000)), "100 kB to 1 MB");
        assert_eq!(words(10_000_000, None), "10 MB or more");
        assert_eq!(words(2_097_152, Some(2_097_152)), "2.1 MB");
        assert_eq!(words(700, Some(700)), "700 bytes");
    }
}
