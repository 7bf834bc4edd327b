//! The round-trip time and what the retransmission timer makes of it (RFC 6298, with Linux's `tcp_rtt_estimator`).

use crate::max_filter::MaxFilter;
use crate::tick::Tick;

/// The smallest part of the retransmission timeout that stands for variation (Linux: `TCP_RTO_MIN`).
pub(crate) const RTO_MIN_US: u64 = 200_000;
/// The longest retransmission timeout.
pub(crate) const RTO_MAX_US: u64 = 120_000_000;
/// How long the smallest round-trip time is remembered (Linux: `tcp_min_rtt_wlen`, 300 s).
const MIN_WINDOW_S: u32 = 300;
/// The timeout before anything was measured (RFC 6298 §2.1).
pub(crate) const RTO_INITIAL_US: u64 = 1_000_000;

/// Smoothed round-trip time, its deviation and the timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    /// In eighths of a microsecond; 0 before the first measurement.
    pub(crate) srtt_eighth_us: u64,
    /// Mean deviation in quarters of a microsecond.
    pub(crate) deviation_quarter_us: i64,
    max_deviation: i64,
    /// What the timeout adds to the smoothed time, in microseconds.
    pub(crate) variation_us: i64,
    /// A new maximum deviation is looked for when this byte is acknowledged.
    round_end: u64,
    /// The smallest measurement of the last five minutes; `u64::MAX` before the first.
    pub(crate) min_us: u64,
    /// What it follows from, in complements, so that the largest is the smallest.
    minima: MaxFilter,
    /// The timeout in jiffies, backed off or not.
    pub(crate) timeout: u32,
}

impl RttEstimator {
    pub(crate) fn new(tick: Tick) -> Self {
        Self {
            srtt_eighth_us: 0,
            deviation_quarter_us: 0,
            max_deviation: 0,
            variation_us: 0,
            round_end: 0,
            min_us: u64::MAX,
            minima: MaxFilter::default(),
            timeout: tick.jiffies_in(RTO_INITIAL_US),
        }
    }

    /// Takes a measurement of the oldest acknowledged packet while bytes up to `snd_una` are acknowledged and up to
    /// `snd_nxt` are sent.
    #[inline]
    pub(crate) fn measure(&mut self, rtt_us: u64, snd_una: u64, snd_nxt: u64, tick: Tick) {
        if self.srtt_eighth_us == 0 {
            self.begin(rtt_us, snd_nxt);
        } else {
            let error = rtt_us as i64 - (self.srtt_eighth_us >> 3) as i64;
            self.srtt_eighth_us = (self.srtt_eighth_us as i64 + error).max(1) as u64;
            let excess = error.abs() - (self.deviation_quarter_us >> 2);
            // A falling RTT shall not raise the timeout as a rising one does.
            let is_falling = (error < 0) & (excess > 0);
            self.deviation_quarter_us += excess >> (3 * u32::from(is_falling));
            // The second is never less than the first.
            self.max_deviation = self.max_deviation.max(self.deviation_quarter_us);
            self.variation_us = self.variation_us.max(self.max_deviation);
            if snd_una > self.round_end {
                if self.max_deviation < self.variation_us {
                    self.variation_us -= (self.variation_us - self.max_deviation) >> 2;
                }
                self.round_end = snd_nxt;
                self.max_deviation = RTO_MIN_US as i64;
            }
        }
        let timeout_us = (self.srtt_eighth_us >> 3) + self.variation_us as u64;
        self.timeout = tick.jiffies_in(timeout_us.min(RTO_MAX_US));
    }

    #[cold]
    fn begin(&mut self, rtt_us: u64, snd_nxt: u64) {
        self.srtt_eighth_us = rtt_us.max(1) << 3;
        self.deviation_quarter_us = (rtt_us << 1) as i64;
        self.variation_us = self.deviation_quarter_us.max(RTO_MIN_US as i64);
        self.max_deviation = self.variation_us;
        self.round_end = snd_nxt;
    }

    /// Takes a measurement of the newest acknowledged packet. One that may include the delay of an acknowledgement counts
    /// only if it is the smallest, for else the path would seem longer when the true minimum leaves the window.
    #[inline(always)]
    pub(crate) fn measure_min(&mut self, rtt_us: u64, now_ns: u64, delayed: bool, tick: Tick) {
        if delayed && rtt_us > self.min_us {
            return;
        }
        let value = u32::try_from(rtt_us.max(1)).unwrap_or(u32::MAX - 1);
        self.minima.update(MIN_WINDOW_S * tick.hertz(), tick.count(now_ns), !value);
        self.min_us = u64::from(!self.minima.get());
    }

    /// Doubles the timeout after it has fired (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self, tick: Tick) {
        self.timeout = self.timeout.saturating_mul(2).min(tick.jiffies_in(RTO_MAX_US));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_time_is_forgotten_after_five_minutes() {
        let tick = Tick::default();
        let mut rtt = RttEstimator::new(tick);
        let second = 1_000_000_000;
        rtt.measure_min(20_000, second, false, tick);
        for now in 2..=301 {
            rtt.measure_min(50_000, now * second, false, tick);
            // Delayed acknowledgements say nothing, however long they are all that comes.
            rtt.measure_min(90_000, now * second, true, tick);
            assert_eq!(rtt.min_us, 20_000, "after {now} s");
        }
        rtt.measure_min(50_000, 302 * second, false, tick);
        assert_eq!(rtt.min_us, 50_000);
        rtt.measure_min(90_000, 700 * second, true, tick);
        assert_eq!(rtt.min_us, 50_000);
        rtt.measure_min(10_000, 700 * second, true, tick);
        assert_eq!(rtt.min_us, 10_000);
    }

    #[test]
    fn a_steady_path_times_out_after_rtt_and_200_ms() {
        let tick = Tick::default();
        let mut rtt = RttEstimator::new(tick);
        for round in 0..100 {
            rtt.measure(50_000, round * 10, round * 10 + 5, tick);
        }
        assert_eq!(rtt.srtt_eighth_us >> 3, 50_000);
        assert_eq!(rtt.timeout, 25);
        rtt.back_off(tick);
        assert_eq!(rtt.timeout, 50);
    }
}
