//! One queue, first in first out, that drops what arrives when it is full: `pfifo` counts packets, `bfifo` bytes.

use std::collections::VecDeque;

use dualq_units::Instant;

use super::{Departure, DropReason, Dropped, Qdisc, UPCOMING};
use crate::show::{Counters, OwnStats, Stats};
use crate::{Config, FifoLimit, Packet, Spec};

/// The discipline.
pub struct Fifo<P> {
    queue: VecDeque<(Instant, P)>,
    limit: FifoLimit,
    counters: Counters,
}

impl<P> Fifo<P> {
    /// An empty queue.
    #[must_use]
    pub const fn new(limit: FifoLimit) -> Self {
        Self { queue: VecDeque::new(), limit, counters: Counters::ZERO }
    }

    pub(super) const fn limit(&self) -> FifoLimit {
        self.limit
    }

    pub(super) fn change(&mut self, spec: &Spec) {
        match *spec {
            Spec::Pfifo { limit: Some(limit) } => self.limit = FifoLimit::Packets(limit),
            Spec::Bfifo { limit: Some(limit) } => self.limit = FifoLimit::Bytes(limit),
            _ => {}
        }
    }
}

impl<P: Packet> Qdisc<P> for Fifo<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["fifo"]
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
        let backlog_bytes = self.counters.backlog_bytes + u64::from(packet.length());
        let fits = match self.limit {
            FifoLimit::Packets(limit) => self.queue.len() < limit as usize,
            FifoLimit::Bytes(limit) => backlog_bytes <= limit.0,
        };
        if !fits {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes = backlog_bytes;
        self.queue.push_back((now, packet));
        1
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let (enqueued, packet) = self.queue.pop_front()?;
        self.counters.left(packet.length());
        Some(Departure {
            packet,
            band: 0,
            sojourn: now - enqueued,
            marked_by_probability: false,
            marked_by_step: false,
        })
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        self.queue.get(UPCOMING).map(|(_, packet)| packet)
    }

    fn peek(&mut self, _now: Instant, _dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
        self.queue.front().map(|(_, packet)| packet)
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        self.counters.backlog_packets = 0;
        self.counters.backlog_bytes = 0;
        for (_, packet) in self.queue.drain(..) {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
    }

    fn config(&self) -> Config {
        Config::Fifo(self.limit)
    }

    fn stats(&self, _now: Instant) -> Stats {
        Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}
