//! First in, first out, with a limit in packets or bytes: `pfifo`, `bfifo` and, for traffic of one priority,
//! `pfifo_fast` (tc-bfifo(8), tc-pfifo_fast(8)).

use std::collections::VecDeque;

use super::{Departure, Frame, QueueStats, Waiting};

/// What a full queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FifoLimit {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(u64),
}

/// A queue that drops what arrives when it is full.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    limit: FifoLimit,
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
    stats: QueueStats,
}

impl<P: Frame> Fifo<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(limit: FifoLimit) -> Self {
        Self { limit, packets: VecDeque::new(), bytes: 0, stats: QueueStats::default() }
    }

    /// A packet arrives.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P) {
        let length = u64::from(packet.length());
        let fits = match self.limit {
            FifoLimit::Packets(limit) => self.packets.len() < limit as usize,
            FifoLimit::Bytes(limit) => self.bytes + length <= limit,
        };
        if fits {
            self.bytes += length;
            self.stats.enqueued += 1;
            self.packets.push_back(Waiting { packet, since_ns: now_ns });
        } else {
            self.stats.drops += 1;
        }
    }

    /// The next packet to send.
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.packet.length());
        Some(waiting.depart(now_ns))
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
    fn the_limit_is_kept_and_the_order_too() {
        let mut queue = Fifo::new(FifoLimit::Bytes(3 * 1514));
        for number in 0..5 {
            queue.enqueue(number.into(), TestFrame::new(0, number));
        }
        assert_eq!((queue.len(), queue.stats().drops), (3, 2));
        let first = queue.dequeue(10).map(|departure| departure.sojourn_ns);
        assert_eq!(first, Some(10));
        assert_eq!(queue.dequeue(10).map(|departure| departure.packet.number), Some(1));
    }
}
