use std::time::Duration;

use dualq_units::{Ecn, Instant};

use crate::packet::{Body, Echo, Outgoing};
use crate::program::{Moment, RoundTrips, Turn};

/// Sends an ICMP echo request now and then, whatever is answered.
#[derive(Clone, Debug)]
pub(crate) struct Ping {
    interval: Duration,
    /// How many it has sent.
    sent: u16,
    pub(super) round_trips: RoundTrips,
}

impl Ping {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, sent: 0, round_trips: RoundTrips::default() }
    }

    /// What comes back tells when it was sent.
    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        self.sent = self.sent.wrapping_add(1);
        let number = self.sent;
        let echo = Echo { sent_ns: turn.now_ns, number, is_reply: false, ecn: Ecn::NotEct };
        let body = Body::echo(echo);
        let departure = Instant::from_nanos(turn.now_ns);
        turn.out.push(Outgoing { body, departure });
        Some((departure + self.interval).as_nanos())
    }

    pub(super) fn replied(&mut self, at: Moment, sent_ns: u64) {
        self.round_trips.record(at, sent_ns);
    }
}
