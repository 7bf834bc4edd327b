//! Questions over TCP whose answers are large: what a browser does, or a client of an API.
//!
//! The end that answers, where [`Answer`] is, opens the connection.

use std::time::Duration;

use dualq_scenario::PROBE_BYTES;
use dualq_tcp::{Receiver, Sender};
use dualq_units::{Bytes, Instant};

use crate::program::{Moment, RoundTrips, Turn};

/// Asks.
pub(super) fn ask(turn: &mut Turn<'_>) {
    turn.sender.write(PROBE_BYTES.into());
}

/// Answers each question, and knows how long that took the one who asked.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    size: u64,
    /// How long after an answer the next question is asked.
    pause: Duration,
    answered: u64,
    /// When the last question was asked, if its answer is not there.
    asked_ns: Option<u64>,
    /// Where in the stream the answer to that ends.
    end: u64,
    pub(super) round_trips: RoundTrips,
}

impl Answer {
    pub(crate) fn new(Bytes(size): Bytes, pause: Duration) -> Self {
        Self {
            size,
            pause,
            answered: 0,
            asked_ns: None,
            end: 0,
            round_trips: RoundTrips::default(),
        }
    }

    /// So many bytes of questions have come: those that are whole are answered.
    pub(crate) fn hear(&mut self, received: u64, sender: &mut Sender) {
        let asked = received / u64::from(PROBE_BYTES);
        for _ in self.answered..asked {
            sender.write(self.size);
        }
        self.answered = self.answered.max(asked);
    }

    /// Something has reached the end that asks. Returns when the next question is asked, if that is known now.
    pub(crate) fn arrived(&mut self, at: Moment, receiver: &Receiver) -> Option<u64> {
        let next_ns = match self.asked_ns {
            // The first question.
            None if self.end == 0 && receiver.is_established() => at.now_ns,
            Some(asked_ns) if receiver.received() >= self.end => {
                self.round_trips.record(at, asked_ns);
                (Instant::from_nanos(at.now_ns) + self.pause).as_nanos()
            }
            _ => return None,
        };
        self.asked_ns = Some(next_ns);
        self.end += self.size;
        Some(next_ns)
    }
}
