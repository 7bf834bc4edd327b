use std::time::Duration;

use dualq_scenario::summary::Echoes;
use dualq_units::{Ecn, Instant};

use crate::packet::{Body, Echo, Outgoing};
use crate::program::{Moment, RoundTrips, SEND_NS, Turn};

/// Sends an ICMP echo request now and then, whatever is answered.
#[derive(Clone, Debug)]
pub(crate) struct Ping {
    interval: Duration,
    /// When the next one is due: so many intervals after the start, whoever else began then.
    due: Instant,
    pub(crate) echoes: Echoes,
    pub(super) round_trips: RoundTrips,
}

impl Ping {
    pub(crate) fn new(interval: Duration) -> Self {
        let due = Instant::from_nanos(SEND_NS);
        Self { interval, due, echoes: Echoes::default(), round_trips: RoundTrips::default() }
    }

    /// What comes back tells when it was sent.
    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        let departure = Instant::from_nanos(turn.now_ns);
        // The first has the number 1, as of ping(8), and after 65535 comes 0.
        let number = (self.echoes.send(departure) + 1) as u16;
        let echo = Echo { sent_ns: turn.now_ns, number, is_reply: false, ecn: Ecn::NotEct };
        let body = Body::echo(echo);
        turn.out.push(Outgoing { body, departure });
        self.due = self.due + self.interval;
        // Who is late, as many began at once, sends as soon as it can.
        Some(self.due.as_nanos().max(turn.now_ns))
    }

    pub(super) fn replied(&mut self, at: Moment, sent_ns: u64) {
        self.echoes.answer_sent_at(Instant::from_nanos(sent_ns), Instant::from_nanos(at.now_ns));
        self.round_trips.record(at, sent_ns);
    }
}
