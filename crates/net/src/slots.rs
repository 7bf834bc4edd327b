//! Bursts: packets gather until their turn comes, as netem's `slot` lets them.

use std::collections::VecDeque;
use std::time::Duration;

use dualq_units::{Bytes, Instant};

use crate::delay::nanos;
use crate::packet::Packet;

/// A link on which packets wait for a turn and go together, as on Wi-Fi, where a station gathers an aggregate until the air is its
/// own. A packet that finds nothing waiting asks for a turn, which comes after a time drawn uniformly; with it leaves all that came
/// by then, up to so many packets and bytes. What is left over asks anew. (netem's `slot MIN MAX packets N bytes B`; Linux:
/// `get_slot_next` and `netem_dequeue` of sch_netem.c.)
#[derive(Debug)]
pub struct Slots<P> {
    least_ns: u64,
    span_ns: u64,
    packets: u64,
    bytes: u64,
    held: VecDeque<(u64, P)>,
    /// When the turn comes, or came.
    turn_ns: u64,
    packets_left: u64,
    bytes_left: u64,
}

impl<P: Packet> Slots<P> {
    /// Turns come between `least` and `most` after they are asked for; if `most` is less, after `least`.
    #[must_use]
    pub fn new(least: Duration, most: Duration) -> Self {
        Self {
            least_ns: nanos(least),
            span_ns: nanos(most).saturating_sub(nanos(least)),
            packets: u64::MAX,
            bytes: u64::MAX,
            held: VecDeque::new(),
            turn_ns: 0,
            packets_left: u64::MAX,
            bytes_left: u64::MAX,
        }
    }

    /// With each turn leave at most so many packets, an aggregate being one, and no more once so many bytes have left.
    #[must_use]
    pub const fn at_most(mut self, packets: Option<u32>, bytes: Option<Bytes>) -> Self {
        if let Some(packets) = packets {
            (self.packets, self.packets_left) = (packets as u64, packets as u64);
        }
        if let Some(Bytes(bytes)) = bytes {
            (self.bytes, self.bytes_left) = (bytes, bytes);
        }
        self
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// A packet comes. One that comes in the very moment of a turn is late for it: it may be what somebody answers to what left with it, which
    /// takes time anywhere but here.
    pub(crate) fn push(&mut self, now: Instant, packet: P, random: impl FnOnce() -> u32) {
        let now_ns = now.as_nanos();
        if self.held.is_empty() && self.turn_ns <= now_ns {
            self.ask(now_ns, random());
        }
        self.held.push_back((now_ns, packet));
    }

    /// When the next packet leaves.
    pub(crate) fn next_ns(&self) -> u64 {
        self.held.front().map_or(u64::MAX, |(came_ns, _)| self.turn_ns.max(*came_ns))
    }

    /// The next packet.
    pub(crate) fn pop(&mut self, now: Instant, mut random: impl FnMut() -> u32) -> Option<P> {
        let (_, packet) = self.held.pop_front()?;
        let now_ns = now.as_nanos();
        self.packets_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(packet.length().into());
        let is_over = self.packets_left == 0 || self.bytes_left == 0;
        let is_late = self.held.front().is_some_and(|(came_ns, _)| *came_ns >= self.turn_ns);
        if is_over || is_late {
            self.ask(now_ns, random());
        }
        Some(packet)
    }

    fn ask(&mut self, now_ns: u64, random: u32) {
        let drawn = (u128::from(random) * u128::from(self.span_ns)) >> 32;
        self.turn_ns = now_ns.saturating_add(self.least_ns).saturating_add(drawn as u64);
        (self.packets_left, self.bytes_left) = (self.packets, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::Probe;

    /// When packets leave that come at these times, in milliseconds. What comes as others leave comes behind them.
    fn left(mut slots: Slots<Probe>, came: &[u64]) -> Vec<u64> {
        let mut left = Vec::new();
        let mut came = came.iter().map(|ms| ms * 1_000_000).peekable();
        loop {
            let next_ns = slots.next_ns();
            if let Some(at_ns) = came.next_if(|at_ns| *at_ns < next_ns) {
                let packet = Probe { length: 1000, ..Probe::default() };
                slots.push(Instant::from_nanos(at_ns), packet, || 1 << 31);
            } else if next_ns < u64::MAX {
                slots.pop(Instant::from_nanos(next_ns), || 1 << 31);
                left.push(next_ns / 1_000_000);
            } else {
                return left;
            }
        }
    }

    #[test]
    fn what_gathers_leaves_together() {
        let slots = || Slots::new(Duration::from_millis(4), Duration::from_millis(8));
        // Each draw is the mean.
        assert_eq!(left(slots(), &[1, 2, 3, 6, 8, 20]), [7, 7, 7, 7, 14, 26]);
        assert_eq!(left(slots().at_most(Some(2), None), &[1, 2, 3, 4, 20]), [7, 7, 13, 13, 26]);
        // Whoever comes with a turn waits for the next one.
        assert_eq!(left(slots(), &[1, 7, 8, 13]), [7, 13, 13, 19]);
        // The packet that uses up the bytes still leaves.
        let by_bytes = slots().at_most(None, Some(Bytes(1500)));
        assert_eq!(left(by_bytes, &[1, 2, 3, 4]), [7, 7, 13, 13]);
    }
}
