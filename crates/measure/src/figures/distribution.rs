//! Percentiles of samples.

/// The quantile of samples in ascending order: between two of them, in proportion. NaN if there are none.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// What is told of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Figures {
    /// Those of samples in any order, if there are any.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (mean, std) = mean_and_deviation(&sorted);
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| quantile(&sorted, share));
        Some(Self { min, mean, std, p50, p95, p99, max })
    }
}

/// The mean, and the standard deviation as of a sample (0 of a single value).
pub(super) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_samples() {
        let samples = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(
            [0.0, 0.5, 0.875, 1.0].map(|share| format!("{}", quantile(&samples, share))),
            ["1", "3", "4.5", "5"]
        );
        assert!(quantile(&[], 0.5).is_nan());
        let figures = Figures::of([5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
        assert_eq!((figures.min, figures.mean, figures.p50, figures.max), (1.0, 3.0, 3.0, 5.0));
        assert!((figures.std - 2.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Figures::of([]), None);
    }
}
