//! Figures from samples.

use dualq_scenario::ProbeOutcome;

/// Summarises round trips, given in nanoseconds.
pub(crate) fn summarise(mut samples: Vec<u64>) -> ProbeOutcome {
    if samples.is_empty() {
        return ProbeOutcome::default();
    }
    samples.sort_unstable();
    let count = samples.len();
    let in_ms = |nanos: u64| (nanos as f64 / 1e3).round() / 1e3;
    let at = |share: f64| in_ms(samples[((count as f64 * share) as usize).min(count - 1)]);
    let mean = samples.iter().sum::<u64>() as f64 / count as f64;
    let squares = samples.iter().map(|&sample| (sample as f64 - mean).powi(2)).sum::<f64>();
    let deviation = (squares / count as f64).sqrt();
    ProbeOutcome {
        n: count as u64,
        mean_ms: in_ms(mean as u64),
        min_ms: in_ms(samples[0]),
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: in_ms(samples[count - 1]),
        std_ms: in_ms(deviation as u64),
        ..ProbeOutcome::default()
    }
}
