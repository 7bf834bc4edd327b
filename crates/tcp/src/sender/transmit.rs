//! What leaves next: retransmissions, new data in aggregates (Linux: `tcp_write_xmit`,
//! `tcp_xmit_retransmit_queue`).

use dualq_units::hint::unlikely;
use dualq_units::{Ecn, Instant};

use super::new_data::Push;
use super::{
    BY_TIMER, FAREWELL_DUE, HEAD_DUE, LOSS_PROBE_DUE, OPENING_DUE, Pacing, Sender, TOO_LONG_DUE,
    WINDOW_PROBE_DUE, WRITE_BYTES,
};
use crate::cc::{CongestionControl, Event, State, Window};
use crate::control::Control;
use crate::ecn::{EcnFlags, EcnStyle};
use crate::packet::{Data, Transmission};
use crate::scoreboard::{APP_LIMITED, EVER_RETRANSMITTED, PUSHES, RETRANSMITTED, SACKED};
use crate::tick::instant;

/// An aggregate holds about a millisecond at the pacing rate (Linux: `sk_pacing_shift`).
pub(super) const PACING_SHIFT: u32 = 10;
/// On paths shorter than this many microseconds times 2ⁿ aggregates grow beyond that (Linux: `tcp_tso_rtt_log`).
const GSO_RTT_SHIFT: u32 = 9;
/// Nothing follows the first packets of a connection later than they leave (Linux: `tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u64 = 10;
pub(super) const PACKET_OVERHEAD: u64 = crate::PACKET_OVERHEAD as u64;
pub(super) const MILLISECOND_NS: u64 = 1_000_000;
/// The most segments in an aggregate (Linux: `GSO_MAX_SEGS` less room for the largest ones).
const MAX_GSO_SEGMENTS: u32 = 44;

/// A call of the program's that writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Write {
    /// Something since the last push.
    has_written: bool,
    /// There was no room, and what is written was pushed.
    is_full: bool,
    /// What is written ends there, if there is room for all of it.
    end: u64,
}

impl Sender {
    /// Sends what may be sent at `now`, packet by packet. To be called after every other call that changed something.
    #[inline(never)]
    pub fn transmit(&mut self, now: Instant, out: &mut impl FnMut(Transmission)) {
        let now_ns = now.as_nanos();
        let is_interrupted = std::mem::take(&mut self.is_interrupted);
        let writes_first = std::mem::take(&mut self.writes_first);
        self.waits_to_write = false;
        self.backlog = if self.is_held { self.backlog + self.cut_apart } else { 0 };
        self.is_held = is_interrupted;
        (self.leaving, self.cut_apart, self.is_writing) = (0, 0, false);
        if unlikely(!self.is_established()) {
            self.transmit_syn(now_ns, out);
            return;
        }
        if !self.is_within_call() {
            self.keep_room_for_option(now_ns);
        }
        let due = self.due;
        if unlikely(due > 0 || self.first_write.is_some()) && !self.transmit_due(now_ns, out) {
            return;
        }
        // A timer calls for what is lost, or for a probe, and wakes no program (Linux: `tcp_send_loss_probe`, `tcp_rack_reo_timeout`); so does a router's
        // message (`tcp_simple_retransmit`).
        let nothing_new = due & (BY_TIMER | TOO_LONG_DUE) > 0;
        let mut held = std::mem::take(&mut self.recovery.held);
        if unlikely(self.recovery.new_data_first) && !nothing_new {
            // Once: what a small queue holds back goes behind what is lost, as always (Linux: `tcp_xmit_recovery`, and then `tcp_tsq_write`). What
            // arrived may still have made room for the program (`tcp_check_space`).
            self.recovery.new_data_first = false;
            self.transmit_new(now_ns, Push::Pending, out);
            self.recovery.doubtful_timeout = self.snd_nxt > self.recovery.high_seq;
            held |= self.recovery.doubtful_timeout;
        }
        if unlikely(self.board.lost_out > self.board.retrans_out) && !held {
            self.transmit_lost(now_ns, out);
            self.keep_room_for_option(now_ns);
        }
        if unlikely(due > 0) {
            self.clock_ns = u64::MAX;
            self.after_reordering_timeout(now_ns);
            if nothing_new {
                return;
            }
        }
        if self.snd_nxt < self.buffer.end && self.first_write.is_none() && !writes_first {
            self.transmit_new_here(now_ns, Push::Pending, out);
        }
        let goes_on =
            self.first_write.as_ref().is_some_and(|write| unlikely(write.end > self.buffer.end));
        let wakes = goes_on || self.wakes_program(!is_interrupted);
        self.waits_to_write = is_interrupted && wakes;
        let wakes = wakes && !is_interrupted;
        if self.throttled && self.leaving > 0 && !wakes {
            // It goes on as soon as these have left (Linux: `tcp_tsq_write`): after a program that was woken, for which a softirq gives way
            // to its thread (`handle_softirqs`, `need_resched`).
            return;
        }
        self.is_writing = true;
        if wakes {
            while self.write_and_push(now_ns, out) {}
        } else {
            self.first_write = None;
        }
        if unlikely(due & WINDOW_PROBE_DUE > 0) {
            self.due &= !WINDOW_PROBE_DUE;
            self.probe_window(now_ns, out);
        }
        if unlikely(self.board.packets_out() == 0) && self.snd_nxt < self.buffer.end {
            self.await_window(now_ns);
        }
    }

    /// Sends what is due before new data: answers without any, and what timers have called for. Returns whether the rest may follow.
    #[inline(never)]
    fn transmit_due(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) -> bool {
        let due = self.due;
        self.due &= !(FAREWELL_DUE | OPENING_DUE | BY_TIMER | TOO_LONG_DUE);
        if due & FAREWELL_DUE > 0 {
            let mut signs = (self.empty_segment_ecn(), self.ecn_flags(false));
            if std::mem::replace(&mut self.has_parted, true) {
                // All that is left of the connection is what answers this (Linux: `tcp_v4_timewait_ack`).
                signs.0 = Ecn::NotEct;
            }
            self.send_empty(now_ns, self.snd_nxt, signs, out);
        }
        if due & OPENING_DUE > 0 {
            let ecn = self.empty_segment_ecn();
            let flags = self.opening_flags();
            self.send_empty(now_ns, self.snd_nxt, (ecn, flags), out);
        }
        // Who writes has the connection for itself.
        if self.first_write.is_some() && !std::mem::take(&mut self.write_due) {
            self.clock_ns = u64::MAX;
            return false;
        }
        self.due &= !(HEAD_DUE | LOSS_PROBE_DUE);
        if due & HEAD_DUE > 0
            && self.board.packets_out() > 0
            && !self.board.get(self.board.first).has(SACKED)
        {
            self.retransmit(now_ns, self.board.first, 1, out);
        }
        if due & LOSS_PROBE_DUE > 0 {
            self.probe(now_ns, out);
        }
        true
    }

    /// The program writes as much as there is room for, and pushes what it has written now and then. A write that has begun makes one push, and
    /// goes on with the next call (Linux: `tcp_sendmsg_locked`). Returns whether the last push may have made room for more, as where little may be unsent, or in
    /// the last packet, of which it gives the one before it what that may have (Linux: `tcp_grow_skb`): the program calls until it is told that there is none.
    #[inline(never)]
    fn write_and_push(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) -> bool {
        let begun = self.first_write.take();
        let mut write = match begun {
            Some(write) if write.end > self.buffer.end => write,
            _ => {
                if self.buffer.end != self.fin {
                    self.note_pause();
                    self.restart_after_idleness(now_ns);
                }
                self.call(now_ns)
            }
        };
        while self.write_packet(write.end, !write.has_written) {
            // What is sent of the last packet makes room in it (Linux: `forced_push`).
            write.has_written = true;
            let push = if self.has_closed() {
                // It waits for nothing (Linux: `tcp_send_fin`).
                self.note_push();
                Push::Written
            } else if self.buffer.end == write.end {
                write = self.call(now_ns);
                self.note_push();
                if self.corks() {
                    continue;
                }
                Push::Pending
            } else if self.buffer.end > self.pushed + self.largest_window / 2 {
                self.note_push();
                Push::Written
            } else if self.buffer.is_last() && self.buffer.end < self.write_end {
                // A short packet that a call ends with waits for that end.
                Push::One
            } else {
                continue;
            };
            self.transmit_new(now_ns, push, out);
            if begun.is_some() {
                self.first_write = Some(write);
                return false;
            }
        }
        self.buffer.is_awaited = self.buffer.end < self.write_end;
        // Where all has left there is nothing to push (Linux: `tcp_push`, of `tcp_write_queue_tail`); but to end the stream takes as long again.
        let all_left = self.snd_nxt == self.buffer.end && !self.has_closed();
        if !write.has_written || all_left {
            return false;
        }
        self.note_push();
        let sent = self.transmit_new(now_ns, Push::Written, out);
        let has_more = self.buffer.end < self.write_end;
        // If more is to be written, once more as the call ends.
        let has_written = !write.is_full && has_more;
        self.first_write = begun.map(|_| Write { has_written, is_full: true, ..write });
        has_more && begun.is_none() && (sent || self.may_add())
    }

    /// Another call, which writes up to the end of the stream at most; or that which ends it.
    fn call(&mut self, now_ns: u64) -> Write {
        self.keep_room_for_option(now_ns);
        let end = self.buffer.end.saturating_add(WRITE_BYTES as u64);
        let end = if self.buffer.end < self.fin { end.min(self.fin) } else { end };
        Write { has_written: false, is_full: false, end }
    }

    /// Whether the program is within a call that has sent some of what it writes: how long its segments are was settled as that began (Linux: `mss_now` in
    /// `tcp_sendmsg_locked`).
    fn is_within_call(&self) -> bool {
        let goes_on = |write: &Write| write.has_written && write.end > self.buffer.end;
        self.first_write.as_ref().is_some_and(goes_on)
    }

    fn note_push(&mut self) {
        self.pushed = self.buffer.end;
        self.buffer.pause();
    }

    /// The answer to the SYN has come while the program does something else: the next [`transmit`](Self::transmit) acknowledges it, and
    /// only those after [`write_on`](Self::write_on) find what the program writes.
    pub fn write_later(&mut self) {
        if self.due & OPENING_DUE > 0 {
            self.first_write = Some(Write::default());
        }
    }

    /// The program goes on with its first write, which is not all done yet where [`is_in_first_write`](Self::is_in_first_write): the
    /// next [`transmit`](Self::transmit) makes one push.
    pub const fn write_on(&mut self) {
        self.write_due = self.first_write.is_some();
    }

    /// The program is in the middle of its first write, if that began with [`write_later`](Self::write_later).
    #[must_use]
    pub const fn is_in_first_write(&self) -> bool {
        self.first_write.is_some()
    }

    /// What is sent from now on is less than the path could carry.
    pub(super) fn note_idleness(&mut self) {
        let in_flight = self.board.in_flight();
        if in_flight < self.window.cwnd && self.board.lost_out <= self.board.retrans_out {
            let mark = self.rate.delivered + u64::from(in_flight);
            self.rate.app_limited_until = mark.max(1);
        }
    }

    /// Asks whether the receiver's window has opened (RFC 9293 §3.8.6.1): with what fits in, else with an empty segment of
    /// what was acknowledged before, which the receiver answers.
    #[inline(never)]
    fn probe_window(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) {
        if self.board.packets_out() > 0 || self.snd_nxt == self.buffer.end {
            return;
        }
        let window = self.window_end.saturating_sub(self.snd_nxt);
        if window > 0 {
            let payload = window.min(u64::from(self.mss)).min(self.buffer.end - self.snd_nxt);
            self.send_payload(now_ns, 0, payload as u32, 1, out);
            self.restart_retransmission_timer(now_ns);
            return;
        }
        self.stats.window_probes += 1;
        let flags = self.ecn_flags(false);
        self.send_empty(now_ns, self.snd_una.saturating_sub(1), (Ecn::NotEct, flags), out);
        self.back_window_probe_off(now_ns);
    }

    /// Sends a segment without data.
    fn send_empty(
        &mut self,
        now_ns: u64,
        seq: u64,
        (ecn, flags): (Ecn, EcnFlags),
        out: &mut impl FnMut(Transmission),
    ) {
        self.acknowledges(instant(now_ns));
        let options = self.take_options(now_ns);
        let data = Data {
            seq,
            payload: 0,
            segments: 1,
            mss: self.mss as u16,
            timestamp_ms: self.config.tick.millisecond(now_ns),
            echo_ms: self.peer_timestamp_ms,
            ecn,
            flags,
            options,
            control: Control::HEARD_FIN.when(self.has_parted),
        };
        out(Transmission { data, departure: instant(now_ns) });
    }

    /// Segments that an aggregate may have.
    #[inline(always)]
    pub(super) fn gso_segments(&self) -> u32 {
        if let Some(segments) = self.control.gso_segments() {
            return self.gso_segments_within_limits(segments);
        }
        let max_bytes = u64::from(self.max_gso_bytes);
        let most_bytes = self.max_gso_bytes.min(65_535);
        let mut bytes = self.window.pacing_rate >> PACING_SHIFT;
        let shortness = self.rtt.min_us >> GSO_RTT_SHIFT;
        if shortness < 32 {
            bytes += max_bytes >> shortness;
        }
        let segments = bytes.min(most_bytes.into()) as u32 / self.mss;
        let least = self.control.min_gso_segments(&self.window);
        if segments >= least { segments } else { least.min((most_bytes / self.mss).max(1)) }
    }

    /// The same if the congestion control wants so many.
    #[inline(never)]
    fn gso_segments_within_limits(&self, segments: u32) -> u32 {
        let most_bytes = self.max_gso_bytes.min(65_535);
        segments.clamp(1, MAX_GSO_SEGMENTS.min((most_bytes / self.mss).max(1)))
    }

    /// Something with payload is about to leave (Linux: `tcp_event_data_sent`).
    #[inline]
    pub(super) fn note_start(&mut self, now_ns: u64, in_flight: u32) {
        if unlikely(in_flight == 0) {
            self.start_flight(now_ns);
        }
    }

    /// The same with nothing under way.
    #[inline(never)]
    fn start_flight(&mut self, now_ns: u64) {
        let context = self.context(now_ns);
        self.window.app_limited = self.rate.is_app_limited();
        self.control.on_event(&mut self.window, &context, Event::TransmitStart);
    }

    /// Whether TCP's own pacing says to wait; sets its timer then.
    #[inline]
    pub(super) fn must_wait(&mut self, now_ns: u64) -> bool {
        self.config.pacing == Pacing::OnDemand
            && self.departure_ns > now_ns.min(self.clock_ns)
            && self.waits_for_own_timer(now_ns)
    }

    /// The same of what is too early, if nobody else paces.
    #[inline(never)]
    fn waits_for_own_timer(&mut self, now_ns: u64) -> bool {
        let waits = self.control.needs_pacing();
        if waits {
            // At once, if it is late by a clock that stands.
            self.timers.wake_pacing(self.departure_ns.max(now_ns));
        }
        waits
    }

    /// When a packet of `payload` bytes departs, and the bookkeeping of pacing.
    #[inline(always)]
    pub(super) fn schedule_departure(&mut self, now_ns: u64, payload: u32, segments: u32) -> u64 {
        let prior = self.departure_ns;
        let departure = prior.max(now_ns);
        self.departure_ns = departure;
        let rate = self.window.pacing_rate;
        let sent = self.stats.segments + u64::from(segments);
        if self.is_paced() && rate != u64::MAX && sent >= UNPACED_SEGMENTS {
            let mut length = u64::from(payload) * 1_000_000_000 / rate.max(1);
            // What came late may be made up for, by half.
            length -= (length / 2).min(departure - prior);
            self.departure_ns += length;
        }
        departure
    }

    #[inline(always)]
    pub(super) fn emit(
        &mut self,
        (now_ns, departure_ns): (u64, u64),
        (seq, mss): (u64, u32),
        payload: u32,
        segments: u32,
        (new, pushes): (bool, bool),
        out: &mut impl FnMut(Transmission),
    ) {
        let fin = seq + u64::from(payload) > self.fin;
        // FIN by itself is no segment with payload.
        let is_alone = fin && payload - (segments - 1) * mss == 1;
        // Aggregates push, to be handed on at once.
        let pushes = pushes || segments > 1 || seq + u64::from(payload) == self.write_end;
        let (ecn, flags, options) = match self.ecn {
            EcnStyle::Off => (Ecn::NotEct, EcnFlags::NONE, 0),
            _ => self.take_signs(now_ns, new && !is_alone),
        };
        let data = Data {
            seq,
            payload,
            segments: segments as u16,
            mss: mss as u16,
            timestamp_ms: self.config.tick.millisecond(departure_ns),
            echo_ms: self.peer_timestamp_ms,
            ecn,
            flags,
            options,
            control: Control::PUSH.when(pushes).with(Control::FIN.when(fin)),
        };
        self.stats.segments += u64::from(segments) - u64::from(is_alone);
        self.last_sent_ns = now_ns;
        out(Transmission { data, departure: instant(departure_ns) });
    }

    /// The ECN field, flags and bytes of options of a packet that leaves now, where ECN was agreed on.
    #[inline(never)]
    fn take_signs(&mut self, now_ns: u64, new: bool) -> (Ecn, EcnFlags, u8) {
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable; DCTCP's are, and those with Accurate ECN.
        let capable = self.marks_all() || (new && self.ecn == EcnStyle::Classic);
        let cwr = new && std::mem::take(&mut self.cwr_due);
        let options = self.take_options(now_ns);
        (self.codepoint(capable), self.ecn_flags(cwr), options)
    }

    /// The program writes after nothing was under way for longer than the retransmission timeout: what the window says of the path
    /// is old. It halves with each timeout that passed, down to the initial window at most, and remembers in the threshold where it was
    /// (RFC 5681 §4.1, RFC 2861; Linux: `tcp_slow_start_after_idle`, `tcp_cwnd_restart`).
    pub(super) fn restart_after_idleness(&mut self, now_ns: u64) {
        if self.board.packets_out() > 0 || self.control.sets_window() {
            return;
        }
        let tick = self.config.tick;
        let mut idle = tick.count(now_ns).wrapping_sub(tick.count(self.last_sent_ns));
        if idle <= self.rtt.timeout {
            return;
        }
        let Window { cwnd, ssthresh, .. } = &mut self.window;
        let least = self.config.initial_window.min(*cwnd);
        if !matches!(self.recovery.state, State::Cwr | State::Recovery) {
            *ssthresh = (*ssthresh).max(*cwnd / 2 + *cwnd / 4);
        }
        while idle > self.rtt.timeout && *cwnd > least {
            idle -= self.rtt.timeout;
            *cwnd /= 2;
        }
        *cwnd = (*cwnd).max(least);
    }

    /// Retransmits the packet that begins with `number`, or its first `most` segments: what was sent apart is never put together
    /// again, and what is sent alone now is a packet of its own from then on (Linux: `tcp_retransmit_skb`, `tcp_fragment`).
    fn retransmit(
        &mut self,
        now_ns: u64,
        number: u64,
        most: u32,
        out: &mut impl FnMut(Transmission),
    ) {
        let (count, departure) = self.send_again(now_ns, number, most, RETRANSMITTED, out);
        let departure_ms = self.config.tick.millisecond(departure);
        let recovery = &mut self.recovery;
        recovery.first_retransmission_ms.get_or_insert(departure_ms);
        *recovery.undo_retransmissions.get_or_insert(0) += count;
        if matches!(recovery.state, State::Cwr | State::Recovery) {
            recovery.prr_out += count;
        }
    }

    /// The same, with `flag` for its segments: a loss probe's is no retransmission of a recovery, neither counted in flight nor
    /// among what may have been in vain (Linux: `__tcp_retransmit_skb`). Returns how many segments left, and when.
    pub(super) fn send_again(
        &mut self,
        now_ns: u64,
        number: u64,
        most: u32,
        flag: u8,
        out: &mut impl FnMut(Transmission),
    ) -> (u32, u64) {
        self.cut_before(number);
        self.keep_room_for_option(now_ns);
        if unlikely(self.board.get(number).payload != self.mss) {
            self.cut_to_size(number);
        }
        let count = self.board.packet_length(number).min(most);
        let end = number + u64::from(count);
        self.cut_before(end);
        let start = self.board.get(number).start();
        let (payload, pushes) =
            ((self.board.get(end - 1).end - start) as u32, self.board.get(end - 1).has(PUSHES));
        let in_flight = self.board.in_flight();
        self.note_start(now_ns, in_flight);
        let departure = self.schedule_departure(now_ns.min(self.clock_ns), payload, count);
        let stamp = self.rate.stamp(departure, self.board.packets_out());
        let app_limited = if self.rate.is_app_limited() { APP_LIMITED } else { 0 };
        let in_flight = self.flight_with(in_flight, count);
        for offset in 0..u64::from(count) {
            let segment = self.board.get_mut(number + offset);
            segment.stamp = stamp;
            segment.sent_with(in_flight);
            segment.flags &= !APP_LIMITED;
            segment.flags |= flag | EVER_RETRANSMITTED | app_limited;
            // One that is out already counts twice, as on Linux (`tcp_retransmit_skb`).
            self.board.retrans_out += u32::from(flag == RETRANSMITTED);
            self.rack.retransmit(number + offset, departure);
        }
        self.stats.retransmissions += u64::from(count);
        self.enqueue(now_ns, departure, (payload, count));
        let mss = self.board.get(number).payload;
        self.emit((now_ns, departure), (start, mss), payload, count, (false, pushes), out);
        (count, departure)
    }

    /// What is sent apart from what lies before it is a packet of its own.
    #[inline]
    pub(super) fn cut_before(&mut self, number: u64) {
        if self.board.cut_packet(number) {
            self.buffer.cut_again();
        }
    }

    #[inline(never)]
    fn transmit_lost(&mut self, now_ns: u64, out: &mut impl FnMut(Transmission)) {
        let mut head_sent = false;
        while let Some(number) = self.board.next_lost() {
            if self.must_wait(now_ns) {
                break;
            }
            let room = self.window.cwnd.saturating_sub(self.board.in_flight());
            if room == 0 {
                break;
            }
            let last = number + u64::from(self.board.packet_length(number)) - 1;
            let length = self.board.get(last).end - self.board.get(number).start();
            if self.small_queue_is_full(length as u32, 1) {
                break;
            }
            head_sent |= number == self.board.first;
            self.retransmit(now_ns, number, room.min(self.gso_segments()), out);
        }
        if head_sent {
            self.retransmitted_head(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Bytes;

    use super::*;
    use crate::cc::Algorithm;
    use crate::packet::Ack;
    use crate::scoreboard::{FIRST_OF_PACKET, Segment};
    use crate::sender::{Handshake, SenderConfig};

    #[test]
    fn what_is_held_is_sent_again_next_time() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.handshake = Handshake::Established;
        let stamp = sender.rate.stamp(1, 0);
        sender.board.push(Segment::new(1_448, stamp, 1_448, (FIRST_OF_PACKET, 0)));
        sender.board.mark_lost(0);
        sender.recovery.held = true;
        for expected in [0, 1] {
            sender.transmit(Instant::from_nanos(MILLISECOND_NS), &mut |_| ());
            assert_eq!(sender.stats.retransmissions, expected);
        }
    }

    /// An open connection after a round trip of `rtt`, and what it sent then.
    fn open(config: SenderConfig, rtt: Duration, window: u64) -> (Sender, Vec<Transmission>) {
        let mut sender = Sender::new(config);
        sender.write(u64::MAX);
        sender.transmit(Instant::ZERO, &mut |_| ());
        sender
            .on_ack(Instant::ZERO + rtt, &Ack { control: Control::SYN, window, ..Ack::default() });
        let mut sent = Vec::new();
        sender.transmit(Instant::ZERO + rtt, &mut |packet| sent.push(packet));
        (sender, sent)
    }

    /// A sender with so small a buffer, and such a window of the receiver's, as all that it has sent first is acknowledged.
    fn all_acknowledged(buffer: u64, window: u64) -> (Sender, Instant) {
        let rtt = Duration::from_millis(30);
        let config = SenderConfig { buffer: Some(Bytes(buffer)), ..SenderConfig::default() };
        let (mut sender, sent) = open(config, rtt, window);
        for packet in sent {
            sender.on_departure(packet.data.payload);
        }
        let now = Instant::ZERO + 2 * rtt;
        sender.on_ack(now, &Ack { ack: sender.snd_nxt, window, ..Ack::default() });
        (sender, now)
    }

    #[test]
    fn after_idleness_the_window_is_small_again_and_the_threshold_remembers() {
        // The timeout is 230 ms.
        let rtt = Duration::from_millis(30);
        for (idle_ms, reno, bbr) in [(200, 80, 80), (250, 40, 80), (480, 20, 80), (9_000, 10, 80)] {
            for (algorithm, expected) in [(Algorithm::Reno, reno), (Algorithm::Bbr, bbr)] {
                let mut sender = Sender::new(SenderConfig { algorithm, ..SenderConfig::default() });
                sender.transmit(Instant::ZERO, &mut |_| ());
                let answer = Ack { control: Control::SYN, window: 1 << 30, ..Ack::default() };
                sender.on_ack(Instant::ZERO + rtt, &answer);
                sender.window.cwnd = 80;
                let now = Instant::ZERO + rtt + Duration::from_millis(idle_ms);
                sender.write(u64::MAX);
                sender.transmit(now, &mut |_| ());
                assert_eq!(sender.cwnd(), expected, "{algorithm:?} after {idle_ms} ms");
            }
        }
        let mut sender = Sender::new(SenderConfig::default());
        sender.window = Window { cwnd: 80, ssthresh: 50, ..sender.window };
        sender.restart_after_idleness(60_000_000_000);
        assert_eq!((sender.window.cwnd, sender.window.ssthresh), (10, 60));
    }

    /// As in the world `kernel` behind `bfifo limit 6065`: after a timeout the first acknowledgement lets new data go (F-RTO), once.
    #[test]
    fn behind_new_data_of_a_doubtful_timeout_what_is_lost_comes_first() {
        let rtt = Duration::from_millis(30);
        let (mut sender, sent) = open(SenderConfig::default(), rtt, 1 << 30);
        for packet in sent {
            sender.on_departure(packet.data.payload);
        }
        let mut now = Instant::ZERO;
        while sender.stats.timeouts == 0 {
            now = sender.next_timer();
            sender.on_timer(now);
            let mut left = Vec::new();
            sender.transmit(now, &mut |packet| left.push(packet.data.payload));
            for payload in left {
                sender.on_departure(payload);
            }
        }
        let (first, end) = (sender.mss.into(), sender.snd_nxt);
        sender.on_ack(now + rtt, &Ack { ack: first, window: 1 << 30, ..Ack::default() });
        let mut order = Vec::new();
        // The second time as what left has left the interface.
        for cwnd in [1, 2] {
            sender.window.cwnd = cwnd;
            sender.transmit(now + rtt, &mut |packet| order.push(packet.data.seq >= end));
        }
        assert_eq!(order, [true, false]);
    }

    /// As in the world `kernel` in `exact-20262067`, where what such an acknowledgement makes room for is written at once.
    #[test]
    fn new_data_of_a_doubtful_timeout_may_be_written_now() {
        let (mut sender, now) = all_acknowledged(20_000, 16_000);
        let written = sender.buffer.end;
        (sender.recovery.new_data_first, sender.recovery.high_seq) = (true, 0);
        sender.transmit(now, &mut |_| ());
        assert!(sender.buffer.end > written);
    }

    /// As in the world `kernel` in `exact-20262127`: how far the stream was pushed does not move with what has left anyhow (Linux: `tcp_push`).
    #[test]
    fn what_has_left_is_pushed_by_nothing() {
        let (mut sender, now) = all_acknowledged(4_000, 20_000);
        let pushed = sender.pushed;
        sender.window.pacing_rate = 1 << 30;
        sender.transmit(now, &mut |_| ());
        assert!(sender.snd_nxt == sender.buffer.end && sender.snd_una < sender.snd_nxt);
        assert_eq!(sender.pushed, pushed);
    }

    /// As in the world `kernel` in `exact-4`: two acknowledgements of one instant are both looked at before the program runs, which writes behind them.
    #[test]
    fn a_program_writes_when_all_has_arrived() {
        let rtt = Duration::from_millis(30);
        let (mut sender, sent) = open(SenderConfig::default(), rtt, 1 << 30);
        let mut leave = sent;
        let mut waited = 0;
        for round in 2..12 {
            for packet in leave.drain(..) {
                sender.on_departure(packet.data.payload);
            }
            let now = Instant::ZERO + round * rtt;
            sender.on_ack(now, &Ack { ack: sender.snd_nxt, window: 1 << 30, ..Ack::default() });
            let end = sender.buffer.end;
            sender.interrupt();
            sender.transmit(now, &mut |packet| leave.push(packet));
            assert_eq!(sender.buffer.end, end);
            if sender.all_has_arrived(true) > 0 {
                sender.transmit(now, &mut |packet| leave.push(packet));
                assert_eq!(sender.all_has_arrived(true), 0);
                // What left after it was woken may hold so much that it finds no room.
                waited += u32::from(sender.buffer.end > end);
            }
        }
        assert!(waited > 0);
    }

    /// As in the world `kernel` in `requests-2`: who answers acknowledges the question first.
    #[test]
    fn behind_an_acknowledgement_nothing_is_late() {
        let config = SenderConfig { pacing: Pacing::ByQueue, ..SenderConfig::default() };
        let rtt = Duration::from_millis(30);
        let departures = |acknowledges: bool| {
            let (mut sender, mut sent) = open(config, rtt, 1 << 30);
            let now = Instant::ZERO + 2 * rtt;
            for packet in sent.drain(..) {
                sender.on_departure(packet.data.payload);
            }
            sender.on_ack(now, &Ack { ack: sender.snd_nxt, window: 1 << 30, ..Ack::default() });
            if acknowledges {
                sender.acknowledges(now);
            }
            let mut times = Vec::new();
            sender.transmit(now, &mut |packet| times.push(packet.departure));
            times[1] - times[0]
        };
        assert_eq!(departures(true).as_nanos().div_ceil(2), departures(false).as_nanos());
    }

    fn places(sent: &[Transmission]) -> Vec<(u64, u32)> {
        let with_payload = sent.iter().filter(|packet| packet.data.payload > 0);
        with_payload.map(|packet| (packet.data.seq, packet.data.payload)).collect()
    }

    /// As in the world `kernel`, at the start of `wild-501-82` and with its MTU changed: five pushes and eleven, of which two are those of a full
    /// buffer (Linux: `tcp_sendmsg_locked`). As in `exact-20261703`, a small one has none when all has left.
    #[test]
    fn a_first_write_leaves_push_by_push() {
        let small = Some(Bytes(10_000));
        let all = u64::MAX;
        for (mtu, buffer, size, pushes, expected) in [
            (1_500, None, all, 5, vec![(0, 2_896), (1, 2_896), (1, 2_896), (1, 2_896), (1, 2_896)]),
            (9_000, None, all, 11, vec![(0, 17_896), (1, 17_896), (1, 8_948), (2, 17_896)]),
            (9_000, small, all, 2, vec![(0, 17_896), (1, 17_896), (1, 8_948)]),
            // As in `exact-26`, whose first flow ends at once.
            (1_500, None, 3_463, 3, vec![(0, 2_896), (0, 567), (1, 1)]),
        ] {
            let pacing = Pacing::ByQueue;
            let config = SenderConfig { mtu, buffer, pacing, ..SenderConfig::default() };
            let mut sender = Sender::new(config);
            sender.write(size);
            if size < all {
                sender.close();
            }
            sender.transmit(Instant::ZERO, &mut |_| ());
            let now = Instant::from_nanos(19_000_000);
            sender.on_ack(now, &Ack { control: Control::SYN, window: 62_636, ..Ack::default() });
            sender.write_later();
            sender.transmit(now, &mut |packet| assert_eq!(packet.data.payload, 0));
            let mut sent = Vec::new();
            let mut push = 0;
            while sender.is_in_first_write() {
                sender.write_on();
                let mut gone = Vec::new();
                sender.transmit(now, &mut |packet| gone.push(packet.data.payload));
                for payload in gone {
                    sender.on_departure(payload);
                    sent.push((push, payload));
                }
                push += 1;
            }
            // The last step finds that there is no room.
            assert_eq!((push, sent), (pushes + 1, expected), "{mtu}, {buffer:?}, {size}");
        }
    }

    /// As in the world `kernel`, at the start of `wild-2-133`: the program fills the packet that is sent next, and what the
    /// window allows of that leaves at once.
    #[test]
    fn what_a_program_adds_to_the_next_packet_pushes_it() {
        let rtt = Duration::from_micros(1_200);
        let config = SenderConfig { pacing: Pacing::ByQueue, ..SenderConfig::default() };
        let (mut sender, sent) = open(config, rtt, 65_160);
        assert_eq!(places(&sent), [(0, 7_240), (7_240, 7_240)]);
        for packet in &sent {
            sender.on_departure(packet.data.payload);
        }
        let later = Instant::ZERO + 2 * rtt;
        sender.on_ack(later, &Ack { ack: 7_240, window: 79_872, ..Ack::default() });
        let mut sent = Vec::new();
        sender.transmit(later, &mut |packet| sent.push(packet));
        assert_eq!(places(&sent), [(14_480, 10_136), (24_616, 4_344)]);
    }
}
