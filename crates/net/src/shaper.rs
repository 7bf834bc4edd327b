//! The bottleneck's rate: a token bucket as `htb` has it for one class. A packet may leave while tokens are left, and
//! may overdraw them.

use dualq_units::{Bytes, PacketTime, Rate};

/// tc's default burst without the rate's share.
const BURST_BYTES: u64 = 1600;
/// A tick of the kernel's packet scheduler (the second figure of `/proc/net/psched`).
const TICK_NS: u64 = 64;

/// Tokens, counted as the time that they take to gather.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaper {
    time: PacketTime,
    burst_ns: i64,
    tokens_ns: i64,
    updated_ns: u64,
}

impl Shaper {
    /// A full bucket for `rate`, with tc's default burst: a packet of 1600 bytes and what the rate sends in a nanosecond,
    /// rounded up to the ticks that the kernel's packet scheduler counts in.
    pub(crate) fn new(rate: Rate) -> Self {
        let empty = Self { time: PacketTime::new(rate), burst_ns: 0, tokens_ns: 0, updated_ns: 0 };
        let shaper = empty.with_rate(rate);
        Self { tokens_ns: shaper.burst_ns, ..shaper }
    }

    /// The same with another rate. What was gathered is kept as time, and a debt too (Linux: `htb_change_class`).
    pub(crate) fn with_rate(self, rate: Rate) -> Self {
        let burst = Bytes(BURST_BYTES + rate.as_bits_per_second() / 8_000_000_000);
        let burst_ns = rate.transmission_time(burst).as_nanos() as u64;
        let burst_ns = burst_ns.next_multiple_of(TICK_NS) as i64;
        Self { time: PacketTime::new(rate), burst_ns, ..self }
    }

    /// When a packet may leave that may not at `now_ns`.
    #[inline]
    pub(crate) fn busy_until(&mut self, now_ns: u64) -> Option<u64> {
        let gathered = self.tokens_ns + (now_ns - self.updated_ns) as i64;
        self.tokens_ns = gathered.min(self.burst_ns);
        self.updated_ns = now_ns;
        self.still_busy_until(now_ns)
    }

    /// Whether a packet may leave at `now_ns`.
    pub(crate) const fn is_ready(&self, now_ns: u64) -> bool {
        self.tokens_ns + (now_ns - self.updated_ns) as i64 >= 0
    }

    /// The same when what has gathered up to `now_ns` is counted.
    #[inline]
    pub(crate) const fn still_busy_until(&self, now_ns: u64) -> Option<u64> {
        if self.tokens_ns < 0 { Some(now_ns + self.tokens_ns.unsigned_abs()) } else { None }
    }

    /// A packet of `bytes` leaves.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: u32) {
        self.tokens_ns -= self.time.nanos(bytes.into()) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_burst_is_tcs() {
        for (mbit, bytes) in [(50, 1600), (1_000, 1600), (10_000, 1680)] {
            let shaper = Shaper::new(Rate::from_mbit(mbit));
            assert_eq!(shaper.burst_ns as u64 * mbit / 8_000, bytes, "{mbit} Mbit/s");
        }
    }

    #[test]
    fn a_burst_of_two_and_then_the_rate() {
        let mut shaper = Shaper::new(Rate::from_mbit(50));
        let mut departures = Vec::new();
        let mut now = 0;
        for _ in 0..5 {
            now = shaper.busy_until(now).unwrap_or(now);
            shaper.charge(1514);
            departures.push(now);
        }
        assert_eq!(departures[1], 0);
        assert_eq!(departures[3] - departures[2], 242_240);
        assert_eq!(departures[4] - departures[3], 242_240);
    }
}
