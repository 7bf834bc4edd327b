//! Delay that varies, as netem's `delay TIME JITTER` does.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use dualq_units::Instant;

use crate::delay::nanos;

/// A delay drawn for each packet, uniformly from what lies within the jitter of a mean. Who draws less overtakes, unless the
/// order is kept.
#[derive(Debug)]
pub struct Jitter<P> {
    least_ns: i64,
    span_ns: u64,
    keeps_order: bool,
    held: BinaryHeap<Held<P>>,
    /// When the last packet in order leaves.
    last_ns: u64,
    order: u64,
}

#[derive(Debug)]
struct Held<P> {
    at_ns: u64,
    order: u64,
    packet: P,
}

impl<P> Ord for Held<P> {
    /// The one that leaves first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for Held<P> {}

impl<P> Jitter<P> {
    /// `delay` give or take `jitter`. What would be less than no delay is none.
    #[must_use]
    pub fn new(delay: Duration, jitter: Duration) -> Self {
        let signed = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Self {
            least_ns: signed(delay) - signed(jitter),
            span_ns: nanos(jitter).saturating_mul(2),
            keeps_order: false,
            held: BinaryHeap::new(),
            last_ns: 0,
            order: 0,
        }
    }

    /// Packets leave in the order in which they came: none before one that came earlier.
    #[must_use]
    pub fn keeping_order(mut self) -> Self {
        self.keeps_order = true;
        self
    }

    /// Packets on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no packet is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Instant, packet: P, random: u32) {
        let drawn = (u128::from(random) * u128::from(self.span_ns)) >> 32;
        let delay_ns = self.least_ns.saturating_add(i64::try_from(drawn).unwrap_or(i64::MAX));
        let mut at_ns = now.as_nanos().saturating_add(u64::try_from(delay_ns).unwrap_or(0));
        if self.keeps_order {
            at_ns = at_ns.max(self.last_ns);
            self.last_ns = at_ns;
        }
        self.order += 1;
        self.held.push(Held { at_ns, order: self.order, packet });
    }

    /// When the next packet leaves.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.held.peek().map_or(u64::MAX, |held| held.at_ns)
    }

    /// The next packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<P> {
        self.held.pop().map(|held| held.packet)
    }
}
