use std::collections::VecDeque;
use std::time::Duration;

use dualq_tcp::Sender;
use dualq_units::hint::unlikely;

use crate::program::{Moment, Turn};

/// Sends, to an end or for ever, once or again and again.
// In the order in which it is written: what each acknowledgement is compared with lies beside what else of the connection that needs.
#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    /// Where in the stream the first transfer ends that is not acknowledged: kept, as each acknowledgement asks for it.
    first_end: u64,
    /// Bytes that it has to send at a time.
    size: u64,
    /// How long after one time the next begins.
    every: Option<Duration>,
    /// When the last one was due: so many times that long after the start, whoever else began then. It begins before others that are due at the same
    /// time ask.
    due_ns: u64,
    /// When it has nothing more to send.
    stop_ns: u64,
    /// When transfers began that are not acknowledged.
    under_way: VecDeque<u64>,
    /// How long those took that are, in nanoseconds.
    pub(crate) took_ns: Vec<u64>,
}

impl Bulk {
    /// One that begins at `start_ns`.
    pub(crate) fn new(
        start_ns: u64,
        size: u64,
        every: Option<Duration>,
        stop: Option<Duration>,
    ) -> Self {
        Self {
            first_end: size,
            size,
            every,
            due_ns: start_ns,
            stop_ns: stop.map_or(u64::MAX, |stop| stop.as_nanos() as u64),
            under_way: VecDeque::new(),
            took_ns: Vec::new(),
        }
    }

    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        if turn.now_ns >= self.stop_ns {
            turn.sender.stop();
            if turn.sender.is_established() {
                turn.sender.close();
            } else {
                turn.sender.give_up();
            }
            return None;
        }
        turn.sender.write(self.size);
        if self.every.is_none() && self.size < u64::MAX {
            turn.sender.close();
        }
        self.under_way.push_back(turn.now_ns);
        let again = self.every.map(|every| {
            self.due_ns += every.as_nanos() as u64;
            self.due_ns
        });
        again.into_iter().chain([self.stop_ns]).min().filter(|next_ns| *next_ns < u64::MAX)
    }

    #[inline]
    pub(super) fn acknowledged(&mut self, at: Moment, sender: &Sender) -> Option<u64> {
        while unlikely(self.first_end <= sender.acknowledged())
            // The other end closes its side then, too, and the program learns of that.
            && (sender.is_closed() || !sender.has_closed())
            && let Some(began_ns) = self.under_way.pop_front()
        {
            self.took_ns.push(at.now_ns - began_ns);
            self.first_end = self.first_end.saturating_add(self.size);
        }
        None
    }

    /// The transfers that were begun: the bytes of each, and how long those took that are done.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (u64, Option<Duration>)> {
        let done = self.took_ns.iter().map(|took_ns| Some(Duration::from_nanos(*took_ns)));
        let others = self.under_way.iter().map(|_| None);
        done.chain(others).map(|took| (self.size, took))
    }
}
