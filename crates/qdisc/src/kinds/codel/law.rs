//! CoDel's control law (RFC 8289), for one queue.
//!
//! Where Linux differs from the RFC's pseudocode, this follows Linux: time counts in units of 1.024 µs; the reciprocal
//! square root is a number of 16 bits that one step of Newton's method improves with each drop; ECN-capable packets are
//! marked instead of dropped if that is asked for; and nothing is dropped while no more than one largest frame waits.

use std::time::Duration;

use dualq_units::Instant;

use crate::pool::{Chain, Pool};
use crate::{Departure, DropReason, Dropped, FlowPacket, Packet};

/// Time in units of 1024 ns.
type Ticks = u64;

const TICK_SHIFT: u32 = 10;
/// After a pause shorter than this many intervals, dropping goes on about as often as before (RFC 8289 §4.3).
const MEMORY_INTERVALS: u64 = 16;

const fn ticks(now: Instant) -> Ticks {
    now.as_nanos() >> TICK_SHIFT
}

/// A span as Linux keeps and shows it: cut to units of 1024 ns.
pub(crate) const fn cut(micros: u32) -> Duration {
    Duration::from_nanos((micros as u64 * 1000) >> TICK_SHIFT << TICK_SHIFT)
}

/// Packets by the DSCP and the ECN field of their headers: what is left of these eight bits by the mask is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The value.
    pub value: u8,
    /// The mask, which is not 0.
    pub mask: u8,
}

impl Selector {
    fn selects(self, packet: &impl FlowPacket) -> bool {
        (packet.dscp() << 2 | packet.ecn().bits()) & self.mask == self.value
    }
}

/// What the law is set to.
#[derive(Clone, Copy)]
pub(crate) struct Parameters {
    target: Ticks,
    interval: Ticks,
    ce_threshold: Option<Ticks>,
    /// Of the whole field of DSCP and ECN, if it matters to the threshold.
    selector: Option<Selector>,
    ecn: bool,
    /// The largest frame.
    mtu: u64,
}

impl Parameters {
    pub(crate) fn new(
        target: Duration,
        interval: Duration,
        ce_threshold: Option<Duration>,
        ecn: bool,
        mtu: u32,
    ) -> Self {
        let ticks = |span: Duration| (span.as_nanos() as u64) >> TICK_SHIFT;
        let ce_threshold = ce_threshold.map(ticks);
        Self {
            target: ticks(target),
            interval: ticks(interval),
            ce_threshold,
            selector: None,
            ecn,
            mtu: mtu.into(),
        }
    }

    /// The threshold is for these packets only.
    pub(crate) const fn with_selector(self, selector: Option<Selector>) -> Self {
        Self { selector, ..self }
    }
}

/// A packet that waits.
pub(crate) struct Waiting<P> {
    pub(crate) packet: P,
    pub(crate) enqueued: Instant,
}

/// Counts that all queues of a discipline share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) drops: u64,
    pub(crate) ecn_marks: u64,
    pub(crate) ce_marks: u64,
    pub(crate) longest_packet: u32,
}

/// What waits in the whole discipline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) memory: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn add(&mut self, packet: &impl Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.length());
        self.memory += u64::from(packet.memory());
    }

    #[inline]
    pub(crate) fn subtract(&mut self, packet: &impl Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.length());
        self.memory -= u64::from(packet.memory());
    }
}

/// A queue to take packets from.
pub(crate) struct Source<'a, P> {
    pub(crate) pool: &'a mut Pool<Waiting<P>>,
    pub(crate) chain: &'a mut Chain,
    /// Of this queue.
    pub(crate) bytes: &'a mut u64,
    /// Of the whole discipline.
    pub(crate) backlog: &'a mut Backlog,
    pub(crate) tally: &'a mut Tally,
}

impl<P: Packet> Source<'_, P> {
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let waiting = self.pool.pop(self.chain)?;
        *self.bytes -= u64::from(waiting.packet.length());
        self.backlog.subtract(&waiting.packet);
        Some(waiting)
    }

    fn drop(&mut self, waiting: Waiting<P>, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.tally.drops += 1;
        let reason = DropReason::Congested;
        dropped(Dropped { packet: waiting.packet, band: 0, reason });
    }
}

/// The state of one queue (RFC 8289 §5.3, under its names).
#[derive(Clone, Debug)]
pub(crate) struct Law {
    /// Drops since dropping began.
    pub(crate) count: u32,
    pub(crate) last_count: u32,
    pub(crate) dropping: bool,
    /// 1/√count in units of 2⁻¹⁶.
    inverse_sqrt: u16,
    /// When the delay will have been above the target for an interval; zero if it is not above it.
    first_above: Ticks,
    drop_next: Ticks,
    delay: Ticks,
}

impl Law {
    pub(crate) const fn new() -> Self {
        Self {
            count: 0,
            last_count: 0,
            dropping: false,
            inverse_sqrt: 0,
            first_above: 0,
            drop_next: 0,
            delay: 0,
        }
    }

    /// How long the last packet had waited.
    pub(crate) const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay << TICK_SHIFT)
    }

    /// When the next drop is due while dropping, from `now`, in microseconds; below zero if it is overdue.
    pub(crate) const fn drop_next_micros(&self, now: Instant) -> i64 {
        let ahead = self.drop_next as i64 - ticks(now) as i64;
        (ahead << TICK_SHIFT) / 1000
    }

    /// One step of Newton's method towards 1/√count: x ← x (3 - count x²) / 2.
    fn improve(&mut self) {
        let x = u64::from(self.inverse_sqrt) << 16;
        let square = (x * x) >> 32;
        let Some(bracket) = (3_u64 << 32).checked_sub(u64::from(self.count) * square) else {
            // The count leapt, as when packets were dropped in bulk, and the method would diverge. Begin near the solution.
            let root = u64::from(self.count).isqrt().max(1);
            self.inverse_sqrt = (u64::from(u16::MAX) / root) as u16;
            return;
        };
        self.inverse_sqrt = (((bracket >> 2) * x) >> 47) as u16;
    }

    /// The next drop after one at `t`: interval/√count later (RFC 8289 §4.3).
    fn after(&self, t: Ticks, parameters: &Parameters) -> Ticks {
        // At least a tick, or dropping would never end.
        t + ((parameters.interval * u64::from(self.inverse_sqrt)) >> 16).max(1)
    }

    /// Takes the next packet; says whether the delay was above the target for long enough for it to be dropped.
    #[inline(always)]
    fn look<P: Packet>(
        &mut self,
        now: Ticks,
        parameters: &Parameters,
        source: &mut Source<'_, P>,
    ) -> Option<(Waiting<P>, bool)> {
        let Some(waiting) = source.pop() else {
            self.first_above = 0;
            return None;
        };
        self.delay = now - ticks(waiting.enqueued);
        let longest = &mut source.tally.longest_packet;
        *longest = (*longest).max(waiting.packet.length());
        if self.delay < parameters.target || source.backlog.bytes <= parameters.mtu {
            self.first_above = 0;
            return Some((waiting, false));
        }
        if self.first_above == 0 {
            self.first_above = now + parameters.interval;
            return Some((waiting, false));
        }
        let overdue = now > self.first_above;
        Some((waiting, overdue))
    }

    /// Takes the next packet that leaves; what the law says must go is dropped, or marked.
    #[inline(always)]
    pub(crate) fn dequeue<P: FlowPacket>(
        &mut self,
        now: Instant,
        parameters: &Parameters,
        source: &mut Source<'_, P>,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let moment = ticks(now);
        let looked = self.look(moment, parameters, source);
        let Some((mut waiting, mut overdue)) = looked else {
            self.dropping = false;
            return None;
        };
        let mut marked = false;
        if self.dropping {
            if !overdue {
                self.dropping = false;
            }
            while self.dropping && moment >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.improve();
                if parameters.ecn && mark(&mut waiting.packet) {
                    marked = true;
                    self.drop_next = self.after(self.drop_next, parameters);
                    break;
                }
                source.drop(waiting, dropped);
                let Some(next) = self.look(moment, parameters, source) else {
                    self.dropping = false;
                    return None;
                };
                (waiting, overdue) = next;
                if overdue {
                    self.drop_next = self.after(self.drop_next, parameters);
                } else {
                    self.dropping = false;
                }
            }
        } else if overdue {
            let mut left = None;
            if parameters.ecn && mark(&mut waiting.packet) {
                marked = true;
                left = Some(waiting);
            } else {
                source.drop(waiting, dropped);
                left = self.look(moment, parameters, source).map(|(next, _)| next).or(left);
            }
            self.dropping = true;
            // If dropping ended not long ago, the rate that controlled the queue then is the best to begin with.
            let recent = self.count.wrapping_sub(self.last_count);
            if recent > 1 && moment < self.drop_next + MEMORY_INTERVALS * parameters.interval {
                self.count = recent;
                self.improve();
            } else {
                self.count = 1;
                self.inverse_sqrt = u16::MAX;
            }
            self.last_count = self.count;
            self.drop_next = self.after(moment, parameters);
            waiting = left?;
        }
        source.tally.ecn_marks += u64::from(marked);
        let above = parameters.ce_threshold.is_some_and(|threshold| self.delay > threshold);
        let selected = || parameters.selector.is_none_or(|these| these.selects(&waiting.packet));
        let stepped = above && selected() && mark(&mut waiting.packet);
        source.tally.ce_marks += u64::from(stepped);
        Some(Departure {
            packet: waiting.packet,
            band: 0,
            sojourn_ns: now.nanos_since(waiting.enqueued),
            marked_by_probability: marked,
            marked_by_step: stepped,
        })
    }
}

/// Marks a packet if it is ECN-capable.
fn mark(packet: &mut impl Packet) -> bool {
    let capable = packet.ecn().is_capable();
    if capable {
        packet.set_ce();
    }
    capable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newton_follows_the_square_root() {
        let mut law = Law { count: 1, inverse_sqrt: u16::MAX, ..Law::new() };
        for count in 2..2000 {
            law.count = count;
            law.improve();
            let exact = 65536.0 / f64::from(count).sqrt();
            let error = (f64::from(law.inverse_sqrt) / exact - 1.0).abs();
            // The first step from 1 lands at 1/2 for 1/√2, and Newton needs a few more to catch up.
            assert!(error < if count < 5 { 0.3 } else { 0.05 }, "{count}: {error}");
        }
        law.count += 1_000_000;
        law.improve();
        assert!(law.inverse_sqrt > 50 && law.inverse_sqrt < 80, "{}", law.inverse_sqrt);
    }

    #[test]
    fn spans_are_cut_as_linux_cuts_them() {
        assert_eq!(cut(5_000).as_micros(), 4_999);
        assert_eq!(cut(100_000).as_micros(), 99_999);
        assert_eq!(cut(0), Duration::ZERO);
    }
}
