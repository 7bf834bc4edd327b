use std::time::Duration;

use dualq_scenario::PROBE_BYTES;
use dualq_tcp::{MIN_ACK_DELAY, Sender};
use dualq_units::Instant;

use crate::packet::{Body, Outgoing};
use crate::program::{Moment, RoundTrips, Turn};

/// What it takes to look at the clock, to read the answer and to acknowledge it: what comes with it is done before.
const READ_NS: u64 = 2;

/// Asks, waits for the answer, pauses, asks again.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    interval: Duration,
    /// When the question was asked that is not answered.
    asked_ns: Option<u64>,
    /// The answer is to be acknowledged first, and when it asks then.
    acknowledges: Option<u64>,
    /// When the last answer came.
    answered_ns: Option<u64>,
    /// Questions follow answers soon.
    converses: bool,
    pub(super) round_trips: RoundTrips,
}

impl Request {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            asked_ns: None,
            acknowledges: None,
            answered_ns: None,
            converses: false,
            round_trips: RoundTrips::default(),
        }
    }

    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        if let Some(next_ns) = self.acknowledges.take() {
            let departure = Instant::from_nanos(turn.now_ns);
            let body = Body::answer_ack(&turn.sender.empty_segment(departure), false);
            turn.out.push(Outgoing { body, departure });
            return Some(next_ns);
        }
        self.asked_ns = Some(turn.now_ns);
        turn.sender.write(PROBE_BYTES.into());
        None
    }

    /// An answer has come twice, and was acknowledged at once; so is the next one (Linux: `tcp_enter_quickack_mode`).
    pub(super) const fn answered_twice(&mut self) {
        self.converses = false;
    }

    /// The answer travels with the acknowledgement of the question.
    pub(super) fn acknowledged(&mut self, at: Moment, sender: &Sender) -> Option<u64> {
        let asked_ns = self.asked_ns.filter(|_| sender.is_done())?;
        self.asked_ns = None;
        self.round_trips.record(at, asked_ns);
        let now = Instant::from_nanos(at.now_ns);
        let next_ns = (now + self.interval).as_nanos();
        // Whoever asks soon after an answer is in a conversation (Linux: pingpong mode): the acknowledgement of the answer rides on
        // the next question, unless that comes too late. Else it leaves as the answer is read.
        self.converses |= sender.tick().is_within(self.answered_ns, asked_ns, MIN_ACK_DELAY);
        self.answered_ns = Some(at.now_ns);
        let acknowledge_ns = if self.converses {
            sender.tick().after(now, MIN_ACK_DELAY).as_nanos()
        } else {
            at.now_ns + READ_NS
        };
        if acknowledge_ns < next_ns {
            self.acknowledges = Some(next_ns);
            self.converses = false;
        }
        Some(next_ns.min(acknowledge_ns))
    }
}
