//! Long lines in few points: what is drawn has no more of them than a picture shows, and the extremes stay.

/// How many points a line has at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thinning {
    pub(crate) points: usize,
}

impl Thinning {
    /// So many intervals in a row become two points.
    fn bucket(self, intervals: usize) -> Option<usize> {
        (intervals > self.points).then(|| intervals.div_ceil((self.points / 2).max(1)))
    }

    /// The times of the points that are kept.
    pub(crate) fn times(self, t_s: &[f64]) -> Vec<f64> {
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
    pub(crate) fn line(
        self,
        values: impl ExactSizeIterator<Item = Option<f64>>,
    ) -> Vec<Option<f64>> {
        let Some(bucket) = self.bucket(values.len()) else { return values.collect() };
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
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn thinning(points: usize) -> Thinning {
        Thinning { points }
    }

    #[test]
    fn of_each_bucket_the_extremes_stay_in_their_order() {
        let thinning = thinning(4);
        let times: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(thinning.times(&times), [1.0, 5.0, 6.0, 9.0]);
        let values = [3.0, 9.0, 1.0, 4.0, 5.0, 2.0, 2.0, 8.0, 3.0].map(Some);
        assert_eq!(thinning.line(values.into_iter()), [9.0, 1.0, 2.0, 8.0].map(Some));
        let gaps = [None, Some(1.0), None, None, None, None, None, None, None];
        assert_eq!(thinning.line(gaps.into_iter()), [Some(1.0), Some(1.0), None, None]);
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let values: Vec<Option<f64>> = (1..=9).map(|n| Some(f64::from(n))).collect();
        assert_eq!(thinning(9).line(values.iter().copied()), values);
    }

    #[test]
    fn times_and_values_are_as_many_at_any_length() {
        for points in 2..12 {
            for length in 0..60_u32 {
                let times: Vec<f64> = (0..length).map(f64::from).collect();
                let line = thinning(points).line(times.iter().map(|time| Some(*time)));
                assert_eq!(thinning(points).times(&times).len(), line.len(), "{points} {length}");
                assert!(line.len() <= points.max(2) + 2, "{points} {length}");
            }
        }
    }
}
