use std::time::Duration;

use dualq_scenario::UdpGroup;
use dualq_units::{Ecn, Instant};

use crate::packet::{Body, Datagram, Outgoing};
use crate::program::{SEND_NS, Turn};

/// Sends a UDP packet at each interval, whatever the path does.
#[derive(Clone, Debug)]
pub(crate) struct Udp {
    /// The number of its group, and its own within that.
    pub(crate) group: usize,
    pub(crate) stream: usize,
    interval: Duration,
    /// When the next one is due: so many intervals after the start, whoever else began then.
    due: Instant,
    stop_ns: u64,
    ip_bytes: u32,
    ecn: Ecn,
}

impl Udp {
    pub(crate) fn new((group, udp): (usize, &UdpGroup), stream: u32) -> Self {
        Self {
            group,
            stream: stream as usize,
            interval: udp.interval,
            due: Instant::from_nanos(SEND_NS) + udp.start_of(stream),
            stop_ns: udp.stop.map_or(u64::MAX, |stop| stop.as_nanos() as u64),
            ip_bytes: udp.packet,
            ecn: udp.ecn,
        }
    }

    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        if turn.now_ns >= self.stop_ns {
            return None;
        }
        let now = Instant::from_nanos(turn.now_ns);
        let number = turn.record.udp(self.group).sent(self.stream, now);
        let Self { ip_bytes, ecn, .. } = *self;
        let body = Body::datagram(Datagram { number, sent_ns: turn.now_ns, ip_bytes, ecn });
        turn.out.push(Outgoing { body, departure: now });
        self.due = self.due + self.interval;
        // Who is late, as many began at once, sends as soon as it can.
        Some(self.due.as_nanos().max(turn.now_ns))
    }
}
