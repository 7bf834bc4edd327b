//! Questions over TCP and their answers: what is typed into a terminal, what a browser or a client of an API asks for.
//!
//! Each end of such a connection has its program: one asks, the other answers. Which of them opens the connection is not theirs to say.

use std::time::Duration;

use dualq_scenario::PROBE_BYTES;
use dualq_tcp::{Receiver, Sender};
use dualq_units::{Bytes, Instant};

use crate::program::{Moment, RoundTrips, Turn};

/// Asks, waits for the answer, pauses, asks again, and knows how long each answer took.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Bytes of an answer.
    answer: u64,
    /// How long after an answer the next question is asked.
    pause: Duration,
    /// When the question was asked whose answer is not there.
    asked_ns: Option<u64>,
    /// Where in the stream of answers that to the last question ends.
    end: u64,
    pub(super) round_trips: RoundTrips,
}

impl Ask {
    pub(crate) fn new(Bytes(answer): Bytes, pause: Duration) -> Self {
        Self { answer, pause, asked_ns: None, end: 0, round_trips: RoundTrips::default() }
    }

    /// Asks, once its connection is open.
    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) {
        if turn.sender.is_established() {
            self.asked_ns = Some(turn.now_ns);
            self.end += self.answer;
            turn.sender.write(PROBE_BYTES.into());
        }
    }

    /// Whether it has asked for the first time.
    pub(crate) const fn has_begun(&self) -> bool {
        self.end > 0
    }

    /// Its connection is open: it asks for the first time, if it has not.
    pub(super) fn begin(&mut self, turn: &mut Turn<'_>) {
        if !self.has_begun() {
            self.turn(turn);
        }
    }

    /// Something has reached its end of the connection. Returns when it asks next, if that is known now.
    pub(crate) fn hear(&mut self, at: Moment, receiver: &Receiver) -> Option<u64> {
        let asked_ns = self.asked_ns.filter(|_| receiver.received() >= self.end)?;
        self.asked_ns = None;
        self.round_trips.record(at, asked_ns);
        Some((Instant::from_nanos(at.now_ns) + self.pause).as_nanos())
    }
}

/// Answers each question at once.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Bytes of an answer.
    size: u64,
    answered: u64,
}

impl Answer {
    pub(crate) const fn new(Bytes(size): Bytes) -> Self {
        Self { size, answered: 0 }
    }

    /// So many bytes of questions have come: those that are whole are answered.
    pub(crate) fn hear(&mut self, received: u64, sender: &mut Sender) {
        let asked = received / u64::from(PROBE_BYTES);
        for _ in self.answered..asked {
            sender.write(self.size);
        }
        self.answered = self.answered.max(asked);
    }
}
