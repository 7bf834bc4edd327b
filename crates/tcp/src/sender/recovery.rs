//! The states of congestion avoidance: into and out of reduction, recovery and loss (Linux: `tcp_fastretrans_alert`), with
//! proportional rate reduction (RFC 9937), F-RTO (RFC 5682) and the undoing of what was not needed (RFC 3522).

use dualq_units::hint::unlikely;

use super::ack::Findings;
use super::{Sender, context};
use crate::cc::{CongestionControl, Event, INFINITE_SSTHRESH, State, Window};
use crate::ecn::EcnStyle;
use crate::rack::{DUPLICATE_THRESHOLD, View};
use crate::rate::{LostPacket, RateEstimator, RateSample, SampleBuilder};
use crate::scoreboard::{APP_LIMITED, EVER_RETRANSMITTED};

/// Where the sender stands.
// In the order in which it is written, as [`Sender`](super::Sender) is: behind what only losses need of the scoreboard comes what only they need of this.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    /// Where recovery began, if it may be undone.
    pub(super) undo_marker: Option<u64>,
    /// Retransmissions that no duplicate was reported for; `None` if there was none.
    pub(super) undo_retransmissions: Option<u32>,
    /// When recovery's first retransmission was sent, in milliseconds.
    pub(super) first_retransmission_ms: Option<u32>,
    /// The threshold to return to; `None` if there is no way back.
    prior_ssthresh: Option<u32>,
    /// The window before the reduction.
    pub(super) prior_cwnd: u32,
    prr_delivered: u32,
    pub(super) prr_out: u32,
    /// Timeouts since the last progress.
    pub(super) timeouts_in_row: u32,
    /// The state ends when this byte is acknowledged.
    pub(super) high_seq: u64,
    pub(super) state: State,
    /// The timeout may have been spurious (F-RTO).
    pub(super) doubtful_timeout: bool,
    /// Whether the loss probe was a retransmission.
    pub(super) probe_retransmitted: bool,
    /// How often the time to the next probe of a closed window was doubled.
    pub(super) window_probe_doublings: u8,
    /// What was thought lost was late: for now nothing more is sent again.
    pub(super) held: bool,
    /// F-RTO wants new data before retransmissions.
    pub(super) new_data_first: bool,
    /// Where the data ended when a loss probe was sent.
    pub(super) probe_end: Option<u64>,
}

impl Recovery {
    /// Of the bytes before `end`, `segments` were sent again in vain.
    pub(super) fn forgive(&mut self, end: u64, segments: u32) {
        if let (Some(marker), Some(retransmissions)) =
            (self.undo_marker, &mut self.undo_retransmissions)
            && end > marker
        {
            *retransmissions = retransmissions.saturating_sub(segments);
        }
    }
}

impl Sender {
    fn set_state(&mut self, now_ns: u64, next: State) {
        let context = self.context(now_ns);
        self.control.on_state(&mut self.window, &context, next);
        self.recovery.state = next;
    }

    fn notify(&mut self, now_ns: u64, event: Event) {
        let context = self.context(now_ns);
        self.control.on_event(&mut self.window, &context, event);
    }

    fn new_ssthresh(&mut self, now_ns: u64) -> u32 {
        let context = self.context(now_ns);
        self.control.ssthresh(&self.window, &context)
    }

    /// Whether anything outstanding was retransmitted.
    fn has_retransmissions_out(&self) -> bool {
        self.board.retrans_out > 0
            || (self.board.packets_out() > 0
                && self.board.get(self.board.first).has(EVER_RETRANSMITTED))
    }

    /// Something unusual came with an acknowledgement, or the state is unusual.
    #[cold]
    #[inline(never)]
    pub(super) fn alert(&mut self, found: &mut Findings) {
        if found.ece {
            self.recovery.prior_ssthresh = None;
        }
        if self.recovery.state == State::Open {
            self.recovery.first_retransmission_ms = None;
        } else if self.snd_una >= self.recovery.high_seq {
            match self.recovery.state {
                State::Cwr if self.snd_una != self.recovery.high_seq => {
                    self.end_reduction(found.now_ns);
                    self.set_state(found.now_ns, State::Open);
                }
                State::Recovery => {
                    self.try_undo_recovery(found);
                    self.end_reduction_of(found.now_ns, State::Recovery);
                }
                _ => {}
            }
        }
        match self.recovery.state {
            State::Recovery => self.alert_in_recovery(found),
            State::Loss => {
                if self.alert_in_loss(found) {
                    self.alert_otherwise(found);
                }
            }
            _ => self.alert_otherwise(found),
        }
    }

    fn alert_in_recovery(&mut self, found: &mut Findings) {
        if found.advanced && self.try_undo_partial(found) {
            return;
        }
        if self.try_undo_by_duplicates(found.now_ns) {
            self.try_to_open(found);
        }
        self.identify_losses(found);
        if self.recovery.state != State::Recovery && self.board.lost_out > 0 {
            self.enter_recovery(found.now_ns, found.ece);
        }
    }

    /// Returns whether the state is open again, or a retransmission is lost, so that more is to be done.
    fn alert_in_loss(&mut self, found: &mut Findings) -> bool {
        self.process_loss(found);
        self.identify_losses(found);
        self.recovery.state == State::Open || found.retransmission_lost
    }

    fn alert_otherwise(&mut self, found: &mut Findings) {
        if self.recovery.state <= State::Disorder {
            self.try_undo_by_duplicates(found.now_ns);
        }
        self.identify_losses(found);
        if self.board.lost_out == 0 {
            self.try_to_open(found);
        } else {
            self.enter_recovery(found.now_ns, found.ece);
        }
    }

    pub(super) fn rack_view(&self, now_ns: u64) -> View {
        View {
            now_ns,
            in_recovery: self.recovery.state >= State::Recovery,
            min_rtt_us: self.rtt.min_us,
            srtt_eighth_us: self.rtt.srtt_eighth_us,
        }
    }

    /// Lets RACK look for losses, if something was delivered.
    fn identify_losses(&mut self, found: &mut Findings) {
        if self.board.packets_out() == 0 || !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let retransmissions = self.board.retrans_out;
        let view = self.rack_view(found.now_ns);
        let (lost, wait_us) = self.rack.detect(&view, &mut self.board);
        self.rate.lost += u64::from(lost);
        self.tell_losses(found.now_ns);
        if let Some(wait_us) = wait_us {
            self.start_reordering_timer(found.now_ns, wait_us);
            found.restart_timer = false;
        }
        found.retransmission_lost |= self.board.retrans_out < retransmissions;
    }

    /// Tells the congestion control, if it wants to know, what was deemed lost since the last call.
    #[inline]
    pub(super) fn tell_losses(&mut self, now_ns: u64) {
        if self.control.needs_losses() {
            self.tell_newly_lost(now_ns);
        }
    }

    #[inline(never)]
    fn tell_newly_lost(&mut self, now_ns: u64) {
        let numbers = self.board.newly_lost();
        let mut lost = self.rate.lost - numbers.len() as u64;
        for number in numbers {
            lost += 1;
            let segment = self.board.get(number);
            let packet = LostPacket {
                tx_in_flight: segment.in_flight(),
                lost: RateEstimator::lost_since(lost, &segment.stamp),
                app_limited: segment.has(APP_LIMITED),
            };
            let context = self.context(now_ns);
            self.control.on_lost(&mut self.window, &context, &packet);
        }
    }

    /// Nothing is lost, it seems: only reordered, or marked.
    fn try_to_open(&mut self, found: &Findings) {
        if !self.has_retransmissions_out() {
            self.recovery.first_retransmission_ms = None;
        }
        if found.ece {
            self.enter_reduction(found.now_ns);
        }
        if self.recovery.state != State::Cwr {
            self.try_keep_open(found.now_ns);
        }
    }

    fn try_keep_open(&mut self, now_ns: u64) {
        let disordered =
            self.board.sacked_out + self.board.lost_out > 0 || self.has_retransmissions_out();
        let state = if disordered { State::Disorder } else { State::Open };
        if state != self.recovery.state {
            self.set_state(now_ns, state);
            self.recovery.high_seq = self.snd_nxt;
        }
    }

    /// The receiver echoes a mark: reduce as for loss (RFC 3168 §6.1.2), or as the control sees fit.
    fn enter_reduction(&mut self, now_ns: u64) {
        self.recovery.prior_ssthresh = None;
        if self.recovery.state < State::Cwr {
            self.recovery.undo_marker = None;
            self.start_reduction(now_ns);
            self.set_state(now_ns, State::Cwr);
        }
    }

    fn start_reduction(&mut self, now_ns: u64) {
        self.recovery.high_seq = self.snd_nxt;
        self.recovery.probe_end = None;
        self.window.acked_count = 0;
        self.recovery.prior_cwnd = self.window.cwnd;
        self.recovery.prr_delivered = 0;
        self.recovery.prr_out = 0;
        self.window.ssthresh = self.new_ssthresh(now_ns);
        self.cwr_due = matches!(self.ecn, EcnStyle::Classic | EcnStyle::Dctcp);
    }

    fn current_ssthresh(&self) -> u32 {
        if self.in_reduction() {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }

    fn remember_for_undo(&mut self) {
        self.recovery.undo_marker = Some(self.snd_una);
        let probes = self.recovery.probe_end.is_some() && self.recovery.probe_retransmitted;
        let out = self.board.retrans_out + u32::from(probes);
        self.recovery.undo_retransmissions = (out > 0).then_some(out);
    }

    pub(super) fn enter_recovery(&mut self, now_ns: u64, ece: bool) {
        // Linux: `tcp_retrans_stamp_cleanup`.
        if !self.has_retransmissions_out() {
            self.recovery.first_retransmission_ms = None;
        }
        self.recovery.prior_ssthresh = None;
        self.remember_for_undo();
        if !self.in_reduction() {
            if !ece {
                self.recovery.prior_ssthresh = Some(self.current_ssthresh());
            }
            self.start_reduction(now_ns);
        }
        self.set_state(now_ns, State::Recovery);
    }

    /// A retransmission timeout: all but what was sent recently is deemed lost.
    pub(super) fn enter_loss(&mut self, now_ns: u64) {
        let new_recovery = self.recovery.state < State::Recovery;
        let head_end = self.board.first + u64::from(self.board.packet_length(self.board.first));
        for number in self.board.first..self.board.next {
            let sent_ns = self.board.get(number).stamp.sent_ns;
            if number < head_end || self.rack.is_late(now_ns, sent_ns) {
                self.rate.lost += u64::from(self.board.mark_lost(number));
            }
        }
        self.tell_losses(now_ns);
        if self.recovery.state <= State::Disorder
            || self.recovery.high_seq <= self.snd_una
            || (self.recovery.state == State::Loss && self.recovery.timeouts_in_row == 0)
        {
            self.recovery.prior_ssthresh = Some(self.current_ssthresh());
            self.recovery.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.new_ssthresh(now_ns);
            self.notify(now_ns, Event::Loss);
            self.remember_for_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.acked_count = 0;
        if self.recovery.state <= State::Disorder && self.board.sacked_out >= DUPLICATE_THRESHOLD {
            self.rack.forget_reordering();
        }
        self.set_state(now_ns, State::Loss);
        self.recovery.high_seq = self.snd_nxt;
        self.recovery.probe_end = None;
        self.cwr_due = matches!(self.ecn, EcnStyle::Classic | EcnStyle::Dctcp);
        self.recovery.doubtful_timeout = new_recovery || self.recovery.timeouts_in_row > 0;
    }

    /// What was too long for the path is lost, and is sent again without a smaller window: no more is in the network than before
    /// (Linux: `tcp_simple_retransmit`).
    pub(super) fn retransmit_shortened(&mut self, now_ns: u64) {
        if self.recovery.state == State::Loss {
            return;
        }
        self.recovery.high_seq = self.snd_nxt;
        self.window.ssthresh = self.current_ssthresh();
        self.recovery.prior_ssthresh = None;
        self.recovery.undo_marker = None;
        self.recovery.probe_end = None;
        self.set_state(now_ns, State::Loss);
    }

    /// An acknowledgement after a timeout: was it real (F-RTO, RFC 5682 §3.1)?
    fn process_loss(&mut self, found: &Findings) {
        let recovered = self.snd_una >= self.recovery.high_seq;
        if found.advanced && self.may_undo(found) {
            self.undo_loss(found.now_ns);
            return;
        }
        if self.recovery.doubtful_timeout {
            if found.original_acked {
                self.undo_loss(found.now_ns);
                return;
            }
            if self.snd_nxt > self.recovery.high_seq {
                // A reported duplicate is no sign of a loss.
                if found.sacked || (found.is_plain_duplicate() && !found.duplicate) {
                    self.recovery.doubtful_timeout = false;
                }
            } else if found.advanced && !recovered {
                self.recovery.high_seq = self.snd_nxt;
                if self.buffer.end > self.snd_nxt && self.window_end > self.snd_nxt {
                    self.recovery.new_data_first = true;
                    return;
                }
                self.recovery.doubtful_timeout = false;
            }
        }
        if recovered {
            self.try_undo_recovery(found);
        }
    }

    /// The byte at `offset`, never sent again, has arrived: did later ones arrive before it?
    pub(super) fn check_reordering(&mut self, offset: u64) {
        let highest = self.board.highest_sack(self.snd_una);
        if unlikely(offset < highest) {
            self.rack.see_reordering(highest - offset, self.mss);
        }
    }

    /// Whether the acknowledgement answers what was sent before any retransmission (RFC 3522).
    fn was_delayed(&self, found: &Findings) -> bool {
        match self.recovery.first_retransmission_ms {
            Some(first) => found.echo_ms > 0 && found.echo_ms < first,
            None => true,
        }
    }

    fn may_undo(&self, found: &Findings) -> bool {
        self.recovery.undo_marker.is_some()
            && (self.recovery.undo_retransmissions == Some(0) || self.was_delayed(found))
    }

    fn undo_reduction(&mut self, now_ns: u64, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if let Some(prior) = self.recovery.prior_ssthresh {
            let context = self.context(now_ns);
            self.window.cwnd = self.control.undo(&mut self.window, &context);
            if prior > self.window.ssthresh {
                self.window.ssthresh = prior;
                self.cwr_due = false;
            }
        }
        self.recovery.undo_marker = None;
        self.rack.restart(&self.board);
    }

    fn undo_loss(&mut self, now_ns: u64) {
        self.undo_reduction(now_ns, true);
        self.recovery.timeouts_in_row = 0;
        self.set_state(now_ns, State::Open);
    }

    /// All is acknowledged that was sent before recovery.
    fn try_undo_recovery(&mut self, found: &Findings) {
        if self.may_undo(found) {
            self.undo_reduction(found.now_ns, false);
        } else {
            self.rack.end_recovery();
        }
        let state = self.recovery.state;
        if state == State::Recovery {
            // The reduction is still to be completed, in the state that it belongs to.
            return;
        }
        self.set_state(found.now_ns, State::Open);
    }

    fn try_undo_by_duplicates(&mut self, now_ns: u64) -> bool {
        let unneeded =
            self.recovery.undo_marker.is_some() && self.recovery.undo_retransmissions == Some(0);
        if unneeded {
            self.rack.recovery_was_spurious();
            self.undo_reduction(now_ns, false);
        }
        unneeded
    }

    /// A hole was filled by what was late, not by its retransmission. Returns whether others may be too: then only new data
    /// leave (Linux: `tcp_try_undo_partial`, after which there is nothing for `tcp_xmit_recovery`).
    fn try_undo_partial(&mut self, found: &Findings) -> bool {
        if self.recovery.undo_marker.is_none() || !self.was_delayed(found) {
            return false;
        }
        self.check_reordering(found.prior_una);
        if self.board.retrans_out > 0 {
            self.recovery.held = true;
            return true;
        }
        if !self.has_retransmissions_out() {
            self.recovery.first_retransmission_ms = None;
        }
        self.undo_reduction(found.now_ns, true);
        self.try_keep_open(found.now_ns);
        false
    }

    fn end_reduction_of(&mut self, now_ns: u64, state: State) {
        let undo_possible = self.recovery.undo_marker.is_some();
        self.set_state(now_ns, State::Open);
        self.complete_reduction(now_ns, state == State::Cwr || undo_possible);
    }

    pub(super) fn end_reduction(&mut self, now_ns: u64) {
        self.complete_reduction(now_ns, self.recovery.state == State::Cwr);
    }

    fn complete_reduction(&mut self, now_ns: u64, takes_effect: bool) {
        // Controls that set the window by themselves never reduce it this way.
        if takes_effect && self.window.ssthresh < INFINITE_SSTHRESH && !self.control.sets_window() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.notify(now_ns, Event::ReductionComplete);
    }

    /// A loss probe's answer tells whether the tail was lost (RFC 8985 §7.4).
    #[inline(never)]
    pub(super) fn finish_probe_if_acked(&mut self, ack: u64, found: &Findings) {
        let Some(end) = self.recovery.probe_end else { return };
        if ack < end {
            return;
        }
        if !self.recovery.probe_retransmitted || found.probe_duplicate {
            self.recovery.probe_end = None;
        } else if ack > end {
            // The probe repaired a loss that nothing else told of.
            self.start_reduction(found.now_ns);
            self.set_state(found.now_ns, State::Cwr);
            self.end_reduction(found.now_ns);
            self.try_keep_open(found.now_ns);
        } else if !found.advanced && found.is_plain_duplicate() && !found.sacked {
            self.recovery.probe_end = None;
        }
    }

    /// Whether the congestion control sets the window and the pacing rate after an acknowledgement by itself, which it has done then, with its
    /// sample: `completed` adds what does not follow from when packets were sent and delivered.
    #[inline(never)]
    pub(super) fn is_controlled(
        &mut self,
        now_ns: u64,
        builder: &SampleBuilder,
        completed: impl Fn(RateSample) -> RateSample,
    ) -> bool {
        let context = |window: &Window, needs_pacing| context!(self, now_ns, window, needs_pacing);
        let sample = || completed(self.rate.sample(builder, self.rtt.min_us));
        let decides = self.control.control_by(&mut self.window, context, sample);
        if decides {
            if unlikely(self.window.app_limited) {
                let mark = self.rate.delivered + u64::from(self.board.in_flight());
                self.rate.app_limited_until = mark.max(1);
            }
            self.resize_packets();
        }
        decides
    }

    /// The window after an acknowledgement, and the pacing rate.
    pub(super) fn steer(&mut self, found: &Findings, delivered: u32, losses: u32) {
        if self.in_reduction() {
            self.reduce(delivered, losses, found.advanced);
        } else if found.acked || (found.sacked && self.rack.reordering > DUPLICATE_THRESHOLD) {
            let context =
                |window: &Window, needs_pacing| context!(self, found.now_ns, window, needs_pacing);
            self.control.increase_by(&mut self.window, context, delivered);
        }
        self.update_pacing_rate();
    }

    /// Proportional rate reduction: the window sinks to the threshold as packets are delivered (RFC 9937 §5).
    #[inline(never)]
    pub(super) fn reduce(&mut self, delivered: u32, losses: u32, advanced: bool) {
        let recovery = &mut self.recovery;
        if delivered == 0 || recovery.prior_cwnd == 0 {
            return;
        }
        let in_flight = self.board.in_flight();
        recovery.prr_delivered += delivered;
        let out = i64::from(recovery.prr_out);
        let room = i64::from(self.window.ssthresh) - i64::from(in_flight);
        let sendable = if room < 0 {
            let share = u64::from(self.window.ssthresh) * u64::from(recovery.prr_delivered);
            share.div_ceil(u64::from(recovery.prior_cwnd)) as i64 - out
        } else {
            let mut limit = (i64::from(recovery.prr_delivered) - out).max(i64::from(delivered));
            if advanced && losses == 0 {
                limit += 1;
            }
            limit.min(room)
        };
        // The first retransmission leaves at once.
        let sendable = sendable.max(i64::from(recovery.prr_out == 0));
        self.window.cwnd = in_flight + sendable as u32;
    }

    /// Twice the window per round trip in slow start, 1.2 times later (Linux: `tcp_pacing_ss_ratio`, `_ca_ratio`).
    pub(super) fn update_pacing_rate(&mut self) {
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let packets = u64::from(self.window.cwnd.max(self.board.packets_out()));
        let rate = u64::from(self.mss + self.options) * packets * (1_000_000 / 100 * percent) * 8;
        self.window.pacing_rate = rate.checked_div(self.rtt.srtt_eighth_us).unwrap_or(rate).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::SenderConfig;

    #[test]
    fn a_recovery_does_not_remember_the_retransmissions_of_the_last_one() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.recovery.first_retransmission_ms = Some(5);
        sender.enter_recovery(10_000_000, false);
        assert_eq!(sender.recovery.first_retransmission_ms, None);
        // But those that are still out.
        sender.recovery.first_retransmission_ms = Some(7);
        sender.board.retrans_out = 1;
        sender.enter_recovery(20_000_000, false);
        assert_eq!(sender.recovery.first_retransmission_ms, Some(7));
    }
}
