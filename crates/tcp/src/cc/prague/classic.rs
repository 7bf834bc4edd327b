//! Whether the queue that marks is a classic one, which Prague would starve others in: by how much the round trip varies, and how far it
//! is above the least. As `prague_ecn_fallback` = 1 of version 0.6 of the L4S team's `tcp_prague.c`; off by default there too.
//!
//! Once a round the score grows by ½ lg(V / 750 µs) + ½ lg(max(D / 2 ms, 1)), V being the mean deviation of the round trip and D the
//! depth of the queue by it. From 8 on the queue is taken for a classic one, from 9 on without doubt; it is no more than 17 and no less
//! than 0, so that neither verdict changes at once.

use super::ALPHA_BITS;

/// The score's unit.
const UNIT_BITS: u32 = 20;
const UNIT: i64 = 1 << UNIT_BITS;
/// Both logarithms count half.
const LOG_BITS: u32 = UNIT_BITS - 1;
/// ½ lg 750 and ½ lg 2000.
const USUAL_DEVIATION: i64 = 10_014_683 / 2;
const USUAL_DEPTH: i64 = 11_498_458 / 2;
/// Up to this it is an L4S queue; a unit beyond, a classic one.
const L4S: i64 = 8 * UNIT;
const CLASSIC: i64 = L4S + UNIT;
const MOST: i64 = CLASSIC + L4S;
/// The mean of the round trip keeps all but 2⁻¹⁸ at first; the deviation has a bit more.
const MOST_SHIFT: u32 = 18;
/// 2^19.5 and 2^18.5: what the logarithms' fractions begin with.
const DEVIATION_REST: u64 = 741_455;
const DEPTH_REST: u64 = DEVIATION_REST / 2;
/// A half, for logarithms that are whole numbers, at the first shift.
const ROUNDING: u64 = 1 << MOST_SHIFT;

/// What is known of the queue.
#[derive(Clone, Debug)]
pub(super) struct ClassicEcn {
    /// The mean of the round trip in 2^-shift microseconds, and its mean deviation in half of that.
    mean: i64,
    deviation: i64,
    shift: u32,
    /// What the last logarithms left, so that over the rounds no part is lost.
    deviation_rest: u64,
    depth_rest: u64,
    score: i64,
}

impl ClassicEcn {
    /// A connection begins; its round trip takes so long, as far as is known.
    pub(super) const fn new(srtt_us: u64) -> Self {
        Self {
            mean: (srtt_us << MOST_SHIFT) as i64,
            deviation: 1 << (MOST_SHIFT + 1),
            shift: MOST_SHIFT,
            deviation_rest: DEVIATION_REST,
            depth_rest: DEPTH_REST,
            score: 0,
        }
    }

    /// A round trip was measured (Linux: `prague_rtt_estimator`).
    #[inline]
    pub(super) fn measure(&mut self, rtt_us: u64) {
        if self.mean == 0 {
            self.mean = (rtt_us << self.shift) as i64;
            self.deviation = 1 << (self.shift + 1);
        } else {
            let error = rtt_us as i64 - (self.mean >> self.shift);
            self.mean += error;
            self.deviation += error.abs() - (self.deviation >> (self.shift + 1));
        }
        self.mean = self.mean.max(1);
    }

    /// The window is about to sink: larger ones have more round trips to take the means of (Linux: `prague_update_rtt_scaling`).
    pub(super) fn rescale(&mut self, ssthresh: u32) {
        let log = ssthresh.max(1).ilog2();
        let shift = (log + log / 2 + 1).min(MOST_SHIFT);
        let scale = |value: i64| match shift.checked_sub(self.shift) {
            Some(more) => value << more,
            None => value >> (self.shift - shift),
        };
        (self.mean, self.deviation) = (scale(self.mean), scale(self.deviation));
        self.deviation_rest = scale(self.deviation_rest as i64) as u64;
        self.depth_rest = scale(self.depth_rest as i64) as u64;
        self.shift = shift;
    }

    /// A round is over (Linux: `prague_classic_ecn_detection`).
    pub(super) fn look(&mut self, min_rtt_us: u64) {
        let mean_us = (self.mean >> self.shift) as u64;
        if mean_us == 0 || min_rtt_us == u64::MAX {
            return;
        }
        let rounding = ROUNDING >> (MOST_SHIFT - self.shift);
        let deviation_us = (self.deviation >> (self.shift + 1)) as u64;
        let log = take_log(
            deviation_us * self.deviation_rest + rounding,
            self.shift + 1,
            &mut self.deviation_rest,
        );
        let mut score = self.score + log - USUAL_DEVIATION;
        if mean_us > min_rtt_us {
            let depth_us = mean_us - min_rtt_us;
            let product = depth_us * self.depth_rest + rounding / 2;
            let log = take_log(product, self.shift, &mut self.depth_rest);
            // A queue only speaks for a classic one.
            score += (log - USUAL_DEPTH).max(0);
        }
        self.score = score.clamp(0, MOST);
    }

    /// The least α by which the window is to sink: up to 5/8, which is what a Reno beside it does (Linux:
    /// `prague_classic_ecn_fallback`).
    pub(super) fn least_alpha(&self) -> u64 {
        let certainty = (self.score.min(CLASSIC) - L4S).max(0) as u64;
        (certainty / 2 + certainty / 8) << (ALPHA_BITS - UNIT_BITS)
    }
}

/// Half the logarithm of `product` beyond 2^`shift`, in whole halves; what it leaves is for the next one.
fn take_log(product: u64, shift: u32, rest: &mut u64) -> i64 {
    let log = product.max(1).ilog2().max(shift) - shift;
    *rest = product >> log;
    i64::from(log) << LOG_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many rounds of a hundred round trips each, between two times: the score, in its unit.
    fn score(rounds: u32, [least_us, most_us]: [u64; 2], min_rtt_us: u64) -> f64 {
        let mut ecn = ClassicEcn::new(least_us);
        ecn.rescale(100);
        for _ in 0..rounds {
            // A sawtooth, as a window makes it.
            for step in 0..100 {
                ecn.measure(least_us + (most_us - least_us) * step / 100);
            }
            ecn.look(min_rtt_us);
        }
        ecn.score as f64 / UNIT as f64
    }

    /// The round's growth is what the formula says, to what whole logarithms of many rounds come to.
    #[test]
    fn the_score_grows_by_the_logarithms_of_deviation_and_depth() {
        let mut ecn = ClassicEcn::new(30_000);
        ecn.rescale(100);
        assert_eq!((ecn.shift, ecn.deviation, ecn.mean), (10, 1 << 11, 30_000 << 10));
        for (deviation_us, depth_us) in [(1_500_u64, 8_000_u64), (3_000, 1_000), (900, 5_000)] {
            (ecn.mean, ecn.deviation) = ((30_000 << 10) + ((depth_us as i64) << 10), 0);
            ecn.deviation = (deviation_us as i64) << 11;
            let mut grown = 0.0;
            for _ in 0..200 {
                ecn.score = 4 * UNIT;
                ecn.look(30_000);
                grown += (ecn.score - 4 * UNIT) as f64 / UNIT as f64 / 200.0;
            }
            let depth = (depth_us as f64 / 2_000.0).log2().max(0.0);
            let law = 0.5 * (deviation_us as f64 / 750.0).log2() + 0.5 * depth;
            // A depth near 2 ms has whole logarithms on either side, of which only one counts.
            assert!((grown - law).abs() < 0.1, "{deviation_us} {depth_us}: {grown}, not {law}");
        }
    }

    #[test]
    fn a_deep_varying_queue_is_classic_and_a_shallow_steady_one_is_not() {
        assert!(score(100, [30_000, 40_000], 30_000) > 16.9);
        assert!(score(100, [30_000, 31_000], 30_000) < 0.1);
    }

    #[test]
    fn the_least_alpha_follows_the_score() {
        let mut ecn = ClassicEcn::new(30_000);
        for (score, alpha) in
            [(0, 0), (L4S, 0), (L4S + UNIT / 2, 5 << 20), (CLASSIC, 10 << 20), (MOST, 10 << 20)]
        {
            ecn.score = score;
            assert_eq!(ecn.least_alpha(), alpha, "of 2²⁴");
        }
    }

    /// What was measured stays what it was.
    #[test]
    fn another_window_changes_no_mean() {
        let mut ecn = ClassicEcn::new(30_000);
        for ssthresh in [u32::MAX >> 1, 1_000, 2, 64, 0, 5_000] {
            ecn.rescale(ssthresh);
            assert_eq!((ecn.mean >> ecn.shift, ecn.deviation >> (ecn.shift + 1)), (30_000, 1));
        }
        ecn.measure(40_000);
        assert!(ecn.mean > 30_000 << ecn.shift);
    }
}
