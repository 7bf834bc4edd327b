//! New data: how much of what the program has written leaves next, and what waits for more (Linux: `tcp_write_xmit`); and the tail loss
//! probe, which is new data too if there are any.

use dualq_units::hint::unlikely;

use super::Sender;
use super::transmit::MILLISECOND_NS;
use crate::cc::{CongestionControl, State};
use crate::packet::Transmission;
use crate::scoreboard::{APP_LIMITED, FIRST_OF_PACKET, PUSHES, Segment};

/// An aggregate waits for a fuller window if at least a third of the window can go (Linux: `tcp_tso_win_divisor`).
const DEFER_DIVISOR: u32 = 3;

/// What is left of the packet that is sent next.
#[derive(Clone, Copy)]
struct Unsent {
    bytes: u64,
    /// No other follows.
    last: bool,
    /// The end of the stream leaves with it (FIN).
    ends: bool,
}

/// How much is sent that the program has written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Push {
    /// All that may be sent, as an acknowledgement or a departure makes room for it: of what is short, the last waits by Nagle's rule.
    Pending,
    /// The same, where the program has just paused: nothing waits (Linux: `tcp_push` with `TCP_NAGLE_PUSH`).
    Written,
    /// One packet, which waits for no fuller one (Linux: `tcp_push_one`).
    One,
    /// The same of a tail loss probe, for which there is room if the window is full too (Linux: `tcp_send_loss_probe`).
    Probe,
}

/// What new data wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    ByWindow,
    Otherwise,
}

impl Sender {
    /// Sends what has not been sent before, as far as it may be. Returns whether anything was.
    #[inline(never)]
    pub(super) fn transmit_new(
        &mut self,
        now_ns: u64,
        push: Push,
        out: &mut impl FnMut(Transmission),
    ) -> bool {
        self.transmit_new_here(now_ns, push, out)
    }

    /// The same without a call: for where it is done with each acknowledgement.
    #[inline(always)]
    pub(super) fn transmit_new_here(
        &mut self,
        now_ns: u64,
        push: Push,
        out: &mut impl FnMut(Transmission),
    ) -> bool {
        // What an aggregate may have is asked once, before the first packet leaves.
        let most = self.gso_segments();
        let mut sent = 0;
        let mut limited = false;
        let mut in_flight = self.board.in_flight();
        let mut first = (self.board.packets_out(), 0);
        while self.snd_nxt < self.buffer.end {
            match self.next_new(now_ns, in_flight, most, push) {
                Ok(payload) => {
                    let ends = u32::from(self.snd_nxt + u64::from(payload) > self.fin);
                    let segments = (payload - ends).saturating_sub(1) / self.mss + 1;
                    self.send_payload(now_ns, in_flight, payload, segments, out);
                    if sent == 0 {
                        first.1 = self.departure_ns;
                    }
                    sent += segments;
                    in_flight += segments;
                    debug_assert_eq!(in_flight, self.board.in_flight());
                    self.check_space();
                    if matches!(push, Push::One | Push::Probe) {
                        break;
                    }
                }
                Err(reason) => {
                    limited = reason == Held::ByWindow;
                    break;
                }
            }
        }
        limited |= in_flight >= self.window.cwnd;
        if sent > 0 || limited {
            self.validate_window(limited);
        }
        if sent > 0 {
            if self.in_reduction() {
                self.recovery.prr_out += sent;
            }
            self.new_data_sent(now_ns, first, push == Push::Probe);
        }
        sent > 0
    }

    /// How many bytes of new data go into the next packet. Where the receiver's window, or all that the program has written so far, ends
    /// within a segment, its first part goes too if no short one is under way (Nagle's rule after Minshall; Linux: `tcp_nagle_test`,
    /// `tcp_mss_split_point`).
    #[inline(always)]
    fn next_new(
        &mut self,
        now_ns: u64,
        in_flight: u32,
        most: u32,
        push: Push,
    ) -> Result<u32, Held> {
        if self.must_wait(now_ns) {
            return Err(Held::Otherwise);
        }
        let room = self.window.cwnd.saturating_sub(in_flight);
        if room == 0 && push != Push::Probe {
            return Err(Held::ByWindow);
        }
        let quota = room.min(self.window.cwnd / 2).max(1).min(most);
        let mss = u64::from(self.mss);
        let whole = u64::from(quota) * mss;
        let (mut end, mut last) = self.buffer.head(self.snd_nxt, whole);
        let window = self.window_end.saturating_sub(self.snd_nxt);
        let mut ends = 0;
        if unlikely(end >= self.fin) {
            if self.has_closed() {
                (end, last) = self.buffer.head(self.snd_nxt, self.fin + 1 - self.snd_nxt);
            }
            ends = u64::from(end > self.fin);
            if self.snd_nxt == self.fin {
                return if window > 0 { Ok(1) } else { Err(Held::Otherwise) };
            }
        }
        let packet = Unsent { bytes: end - self.snd_nxt - ends, last, ends: ends > 0 };
        if window < packet.bytes.min(mss) {
            return Err(Held::Otherwise);
        }
        if packet.bytes > mss && matches!(push, Push::Pending | Push::Written) {
            self.defer(now_ns, room, window, packet, most)?;
        }
        let mut payload = packet.bytes.min(whole);
        if window < whole || last {
            payload = payload.min(window);
            // Behind what is written last comes the end, which waits for nothing.
            let waits =
                push == Push::Pending && end < self.write_end && self.short_segment_is_out();
            if waits && payload < whole {
                payload -= payload % mss;
            }
            if payload == 0 {
                return Err(Held::Otherwise);
            }
        }
        let payload = payload as u32;
        if self.small_queue_is_full(payload, 0) {
            self.buffer.cut(self.snd_nxt + u64::from(payload));
            return Err(Held::Otherwise);
        }
        // With the last byte leaves the end.
        Ok(if u64::from(payload) == packet.bytes { payload + ends as u32 } else { payload })
    }

    /// Whether one waits for that.
    #[inline]
    fn short_segment_is_out(&self) -> bool {
        !self.config.nodelay && self.board.packets_out() > 0 && self.short_end > self.snd_una
    }

    /// Waits for a fuller aggregate if the next acknowledgement is due soon (Linux: `tcp_tso_should_defer`).
    #[inline(always)]
    fn defer(
        &self,
        now_ns: u64,
        room: u32,
        window: u64,
        packet: Unsent,
        most: u32,
    ) -> Result<(), Held> {
        // With what options take of it (Linux: `mss_cache`).
        let mss = u64::from(self.mss + self.options);
        let by_cwnd = u64::from(room) * mss;
        let limit = window.min(by_cwnd);
        // Nothing is added to a packet that another one follows.
        if !packet.last && limit >= packet.bytes {
            return Ok(());
        }
        let chunk =
            self.receive_window.min(u64::from(self.window.cwnd) * mss) / u64::from(DEFER_DIVISOR);
        if limit >= chunk.min(u64::from(most) * mss) {
            return Ok(());
        }
        let idle = now_ns > self.departure_ns + MILLISECOND_NS;
        if self.recovery.state >= State::Recovery || idle || self.board.packets_out() == 0 {
            return Ok(());
        }
        let srtt_ns = self.rtt.srtt_eighth_us * 125;
        let head = self.board.get(self.board.first).stamp.sent_ns;
        if head + srtt_ns > now_ns + (srtt_ns / 2).min(MILLISECOND_NS) {
            return Ok(());
        }
        if by_cwnd < window && by_cwnd <= packet.bytes {
            return Err(Held::ByWindow);
        }
        // What is only the last so far waits too.
        if packet.ends && window > packet.bytes { Ok(()) } else { Err(Held::Otherwise) }
    }

    /// So many packets in flight and so many more, if the congestion control wants to know that of what is lost.
    #[inline]
    pub(super) fn flight_with(&self, in_flight: u32, more: u32) -> u32 {
        if self.control.needs_losses() { in_flight + more } else { 0 }
    }

    /// Sends a packet of new data while `in_flight` packets are.
    #[inline(always)]
    pub(super) fn send_payload(
        &mut self,
        now_ns: u64,
        in_flight: u32,
        payload: u32,
        segments: u32,
        out: &mut impl FnMut(Transmission),
    ) {
        self.note_start(now_ns, in_flight);
        let departure = self.schedule_departure(now_ns, payload, segments);
        let stamp = self.rate.stamp(departure, self.board.packets_out());
        let app_limited = if self.rate.is_app_limited() { APP_LIMITED } else { 0 };
        let flags = (app_limited | FIRST_OF_PACKET, self.flight_with(in_flight, segments));
        let seq = self.snd_nxt;
        // The last segment has what is left, and the end of the stream.
        let last = payload - (segments - 1) * self.mss;
        let first = if segments > 1 { self.mss } else { last };
        let first = Segment::new(seq + u64::from(first), stamp, first, flags);
        self.board.push_packet(first, segments, last);
        self.snd_nxt += u64::from(payload);
        let pushes = self.buffer.take(self.snd_nxt);
        if unlikely(pushes)
            && let Some(last) = self.board.next.checked_sub(1)
        {
            self.board.get_mut(last).flags |= PUSHES;
        }
        if unlikely(last < self.mss) {
            self.short_end = self.snd_nxt;
        }
        self.enqueue(now_ns, departure, (payload, segments));
        self.emit((now_ns, departure), (seq, self.mss), payload, segments, (true, pushes), out);
    }

    /// Remembers how much of the window was in use in this round trip (Linux: `tcp_cwnd_validate`).
    #[inline]
    fn validate_window(&mut self, limited: bool) {
        let packets_out = self.board.packets_out();
        if self.snd_una >= self.cwnd_usage_seq
            || limited
            || (!self.cwnd_limited && packets_out > self.max_packets_out)
        {
            self.cwnd_limited = limited;
            self.max_packets_out = packets_out;
            self.cwnd_usage_seq = self.snd_nxt;
        }
    }

    /// A tail loss probe: new data if there are any, else the last segment again (RFC 8985 §7.3).
    pub(super) fn probe(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) {
        let sent = self.recovery.probe_end.is_none()
            && self.board.packets_out() > 0
            && self.send_probe(now_ns, out);
        if sent {
            self.recovery.probe_end = Some(self.snd_nxt);
            self.restart_retransmission_timer(now_ns);
        } else {
            self.resume_retransmission_timer(now_ns);
        }
    }

    /// Sends it. Returns whether anything was sent.
    fn send_probe(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) -> bool {
        let mss = u64::from(self.mss);
        let unsent = self.buffer.end - self.snd_nxt;
        if unsent > 0 && self.window_end.saturating_sub(self.snd_nxt) >= unsent.min(mss) {
            let sent = self.transmit_new(now_ns, Push::Probe, out);
            self.recovery.probe_retransmitted &= !sent;
            return sent;
        }
        let last = self.board.next - 1;
        self.send_again(now_ns, last, 1, 0, out);
        self.recovery.probe_retransmitted = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use dualq_units::Instant;

    use super::super::{Handshake, SenderConfig};
    use super::*;
    use crate::control::Control;
    use crate::packet::Ack;

    /// Ten segments may be under way, of which `out` are, each a packet; the program has written `unsent` bytes more and will write on.
    fn under_way(out: u64, unsent: u64) -> Sender {
        let mut sender = Sender::new(SenderConfig::default());
        sender.handshake = Handshake::Established;
        sender.write(u64::MAX);
        let mss = u64::from(sender.mss);
        let stamp = sender.rate.stamp(1, 0);
        for number in 1..=out {
            sender.board.push(Segment::new(number * mss, stamp, mss as u32, (FIRST_OF_PACKET, 0)));
        }
        sender.snd_nxt = out * mss;
        sender.window_end = 1 << 30;
        sender.buffer.open(sender.snd_nxt + unsent);
        sender
    }

    /// Linux: `tcp_nagle_test`, `tcp_minshall_check`.
    #[test]
    fn the_last_packet_waits_while_a_short_one_is_under_way() {
        for (unsent, pending) in [(500, None), (1_448 + 500, Some(1_448)), (1_448, Some(1_448))] {
            let mut sender = under_way(3, unsent);
            sender.short_end = 1_448;
            assert_eq!(sender.next_new(0, 3, 44, Push::Pending).ok(), pending, "{unsent}");
            assert_eq!(sender.next_new(0, 3, 44, Push::Written).ok(), Some(unsent as u32));
            sender.short_end = 0;
            assert_eq!(sender.next_new(0, 3, 44, Push::Pending).ok(), Some(unsent as u32));
            // Not with TCP_NODELAY.
            sender.short_end = 1_448;
            sender.config = Arc::new(SenderConfig { nodelay: true, ..*sender.config });
            assert_eq!(sender.next_new(0, 3, 44, Push::Pending).ok(), Some(unsent as u32));
        }
    }

    /// As in the world `kernel` in `exact-20262140`: what may be a full aggregate is told by segments without options (Linux: `tcp_tso_should_defer`).
    #[test]
    fn an_aggregate_waits_for_a_window_in_which_its_options_would_be_data() {
        for (room, expected) in [(18 * 1_436 + 20, None), (18 * 1_448, Some(18 * 1_436))] {
            let mut sender = under_way(1, 40_000);
            (sender.mss, sender.options) = (1_436, 12);
            (sender.window.cwnd, sender.receive_window) = (1_000, 1 << 30);
            sender.window_end = sender.snd_nxt + room;
            assert_eq!(sender.next_new(2, 1, 18, Push::Pending).ok(), expected, "{room}");
        }
    }

    /// Linux: `tcp_send_loss_probe`, for which `tcp_write_xmit` finds room for one segment at least.
    #[test]
    fn a_loss_probe_of_new_data_is_the_next_packet_as_far_as_there_is_room() {
        for (out, expected) in [(3, 2_896), (9, 1_448), (10, 1_448)] {
            let mut sender = under_way(out, 2_896);
            let mut sent = Vec::new();
            sender.probe(MILLISECOND_NS, &mut |packet| sent.push(packet.data.payload));
            assert_eq!(sent, [expected], "{out} under way");
        }
    }

    /// Linux: `tcp_rearm_rto`, which counts from when the first packet left.
    #[test]
    fn a_loss_probe_that_may_not_be_sent_leaves_the_rest_of_the_timeout() {
        let timeout = |probed: Option<u64>| {
            let mut sender = under_way(3, 0);
            sender.recovery.probe_end = probed;
            sender.probe(300_000_000, &mut |_| ());
            sender.next_timer().as_nanos() / 1_000_000
        };
        // Of the second since the packets left 0.7 are over, or a whole one begins; and the wheel goes on to its next bucket.
        assert_eq!((timeout(Some(0)), timeout(None)), (1_040, 1_360));
    }

    /// Linux: `tcp_process_tlp_ack`, by `FLAG_NOT_DUP`. Until then there is no other probe.
    #[test]
    fn a_loss_probe_is_over_with_the_next_acknowledgement_that_comes_without_data() {
        let mut sender = under_way(1, 0);
        sender.probe(300_000_000, &mut |_| ());
        sender.window_end = 1 << 20;
        let window = sender.window_end - 1_448;
        for (ms, with_data, open) in [(400, false, true), (410, true, true), (420, false, false)] {
            let control = Control::WITH_DATA.when(with_data);
            let ack = Ack { ack: 1_448, window, control, ..Ack::default() };
            sender.on_ack(Instant::ZERO + Duration::from_millis(ms), &ack);
            assert_eq!(sender.recovery.probe_end.is_some(), open, "after {ms} ms");
        }
    }

    #[test]
    fn a_loss_probe_is_no_retransmission_of_a_recovery() {
        let mut sender = Sender::new(SenderConfig::default());
        let stamp = sender.rate.stamp(1, 0);
        for end in [1_448, 2_896] {
            sender.board.push(Segment::new(end, stamp, 1_448, (FIRST_OF_PACKET, 0)));
        }
        sender.probe(MILLISECOND_NS, &mut |sent| assert_eq!(sent.data.seq, 1_448));
        assert_eq!(sender.stats.retransmissions, 1);
        assert_eq!((sender.board.in_flight(), sender.board.retrans_out), (2, 0));
        assert_eq!(sender.recovery.undo_retransmissions, None);
        // A recovery that begins now waits for its duplicate too.
        sender.enter_recovery(2 * MILLISECOND_NS, false);
        assert_eq!(sender.recovery.undo_retransmissions, Some(1));
    }
}
