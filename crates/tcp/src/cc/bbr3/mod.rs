//! BBR version 3 (draft-ietf-ccwg-bbr), in the integer units of Linux's `tcp_bbr.c`, and where the draft and what Google's version 3
//! for Linux documents differ, as the latter. What the draft calls long-term and short-term is `inflight_hi`, `inflight_lo` and
//! `bw_lo` there.
//!
//! `model.rs` learns from acknowledgements and losses what the path holds, `cycle.rs` goes from state to state, and here both become a
//! window and a pacing rate. `ecn.rs` is what marks say where a route is declared to be one of low latency. Not there: protective
//! load balancing, and the draft's limit of three round trips in Drain.

mod cycle;
mod ecn;
mod model;

use super::about::{About, Constant, share};
use super::bandwidth::{
    Aggregation, BW_UNIT, INITIAL_CWND, UNIT, bytes_per_second, gso_segments_goal, min_gso_segments,
};
use super::{CongestionControl, Context, Event, INFINITE_SSTHRESH, State, Window};
use crate::rate::{LostPacket, RateSample};
use cycle::{Cycle, Phase};
use ecn::{ECN_ALPHA_GAIN, ECN_FACTOR, ECN_MAX_RTT_US, ECN_THRESHOLD, FULL_ECN_COUNT, Marks};
use model::{MaxBandwidth, MinRtt, Undo};

/// 4 ln 2, the least gain that lets the rate double each round trip.
const STARTUP_PACING_GAIN: u64 = UNIT * 277 / 100 + 1;
/// Empties in about one round trip what startup has queued: ln 2 / 2.
const DRAIN_PACING_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
/// The window while more is sent than is delivered.
const UP_CWND_GAIN: u64 = CWND_GAIN + UNIT / 4;
const PROBE_RTT_CWND_GAIN: u64 = UNIT / 2;
const MIN_CWND: u32 = 4;
/// The loss that says that too much is in flight: 2 %.
const LOSS_THRESHOLD: u64 = UNIT * 2 / 100;
/// What is left of the bounds after a round trip with loss: 1 − 0.3.
const BETA: u64 = UNIT - UNIT * 30 / 100;
/// What is left free of the upper bound for others: 15 %.
const HEADROOM: u64 = UNIT * 15 / 100;
/// Losses in a round trip of startup that may end it.
const FULL_LOSS_COUNT: u32 = 6;
/// The most of them that are counted.
const MOST_LOSS_EVENTS: u32 = 15;
/// Round trips over which the aggregation of acknowledgements is looked at, after startup and in it.
const EXTRA_ACKED_ROUNDS: u32 = 5;
const EXTRA_ACKED_ROUNDS_IN_STARTUP: u32 = 1;

/// What there is to say of it.
pub(super) const ABOUT: About = About {
    title: "BBR version 3",
    what: "BBR's model of the path with bounds: what was in flight when packets were lost is the \
        most it sends, and some of that is left to others. It looks for more bandwidth every few \
        seconds.",
    reacts_to: "Delivery rate, the least round trip, and loss from 2 % on. To ECN only where the \
        route has the feature ecn_low (ecn_low = true of a flow, in the model) and the least round \
        trip is 5 ms or less: with plain ecn its packets are ECT(0), and CE changes nothing.",
    source: "draft-ietf-ccwg-bbr; google/bbr, branch v3, net/ipv4/tcp_bbr.c; stock Linux has version \
        1 as bbr, and no version 3",
    not_for: "Not with ecn beside scalable senders in dualpi2: it ignores the marks and takes most of \
        the link. Not in queues that keep order by marks alone.",
    constants: &[
        Constant::new(
            "bbr_startup_pacing_gain",
            || share(STARTUP_PACING_GAIN, UNIT),
            "pacing gain in startup, 4 ln 2",
        ),
        Constant::new(
            "bbr_startup_cwnd_gain",
            || share(CWND_GAIN, UNIT),
            "window gain; while it probes up it is a quarter more",
        ),
        Constant::new(
            "bbr_loss_thresh",
            || share(LOSS_THRESHOLD, UNIT),
            "the loss in a round trip that says that too much is in flight",
        ),
        Constant::new(
            "bbr_beta",
            || share(UNIT - BETA, UNIT),
            "by how much a round trip with loss lowers the bounds",
        ),
        Constant::new(
            "bbr_inflight_headroom",
            || share(HEADROOM, UNIT),
            "what is left free of the upper bound for others",
        ),
        Constant::new(
            "bbr_full_loss_cnt",
            || FULL_LOSS_COUNT.to_string(),
            "losses in a round trip of startup that may end it",
        ),
        Constant::new(
            "bbr_ecn_max_rtt_us",
            || format!("{} ms", ECN_MAX_RTT_US / 1_000),
            "the longest round trip on which marks count, with ecn_low",
        ),
        Constant::new(
            "bbr_ecn_thresh",
            || share(ECN_THRESHOLD, UNIT),
            "the share of marks that says that too much is in flight",
        ),
        Constant::new(
            "bbr_ecn_alpha_gain",
            || share(ECN_ALPHA_GAIN, UNIT),
            "how much a round trip's share of marks counts in the smoothed one",
        ),
        Constant::new(
            "bbr_ecn_factor",
            || share(ECN_FACTOR, UNIT),
            "the part of the smoothed share by which a round trip with marks lowers what is in flight",
        ),
        Constant::new(
            "bbr_full_ecn_cnt",
            || FULL_ECN_COUNT.to_string(),
            "round trips of startup with so many marks that end it",
        ),
        Constant::new(
            "bbr_cwnd_min_target",
            || format!("{MIN_CWND} packets"),
            "the smallest window",
        ),
    ],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR's state. Times in microseconds or jiffies, as named; amounts in packets; `u64::MAX` and `u32::MAX` are no bound.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    mode: Mode,
    cycle: Cycle,
    bandwidth: MaxBandwidth,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    undo: Undo,
    /// Apart, as few flows need them.
    marks: Box<Marks>,
    prior_cwnd: u32,
    prior_state: State,
    idle_restart: bool,
    has_seen_rtt: bool,
    pacing_gain: u64,
    cwnd_gain: u64,

    round_start: bool,
    next_round_delivered: u64,
    /// Of the last acknowledgement; 0 if it has no sample.
    sample_bandwidth: u64,

    full_bandwidth: u64,
    full_bandwidth_rounds: u32,
    /// There was a plateau since this was last looked for, and ever.
    full_bandwidth_now: bool,
    full_bandwidth_reached: bool,

    /// The bounds that losses set: short-term ones, for the time until the next probe, and the long-term one.
    bandwidth_lo: u64,
    inflight_lo: u32,
    inflight_hi: u32,
    /// The best of the round trip of losses that is under way.
    bandwidth_latest: u64,
    inflight_latest: u32,
    loss_in_round: bool,
    loss_round_start: bool,
    loss_round_delivered: u64,
    loss_events_in_round: u32,
}

impl Default for Bbr3 {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            cycle: Cycle::default(),
            bandwidth: MaxBandwidth::default(),
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            undo: Undo::default(),
            marks: Box::default(),
            prior_cwnd: 0,
            prior_state: State::Open,
            idle_restart: false,
            has_seen_rtt: false,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: CWND_GAIN,
            round_start: false,
            next_round_delivered: 0,
            sample_bandwidth: 0,
            full_bandwidth: 0,
            full_bandwidth_rounds: 0,
            full_bandwidth_now: false,
            full_bandwidth_reached: false,
            bandwidth_lo: u64::MAX,
            inflight_lo: u32::MAX,
            inflight_hi: u32::MAX,
            bandwidth_latest: 0,
            inflight_latest: 0,
            loss_in_round: false,
            loss_round_start: false,
            loss_round_delivered: 0,
            loss_events_in_round: 0,
        }
    }
}

impl Bbr3 {
    /// The bandwidth that is counted on.
    fn current_bandwidth(&self) -> u64 {
        self.bandwidth.get().min(self.bandwidth_lo)
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.mode == Mode::ProbeBandwidth && self.cycle.phase == phase
    }

    fn bdp(&self, bandwidth: u64, gain: u64) -> u32 {
        super::bandwidth::bdp(bandwidth, self.min_rtt.min_us, gain)
    }

    /// Leaves room for aggregates, and for more than the path holds while that is looked for.
    fn with_aggregates(&self, cwnd: u32, window: &Window, mss: u32) -> u32 {
        let cwnd = cwnd.max(3 * gso_segments_goal(window, mss)).max(MIN_CWND);
        if self.is_in(Phase::Up) { cwnd.saturating_add(2) } else { cwnd }
    }

    fn inflight(&self, bandwidth: u64, gain: u64, window: &Window, mss: u32) -> u32 {
        self.with_aggregates(self.bdp(bandwidth, gain), window, mss)
    }

    fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.current_bandwidth(), PROBE_RTT_CWND_GAIN).max(MIN_CWND)
    }

    /// The estimated product of bandwidth and delay, unless congestion has cut the window below it.
    fn target_inflight(&self, window: &Window) -> u32 {
        self.bdp(self.current_bandwidth(), UNIT).min(window.cwnd)
    }

    /// The upper bound, with room for others.
    fn inflight_with_headroom(&self) -> u32 {
        if self.inflight_hi == u32::MAX {
            return u32::MAX;
        }
        let headroom = ((u64::from(self.inflight_hi) * HEADROOM) >> 8).max(1) as u32;
        self.inflight_hi.saturating_sub(headroom).max(MIN_CWND)
    }

    fn init_pacing_rate(&mut self, window: &mut Window, context: &Context) {
        let rtt_us = if context.srtt_eighth_us > 0 {
            self.has_seen_rtt = true;
            (context.srtt_eighth_us >> 3).max(1)
        } else {
            1_000
        };
        let bandwidth = u64::from(window.cwnd) * BW_UNIT / rtt_us;
        window.pacing_rate = bytes_per_second(bandwidth, STARTUP_PACING_GAIN, context.mss);
    }

    fn set_pacing_rate(&mut self, window: &mut Window, context: &Context, gain: u64) {
        let rate = bytes_per_second(self.current_bandwidth(), gain, context.mss);
        if !self.has_seen_rtt && context.srtt_eighth_us > 0 {
            self.init_pacing_rate(window, context);
        }
        if self.full_bandwidth_reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    fn save_cwnd(&mut self, window: &Window) {
        let undisturbed = self.prior_state < State::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_PACING_GAIN, CWND_GAIN),
            Mode::Drain => (DRAIN_PACING_GAIN, CWND_GAIN),
            Mode::ProbeBandwidth if self.cycle.phase == Phase::Up => {
                (self.cycle.phase.pacing_gain(), UP_CWND_GAIN)
            }
            Mode::ProbeBandwidth => (self.cycle.phase.pacing_gain(), CWND_GAIN),
            Mode::ProbeRtt => (UNIT, PROBE_RTT_CWND_GAIN),
        };
    }

    fn set_cwnd(&self, window: &mut Window, context: &Context, acked: u32) {
        if acked > 0 {
            let bandwidth = self.current_bandwidth();
            let target = self.bdp(bandwidth, self.cwnd_gain);
            let target = target.saturating_add(self.aggregation.extra(bandwidth));
            let target = self.with_aggregates(target, window, context.mss);
            let mut cwnd = window.cwnd;
            if self.full_bandwidth_reached {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || cwnd < 2 * INITIAL_CWND {
                cwnd += acked;
            }
            window.cwnd = cwnd.max(MIN_CWND);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.mode {
            Mode::ProbeBandwidth if self.cycle.phase != Phase::Cruise => self.inflight_hi,
            Mode::ProbeBandwidth | Mode::ProbeRtt => self.inflight_with_headroom(),
            Mode::Startup | Mode::Drain => u32::MAX,
        };
        window.cwnd = window.cwnd.min(cap.min(self.inflight_lo).max(MIN_CWND));
    }
}

impl CongestionControl for Bbr3 {
    fn start(&mut self, window: &mut Window, context: &Context) {
        window.ssthresh = INFINITE_SSTHRESH;
        self.next_round_delivered = context.delivered;
        self.loss_round_delivered = context.delivered + 1;
        self.min_rtt.start(context);
        self.aggregation.restart(context.now.as_nanos());
        self.init_pacing_rate(window, context);
    }

    fn ssthresh(&mut self, window: &Window, _context: &Context) -> u32 {
        self.save_cwnd(window);
        window.ssthresh
    }

    fn increase(&mut self, _window: &mut Window, _context: &Context, _acked: u32) {}

    fn on_lost(&mut self, window: &mut Window, context: &Context, packet: &LostPacket) {
        self.note_loss(context);
        if self.cycle.probe_samples && is_inflight_too_high(packet.lost, packet.tx_in_flight) {
            let tx_in_flight = inflight_at_loss(packet);
            self.handle_inflight_too_high(window, context, tx_in_flight, packet.app_limited);
        }
    }

    fn on_state(&mut self, window: &mut Window, _context: &Context, next: State) {
        if next == State::Loss {
            self.prior_state = State::Loss;
            self.reset_full_bandwidth();
            if !self.is_probing_bandwidth() && self.inflight_lo == u32::MAX {
                // What follows from the losses is taken of the window before the timeout.
                self.inflight_lo = self.prior_cwnd.max(window.cwnd);
            }
        } else if self.prior_state == State::Loss {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
    }

    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        if event == Event::TransmitStart && window.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(context.now.as_nanos());
            match self.mode {
                Mode::ProbeBandwidth => self.set_pacing_rate(window, context, UNIT),
                Mode::ProbeRtt => self.end_probe_rtt_if_done(window, context),
                Mode::Startup | Mode::Drain => {}
            }
        }
    }

    fn control(&mut self, window: &mut Window, context: &Context, sample: &RateSample) -> bool {
        self.update_round(context, sample);
        self.update_marks(window, context, sample);
        self.update_latest_delivery(context, sample);
        self.update_congestion_signals(window, sample);
        let bandwidth = self.current_bandwidth();
        let rounds = match self.full_bandwidth_reached {
            true => EXTRA_ACKED_ROUNDS,
            false => EXTRA_ACKED_ROUNDS_IN_STARTUP,
        };
        self.aggregation.update(window, context, sample, bandwidth, (self.round_start, rounds));
        self.check_loss_in_startup(window, context, sample);
        self.check_full_bandwidth(sample);
        self.check_drain(window, context);
        self.update_cycle(window, context, sample);
        self.update_min_rtt(window, context, sample);
        self.update_gains();
        self.set_pacing_rate(window, context, self.pacing_gain);
        self.set_cwnd(window, context, sample.acked_sacked);
        self.advance_latest_delivery(sample);
        self.prior_state = context.state;
        self.marks.loss_in_cycle |= sample.lost > 0;
        self.marks.in_cycle |= self.marks.in_sample > 0;
        true
    }

    fn sets_window(&self) -> bool {
        true
    }

    fn undo(&mut self, window: &mut Window, _context: &Context) -> u32 {
        self.reset_full_bandwidth();
        self.loss_in_round = false;
        self.bandwidth_lo = self.bandwidth_lo.max(self.undo.bandwidth_lo);
        self.inflight_lo = self.inflight_lo.max(self.undo.inflight_lo);
        self.inflight_hi = self.inflight_hi.max(self.undo.inflight_hi);
        window.cwnd.max(self.prior_cwnd)
    }

    /// Its window is at most a little over twice what the path holds.
    fn send_buffer_windows(&self) -> u32 {
        3
    }

    fn min_gso_segments(&self, window: &Window) -> u32 {
        min_gso_segments(window)
    }

    fn needs_ack_events(&self) -> bool {
        false
    }

    fn needs_rtt(&self, _window: &Window, _rtt_us: u64) -> bool {
        false
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn phase(&self) -> Option<&'static str> {
        Some(match (self.mode, self.cycle.phase) {
            (Mode::Startup, _) => "startup",
            (Mode::Drain, _) => "drain",
            (Mode::ProbeBandwidth, Phase::Down) => "probe_bw_down",
            (Mode::ProbeBandwidth, Phase::Cruise) => "probe_bw_cruise",
            (Mode::ProbeBandwidth, Phase::Refill) => "probe_bw_refill",
            (Mode::ProbeBandwidth, Phase::Up) => "probe_bw_up",
            (Mode::ProbeRtt, _) => "probe_rtt",
        })
    }
}

/// Packets delivered in so many microseconds, in the units of bandwidths.
const fn bandwidth_of(delivered: u32, interval_us: u64) -> u64 {
    delivered as u64 * BW_UNIT / interval_us
}

/// Whether so many packets lost, since one was sent while so many were in flight, say that these were too many.
fn is_inflight_too_high(lost: u32, tx_in_flight: u32) -> bool {
    lost > 0
        && tx_in_flight > 0
        && u64::from(lost) > (u64::from(tx_in_flight) * LOSS_THRESHOLD) >> 8
}

/// What was in flight when losses exceeded the threshold, if with this packet they do.
fn inflight_at_loss(packet: &LostPacket) -> u32 {
    let before = u64::from(packet.tx_in_flight.saturating_sub(1));
    let lost_before = u64::from(packet.lost.saturating_sub(1));
    // lost_prefix of the draft's InflightAtLoss: what of this packet would just be allowed.
    let allowed = (before * LOSS_THRESHOLD) >> 8;
    let prefix = (allowed.saturating_sub(lost_before) << 8) / (UNIT - LOSS_THRESHOLD);
    (before + prefix) as u32
}
