//! A sender whose end of the connection receives data too, and did not open it.

use dualq_units::Instant;

use super::{Handshake, Sender};
use crate::ecn::{EcnStyle, Received};
use crate::receiver::Receiver;

impl Sender {
    /// The other end opens the connection: nothing leaves before [`accept`](Self::accept).
    pub fn listen(&mut self) {
        self.handshake = Handshake::Listening;
    }

    /// The connection is open: something has come that acknowledges the answer of `receiver`, of the same end, to the other end's SYN, and
    /// offers to take so many bytes (Linux: `tcp_rcv_state_process` in `TCP_SYN_RECV`).
    ///
    /// Nothing happens before `receiver` is established, or if this is no sender that listens.
    pub fn accept(&mut self, now: Instant, receiver: &Receiver, window: u64) {
        let Some(rtt_us) = receiver.handshake_rtt_us() else { return };
        if self.handshake != Handshake::Listening {
            return;
        }
        self.peer_timestamp_ms = receiver.echo_ms();
        self.use_ecn(match receiver.ecn() {
            EcnStyle::Dctcp => EcnStyle::Classic,
            style => style,
        });
        if self.ecn == EcnStyle::Accurate {
            self.received = receiver.counts();
            self.make_room_for_option(now.as_nanos());
        }
        self.begin(now.as_nanos(), rtt_us, 0, window);
    }

    /// An acknowledgement without data leaves this end: what pacing lets leave next counts as late from now on only (Linux: `__tcp_transmit_skb`
    /// moves `tcp_wstamp_ns` for each packet).
    pub fn acknowledges(&mut self, now: Instant) {
        self.departure_ns = self.departure_ns.max(now.as_nanos());
    }

    /// The smoothed round-trip time in microseconds, and the timeout in jiffies.
    pub(crate) const fn times(&self) -> (u64, u32) {
        (self.rtt.srtt_eighth_us >> 3, self.rtt.timeout)
    }

    /// The newest timestamp of the other end.
    pub(crate) const fn peer_timestamp_ms(&self) -> u32 {
        self.peer_timestamp_ms
    }

    /// What Accurate ECN has counted.
    pub(crate) const fn counts(&self) -> Received {
        self.received
    }
}
