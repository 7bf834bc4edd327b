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

    /// What `sender`, which is of the same end, knows of the round trip this one knows too: more than that of the handshake (Linux: `srtt_us` and `icsk_rto` of
    /// the one socket). To be called when it has heard of something, and has taken data that came with that: how long it is since others came is compared with the
    /// timeout that was known before (`tcp_rcv_established`, where `tcp_event_data_recv` comes before `tcp_ack`).
    pub const fn follow(&mut self, sender: &Sender) {
        let (srtt_us, timeout) = sender.times();
        if self.handshake.is_done() && srtt_us > 0 {
            self.handshake.rtt_us = Some(srtt_us);
            self.handshake.timeout = timeout;
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::packet::Data;
    use crate::receiver::ReceiverConfig;
    use crate::receiver::tests::data;
    use crate::sender::SenderConfig;

    /// As in the world `kernel` in `exact-32`, where a question waits in a full queue: who has found a long round trip takes no long silence for a timeout of the
    /// other end's (Linux: `tcp_event_data_recv`, by `icsk_rto`).
    #[test]
    fn who_sends_knows_the_round_trip_of_what_it_sent() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        for (rtt_ms, quick) in [(30, true), (400, false)] {
            let mut sender = Sender::new(SenderConfig::default());
            sender.write(100);
            sender.transmit(at(0), &mut |_| ());
            let answer = Ack { control: Control::SYN, window: 1 << 20, ..Ack::default() };
            sender.on_ack(at(20), &answer);
            let mut receiver = Receiver::new(ReceiverConfig::default());
            receiver.connect(at(20), &sender);
            let arrives = |receiver: &mut Receiver, ms: u64, seq: u64| {
                let data = Data { echo_ms: ms as u32, ..data(seq, 0) };
                receiver.on_data(at(ms), &data, &mut |_| ());
            };
            arrives(&mut receiver, 30, 0);
            receiver.quick = 0;
            sender.transmit(at(20), &mut |_| ());
            sender.on_ack(at(20 + rtt_ms), &Ack { ack: 100, window: 1 << 20, ..Ack::default() });
            receiver.follow(&sender);
            // A timeout of 220 ms or less, or of more.
            arrives(&mut receiver, 330, 1_448);
            assert_eq!(receiver.quick > 0, quick, "{rtt_ms}");
        }
    }
}
