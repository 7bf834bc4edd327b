//! What is to happen: timers of connections in the order of time, first come first served within an instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The sending endpoint's timer.
    Sender,
    /// The receiving endpoint's timer.
    Receiver,
    /// The sender's queue lets a packet go.
    Departure,
    /// The connection opens, or its program writes.
    Program,
}

/// How many causes there are.
pub(crate) const CAUSES: usize = 4;

type Entry = (u64, u64, u32, Cause);

/// Deadlines, of which each connection has one a cause. A deadline that moves away costs nothing: the entry stays and
/// is looked at again when it comes up.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    /// When the earliest valid entry of each connection and cause is due.
    scheduled: Vec<[u64; CAUSES]>,
    order: u64,
}

impl Agenda {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(connections * CAUSES),
            scheduled: vec![[u64::MAX; CAUSES]; connections],
            order: 0,
        }
    }

    /// When the next entry is due; `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse(entry)| entry.0)
    }

    /// Makes sure that the connection is looked at by `deadline_ns`.
    #[inline]
    pub(crate) fn arm(&mut self, connection: u32, cause: Cause, deadline_ns: u64) {
        let scheduled = &mut self.scheduled[connection as usize][cause as usize];
        if deadline_ns < *scheduled {
            *scheduled = deadline_ns;
            self.order += 1;
            self.heap.push(Reverse((deadline_ns, self.order, connection, cause)));
        }
    }

    /// Takes the next entry, if it is still of interest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u32, Cause)> {
        let Reverse((time_ns, _, connection, cause)) = self.heap.pop()?;
        let scheduled = &mut self.scheduled[connection as usize][cause as usize];
        if *scheduled != time_ns {
            return None;
        }
        *scheduled = u64::MAX;
        Some((connection, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_counts_and_ties_keep_their_order() {
        let mut agenda = Agenda::new(2);
        agenda.arm(0, Cause::Sender, 50);
        agenda.arm(0, Cause::Sender, 20);
        agenda.arm(0, Cause::Sender, 30);
        agenda.arm(1, Cause::Receiver, 20);
        assert_eq!(agenda.pop(), Some((0, Cause::Sender)));
        assert_eq!(agenda.pop(), Some((1, Cause::Receiver)));
        assert_eq!(agenda.next_ns(), 50);
        assert_eq!(agenda.pop(), None);
    }
}
