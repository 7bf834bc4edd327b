//! What leaves before a connection is open: the SYN, with data if Fast Open allows that, and RST of one that was given up.

use dualq_units::Ecn;
use dualq_units::hint::unlikely;

use super::{Handshake, Sender};
use crate::control::Control;
use crate::ecn::EcnFlags;
use crate::packet::{COOKIE_BYTES, COOKIE_REQUEST_BYTES, Data, PLAIN_HEADER_BYTES, Transmission};
use crate::scoreboard::{FIRST_OF_PACKET, Segment};
use crate::tick::instant;

/// The most that TCP options can take.
const OPTION_SPACE: u32 = 40;

impl Sender {
    /// Sends the SYN if it is due.
    #[inline(never)]
    pub(super) fn transmit_syn(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) {
        if unlikely(self.handshake == Handshake::GivenUp) {
            return self.transmit_reset(now_ns, out);
        }
        let again = self.handshake == Handshake::SynSent;
        if self.handshake == Handshake::Listening || (again && !self.syn_due) {
            return;
        }
        self.handshake = Handshake::SynSent;
        self.syn_due = false;
        self.syn_sent_ns = now_ns;
        if !again {
            self.first_syn_ns = now_ns;
        }
        // One that is sent again is a timeout and a segment sent again as others are (Linux: `total_rto`, `total_retrans`).
        self.stats.timeouts += u64::from(again);
        self.stats.retransmissions += u64::from(again);
        self.syns_sent += 1;
        self.start_handshake_timer(now_ns);
        // A SYN that is sent again is a plain one.
        let (options, payload) = match (self.config.fast_open && !again, self.has_cookie) {
            (false, _) => (0, 0),
            (true, false) => (COOKIE_REQUEST_BYTES, 0),
            (true, true) => (COOKIE_BYTES, self.open_fast(now_ns)),
        };
        let data = Data {
            seq: 0,
            payload,
            segments: 1,
            mss: 0,
            timestamp_ms: self.config.tick.millisecond(now_ns),
            echo_ms: 0,
            ecn: self.codepoint(self.needs_ecn()),
            flags: self.syn_flags(),
            options: options as u8,
            control: Control::SYN,
        };
        out(Transmission { data, departure: instant(now_ns) });
    }

    /// An answer to the SYN has come, and nobody is there any more (Linux: `tcp_v4_send_reset`).
    #[cold]
    fn transmit_reset(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) {
        if !std::mem::take(&mut self.syn_due) {
            return;
        }
        let data = Data {
            seq: self.snd_una,
            payload: 0,
            segments: 1,
            mss: 0,
            timestamp_ms: 0,
            echo_ms: 0,
            ecn: Ecn::NotEct,
            flags: EcnFlags::NONE,
            options: 0,
            control: Control::RESET,
        };
        out(Transmission { data, departure: instant(now_ns) });
    }

    /// How much of the first data leaves with the SYN: what fits in beside all options that there can be (Linux:
    /// `tcp_send_syn_data`).
    fn open_fast(&mut self, now_ns: u64) -> u32 {
        let room = self.path_mtu.max(576) - PLAIN_HEADER_BYTES - OPTION_SPACE;
        let payload = self.write_end.min(self.fin).min(room.into()) as u32;
        if payload > 0 {
            self.buffer.open(payload.into());
            self.snd_nxt = payload.into();
            let stamp = self.rate.stamp(now_ns, 0);
            let flags = (FIRST_OF_PACKET, self.flight_with(0, 1));
            self.board.push(Segment::new(self.snd_nxt, stamp, payload, flags));
            self.enqueue(now_ns, now_ns, (payload, 1));
            self.stats.segments += 1;
        }
        payload
    }
}
