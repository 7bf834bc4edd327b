//! A policer: a token bucket that drops what it has no tokens for.

use dualq_units::{Bytes, Instant, PacketTime, Rate};

use crate::delay::nanos;

/// A token bucket as `tc`'s `police rate RATE burst BYTES` has it, where what conforms passes and all else is dropped. Tokens are
/// counted as the time that they take to gather.
#[derive(Clone, Copy, Debug)]
pub struct Police {
    time: PacketTime,
    burst_ns: u64,
    tokens_ns: u64,
    updated_ns: u64,
}

impl Police {
    /// A full bucket. Packets longer than `burst` never pass.
    #[must_use]
    pub fn new(rate: Rate, burst: Bytes) -> Self {
        let burst_ns = nanos(rate.transmission_time(burst));
        Self { time: PacketTime::new(rate), burst_ns, tokens_ns: burst_ns, updated_ns: 0 }
    }

    /// Whether a packet of `bytes` conforms, which takes its tokens; one that does not takes nothing.
    #[must_use]
    #[inline]
    pub fn conforms(&mut self, now: Instant, bytes: u32) -> bool {
        let now_ns = now.as_nanos();
        let gathered_ns = now_ns.saturating_sub(self.updated_ns);
        self.tokens_ns = self.tokens_ns.saturating_add(gathered_ns).min(self.burst_ns);
        self.updated_ns = now_ns;
        let cost_ns = self.time.nanos(bytes.into());
        let rest = self.tokens_ns.checked_sub(cost_ns);
        self.tokens_ns = rest.unwrap_or(self.tokens_ns);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut police = Police::new(Rate::from_mbit(8), Bytes(4_000));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        // 1000 bytes take a millisecond. What did not pass took nothing, and no more than a burst is ever saved.
        for (millis, expected) in [(100, 4), (100, 0), (101, 1), (103, 2), (200, 4)] {
            let passed = (0..9).filter(|_| police.conforms(at(millis), 1_000)).count();
            assert_eq!(passed, expected, "{millis}");
        }
        assert!(!police.conforms(at(900), 4_001) && police.conforms(at(900), 4_000));
    }
}
