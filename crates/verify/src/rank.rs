//! Wilcoxon's signed-rank test, exact, and the interval that belongs to it.

/// How many of the `2^n` ways to sign the ranks 1 to `n` have each sum of those with a plus.
fn ways(n: usize) -> Vec<f64> {
    let mut ways = vec![1.0];
    for rank in 1..=n {
        let mut more = vec![0.0; ways.len() + rank];
        for (sum, count) in ways.iter().enumerate() {
            more[sum] += count;
            more[sum + rank] += count;
        }
        ways = more;
    }
    ways
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shift {
    /// The pseudo-median (Hodges and Lehmann): the median of all means of two values, also of one with itself.
    pub(crate) estimate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Shift {
    /// Where values lie that are symmetric around one place. Of such, no more than a share `error` has its place below `low`, and as many above
    /// `high`; where there are too few values for that, these are infinite.
    ///
    /// # Panics
    /// If there are no values.
    pub(crate) fn of(values: &[f64], error: f64) -> Self {
        let mut means: Vec<f64> = values
            .iter()
            .enumerate()
            .flat_map(|(at, one)| values[at..].iter().map(move |other| one.midpoint(*other)))
            .collect();
        means.sort_by(f64::total_cmp);
        // Below the place are at least so many means, but for a share of `error`: the sum of ranks counts them.
        let total = 2_f64.powi(i32::try_from(values.len()).unwrap_or(i32::MAX));
        let mut share = 0.0;
        let fit = ways(values.len()).into_iter().take_while(|count| {
            share += count / total;
            share <= error
        });
        let outside = fit.count();
        let bound =
            |at: Option<usize>, none: f64| at.and_then(|at| means.get(at)).copied().unwrap_or(none);
        Self {
            estimate: means[(means.len() - 1) / 2].midpoint(means[means.len() / 2]),
            low: bound(outside.checked_sub(1), f64::NEG_INFINITY),
            high: match outside {
                0 => f64::INFINITY,
                _ => bound(means.len().checked_sub(outside), f64::INFINITY),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest sums that are no likelier than that, as tables of the test have them (Wilcoxon and Wilcox, 1964).
    #[test]
    fn critical_sums_are_those_of_the_tables() {
        for (n, error, sum) in [
            (6, 0.025, 0),
            (7, 0.01, 0),
            (8, 0.025, 3),
            (10, 0.005, 3),
            (14, 0.005, 12),
            (20, 0.01, 43),
        ] {
            let total = 2_f64.powi(i32::try_from(n).unwrap());
            let below = |sum: usize| ways(n)[..=sum].iter().sum::<f64>() / total;
            assert!(below(sum) <= error && below(sum + 1) > error, "{n} {error}");
        }
        assert_eq!(ways(20).iter().sum::<f64>() as u64, 1 << 20);
    }

    #[test]
    fn the_interval_is_of_means_of_two() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        // Seven of one sign are one in 128: the interval is from the least to the greatest.
        let shift = Shift::of(&values, 1.0 / 128.0);
        assert_eq!(shift, Shift { estimate: 4.0, low: 1.0, high: 7.0 });
        // Two in 128 are the next.
        let shift = Shift::of(&values, 2.0 / 128.0);
        assert_eq!((shift.low, shift.high), (1.5, 6.5));
        let shift = Shift::of(&values, 0.001);
        assert_eq!((shift.low, shift.high), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
