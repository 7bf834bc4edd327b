//! Token buckets, as the shapers keep them: in nanoseconds of their rate.

use std::time::Duration;

use dualq_units::{Bytes, Instant, PacketTime, Rate};

/// Linux sends and shows spans in units of 64 ns.
const TICK_SHIFT: u32 = 6;
const TICKS_PER_MICROSECOND: f64 = 15.625;

/// The bytes that a span is at `rate`, computed from its ticks as tc does.
pub(crate) fn size(rate: Rate, span: Duration) -> Bytes {
    let ticks = (span.as_nanos() >> TICK_SHIFT) as f64;
    let per_second = (rate.as_bits_per_second() / 8) as f64;
    Bytes((per_second * (ticks / TICKS_PER_MICROSECOND) / 1e6) as u64)
}

/// The span of `bytes` at `rate` in whole ticks, rounded up as tc does; `None` if 32 bits do not hold them.
pub(crate) fn span(rate: Rate, bytes: u64) -> Option<Duration> {
    let per_second = (rate.as_bits_per_second() / 8) as f64;
    let ticks = (1e6 * (bytes as f64 / per_second) * TICKS_PER_MICROSECOND).ceil();
    (ticks <= f64::from(u32::MAX)).then(|| Duration::from_nanos((ticks as u64) << TICK_SHIFT))
}

/// A bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    time: PacketTime,
    depth: i64,
    /// What is in it; below zero if more was taken.
    tokens: i64,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rate: Rate, depth: Duration) -> Self {
        let depth = i64::try_from(depth.as_nanos()).unwrap_or(i64::MAX);
        Self { time: PacketTime::new(rate), depth, tokens: depth }
    }

    pub(crate) const fn tokens(&self) -> i64 {
        self.tokens
    }

    /// In ticks, as tc shows it.
    pub(crate) const fn ticks(&self) -> i64 {
        self.tokens >> TICK_SHIFT
    }

    /// What would be in it after `passed`, had `bytes` been taken out then.
    #[inline]
    pub(crate) fn after(&self, passed: Duration, bytes: u32) -> i64 {
        let passed = i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
        self.tokens.saturating_add(passed).min(self.depth) - self.time.nanos(bytes.into()) as i64
    }

    #[inline]
    pub(crate) fn set(&mut self, tokens: i64) {
        self.tokens = tokens;
    }
}

/// The moment at which a bucket that lacks what is below zero has been filled.
#[inline]
pub(crate) fn filled(now: Instant, tokens: i64) -> Instant {
    now + Duration::from_nanos(tokens.min(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the real tc shows of bursts that it was given.
    #[test]
    fn bursts_are_rounded_as_tc_rounds_them() {
        for (rate, given, shown) in [
            (4_000_000, 1600, 1600),
            (10_000_000_000, 1601, 1680),
            (40_000_000_000, 1605, 1920),
            (1_000_000_000, 12_345, 12_352),
            (50_000_000, 10_001, 10_001),
        ] {
            let rate = Rate::from_bits_per_second(rate);
            assert_eq!(size(rate, span(rate, given).unwrap()), Bytes(shown), "{given} at {rate}");
        }
        assert_eq!(span(Rate::from_bits_per_second(8), 1600), None);
    }
}
