//! The bottleneck's rate: a token bucket as `htb` has it for one class. A packet may leave while tokens are left, and
//! may overdraw them.

use dualq_units::{Bytes, Rate};

/// Tokens, counted as the time that they take to gather.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaper {
    bits_per_second: u64,
    burst_ns: i64,
    tokens_ns: i64,
    updated_ns: u64,
}

impl Shaper {
    /// A full bucket for `rate`, with tc's default burst: what the rate sends in a timer tick of 1 ns, and one packet of
    /// 1600 bytes.
    pub(crate) fn new(rate: Rate) -> Self {
        let bits_per_second = rate.as_bits_per_second().max(1);
        let burst = 1600 + bits_per_second / 8 / 15_625_000;
        let burst_ns = rate.transmission_time(Bytes(burst)).as_nanos() as i64;
        Self { bits_per_second, burst_ns, tokens_ns: burst_ns, updated_ns: 0 }
    }

    /// When a packet may leave that waits at `now_ns`.
    #[inline]
    pub(crate) fn ready_ns(&mut self, now_ns: u64) -> u64 {
        let gathered = self.tokens_ns + (now_ns - self.updated_ns) as i64;
        self.tokens_ns = gathered.min(self.burst_ns);
        self.updated_ns = now_ns;
        if self.tokens_ns >= 0 { now_ns } else { now_ns + self.tokens_ns.unsigned_abs() }
    }

    /// A packet of `bytes` leaves.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: u32) {
        let bit_nanos = u64::from(bytes) * 8_000_000_000;
        self.tokens_ns -= (bit_nanos / self.bits_per_second) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_two_and_then_the_rate() {
        let mut shaper = Shaper::new(Rate::from_mbit(50));
        let mut departures = Vec::new();
        let mut now = 0;
        for _ in 0..5 {
            now = shaper.ready_ns(now);
            shaper.charge(1514);
            departures.push(now);
        }
        assert_eq!(departures[1], 0);
        assert_eq!(departures[3] - departures[2], 242_240);
        assert_eq!(departures[4] - departures[3], 242_240);
    }
}
