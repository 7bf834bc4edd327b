//! The way back to the senders, which only delays: acknowledgements arrive in the order in which they left, but for those of flows
//! whose round trips are longer.

use std::collections::VecDeque;
use std::time::Duration;

use dualq_tcp::Ack;

/// An acknowledgement on its way: when it arrives, and at which connection.
pub(crate) type Entry = (u64, u32, Ack);

/// All who take equally long.
#[derive(Debug)]
struct Lane {
    delay_ns: u64,
    entries: VecDeque<Entry>,
}

impl Lane {
    fn next_ns(&self) -> u64 {
        self.entries.front().map_or(u64::MAX, |entry| entry.0)
    }
}

/// The way back.
#[derive(Debug)]
pub(crate) struct ReversePath {
    lanes: Vec<Lane>,
    /// The lane from which the next one arrives.
    first: usize,
}

impl ReversePath {
    pub(crate) const fn new() -> Self {
        Self { lanes: Vec::new(), first: 0 }
    }

    /// The lane of those who take `delay` long.
    pub(crate) fn lane(&mut self, delay: Duration) -> usize {
        let delay_ns = delay.as_nanos() as u64;
        let known = self.lanes.iter().position(|lane| lane.delay_ns == delay_ns);
        known.unwrap_or_else(|| {
            self.lanes.push(Lane { delay_ns, entries: VecDeque::new() });
            self.lanes.len() - 1
        })
    }

    /// An acknowledgement sets out.
    #[inline]
    pub(crate) fn push(&mut self, lane: usize, now_ns: u64, connection: u32, ack: Ack) {
        let Lane { delay_ns, entries } = &mut self.lanes[lane];
        let at_ns = now_ns + *delay_ns;
        let was_empty = entries.is_empty();
        entries.push_back((at_ns, connection, ack));
        if was_empty && at_ns < self.lanes[self.first].next_ns() {
            self.first = lane;
        }
    }

    /// When the next one arrives.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.lanes.get(self.first).map_or(u64::MAX, Lane::next_ns)
    }

    /// The next one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = self.lanes.get_mut(self.first)?.entries.pop_front();
        if self.lanes.len() > 1 {
            let next = (0..self.lanes.len()).min_by_key(|lane| self.lanes[*lane].next_ns());
            self.first = next.unwrap_or(0);
        }
        entry
    }

    /// One that arrives soon: so many after the next one, if only those of its lane count.
    #[inline]
    pub(crate) fn upcoming(&self, later: usize) -> Option<&Entry> {
        self.lanes.get(self.first)?.entries.get(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_longer_is_overtaken() {
        let mut way = ReversePath::new();
        let lanes = [30, 10].map(|millis| way.lane(Duration::from_millis(millis)));
        assert_eq!(way.lane(Duration::from_millis(10)), lanes[1]);
        for (number, (lane, millis)) in (0..).zip([(0, 0), (1, 5), (0, 10), (1, 25), (1, 31)]) {
            way.push(lanes[lane], millis * 1_000_000, number, Ack::default());
        }
        let arrived = std::iter::from_fn(|| {
            let next_ns = way.next_ns();
            way.pop().map(|(at_ns, number, _)| {
                assert_eq!(at_ns, next_ns);
                (at_ns / 1_000_000, number)
            })
        });
        assert_eq!(arrived.collect::<Vec<_>>(), [(15, 1), (30, 0), (35, 3), (40, 2), (41, 4)]);
        assert_eq!(way.next_ns(), u64::MAX);
    }
}
