//! Round trips per minute (draft-ietf-ippm-responsiveness, "For the TCP-Only Case").

use serde::{Deserialize, Serialize};

/// `TMP`, the share of probes that the trimmed mean is of: the longest are left out.
const TRIMMED_MEAN: f64 = 0.95;

/// Responsiveness under working conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rpm {
    /// The mean of both, in round trips per minute.
    pub rpm: f64,
    /// Of probes on connections of their own.
    pub foreign_rpm: f64,
    /// Of probes on the connections that load the path.
    pub self_rpm: f64,
}

impl Rpm {
    /// That of probes in milliseconds: handshakes of TCP (`tcp_f`) and requests (`http_f`) on connections of their own, and requests on
    /// loaded connections (`http_l`). None without probes of each kind.
    #[must_use]
    pub fn of(tcp_f: &[f64], http_f: &[f64], http_l: &[f64]) -> Option<Self> {
        let [tcp_f, http_f, http_l] =
            [trimmed_mean(tcp_f)?, trimmed_mean(http_f)?, trimmed_mean(http_l)?];
        let foreign_rpm = 60_000.0 / ((tcp_f + http_f) / 2.0);
        let self_rpm = 60_000.0 / http_l;
        Some(Self { rpm: f64::midpoint(foreign_rpm, self_rpm), foreign_rpm, self_rpm })
    }
}

/// The mean without the longest; of few samples nothing is left out.
fn trimmed_mean(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let kept = (sorted.len() as f64 * TRIMMED_MEAN).ceil() as usize;
    let mean = sorted[..kept].iter().sum::<f64>() / kept as f64;
    (mean > 0.0).then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_mean_of_both_responsivenesses() {
        let rpm = Rpm::of(&[50.0], &[70.0], &[120.0]).unwrap();
        assert_eq!((rpm.foreign_rpm, rpm.self_rpm, rpm.rpm), (1000.0, 500.0, 750.0));
        assert_eq!(Rpm::of(&[], &[70.0], &[120.0]), None);
    }

    #[test]
    fn the_longest_twentieth_is_left_out() {
        let mut probes = vec![60.0; 19];
        probes.push(9_000.0);
        assert_eq!(trimmed_mean(&probes), Some(60.0));
        assert_eq!(trimmed_mean(&[60.0, 180.0]), Some(120.0));
    }
}
