use std::time::Duration;

use dualq_units::{Ecn, Instant};

use crate::packet::{Body, Echo, Outgoing};
use crate::program::{Moment, RoundTrips, Turn};

/// Sends an ICMP echo request now and then, whatever is answered.
#[derive(Clone, Debug)]
pub(crate) struct Ping {
    interval: Duration,
    pub(super) round_trips: RoundTrips,
}

impl Ping {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, round_trips: RoundTrips::default() }
    }

    /// What comes back tells when it was sent.
    pub(super) fn turn(&self, turn: &mut Turn<'_>) -> Option<u64> {
        let body = Body::echo(Echo { sent_ns: turn.now_ns, is_reply: false, ecn: Ecn::NotEct });
        let departure = Instant::from_nanos(turn.now_ns);
        turn.out.push(Outgoing { body, departure });
        Some((departure + self.interval).as_nanos())
    }

    pub(super) fn replied(&mut self, at: Moment, sent_ns: u64) {
        self.round_trips.record(at, sent_ns);
    }
}
