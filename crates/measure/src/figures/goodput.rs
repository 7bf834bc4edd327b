//! Goodput over time, out of what each flow had carried at some times.

/// A flow's payload over time: when in seconds, and how many bytes by then, both growing.
pub type Curve = [(f64, u64)];

/// The bytes of a curve at a time: between two samples in proportion, nothing before the first.
#[must_use]
pub fn bytes_at(curve: &Curve, t_s: f64) -> f64 {
    let next = curve.partition_point(|(at, _)| *at <= t_s);
    let before = next.checked_sub(1).map(|before| curve[before]);
    match (before, curve.get(next)) {
        (None, _) => 0.0,
        (Some((_, bytes)), None) => bytes as f64,
        (Some((from, low)), Some((to, high))) => {
            low as f64 + high.saturating_sub(low) as f64 * (t_s - from) / (to - from)
        }
    }
}

/// The goodput of all flows together in each interval of so many seconds, in Mbit/s, up to the last interval that all flows have
/// samples of.
#[must_use]
pub fn goodput(curves: &[Vec<(f64, u64)>], interval_s: f64) -> Vec<f64> {
    let end = curves.iter().map(|curve| curve.last().map_or(0.0, |(at, _)| *at));
    let end_s = end.min_by(f64::total_cmp).unwrap_or(0.0);
    let intervals = (end_s / interval_s) as usize;
    let total = |number: usize| -> f64 {
        curves.iter().map(|curve| bytes_at(curve, number as f64 * interval_s)).sum()
    };
    (0..intervals).map(|n| (total(n + 1) - total(n)) * 8.0 / 1e6 / interval_s).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_that_of_all_flows_whenever_they_were_looked_at() {
        let first: Vec<(f64, u64)> =
            (0..=20).map(|n| (f64::from(n) * 0.1, n as u64 * 12_500)).collect();
        let second = vec![(0.5, 0), (1.03, 66_250), (2.5, 250_000)];
        let series = goodput(&[first, second], 0.5);
        for (expected, got) in [1.0, 2.0, 2.0, 2.0].iter().zip(&series) {
            assert!((expected - got).abs() < 1e-9, "{series:?}");
        }
        assert_eq!(series.len(), 4);
        assert_eq!(goodput(&[vec![], vec![(1.0, 5)]], 0.1), Vec::<f64>::new());
    }
}
