//! A receiver whose end of the connection sends data too, which acknowledge what has come.

use dualq_units::Instant;

use super::Receiver;
use crate::control::Control;
use crate::ecn::{EcnStyle, Received};
use crate::packet::Ack;
use crate::sender::Sender;

impl Receiver {
    /// The end of `sender`, which is of the same end, has opened the connection: the answer to its SYN has come.
    ///
    /// Nothing happens before `sender` is established.
    pub fn connect(&mut self, now: Instant, sender: &Sender) {
        if !sender.is_established() || self.handshake.is_done() {
            return;
        }
        self.handshake.rtt_us = Some(sender.rtt_us().map_or(0, |(srtt_us, _)| srtt_us as u64));
        self.handshake.opened_ns = now.as_nanos();
        self.begin(now.as_nanos());
        self.echo_ms = sender.peer_timestamp_ms();
        self.ecn = match (sender.ecn(), self.config.ecn) {
            (EcnStyle::Off, _) => EcnStyle::Off,
            (EcnStyle::Accurate, _) => EcnStyle::Accurate,
            (_, EcnStyle::Dctcp) => EcnStyle::Dctcp,
            _ => EcnStyle::Classic,
        };
        self.received = sender.counts();
    }

    /// What data say that leave this end at `now`: they acknowledge what has come, which then need not be told by itself (Linux:
    /// `tcp_event_ack_sent`, `tcp_event_data_sent`). They tell of nothing beyond a gap and of nothing that came twice: that is left to
    /// acknowledgements of their own, whose timers go on.
    pub fn ride(&mut self, now: Instant) -> Ack {
        let now_ns = now.as_nanos();
        let since = self.config.tick.count(now_ns).wrapping_sub(self.last_arrival);
        self.converses |= since < self.ack_delay;
        if self.stream.has_islands() || self.duplicate.is_some() {
            return self.ride_past_gap(now_ns);
        }
        let mut riding = Ack::default();
        self.send(now_ns, &mut |ack| riding = ack);
        riding
    }

    #[cold]
    fn ride_past_gap(&mut self, now_ns: u64) -> Ack {
        let duplicate = self.duplicate.take();
        let ack = self.ack(now_ns, self.stream.next);
        self.duplicate = duplicate;
        Ack { block_count: 0, ..ack }
    }

    /// An acknowledgement of what this end sends has come by itself: Accurate ECN counts its field too (RFC 9768 §3.2.2), and the timestamp
    /// that it echoes measures no round trip any more, though it measured none itself (Linux: `rcv_rtt_last_tsecr` in `tcp_rcv_established`).
    pub fn hear(&mut self, ack: &Ack) {
        if self.ecn == EcnStyle::Accurate {
            self.received.count(ack.ecn, 1, 0);
        }
        if !ack.has(Control::SYN) {
            self.buffer.see_echo(ack.echo_ms);
        }
    }

    /// How long it took until something came after the answer to a SYN, if it has.
    pub(crate) const fn handshake_rtt_us(&self) -> Option<u64> {
        self.handshake.rtt_us
    }

    pub(crate) const fn echo_ms(&self) -> u32 {
        self.echo_ms
    }

    /// What Accurate ECN has counted.
    pub(crate) const fn counts(&self) -> Received {
        self.received
    }
}
