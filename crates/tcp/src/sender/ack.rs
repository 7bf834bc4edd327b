//! Digesting acknowledgements (Linux: `tcp_ack` and what it calls).

use dualq_units::Instant;
use dualq_units::hint::{cold_path, unlikely};

use super::{FAREWELL_DUE, Handshake, OPENING_DUE, Sender};
use crate::cc::{Algorithm, CongestionControl, Controller, State};
use crate::control::Control;
use crate::ecn::{self, EcnStyle, Progress, Received};
use crate::packet::{Ack, INVALID_SPACING, MAX_SACK_BLOCKS, PAWS_WINDOW_MS, SackBlock};
use crate::rate::{RateSample, SampleBuilder};
use crate::scoreboard::{EVER_RETRANSMITTED, SACKED, Segment};
use crate::tick::micros_between;

/// The header's 16 bits with the largest scale (RFC 7323 §2.3): no acknowledgement can offer more.
const MAX_WINDOW: u64 = 65_535 << 14;
/// Where no more SYNs than these were sent, the window begins as if none had been lost.
const SPURIOUS_SYNS: u32 = 2;

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Findings {
    pub(super) now_ns: u64,
    /// The cumulative acknowledgement moved.
    pub(super) advanced: bool,
    /// Data were acknowledged cumulatively.
    pub(super) acked: bool,
    /// Data were acknowledged selectively.
    pub(super) sacked: bool,
    /// Data were acknowledged that had been retransmitted.
    pub(super) retransmitted_acked: bool,
    /// Data sent once, before recovery began, were acknowledged.
    pub(super) original_acked: bool,
    /// The window changed.
    pub(super) window_moved: bool,
    /// It is no plain duplicate, whatever it says: data of the other half came along, or it was overtaken.
    pub(super) no_duplicate: bool,
    pub(super) ece: bool,
    pub(super) duplicate: bool,
    /// The duplicate is that of the loss probe.
    pub(super) probe_duplicate: bool,
    /// A retransmission was found lost.
    pub(super) retransmission_lost: bool,
    /// The timer is to be started anew.
    pub(super) restart_timer: bool,
    pub(super) prior_una: u64,
    pub(super) echo_ms: u32,
}

impl Findings {
    /// Neither data, nor acknowledgement, nor window: a plain duplicate (Linux: none of `FLAG_NOT_DUP`).
    pub(super) const fn is_plain_duplicate(&self) -> bool {
        !(self.acked | self.window_moved | self.no_duplicate)
    }

    const fn is_alert(&self) -> bool {
        self.sacked | self.ece | self.duplicate
    }
}

/// What an acknowledgement covers of what was sent once and not acknowledged before, selectively or not.
#[derive(Clone, Copy, Debug)]
struct Originals {
    /// Where the first one begins, and where it ends.
    start: u64,
    end: u64,
    /// When the first one was sent and when the last: the round trip is measured by these.
    oldest_ns: u64,
    newest_ns: u64,
}

impl Originals {
    const fn of(first: &Segment, last: &Segment) -> Self {
        Self {
            start: first.start(),
            end: first.end,
            oldest_ns: first.stamp.sent_ns,
            newest_ns: last.stamp.sent_ns,
        }
    }

    /// Such ones, and another.
    fn with(them: Option<Self>, segment: &Segment) -> Self {
        let one = Self::of(segment, segment);
        them.map_or(one, |them| Self { newest_ns: one.newest_ns, ..them })
    }
}

impl Sender {
    /// An acknowledgement arrives at `now`. Whatever it says, nothing panics: what cannot be true is ignored as on Linux, an
    /// acknowledgement of what was never sent with all that it says.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let now_ns = now.as_nanos();
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        if unlikely(ack.has(Control::SYN)) {
            if self.is_established() {
                self.challenge(now_ns);
            } else {
                self.establish(now_ns, ack);
            }
            return;
        }
        if unlikely(!self.is_established() || ack.ack > self.snd_nxt) {
            return;
        }
        if unlikely(ack.has(Control::FIN)) {
            self.due |= FAREWELL_DUE;
        }
        if ack.ack < self.snd_una {
            return self.digest_overtaken(now_ns, ack);
        }
        // Only now is it known to be no stranger's.
        self.peer_timestamp_ms = ack.timestamp_ms;
        let mut found = Findings {
            now_ns,
            ece: ack.flags.ece() && matches!(self.ecn, EcnStyle::Classic | EcnStyle::Dctcp),
            prior_una: self.snd_una,
            echo_ms: ack.echo_ms,
            no_duplicate: ack.has(Control::WITH_DATA),
            ..Findings::default()
        };
        let needs_samples = self.control.needs_samples();
        let prior_in_flight = if needs_samples { self.board.in_flight() } else { 0 };
        let prior_packets = self.board.packets_out();
        let prior_sacked = self.board.sacked_out;
        let prior_highest_sack = self.board.highest_sack(self.snd_una);
        let prior_lost = self.rate.lost;
        let prior_delivered = self.rate.delivered;

        if ack.ack > self.snd_una {
            found.advanced = true;
            found.window_moved = true;
            self.recovery.timeouts_in_row = 0;
            self.snd_una = ack.ack;
        }
        let window = ack.window.min(MAX_WINDOW);
        let window_end = ack.ack + window;
        if window_end != self.window_end {
            found.window_moved = true;
            self.window_end = self.window_end.max(window_end);
            self.receive_window = window;
            self.see_window(window);
            // What waited for the window has waited for long, perhaps (Linux: `tcp_ack_update_window`).
            if unlikely(prior_packets == 0) && self.snd_nxt < self.buffer.end {
                self.restart_after_idleness(now_ns);
            }
        }

        let mut builder = SampleBuilder::default();
        let mut selective = None;
        if unlikely(ack.has(Control::DSACK)) {
            self.check_duplicate(ack, &mut found);
        }
        // A duplicate's block too tells of what has arrived.
        if !ack.blocks().is_empty() {
            selective = self.take_sack(ack.blocks(), &mut found, &mut builder);
        }
        if prior_packets == 0 {
            return self.digest_idle(ack.ack, &mut found);
        }
        let (count, cumulative) = self.take_cumulative(ack.ack, &mut found, &mut builder);
        if let Some(originals) = cumulative
            && unlikely(originals.start < prior_highest_sack)
        {
            self.check_reordering(originals.start);
        }
        let prior_sample = || builder.prior_delivered(self.rate.delivered);
        // A lone small segment: the receiver's timer may have run out.
        let maybe_delayed = count == 1
            && prior_sacked == 0
            && self.snd_una - found.prior_una < u64::from(self.mss)
            && prior_sample() + 1 == self.rate.delivered
            && !found.is_alert();
        let rtt_us = self.measure_rtt(&mut found, cumulative, selective, maybe_delayed);
        if unlikely(!self.rack.keeps_window()) {
            let prior_sample = builder.prior_delivered(self.rate.delivered);
            self.rack.adapt_window(prior_sample, self.rate.delivered);
        }
        let mut marks = 0;
        if self.ecn == EcnStyle::Accurate {
            let packets = (self.rate.delivered - prior_delivered) as u32;
            marks = self.count_marks(ack, &found, packets);
            found.ece = marks > 0;
        }
        if self.control.needs_ack_events() {
            self.tell_event(now_ns);
        }

        if unlikely(self.recovery.probe_end.is_some()) {
            self.finish_probe_if_acked(ack.ack, &found);
        }
        self.recovery.new_data_first = false;
        let dubious =
            found.is_plain_duplicate() || found.is_alert() || self.recovery.state != State::Open;
        if dubious {
            self.alert(&mut found);
        }
        if found.restart_timer {
            self.restart_timer(now_ns);
        }

        let delivered = (self.rate.delivered - prior_delivered) as u32;
        let losses = (self.rate.lost - prior_lost) as u32;
        self.rate.acknowledged(&builder, now_ns, delivered);
        self.window.app_limited = false;
        if needs_samples {
            let ece = found.ece;
            let completed = move |sample| RateSample {
                rtt_us,
                losses,
                marks,
                ece,
                acked_sacked: delivered,
                prior_in_flight,
                ack_delayed: maybe_delayed,
                ..sample
            };
            if self.is_controlled(now_ns, &builder, completed) {
                return;
            }
        }
        self.steer(&found, delivered, losses);
    }

    /// One while nothing is under way. What few acknowledgements need is kept out of line: the others have the registers for themselves.
    #[cold]
    #[inline(never)]
    fn digest_idle(&mut self, ack: u64, found: &mut Findings) {
        if found.duplicate {
            self.alert(found);
        }
        self.check_window_probe(found.now_ns);
        self.finish_probe_if_acked(ack, found);
    }

    #[inline(never)]
    fn tell_event(&mut self, now_ns: u64) {
        let context = self.context(now_ns);
        self.control.on_ack_event(&mut self.window, &context);
    }

    #[inline(never)]
    fn tell_rtt(&mut self, now_ns: u64, rtt_us: u64) {
        let context = self.context(now_ns);
        self.control.on_rtt(&mut self.window, &context, rtt_us);
    }

    /// One that a later one has overtaken: of it only what arrived out of order counts, and nothing at all if it is older by more than a
    /// millisecond (Linux: `tcp_ack` at `old_ack`, `tcp_disordered_ack_check`).
    #[cold]
    fn digest_overtaken(&mut self, now_ns: u64, ack: &Ack) {
        if ack.has(Control::RESET) {
            // It has closed, or there would be somebody.
            return;
        }
        if ack.timestamp_ms.saturating_add(PAWS_WINDOW_MS) < self.peer_timestamp_ms {
            return self.challenge(now_ns);
        }
        let mut found = Findings {
            now_ns,
            prior_una: self.snd_una,
            echo_ms: ack.echo_ms,
            no_duplicate: true,
            ..Findings::default()
        };
        if ack.has(Control::DSACK) {
            self.check_duplicate(ack, &mut found);
        }
        if !ack.blocks().is_empty() {
            self.take_sack(ack.blocks(), &mut found, &mut SampleBuilder::default());
            self.alert(&mut found);
        }
    }

    /// The answer to the SYN comes again: it is told the same again, seldom (RFC 5961 §4.2; Linux: `tcp_send_challenge_ack`).
    #[cold]
    fn challenge(&mut self, now_ns: u64) {
        if !self.config.tick.is_within(self.challenged_ns, now_ns, INVALID_SPACING) {
            self.challenged_ns = Some(now_ns);
            self.due |= OPENING_DUE;
        }
    }

    /// The answer to the SYN: the first round trip is known.
    #[cold]
    #[inline(never)]
    fn establish(&mut self, now_ns: u64, ack: &Ack) {
        if self.handshake != Handshake::SynSent || ack.ack > self.snd_nxt {
            self.syn_due |= self.handshake == Handshake::GivenUp;
            return;
        }
        self.due |= OPENING_DUE;
        self.peer_timestamp_ms = ack.timestamp_ms;
        self.agree(now_ns, ack);
        let rtt_us = if self.syns_sent > 1 {
            self.config.tick.since_echo_us(now_ns, ack.echo_ms)
        } else {
            micros_between(self.syn_sent_ns, now_ns)
        };
        let first_syn_ms = self.config.tick.millisecond(self.first_syn_ns);
        if self.syns_sent > SPURIOUS_SYNS && ack.echo_ms != first_syn_ms {
            // So many lost (RFC 5681 §3.1; Linux: `tcp_init_transfer`, `tcp_try_undo_spurious_syn`).
            self.window.cwnd = 1;
        }
        self.begin(now_ns, rtt_us, ack.ack, ack.window);
        if self.snd_nxt > 0 {
            self.finish_opening(now_ns, ack.ack);
        }
    }

    /// The handshake is over, and took this end `rtt_us`; the other end takes so much behind `acked` (Linux: `tcp_init_transfer`).
    pub(super) fn begin(&mut self, now_ns: u64, rtt_us: u64, acked: u64, window: u64) {
        self.handshake = Handshake::Established;
        self.last_sent_ns = now_ns;
        self.receive_window = window.min(MAX_WINDOW);
        self.window_end = acked + self.receive_window;
        self.see_window(self.receive_window);
        self.timers.clear();
        self.rtt.measure(rtt_us, 0, 0, self.config.tick);
        self.rtt.measure_min(rtt_us, now_ns, false, self.config.tick);
        // The SYN counts as a packet delivered.
        self.rate.delivered = 1;
        self.rate.delivered_at_ns = now_ns;
        self.expand_buffer();
        // After a timeout that is the rate of a window of one, which only then is as large as always (Linux: `tcp_enter_loss`, and
        // `tcp_init_transfer` behind `tcp_ack`).
        let cwnd = self.window.cwnd;
        self.window.cwnd = if self.syns_sent > 1 { 1 } else { cwnd };
        self.update_pacing_rate();
        self.window.cwnd = cwnd;
        let context = self.context(now_ns);
        self.control.start(&mut self.window, &context);
        self.tell_losses(now_ns);
    }

    /// Data left with the SYN: they count as a part of it, or else are sent again at once (Linux: `tcp_rcv_fastopen_synack`).
    fn finish_opening(&mut self, now_ns: u64, acked: u64) {
        if acked == self.snd_nxt {
            self.board.pop(self.board.covered(acked));
            self.buffer.free(acked, 1);
            self.snd_una = acked;
        } else {
            self.due &= !OPENING_DUE;
            for number in self.board.first..self.board.next {
                self.rate.lost += u64::from(self.board.mark_lost(number));
            }
            self.retransmit_shortened(now_ns);
        }
    }

    /// What comes of the question for ECN.
    fn agree(&mut self, now_ns: u64, ack: &Ack) {
        let sent = self.codepoint(self.needs_ecn());
        let granted = ecn::grant(self.asked_ecn(), sent, ack.flags);
        self.ecn_mangled = granted.mangled;
        self.use_ecn(granted.style);
        if self.ecn == EcnStyle::Accurate {
            self.received = Received::begin(ack.ecn, 2);
            self.received.count_handshake(ack.ecn);
            self.option_seen = ack.option.is_some();
            self.make_room_for_option(now_ns);
        }
    }

    /// So much of ECN was agreed on.
    pub(super) fn use_ecn(&mut self, style: EcnStyle) {
        self.ecn = match (self.control.ecn_style(), style) {
            (EcnStyle::Dctcp, EcnStyle::Classic) => EcnStyle::Dctcp,
            // Exact echoes are what the route's feature promises.
            (_, EcnStyle::Classic) if self.config.ecn_low => EcnStyle::Dctcp,
            // No fallback to RFC 3168: its echoes are too few (RFC 9331 §4.3).
            (EcnStyle::Accurate, style) if style != EcnStyle::Accurate => EcnStyle::Off,
            (_, style) => style,
        };
        if self.needs_ecn() && self.ecn == EcnStyle::Off {
            // DCTCP and Prague without ECN are Reno (Linux: `dctcp_init`).
            self.control = Controller::new(Algorithm::Reno);
        }
    }

    /// Accurate ECN: how many packets more arrived with CE. An acknowledgement that is overtaken by a later one tells nothing
    /// (Linux: `tcp_accecn_process`).
    #[inline(never)]
    fn count_marks(&mut self, ack: &Ack, found: &Findings, packets: u32) -> u32 {
        self.received.count(ack.ecn, 1, 0);
        let forward = found.advanced || packets > 0 || ack.timestamp_ms >= self.peer_timestamp_ms;
        if !forward || ack.ack < self.snd_una {
            return 0;
        }
        let bytes = u64::from(packets) * u64::from(self.mss);
        let progress = Progress { packets, bytes, mss: self.mss };
        let counted = self.rate.delivered_ce;
        let marks = self.delivered.marks(ack.flags, ack.option, counted, progress);
        self.rate.delivered_ce += u64::from(marks);
        self.stats.ecn_echoes += u64::from(marks);
        marks
    }

    /// A duplicate that the receiver reports (RFC 2883) may show that a retransmission was not needed (Linux:
    /// `tcp_check_dsack`, `tcp_dsack_seen`).
    #[inline(never)]
    fn check_duplicate(&mut self, ack: &Ack, found: &mut Findings) {
        let Some(block) = ack.blocks().first() else { return };
        // Nobody has received twice what is empty or was never sent.
        if block.start >= block.end || block.end > self.snd_nxt {
            return;
        }
        let length = block.end - block.start;
        if length > self.largest_window {
            return;
        }
        let segments = length.div_ceil(u64::from(self.mss)) as u32;
        self.duplicates += u64::from(segments);
        if self.duplicates > self.stats.retransmissions {
            // The network, not this sender, doubles packets.
            return;
        }
        found.duplicate = true;
        found.probe_duplicate = segments == 1 && self.recovery.probe_end == Some(block.end);
        if !found.probe_duplicate {
            self.rack.see_duplicate();
        }
        // It has arrived all the same: a packet delivered.
        self.rate.delivered += u64::from(segments);
        if found.ece {
            self.rate.delivered_ce += u64::from(segments);
            self.stats.ecn_echoes += u64::from(segments);
        }
        if block.end <= found.prior_una {
            self.recovery.forgive(block.end, segments);
        } else {
            self.forgive_outstanding(block);
        }
    }

    /// A duplicate was reported of what is not acknowledged yet, or only now: what was sent again in vain is told by the
    /// scoreboard (Linux: `tcp_sacktag_one` with `dup_sack`).
    fn forgive_outstanding(&mut self, block: &SackBlock) {
        let Self { board, recovery, .. } = self;
        let mut lowest = u64::MAX;
        board.arrived_twice(block, |segment| {
            if segment.has(EVER_RETRANSMITTED) {
                recovery.forgive(segment.end, 1);
                if segment.has(SACKED) {
                    lowest = lowest.min(segment.start());
                }
            }
        });
        // Two copies of it, and what was sent later came between.
        if self.recovery.state != State::Loss || self.recovery.undo_marker.is_some() {
            self.check_reordering(lowest);
        }
    }

    /// The blocks that may be true: neither empty nor inverted, above what is acknowledged, and of what was sent (Linux:
    /// `tcp_is_sackblock_valid`). The others are ignored.
    #[inline]
    fn plausible_blocks(&self, blocks: &[SackBlock]) -> ([SackBlock; MAX_SACK_BLOCKS], usize) {
        let mut plausible = [SackBlock::default(); MAX_SACK_BLOCKS];
        let mut count = 0;
        for block in blocks {
            if self.snd_una < block.start && block.start < block.end && block.end <= self.snd_nxt {
                plausible[count] = *block;
                count += 1;
            }
        }
        (plausible, count)
    }

    /// Returns what of all that is acknowledged selectively was sent once.
    #[cold]
    #[inline(never)]
    fn take_sack(
        &mut self,
        blocks: &[SackBlock],
        found: &mut Findings,
        builder: &mut SampleBuilder,
    ) -> Option<Originals> {
        let (blocks, count) = self.plausible_blocks(blocks);
        if count == 0 {
            return None;
        }
        let Self { board, buffer, rate, rack, rtt, recovery, stats, .. } = self;
        let mut lowest_overtaken = u64::MAX;
        let mut originals = None;
        let more_packets = board.sack((&blocks, count), |segment, overtaken| {
            found.sacked = true;
            if !segment.has(EVER_RETRANSMITTED) {
                if overtaken {
                    lowest_overtaken = lowest_overtaken.min(segment.start());
                }
                originals = Some(Originals::with(originals, segment));
                found.original_acked |= segment.end <= recovery.high_seq;
            }
            rate.delivered += 1;
            rate.delivered_ce += u64::from(found.ece);
            stats.ecn_echoes += u64::from(found.ece);
            rack.deliver(segment, found.now_ns, rtt.min_us);
            builder.deliver(segment);
        });
        buffer.are_more(more_packets);
        if self.recovery.state != State::Loss || self.recovery.undo_marker.is_some() {
            self.check_reordering(lowest_overtaken);
        }
        originals
    }

    /// Returns how many segments are acknowledged, and what of them was sent once.
    fn take_cumulative(
        &mut self,
        ack: u64,
        found: &mut Findings,
        builder: &mut SampleBuilder,
    ) -> (u32, Option<Originals>) {
        let covered = self.board.covered(ack);
        if unlikely(covered.count == 0) {
            return (0, None);
        }
        found.acked = true;
        let end = self.board.first + u64::from(covered.count);
        let (first, last) = (self.board.get(self.board.first), self.board.get(end - 1));
        let bytes = last.end - first.start();
        let (originals, delivered) = if covered.flags & (SACKED | EVER_RETRANSMITTED) == 0 {
            let originals = Originals::of(first, last);
            // They left in the order of their numbers: the last one tells what is to be known of all.
            builder.deliver(last);
            self.rack.deliver(last, found.now_ns, self.rtt.min_us);
            (Some(originals), covered.count)
        } else {
            self.tell_apart(end, found, builder)
        };
        if let Some(originals) = originals {
            found.original_acked |= originals.end <= self.recovery.high_seq;
        }
        self.rate.delivered += u64::from(delivered);
        if found.ece {
            self.rate.delivered_ce += u64::from(delivered);
            self.stats.ecn_echoes += u64::from(delivered);
        }
        let ends = self.board.pop(covered);
        // The first one began a packet, and each other that did ended one.
        self.buffer.free(bytes, covered.begun - 1 + u64::from(ends));
        (covered.count, originals)
    }

    /// Of what lies before `end`, all of it acknowledged now, some was acknowledged before, or sent again. Returns what the rest is, and how much
    /// was delivered just now.
    #[cold]
    #[inline(never)]
    fn tell_apart(
        &mut self,
        end: u64,
        found: &mut Findings,
        builder: &mut SampleBuilder,
    ) -> (Option<Originals>, u32) {
        let (mut originals, mut delivered) = (None, 0);
        for number in self.board.first..end {
            let segment = self.board.get(number);
            let sent_again = segment.has(EVER_RETRANSMITTED);
            found.retransmitted_acked |= sent_again;
            if segment.has(SACKED) {
                continue;
            }
            delivered += 1;
            if !sent_again {
                originals = Some(Originals::with(originals, segment));
            }
            // An echo from before the retransmission answers the original: it tells nothing of what came between.
            let sent_ms = self.config.tick.millisecond(segment.stamp.sent_ns);
            if !sent_again || found.echo_ms >= sent_ms {
                self.rack.deliver(segment, found.now_ns, self.rtt.min_us);
            }
            builder.deliver(segment);
        }
        (originals, delivered)
    }

    /// Measures the round trip if this acknowledgement allows it, and returns what congestion controls are told.
    fn measure_rtt(
        &mut self,
        found: &mut Findings,
        cumulative: Option<Originals>,
        selective: Option<Originals>,
        maybe_delayed: bool,
    ) -> Option<u64> {
        let now_ns = found.now_ns;
        let since = |sent_ns: u64| micros_between(sent_ns, now_ns);
        let cumulative = cumulative.filter(|_| !found.retransmitted_acked);
        let (oldest, newest) = match (cumulative, selective) {
            (Some(them), None) => (since(them.oldest_ns), since(them.newest_ns)),
            (first, Some(them)) => {
                cold_path();
                (since(first.unwrap_or(them).oldest_ns), since(them.newest_ns))
            }
            (None, None) if found.acked => {
                cold_path();
                // Karn's problem is solved by timestamps.
                let rtt_us = self.config.tick.since_echo_us(now_ns, found.echo_ms);
                (rtt_us, rtt_us)
            }
            (None, None) => {
                cold_path();
                return None;
            }
        };
        self.rtt.measure_min(newest, now_ns, maybe_delayed, self.config.tick);
        self.rtt.measure(oldest, self.snd_una, self.snd_nxt, self.config.tick);
        if found.acked {
            found.restart_timer = true;
        } else if let Some(them) = selective {
            // Selectively acknowledged data were sent before the first outstanding segment, which was sent again.
            let head = self.board.get(self.board.first);
            found.restart_timer |= since(them.oldest_ns) > since(head.stamp.sent_ns);
        }
        if self.control.needs_rtt(&self.window, newest) {
            self.tell_rtt(now_ns, newest);
        }
        Some(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SenderConfig;
    use super::*;
    use crate::ecn::EcnFlags;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A sender whose SYN left so often, and when the first one and the last one did.
    fn asks(times: usize) -> (Sender, u32, u64) {
        let mut sender = Sender::new(SenderConfig::default());
        let (mut sent, mut now) = (Vec::new(), at(3));
        while sent.len() < times {
            sender.transmit(now, &mut |syn| sent.push(syn.data.timestamp_ms));
            now = sender.next_timer();
            if sent.len() < times {
                sender.on_timer(now);
            }
        }
        (sender, sent[0], u64::from(sent[times - 1]))
    }

    fn answer(echo_ms: u32) -> Ack {
        Ack { control: Control::SYN, window: 65_160, echo_ms, ..Ack::default() }
    }

    /// Linux: `tcp_ack_update_rtt`.
    #[test]
    fn an_answer_to_one_of_several_syns_tells_the_round_trip_by_its_echo() {
        for times in [1, 2] {
            let (mut sender, first_ms, last_ms) = asks(times);
            sender.on_ack(at(last_ms + 300), &answer(first_ms));
            let rtt_ms = last_ms + 300 - u64::from(first_ms);
            assert_eq!(sender.rtt_us().map(|(us, _)| us as u64 / 1_000), Some(rtt_ms), "{times}");
        }
    }

    /// RFC 5681 §3.1; Linux: `tcp_init_transfer`.
    #[test]
    fn the_window_begins_at_one_where_several_syns_were_lost() {
        for (times, echoes_first, cwnd) in [(2, false, 10), (3, false, 1), (3, true, 10)] {
            let (mut sender, first_ms, last_ms) = asks(times);
            let echo_ms = if echoes_first { first_ms } else { last_ms as u32 };
            sender.on_ack(at(last_ms + 50), &answer(echo_ms));
            assert_eq!(sender.cwnd(), cwnd, "{times} SYNs, the first echoed: {echoes_first}");
        }
    }

    /// Linux: `tcp_send_challenge_ack`.
    #[test]
    fn an_answer_that_comes_again_is_acknowledged_again_but_seldom() {
        let (mut sender, first_ms, _) = asks(1);
        for (ms, expected) in [(50, 1), (60, 1), (70, 0), (600, 1)] {
            sender.on_ack(at(ms), &answer(first_ms));
            let mut sent = 0;
            sender.transmit(at(ms), &mut |_| sent += 1);
            assert_eq!(sent, expected, "after {ms} ms");
        }
    }

    /// Linux: `tcp_ack` at `old_ack`, `tcp_disordered_ack_check`.
    #[test]
    fn an_acknowledgement_that_was_overtaken_tells_of_islands_only_if_of_anything() {
        let run = |timestamp_ms: u32| {
            let (mut sender, first_ms, _) = asks(1);
            sender.on_ack(at(50), &answer(first_ms));
            sender.write(u64::MAX);
            sender.transmit(at(50), &mut |_| ());
            let ack = Ack { window: 1 << 20, timestamp_ms: 100, ..Ack::default() };
            sender.on_ack(at(100), &Ack { ack: 2_896, ..ack });
            let mut late = Ack { ack: 1_448, timestamp_ms, flags: EcnFlags::ECE, ..ack };
            late.blocks[0] = SackBlock { start: 4_344, end: 5_792 };
            late.block_count = 1;
            sender.on_ack(at(101), &late);
            (sender.board.sacked_out, sender.recovery.state)
        };
        assert_eq!(run(99), (1, State::Disorder));
        assert_eq!(run(98), (0, State::Open));
    }
}
