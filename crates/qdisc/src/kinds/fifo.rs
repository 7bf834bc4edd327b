//! One queue, first in first out, that drops what arrives when it is full: `pfifo` counts packets, `bfifo` bytes.

use std::collections::VecDeque;

use dualq_units::hint::unlikely;
use dualq_units::{Bytes, Instant};

use super::{Grammar, bfifo, pfifo};
use crate::grammar::{ParseError, Words, unknown_option};
use crate::show::{Counters, OwnStats, Stats};
use crate::{
    ChangeError, Config, Departure, DropReason, Dropped, FlowPacket, Qdisc, Spec, UPCOMING,
};

/// How much a FIFO holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FifoLimit {
    Packets(u32),
    Bytes(Bytes),
}

/// The discipline.
pub struct Fifo<P> {
    queue: VecDeque<(Instant, P)>,
    limit: FifoLimit,
    counters: Counters,
}

impl<P> Fifo<P> {
    /// An empty queue.
    pub(crate) const fn new(limit: FifoLimit) -> Self {
        Self { queue: VecDeque::new(), limit, counters: Counters::ZERO }
    }
}

impl<P: FlowPacket> Qdisc<P> for Fifo<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["fifo"]
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let backlog_bytes = self.counters.backlog_bytes + u64::from(packet.length());
        let fits = match self.limit {
            FifoLimit::Packets(limit) => self.queue.len() < limit as usize,
            FifoLimit::Bytes(limit) => backlog_bytes <= limit.0,
        };
        if unlikely(!fits) {
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
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let (enqueued, packet) = self.queue.pop_front()?;
        self.counters.left(&packet);
        Some(Departure {
            packet,
            band: 0,
            sojourn_ns: now.nanos_since(enqueued),
            marked_by_probability: false,
            marked_by_step: false,
        })
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        self.queue.get(UPCOMING).map(|(_, packet)| packet)
    }

    fn peek(&mut self, _now: Instant, _dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
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

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.counters.backlog_packets = 0;
        self.counters.backlog_bytes = 0;
        for (_, packet) in self.queue.drain(..) {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match (&mut self.limit, spec) {
            (FifoLimit::Packets(limit), Spec::Pfifo(options)) => {
                *limit = options.limit.unwrap_or(*limit);
            }
            (FifoLimit::Bytes(limit), Spec::Bfifo(options)) => {
                *limit = options.limit.unwrap_or(*limit);
            }
            _ => return Err(ChangeError::other_kind(Qdisc::<P>::config(self).kind(), spec)),
        }
        Ok(())
    }

    fn config(&self) -> Config {
        match self.limit {
            FifoLimit::Packets(limit) => Config::Pfifo(pfifo::Config { limit }),
            FifoLimit::Bytes(limit) => Config::Bfifo(bfifo::Config { limit }),
        }
    }

    fn stats(&self, _now: Instant) -> Stats {
        Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}

/// Reads the one option that a FIFO has.
pub(super) fn limit_only<K: Grammar>(
    words: &mut Words<'_>,
    expected: &str,
) -> Result<Option<u32>, ParseError> {
    let mut limit = None;
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = Some(words.size("limit", expected)?),
            unknown => return Err(unknown_option::<K>(unknown, words)),
        }
    }
    Ok(limit)
}
