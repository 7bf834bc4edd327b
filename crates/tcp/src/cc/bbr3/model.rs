//! What acknowledgements and losses say of the path.

use super::bandwidth_of;
use super::{
    BETA, Bbr3, FULL_LOSS_COUNT, MOST_LOSS_EVENTS, Mode, Phase, UNIT, is_inflight_too_high,
};
use crate::cc::{Context, State, Window};
use crate::rate::RateSample;

/// Growth that startup goes on for, and how many round trips without it end it.
const FULL_BW_GROWTH: u64 = UNIT * 5 / 4;
const FULL_BW_ROUNDS: u32 = 3;
/// How long the smallest round-trip time counts, how often it is looked for, and for how long.
const MIN_RTT_WINDOW_SECONDS: u32 = 10;
const PROBE_RTT_SECONDS: u32 = 5;
const PROBE_RTT_MICROS: u64 = 200_000;

/// The largest bandwidth of the last two cycles of probing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth([u64; 2]);

impl MaxBandwidth {
    pub(super) fn get(&self) -> u64 {
        self.0[0].max(self.0[1])
    }

    fn take(&mut self, bandwidth: u64) {
        self.0[1] = self.0[1].max(bandwidth);
    }

    /// A cycle ends. One without samples does not count.
    pub(super) const fn advance(&mut self) {
        if self.0[1] > 0 {
            self.0 = [self.0[1], 0];
        }
    }
}

/// The smallest round-trip time, and when to look for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    pub(super) min_us: u64,
    min_jiffies: u32,
    /// The same since it was last looked for.
    probe_us: u64,
    probe_jiffies: u32,
    /// When the window may grow again.
    done: Option<u32>,
    round_done: bool,
}

impl Default for MinRtt {
    fn default() -> Self {
        Self {
            min_us: u64::MAX,
            min_jiffies: 0,
            probe_us: u64::MAX,
            probe_jiffies: 0,
            done: None,
            round_done: false,
        }
    }
}

impl MinRtt {
    pub(super) fn start(&mut self, context: &Context) {
        (self.min_us, self.probe_us) = (context.min_rtt_us, context.min_rtt_us);
        (self.min_jiffies, self.probe_jiffies) = (context.jiffies(), context.jiffies());
    }
}

/// The bounds before the losses of this round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    pub(super) bandwidth_lo: u64,
    pub(super) inflight_lo: u32,
    pub(super) inflight_hi: u32,
}

impl Bbr3 {
    pub(super) fn update_round(&mut self, context: &Context, sample: &RateSample) {
        self.round_start = false;
        self.sample_bandwidth = 0;
        let Some(delivered) = sample.delivered.filter(|_| sample.interval_us > 0) else { return };
        if sample.prior_delivered >= self.next_round_delivered {
            self.start_round(context);
            self.round_start = true;
            self.cycle.rounds = self.cycle.rounds.saturating_add(1);
        }
        self.sample_bandwidth = bandwidth_of(delivered, sample.interval_us);
    }

    pub(super) const fn start_round(&mut self, context: &Context) {
        self.next_round_delivered = context.delivered;
    }

    pub(super) fn update_latest_delivery(&mut self, context: &Context, sample: &RateSample) {
        self.loss_round_start = false;
        let Some(delivered) = sample.delivered.filter(|_| sample.acked_sacked > 0) else { return };
        self.bandwidth_latest = self.bandwidth_latest.max(self.sample_bandwidth);
        self.inflight_latest = self.inflight_latest.max(delivered);
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = context.delivered;
            self.loss_round_start = true;
        }
    }

    pub(super) fn advance_latest_delivery(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            self.bandwidth_latest = self.sample_bandwidth;
            self.inflight_latest = sample.delivered.unwrap_or(0);
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.marks.in_round = false;
        (self.marks.in_cycle, self.marks.loss_in_cycle) = (false, false);
        (self.bandwidth_latest, self.inflight_latest) = (0, 0);
    }

    pub(super) fn update_congestion_signals(&mut self, window: &Window, sample: &RateSample) {
        if self.sample_bandwidth == 0 {
            return;
        }
        if !sample.app_limited || self.sample_bandwidth >= self.bandwidth.get() {
            self.bandwidth.take(self.sample_bandwidth);
        }
        self.loss_in_round |= sample.losses > 0;
        if self.loss_round_start {
            if !self.is_probing_bandwidth() {
                self.lower_bounds(window);
            }
            self.loss_in_round = false;
            self.marks.in_round = false;
        }
    }

    /// Once in a round trip. With losses: what was delivered in it, or a part of what was thought. With marks: a part of what was
    /// thought to be safe in flight. The lower one counts.
    fn lower_bounds(&mut self, window: &Window) {
        if !self.loss_in_round && !self.marks.in_round {
            return;
        }
        if self.inflight_lo == u32::MAX {
            self.inflight_lo = window.cwnd;
        }
        let by_marks =
            if self.marks.in_round { self.marks.cut(self.inflight_lo) } else { u32::MAX };
        if self.loss_in_round {
            if self.bandwidth_lo == u64::MAX {
                self.bandwidth_lo = self.bandwidth.get();
            }
            let part = (self.bandwidth_lo * BETA) >> 8;
            self.bandwidth_lo = self.bandwidth_latest.max(part);
            let part = ((u64::from(self.inflight_lo) * BETA) >> 8) as u32;
            self.inflight_lo = self.inflight_latest.max(part);
        }
        self.inflight_lo = self.inflight_lo.min(by_marks);
    }

    pub(super) const fn reset_lower_bounds(&mut self) {
        (self.bandwidth_lo, self.inflight_lo) = (u64::MAX, u32::MAX);
    }

    /// Whether more than before is sent to see what the path holds.
    pub(super) fn is_probing_bandwidth(&self) -> bool {
        self.mode == Mode::Startup || self.is_in(Phase::Refill) || self.is_in(Phase::Up)
    }

    pub(super) fn note_loss(&mut self, context: &Context) {
        if !self.loss_in_round {
            self.loss_round_delivered = context.delivered;
            self.undo = Undo {
                bandwidth_lo: self.bandwidth_lo,
                inflight_lo: self.inflight_lo,
                inflight_hi: self.inflight_hi,
            };
        }
        self.loss_in_round = true;
        self.marks.loss_in_cycle = true;
    }

    /// More was in flight than is safe.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        window: &Window,
        context: &Context,
        tx_in_flight: u32,
        app_limited: bool,
    ) {
        self.cycle.probed_too_high = true;
        // Once for each probe.
        self.cycle.probe_samples = false;
        if !app_limited {
            let part = (u64::from(self.target_inflight(window)) * BETA) >> 8;
            self.inflight_hi = tx_in_flight.max(part as u32);
        }
        if self.is_in(Phase::Up) {
            self.start_down(context);
        }
    }

    /// Losses at the end of a round trip of recovery, many and in several places, end startup.
    pub(super) fn check_loss_in_startup(
        &mut self,
        window: &Window,
        context: &Context,
        sample: &RateSample,
    ) {
        if self.full_bandwidth_reached {
            return;
        }
        if sample.losses > 0 {
            self.loss_events_in_round = (self.loss_events_in_round + 1).min(MOST_LOSS_EVENTS);
        }
        if self.loss_round_start
            && context.state == State::Recovery
            && self.loss_events_in_round >= FULL_LOSS_COUNT
            && self.is_too_much_in_flight(sample)
        {
            self.end_startup(window, context);
        }
        if self.loss_round_start {
            self.loss_events_in_round = 0;
        }
    }

    /// Losses or marks say that the path is full.
    pub(super) fn end_startup(&mut self, window: &Window, context: &Context) {
        self.full_bandwidth_reached = true;
        let bdp = self.inflight(self.bandwidth.get(), UNIT, window, context.mss);
        self.inflight_hi = bdp.max(self.inflight_latest);
    }

    /// Whether losses or marks say so of what an acknowledgement tells.
    pub(super) fn is_too_much_in_flight(&self, sample: &RateSample) -> bool {
        is_inflight_too_high(sample.lost, sample.tx_in_flight) || self.marks.are_too_many(sample)
    }

    pub(super) const fn reset_full_bandwidth(&mut self) {
        self.full_bandwidth = 0;
        self.full_bandwidth_rounds = 0;
        self.full_bandwidth_now = false;
    }

    pub(super) fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if self.full_bandwidth_now || sample.app_limited {
            return;
        }
        if self.sample_bandwidth >= (self.full_bandwidth * FULL_BW_GROWTH) >> 8 {
            self.reset_full_bandwidth();
            self.full_bandwidth = self.sample_bandwidth;
            return;
        }
        if self.round_start {
            self.full_bandwidth_rounds += 1;
            self.full_bandwidth_now = self.full_bandwidth_rounds >= FULL_BW_ROUNDS;
            self.full_bandwidth_reached |= self.full_bandwidth_now;
        }
    }

    pub(super) fn end_probe_rtt_if_done(&mut self, window: &mut Window, context: &Context) {
        let jiffies = context.jiffies();
        let Some(done) = self.min_rtt.done else { return };
        if (jiffies.wrapping_sub(done) as i32) <= 0 {
            return;
        }
        self.min_rtt.probe_jiffies = jiffies;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.reset_lower_bounds();
        if self.full_bandwidth_reached {
            self.mode = Mode::ProbeBandwidth;
            self.start_down(context);
            // The queue is empty already.
            self.start_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    pub(super) fn update_min_rtt(
        &mut self,
        window: &mut Window,
        context: &Context,
        sample: &RateSample,
    ) {
        let jiffies = context.jiffies();
        let is_over = |since: u32, seconds: u32| {
            jiffies.wrapping_sub(since) as i32 > (seconds * context.tick.hertz()) as i32
        };
        let min = &mut self.min_rtt;
        let probe_is_due = is_over(min.probe_jiffies, PROBE_RTT_SECONDS);
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < min.probe_us || (probe_is_due && !sample.ack_delayed))
        {
            (min.probe_us, min.probe_jiffies) = (rtt_us, jiffies);
        }
        if min.probe_us <= min.min_us || is_over(min.min_jiffies, MIN_RTT_WINDOW_SECONDS) {
            (min.min_us, min.min_jiffies) = (min.probe_us, min.probe_jiffies);
        }
        if probe_is_due && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.min_rtt.done = None;
            self.cycle.stop_probing();
            self.start_round(context);
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(window, context);
        }
        if sample.delivers {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, window: &mut Window, context: &Context) {
        // What is delivered now tells nothing of the bandwidth.
        window.app_limited = true;
        if self.min_rtt.done.is_none() {
            if context.packets_in_flight <= self.probe_rtt_cwnd() {
                let length = context.tick.jiffies_in(PROBE_RTT_MICROS);
                self.min_rtt.done = Some(context.jiffies().wrapping_add(length));
                self.min_rtt.round_done = false;
                self.start_round(context);
            }
        } else {
            self.min_rtt.round_done |= self.round_start;
            if self.min_rtt.round_done {
                self.end_probe_rtt_if_done(window, context);
            }
        }
    }
}
