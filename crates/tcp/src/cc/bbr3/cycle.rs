//! From state to state: startup, drain, and the cycle of probing for bandwidth.

use super::{Bbr3, Mode, UNIT};
use crate::cc::bandwidth::in_network;
use crate::cc::{Context, Window};
use crate::rate::RateSample;

/// How long the bandwidth is not probed: 2 s and up to one more, or so many round trips, of which one more or less.
const PROBE_WAIT_MICROS: u64 = 2_000_000;
const PROBE_WAIT_RANDOM_MICROS: u64 = 1_000_000;
const MOST_PROBE_ROUNDS: u32 = 63;
/// The upper bound grows twice as fast each round trip, at most so often.
const MOST_UP_ROUNDS: u32 = 30;

/// What is done in the cycle of probing for bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Less is sent than is delivered.
    #[default]
    Down,
    /// As much.
    Cruise,
    /// As much, and without the short-term bounds.
    Refill,
    /// More.
    Up,
}

impl Phase {
    pub(super) const fn pacing_gain(self) -> u64 {
        match self {
            Self::Down => UNIT * 91 / 100,
            Self::Cruise | Self::Refill => UNIT,
            Self::Up => UNIT * 5 / 4,
        }
    }
}

/// Of what the acknowledgements that come now tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing was probed.
    #[default]
    Init,
    /// The path was being filled.
    Refilling,
    /// A probe has begun, of which they do not tell yet.
    ProbeStarting,
    /// A probe.
    ProbeFeedback,
    /// A probe that is over.
    ProbeStopping,
}

/// Where the cycle is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    pub(super) phase: Phase,
    ack_phase: AckPhase,
    /// When it began, and when the next probe is due.
    start_us: u64,
    wait_us: u64,
    /// Round trips since then.
    pub(super) rounds: u32,
    /// Packets that are acknowledged or lost now may have been sent by a probe.
    pub(super) probe_samples: bool,
    /// The last probe met too much loss; this one was ended as a precaution.
    pub(super) probed_too_high: bool,
    stopped_risky_probe: bool,
    /// Acknowledged packets by which the upper bound grows by one, and those that were.
    up_count: u32,
    up_acked: u32,
    up_rounds: u32,
}

impl Cycle {
    #[cfg(test)]
    pub(super) const fn up_rounds(&self) -> u32 {
        self.up_rounds
    }

    /// A probe is over, though what it caused is still to come.
    pub(super) const fn stop_probing(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }
}

impl Bbr3 {
    pub(super) fn check_drain(&mut self, window: &mut Window, context: &Context) {
        let bandwidth = self.bandwidth.get();
        if self.mode == Mode::Startup && self.full_bandwidth_reached {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(bandwidth, UNIT, window, context.mss);
        }
        if self.mode == Mode::Drain
            && self.in_network(context.packets_in_flight, window, context)
                <= self.inflight(bandwidth, UNIT, window, context.mss)
        {
            self.mode = Mode::ProbeBandwidth;
            self.start_down(context);
        }
    }

    fn in_network(&self, in_flight: u32, window: &Window, context: &Context) -> u32 {
        in_network(in_flight, self.current_bandwidth(), self.pacing_gain, window, context)
    }

    pub(super) fn start_down(&mut self, context: &Context) {
        self.reset_congestion_signals();
        let cycle = &mut self.cycle;
        cycle.up_count = u32::MAX;
        // A bit for the round trips, the others for the time.
        cycle.rounds = context.random() >> 31;
        let random = u64::from(context.random() << 1);
        cycle.wait_us = PROBE_WAIT_MICROS + ((random * PROBE_WAIT_RANDOM_MICROS) >> 32);
        cycle.start_us = context.delivered_at.as_nanos() / 1_000;
        cycle.stop_probing();
        cycle.phase = Phase::Down;
        self.start_round(context);
    }

    pub(super) fn start_cruise(&mut self) {
        if self.inflight_lo != u32::MAX {
            self.inflight_lo = self.inflight_lo.min(self.inflight_hi);
        }
        self.cycle.phase = Phase::Cruise;
    }

    /// The upper bound then grows as if it had done so for `up_rounds` round trips.
    fn start_refill(&mut self, context: &Context, up_rounds: u32) {
        self.reset_lower_bounds();
        let cycle = &mut self.cycle;
        (cycle.up_rounds, cycle.up_acked) = (up_rounds, 0);
        cycle.stopped_risky_probe = false;
        cycle.ack_phase = AckPhase::Refilling;
        cycle.phase = Phase::Refill;
        self.start_round(context);
    }

    fn start_up(&mut self, window: &Window, context: &Context) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.cycle.phase = Phase::Up;
        self.start_round(context);
        self.reset_full_bandwidth();
        self.full_bandwidth = self.sample_bandwidth;
        self.raise_slope(window);
    }

    fn raise_slope(&mut self, window: &Window) {
        let cycle = &mut self.cycle;
        cycle.up_count = (window.cwnd >> cycle.up_rounds).max(1);
        cycle.up_rounds = (cycle.up_rounds + 1).min(MOST_UP_ROUNDS);
    }

    /// The upper bound grows where it limits what is sent.
    fn probe_upward(&mut self, window: &Window, context: &Context, sample: &RateSample) {
        if !context.cwnd_limited || window.cwnd < self.inflight_hi {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(sample.acked_sacked);
        if cycle.up_acked >= cycle.up_count {
            let growth = cycle.up_acked / cycle.up_count;
            cycle.up_acked -= growth * cycle.up_count;
            self.inflight_hi = self.inflight_hi.saturating_add(growth);
        }
        if self.round_start {
            self.raise_slope(window);
        }
    }

    /// Follows what acknowledgements tell of, and moves the upper bound. Returns whether that has decided what comes next.
    fn adapt_upper_bound(
        &mut self,
        window: &Window,
        context: &Context,
        sample: &RateSample,
    ) -> bool {
        if self.round_start {
            match self.cycle.ack_phase {
                AckPhase::ProbeStarting => self.cycle.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping => {
                    self.cycle.probe_samples = false;
                    self.cycle.ack_phase = AckPhase::Init;
                    if self.mode == Mode::ProbeBandwidth {
                        if !sample.app_limited {
                            self.bandwidth.advance();
                        }
                        if self.cycle.stopped_risky_probe && !self.cycle.probed_too_high {
                            // What was ended as a precaution did no harm.
                            self.start_refill(context, 0);
                            return true;
                        }
                    }
                }
                AckPhase::Init | AckPhase::Refilling | AckPhase::ProbeFeedback => {}
            }
        }
        if self.is_too_much_in_flight(sample) {
            if self.cycle.probe_samples {
                let RateSample { tx_in_flight, app_limited, .. } = *sample;
                self.handle_inflight_too_high(window, context, tx_in_flight, app_limited);
            }
        } else if self.inflight_hi != u32::MAX {
            self.inflight_hi = self.inflight_hi.max(sample.tx_in_flight);
            if self.is_in(Phase::Up) {
                self.probe_upward(window, context, sample);
            }
        }
        false
    }

    /// Begins the next probe if it is due. Returns whether it is.
    fn probe_if_due(&mut self, window: &Window, context: &Context) -> bool {
        let reprobe = self.marks.reprobe(context, self.inflight_hi);
        let due = reprobe.or_else(|| self.is_time_to_probe(window, context).then_some(0));
        if let Some(up_rounds) = due {
            self.start_refill(context, up_rounds);
        }
        due.is_some()
    }

    /// Whether the next probe is due: after some time, or when a flow of Reno's would have had its next loss.
    fn is_time_to_probe(&self, window: &Window, context: &Context) -> bool {
        let elapsed_us =
            (context.delivered_at.as_nanos() / 1_000).saturating_sub(self.cycle.start_us);
        elapsed_us > self.cycle.wait_us
            || self.cycle.rounds >= self.target_inflight(window).min(MOST_PROBE_ROUNDS)
    }

    pub(super) fn update_cycle(&mut self, window: &Window, context: &Context, sample: &RateSample) {
        if !self.full_bandwidth_reached
            || self.adapt_upper_bound(window, context, sample)
            || self.mode != Mode::ProbeBandwidth
        {
            return;
        }
        let is_between_probes = matches!(self.cycle.phase, Phase::Down | Phase::Cruise);
        if is_between_probes && self.probe_if_due(window, context) {
            return;
        }
        let in_network = self.in_network(sample.prior_in_flight, window, context);
        match self.cycle.phase {
            Phase::Down => {
                let bandwidth = self.bandwidth.get();
                if in_network <= self.inflight_with_headroom()
                    && in_network <= self.inflight(bandwidth, UNIT, window, context.mss)
                {
                    self.start_cruise();
                }
            }
            Phase::Cruise => {}
            Phase::Refill => {
                if self.round_start {
                    // From now on packets may be lost that were sent without the short-term bounds.
                    self.cycle.probe_samples = true;
                    self.start_up(window, context);
                }
            }
            Phase::Up => {
                if self.is_probe_over(window, context, in_network) {
                    self.cycle.probed_too_high = false;
                    self.start_down(context);
                }
            }
        }
    }

    fn is_probe_over(&mut self, window: &Window, context: &Context, in_network: u32) -> bool {
        if self.cycle.probed_too_high && in_network >= self.inflight_hi {
            self.cycle.stopped_risky_probe = true;
            return true;
        }
        if context.cwnd_limited && window.cwnd >= self.inflight_hi {
            // It is the bound that limits the bandwidth.
            self.reset_full_bandwidth();
            self.full_bandwidth = self.sample_bandwidth;
            return false;
        }
        self.full_bandwidth_now
    }
}
