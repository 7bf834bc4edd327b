//! CoDel (RFC 8289): drops at the head when the least delay of an interval stays above a target.

use std::collections::VecDeque;

use super::{Departure, Frame, QueueStats, Waiting};

/// CoDel's parameters (RFC 8289 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParameters {
    /// The delay that is accepted for ever, in nanoseconds.
    pub target_ns: u64,
    /// How long the delay may stay above it, in nanoseconds.
    pub interval_ns: u64,
    /// Whether ECN-capable packets are marked instead.
    pub ecn: bool,
    /// A backlog up to this many bytes is no queue.
    pub mtu: u32,
}

impl Default for CodelParameters {
    /// 5 ms, 100 ms, no ECN.
    fn default() -> Self {
        Self { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: false, mtu: 1514 }
    }
}

/// The state of the control law, for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    /// When the delay will have been above target for an interval; `None` if it is below.
    first_above_ns: Option<u64>,
    drop_next_ns: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// RFC 8289 §5.5: drops come closer with the square root of their number.
    fn next_drop(&self, after_ns: u64, interval_ns: u64) -> u64 {
        let square = u128::from(interval_ns) * u128::from(interval_ns);
        after_ns + (square / u128::from(self.count.max(1))).isqrt() as u64
    }

    /// Whether the delay has been above target for an interval.
    #[inline]
    fn is_above(
        &mut self,
        parameters: &CodelParameters,
        now_ns: u64,
        sojourn_ns: u64,
        backlog: u64,
    ) -> bool {
        if sojourn_ns < parameters.target_ns || backlog <= u64::from(parameters.mtu) {
            self.first_above_ns = None;
            return false;
        }
        match self.first_above_ns {
            None => {
                self.first_above_ns = Some(now_ns + parameters.interval_ns);
                false
            }
            Some(first) => now_ns > first,
        }
    }

    /// Takes packets from `pop`, which also tells the backlog left, until one may leave (RFC 8289 §5.4).
    #[inline]
    pub(super) fn dequeue<P: Frame>(
        &mut self,
        parameters: &CodelParameters,
        now_ns: u64,
        stats: &mut QueueStats,
        mut pop: impl FnMut() -> Option<(Waiting<P>, u64)>,
    ) -> Option<Departure<P>> {
        let mut take = |control: &mut Self| match pop() {
            Some((waiting, backlog)) => {
                let sojourn_ns = now_ns.saturating_sub(waiting.since_ns);
                let above = control.is_above(parameters, now_ns, sojourn_ns, backlog);
                Some((waiting, above))
            }
            None => {
                control.first_above_ns = None;
                None
            }
        };
        let Some((mut waiting, mut above)) = take(self) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            if !above {
                self.dropping = false;
            }
            while self.dropping && now_ns >= self.drop_next_ns {
                self.count = self.count.saturating_add(1);
                if parameters.ecn && waiting.packet.ecn().is_capable() {
                    waiting.packet.set_ce();
                    stats.marks += 1;
                    self.drop_next_ns = self.next_drop(self.drop_next_ns, parameters.interval_ns);
                    break;
                }
                stats.drops += 1;
                let Some(next) = take(self) else {
                    self.dropping = false;
                    return None;
                };
                (waiting, above) = next;
                if above {
                    self.drop_next_ns = self.next_drop(self.drop_next_ns, parameters.interval_ns);
                } else {
                    self.dropping = false;
                }
            }
        } else if above {
            let mut rest = true;
            if parameters.ecn && waiting.packet.ecn().is_capable() {
                waiting.packet.set_ce();
                stats.marks += 1;
            } else {
                stats.drops += 1;
                match take(self) {
                    Some((next, _)) => waiting = next,
                    None => rest = false,
                }
            }
            self.dropping = true;
            // Close to the last dropping state its rate is a good start.
            let delta = self.count.wrapping_sub(self.last_count);
            let recent = now_ns.saturating_sub(self.drop_next_ns) < 16 * parameters.interval_ns;
            self.count = if delta > 1 && delta < u32::MAX / 2 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next_ns = self.next_drop(now_ns, parameters.interval_ns);
            if !rest {
                return None;
            }
        }
        Some(waiting.depart(now_ns))
    }
}

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    parameters: CodelParameters,
    limit: u32,
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
    control: Control,
    stats: QueueStats,
}

impl<P: Frame> Codel<P> {
    /// An empty queue of at most `limit` packets.
    #[must_use]
    pub fn new(parameters: CodelParameters, limit: u32) -> Self {
        Self {
            parameters,
            limit,
            packets: VecDeque::new(),
            bytes: 0,
            control: Control::default(),
            stats: QueueStats::default(),
        }
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, now_ns: u64, packet: P) {
        if self.packets.len() >= self.limit as usize {
            self.stats.drops += 1;
            return;
        }
        self.bytes += u64::from(packet.length());
        self.stats.enqueued += 1;
        self.packets.push_back(Waiting { packet, since_ns: now_ns });
    }

    /// The next packet to send.
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let Self { parameters, packets, bytes, control, stats, .. } = self;
        control.dequeue(parameters, now_ns, stats, || {
            let waiting = packets.pop_front()?;
            *bytes -= u64::from(waiting.packet.length());
            Some((waiting, *bytes))
        })
    }

    /// Packets waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The counters.
    #[must_use]
    pub const fn stats(&self) -> QueueStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::test_support::TestFrame;

    #[test]
    fn a_standing_queue_is_cut_and_a_burst_is_not() {
        let mut queue = Codel::new(CodelParameters::default(), 1000);
        for number in 0..50 {
            queue.enqueue(0, TestFrame::new(0, number));
        }
        for step in 1..=50_u64 {
            assert!(queue.dequeue(step * 1_000_000).is_some());
        }
        assert_eq!(queue.stats().drops, 0);
        // 20 ms of delay for a second: a drop after each interval, then faster.
        let mut now = 1_000_000_000_u64;
        for number in 0..20 {
            queue.enqueue(now, TestFrame::new(0, number));
        }
        for number in 0..1000 {
            now += 1_000_000;
            queue.enqueue(now, TestFrame::new(0, number));
            queue.dequeue(now);
        }
        assert!((5..60).contains(&queue.stats().drops), "{}", queue.stats().drops);
    }
}
