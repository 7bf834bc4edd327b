//! What happens when nothing comes back: retransmission timeout (RFC 6298), tail loss probe and reordering timer
//! (RFC 8985 §7 and §6.2, step 5).

use dualq_units::Instant;
use dualq_units::hint::unlikely;

use super::{BY_TIMER, HEAD_DUE, LOSS_PROBE_DUE, LOST_DUE, Sender, WINDOW_PROBE_DUE};
use crate::cc::{CongestionControl, State};
use crate::rtt::{RTO_MAX_US, RTO_MIN_US};
use crate::tick::{WheelTimer, instant};

/// What a coarse timer adds to be on the safe side (Linux: `TCP_TIMEOUT_MIN_US`).
const TIMEOUT_MARGIN_US: u64 = 2_000;
/// After so many timeouts in a row of the handshake its timeout begins to double (Linux: `tcp_syn_linear_timeouts`, since 6.5).
const LINEAR_SYN_TIMEOUTS: u32 = 4;
/// How often the time between probes of a closed window doubles (Linux: `tcp_probe0_when`), and how long it gets.
const MOST_WINDOW_PROBE_DOUBLINGS: u8 = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    Retransmission,
    LossProbe,
    Reordering,
    Handshake,
    WindowProbe,
}

/// One coarse timer with a purpose, and the fine one of TCP's own pacing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    kind: Kind,
    deadline_ns: u64,
    pub(super) wheel: WheelTimer,
    pacing_ns: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            kind: Kind::None,
            deadline_ns: u64::MAX,
            wheel: WheelTimer::default(),
            pacing_ns: u64::MAX,
        }
    }
}

impl Timers {
    #[inline]
    pub(super) const fn next_ns(&self) -> u64 {
        if self.deadline_ns < self.pacing_ns { self.deadline_ns } else { self.pacing_ns }
    }

    pub(super) const fn clear(&mut self) {
        self.kind = Kind::None;
        self.deadline_ns = u64::MAX;
    }

    pub(super) const fn wake_pacing(&mut self, at_ns: u64) {
        self.pacing_ns = at_ns;
    }
}

impl Sender {
    /// A deadline of [`next_timer`](Self::next_timer) has come. What is to be sent now, [`transmit`](Self::transmit) sends.
    pub fn on_timer(&mut self, now: Instant) {
        let now_ns = now.as_nanos();
        let paces = self.timers.pacing_ns <= now_ns;
        if paces {
            self.timers.pacing_ns = u64::MAX;
        }
        if self.timers.deadline_ns > now_ns {
            return;
        }
        let kind = self.timers.kind;
        self.timers.clear();
        // What pacing held back goes out at this instant anyway; after a timeout the head fills the window, and nothing needs to be kept back.
        self.due &= !BY_TIMER;
        if !paces && matches!(kind, Kind::LossProbe | Kind::Reordering) {
            self.due |= BY_TIMER;
        }
        match kind {
            Kind::None => {}
            Kind::Handshake => {
                if self.syns_sent > LINEAR_SYN_TIMEOUTS {
                    self.rtt.back_off(self.config.tick);
                }
                self.syn_due = true;
            }
            Kind::Retransmission => self.on_timeout(now_ns),
            Kind::LossProbe => self.due |= LOSS_PROBE_DUE,
            Kind::WindowProbe => self.due |= WINDOW_PROBE_DUE,
            Kind::Reordering => self.on_reordering_timeout(now_ns),
        }
    }

    /// What pacing holds back is not late: a timer that waits for its acknowledgement has the whole jiffies of that on top
    /// (Linux: `tcp_pacing_delay`).
    #[inline(always)]
    fn start_paced_timer(&mut self, now_ns: u64, departure_ns: u64, kind: Kind, jiffies: u32) {
        let held = match departure_ns.checked_sub(now_ns) {
            Some(held_ns) => self.config.tick.whole_jiffies_in(held_ns),
            None => 0,
        };
        self.start_timer(now_ns, kind, jiffies + held);
    }

    fn start_timer(&mut self, now_ns: u64, kind: Kind, jiffies: u32) {
        debug_assert!(jiffies > 0, "it waits");
        self.timers.kind = kind;
        self.timers.deadline_ns =
            self.timers.wheel.start(self.config.tick, instant(now_ns), jiffies).as_nanos();
    }

    pub(super) fn start_handshake_timer(&mut self, now_ns: u64) {
        self.start_timer(now_ns, Kind::Handshake, self.rtt.timeout);
    }

    /// There is something to send, nothing under way, and no room: ask now and then (Linux: `tcp_check_probe_timer`).
    #[inline(never)]
    pub(super) fn await_window(&mut self, now_ns: u64) {
        if self.timers.kind == Kind::None {
            self.recovery.window_probe_doublings = 0;
            self.start_window_probe_timer(now_ns);
        }
    }

    pub(super) fn back_window_probe_off(&mut self, now_ns: u64) {
        let doublings = self.recovery.window_probe_doublings + 1;
        self.recovery.window_probe_doublings = doublings.min(MOST_WINDOW_PROBE_DOUBLINGS);
        self.start_window_probe_timer(now_ns);
    }

    fn start_window_probe_timer(&mut self, now_ns: u64) {
        let tick = self.config.tick;
        let base = self.rtt.timeout.max(tick.jiffies_in(RTO_MIN_US));
        let jiffies = base.saturating_mul(1 << self.recovery.window_probe_doublings);
        self.start_paced_timer(
            now_ns,
            self.departure_ns,
            Kind::WindowProbe,
            jiffies.min(tick.jiffies_in(RTO_MAX_US)),
        );
    }

    /// An acknowledgement while nothing is under way: has the window opened (Linux: `tcp_ack_probe`)?
    pub(super) fn check_window_probe(&mut self, now_ns: u64) {
        if self.timers.kind != Kind::WindowProbe {
            return;
        }
        let next = (self.buffer.end - self.snd_nxt).min(u64::from(self.mss));
        if self.snd_nxt + next <= self.window_end {
            self.timers.clear();
        } else {
            self.start_window_probe_timer(now_ns);
        }
    }

    pub(super) fn start_reordering_timer(&mut self, now_ns: u64, wait_us: u64) {
        let jiffies = self.config.tick.jiffies_in(wait_us + TIMEOUT_MARGIN_US);
        self.start_timer(now_ns, Kind::Reordering, jiffies);
    }

    /// Microseconds until the first outstanding segment times out; zero or less if it has.
    fn until_timeout_us(&self, now_ns: u64) -> i64 {
        let head = self.board.get(self.board.first).stamp.sent_ns;
        let timeout_us = self.config.tick.micros_in(self.rtt.timeout);
        (head / 1_000 + timeout_us) as i64 - (now_ns / 1_000) as i64
    }

    /// Starts the retransmission timer anew. After a probe or reordering timer only the rest of the time counts.
    pub(super) fn restart_retransmission_timer(&mut self, now_ns: u64) {
        if self.board.packets_out() == 0 {
            self.timers.clear();
        } else {
            let rest_us = |sender: &Self| sender.until_timeout_us(now_ns);
            self.restart_behind(now_ns, self.departure_ns, rest_us);
        }
    }

    /// The same where pacing holds back what follows until `departure_ns`, and `rest_us` are left [of the
    /// timeout](Self::until_timeout_us).
    #[inline(always)]
    fn restart_behind(
        &mut self,
        now_ns: u64,
        departure_ns: u64,
        rest_us: impl FnOnce(&Self) -> i64,
    ) {
        if matches!(self.timers.kind, Kind::LossProbe | Kind::Reordering) {
            self.resume_behind(now_ns, departure_ns, rest_us(self));
        } else {
            self.start_paced_timer(now_ns, departure_ns, Kind::Retransmission, self.rtt.timeout);
        }
    }

    /// The same for what is left of the time since the first outstanding segment was sent.
    pub(super) fn resume_retransmission_timer(&mut self, now_ns: u64) {
        if self.board.packets_out() == 0 {
            self.timers.clear();
        } else {
            let rest_us = self.until_timeout_us(now_ns);
            self.resume_behind(now_ns, self.departure_ns, rest_us);
        }
    }

    #[inline(always)]
    fn resume_behind(&mut self, now_ns: u64, departure_ns: u64, rest_us: i64) {
        let jiffies = self.config.tick.jiffies_in(rest_us.max(1) as u64);
        self.start_paced_timer(now_ns, departure_ns, Kind::Retransmission, jiffies);
    }

    pub(super) fn retransmitted_head(&mut self, now_ns: u64) {
        if self.timers.kind != Kind::Reordering {
            self.start_paced_timer(
                now_ns,
                self.departure_ns,
                Kind::Retransmission,
                self.rtt.timeout,
            );
        }
    }

    /// After progress: a loss probe if one makes sense, else the retransmission timer.
    pub(super) fn restart_timer(&mut self, now_ns: u64) {
        if unlikely(!self.schedule_loss_probe(now_ns, None)) {
            self.restart_retransmission_timer(now_ns);
        }
    }

    /// New data were sent, of which the first packet found `packets_before` outstanding and was paced by `departure_ns`. The loss probe's timer
    /// takes the other's place at once, unless this was one.
    #[inline(never)]
    pub(super) fn new_data_sent(
        &mut self,
        now_ns: u64,
        (packets_before, departure_ns): (u32, u64),
        is_probe: bool,
    ) {
        let rest_us = self.until_timeout_us(now_ns);
        if packets_before == 0 || self.timers.kind == Kind::LossProbe {
            self.restart_behind(now_ns, departure_ns, |_| rest_us);
        }
        if !is_probe {
            self.schedule_loss_probe(now_ns, Some(rest_us));
        }
    }

    /// Two round trips without an answer call for a probe (RFC 8985 §7.2), of a timeout of which `rest_us` are left if it does not begin anew.
    #[inline(always)]
    fn schedule_loss_probe(&mut self, now_ns: u64, rest_us: Option<i64>) -> bool {
        let calm = matches!(self.recovery.state, State::Open | State::Cwr);
        if !calm || self.board.packets_out() == 0 {
            return false;
        }
        let margin_us = if self.board.packets_out() == 1 { RTO_MIN_US } else { TIMEOUT_MARGIN_US };
        let probe_us = (self.rtt.srtt_eighth_us >> 2) + margin_us;
        let tick = self.config.tick;
        let jiffies = match rest_us {
            None => tick.jiffies_in(probe_us).min(self.rtt.timeout),
            Some(rest_us) if rest_us > 0 => tick.jiffies_in(probe_us.min(rest_us as u64)),
            Some(_) => tick.jiffies_in(probe_us),
        };
        self.start_paced_timer(now_ns, self.departure_ns, Kind::LossProbe, jiffies);
        true
    }

    fn on_timeout(&mut self, now_ns: u64) {
        if self.board.packets_out() == 0 {
            return;
        }
        self.stats.timeouts += 1;
        self.enter_loss(now_ns);
        self.recovery.timeouts_in_row += 1;
        self.rtt.back_off(self.config.tick);
        self.due |= HEAD_DUE;
        self.start_timer(now_ns, Kind::Retransmission, self.rtt.timeout);
    }

    fn on_reordering_timeout(&mut self, now_ns: u64) {
        let view = self.rack_view(now_ns);
        let (lost, _) = self.rack.detect(&view, &mut self.board);
        self.rate.lost += u64::from(lost);
        self.tell_losses(now_ns);
        if lost > 0 && self.recovery.state != State::Recovery {
            self.enter_recovery(now_ns, false);
            if !self.control.sets_window() {
                self.reduce(1, 0, false);
            }
        }
        self.due |= LOST_DUE;
    }

    /// What the reordering timer found lost is sent again, as far as it may be: if the head is not, its time goes on.
    #[inline]
    pub(super) fn after_reordering_timeout(&mut self, now_ns: u64) {
        let was_due = self.due & LOST_DUE > 0;
        self.due &= !LOST_DUE;
        if was_due && self.timers.kind != Kind::Retransmission {
            self.resume_retransmission_timer(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::SenderConfig;

    /// Linux 7.2 sends SYNs that nothing answers after 1.02, 2.06, 3.10, 4.14, 5.18, 7.26, 11.34 and 19.82 s, where its jiffies of 10 ms begin
    /// 0.1 ms before the first.
    #[test]
    fn a_handshake_is_tried_four_times_before_its_timeout_doubles() {
        let mut sender = Sender::new(SenderConfig::default());
        let (mut now, mut syns) = (Instant::ZERO, Vec::new());
        for _ in 0..9 {
            sender.transmit(now, &mut |_| syns.push(now.as_nanos() / 1_000_000_000));
            now = sender.next_timer();
            sender.on_timer(now);
        }
        assert_eq!(syns, [0, 1, 2, 3, 4, 5, 7, 11, 19]);
        assert_eq!(sender.rehashes(), 8);
    }

    #[test]
    fn pacing_puts_timers_off_by_whole_jiffies_only() {
        let mut sender = Sender::new(SenderConfig::default());
        let mut fires = |departure_ns, paced: bool| {
            sender.departure_ns = departure_ns;
            if paced {
                sender.start_paced_timer(0, departure_ns, Kind::LossProbe, 5);
            } else {
                sender.start_timer(0, Kind::Reordering, 5);
            }
            sender.next_timer().as_nanos() / 1_000_000
        };
        assert_eq!(fires(0, true), 60);
        assert_eq!(fires(9_999_999, true), 60);
        assert_eq!(fires(10_000_000, true), 70);
        assert_eq!(fires(10_000_000, false), 60);
    }
}
