//! BBR version 1 (Cardwell et al.: *BBR: Congestion-Based Congestion Control*, ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00), in the integer units of Linux's `tcp_bbr.c`.
//!
//! Parameters: gains of 2/ln 2 in startup and its inverse in drain; a pacing-gain cycle of 5/4, 3/4 and six of 1; window
//! gain 2; bandwidth's maximum over 10 round trips, the smallest RTT over 10 s, 200 ms at 4 packets to probe it; pacing
//! 1 % below the estimate. Long-term sampling for policers and the allowance for aggregated ACKs are in.

use dualq_units::hint::{cold_path, likely, unlikely};

use super::about::{About, Constant, share};
use super::bandwidth::{
    Aggregation, BW_UNIT, INITIAL_CWND, UNIT, bdp, bytes_per_second, gso_segments_goal, in_network,
    min_gso_segments,
};
use super::{CongestionControl, Context, Event, INFINITE_SSTHRESH, State, Window};
use crate::max_filter::MaxFilter;
use crate::rate::RateSample;

/// 2 / ln 2, enough to double the rate each round trip.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Round trips that the bandwidth's maximum is taken over.
const BW_ROUNDS: u32 = CYCLE.len() as u32 + 2;
const MIN_RTT_WINDOW_SECONDS: u32 = 10;
const PROBE_RTT_MICROS: u64 = 200_000;
const MIN_CWND: u32 = 4;
/// Startup ends after three round trips without this growth.
const FULL_BW_GROWTH: u64 = UNIT * 5 / 4;
const FULL_BW_ROUNDS: u32 = 3;
/// Round trips of a long-term sampling interval, and how long its result is used.
const LONG_TERM_MIN_ROUNDS: u32 = 4;
const LONG_TERM_MAX_ROUNDS: u32 = 48;
/// The loss that makes a policer, in units of 1/256.
const LONG_TERM_LOSS: u64 = 50;
/// Two intervals agree within 1/8 or 4 kbit/s.
const LONG_TERM_RATIO: u64 = UNIT / 8;
const LONG_TERM_DIFFERENCE: u64 = 4_000 / 8;
const EXTRA_ACKED_ROUNDS: u32 = 5;

/// What there is to say of it.
pub(super) const ABOUT: About = About {
    title: "BBR version 1, bottleneck bandwidth and round-trip propagation time",
    what: "A model of the path, its bandwidth and its least round-trip time, sets a pacing rate \
        that cycles around the bandwidth, and a window of twice their product. It needs no loss \
        to find the rate.",
    reacts_to: "Delivery rate and the least round trip only. Not to loss, but for timeouts and what \
        looks like a policer; not to ECN: with ecn its packets are ECT(0), and marks change \
        nothing.",
    source: "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016; \
        draft-cardwell-iccrg-bbr-congestion-control-00; Linux net/ipv4/tcp_bbr.c",
    not_for: "Not several of them in a queue that works by marks or drops (dualpi2, codel, pie): \
        several percent of all packets are lost there. Not beside CUBIC in short buffers, which \
        it takes from it.",
    constants: &[
        Constant::new(
            "bbr_high_gain",
            || share(HIGH_GAIN, UNIT),
            "pacing and window gain in startup, 2/ln 2",
        ),
        Constant::new(
            "bbr_cwnd_gain",
            || share(CWND_GAIN, UNIT),
            "the window, in products of bandwidth and least round trip",
        ),
        Constant::new(
            "bbr_pacing_gain",
            || CYCLE.map(|gain| share(gain, UNIT)).join(" "),
            "the cycle of the pacing rate, a least round trip each",
        ),
        Constant::new(
            "bbr_bw_rtts",
            || format!("{BW_ROUNDS} round trips"),
            "over which the bandwidth's maximum is taken",
        ),
        Constant::new(
            "bbr_min_rtt_win_sec",
            || format!("{MIN_RTT_WINDOW_SECONDS} s"),
            "over which the least round trip is taken",
        ),
        Constant::new(
            "bbr_probe_rtt_mode_ms",
            || format!("{} ms", PROBE_RTT_MICROS / 1000),
            "how long it sends little to see the least round trip",
        ),
        Constant::new(
            "bbr_cwnd_min_target",
            || format!("{MIN_CWND} packets"),
            "the window meanwhile",
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

/// BBR's state. Times in microseconds or jiffies, as named.
#[derive(Clone, Copy, Debug)]
pub struct Bbr {
    mode: Mode,
    bandwidth: MaxFilter,
    min_rtt_us: u64,
    min_rtt_jiffies: u32,
    probe_rtt_done: Option<u32>,
    probe_rtt_round_done: bool,
    prior_cwnd: u32,
    rounds: u32,
    round_start: bool,
    next_round_delivered: u64,
    cycle_index: usize,
    cycle_start_us: u64,
    prior_state: State,
    packet_conservation: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    full_bandwidth: u64,
    full_bandwidth_rounds: u32,
    full_bandwidth_reached: bool,
    pacing_gain: u64,
    cwnd_gain: u64,
    long_term: LongTerm,
    aggregation: Aggregation,
}

/// Looks for a constant rate under constant loss: a token-bucket policer.
#[derive(Clone, Copy, Debug, Default)]
struct LongTerm {
    sampling: bool,
    rounds: u32,
    in_use: bool,
    bandwidth: u64,
    start_ms: u64,
    start_delivered: u64,
    start_lost: u64,
}

impl LongTerm {
    #[inline(always)]
    fn start_interval(&mut self, context: &Context) {
        self.start_ms = context.delivered_at.as_nanos() / 1_000_000;
        self.start_delivered = context.delivered;
        self.start_lost = context.lost;
        self.rounds = 0;
    }

    #[inline(always)]
    fn reset(&mut self, context: &Context) {
        *self = Self::default();
        self.start_interval(context);
    }
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            min_rtt_us: u64::MAX,
            min_rtt_jiffies: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            rounds: 0,
            round_start: false,
            next_round_delivered: 0,
            cycle_index: 0,
            cycle_start_us: 0,
            prior_state: State::Open,
            packet_conservation: false,
            idle_restart: false,
            has_seen_rtt: false,
            full_bandwidth: 0,
            full_bandwidth_rounds: 0,
            full_bandwidth_reached: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
        }
    }
}

// Where all that looks at the context and the sample is inlined, nothing else of them is written down.
impl Bbr {
    fn max_bandwidth(&self) -> u64 {
        self.bandwidth.get().into()
    }

    fn current_bandwidth(&self) -> u64 {
        if self.long_term.in_use { self.long_term.bandwidth } else { self.max_bandwidth() }
    }

    #[inline(always)]
    fn init_pacing_rate(&mut self, window: &mut Window, context: &Context) {
        let rtt_us = if context.srtt_eighth_us > 0 {
            self.has_seen_rtt = true;
            (context.srtt_eighth_us >> 3).max(1)
        } else {
            1_000
        };
        let bandwidth = u64::from(window.cwnd) * BW_UNIT / rtt_us;
        window.pacing_rate = bytes_per_second(bandwidth, HIGH_GAIN, context.mss);
    }

    #[inline(always)]
    fn set_pacing_rate(&mut self, window: &mut Window, context: &Context, gain: u64) {
        let rate = bytes_per_second(self.current_bandwidth(), gain, context.mss);
        if unlikely(!self.has_seen_rtt && context.srtt_eighth_us > 0) {
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

    /// The bandwidth-delay product times `gain`, in packets.
    fn bdp(&self, bandwidth: u64, gain: u64) -> u32 {
        bdp(bandwidth, self.min_rtt_us, gain)
    }

    /// Leaves room for aggregates in the sender's queue, the network and the receiver.
    fn with_aggregates(&self, cwnd: u32, window: &Window, mss: u32) -> u32 {
        let mut cwnd = cwnd.saturating_add(3 * gso_segments_goal(window, mss));
        cwnd = (cwnd + 1) & !1;
        if self.mode == Mode::ProbeBandwidth && self.cycle_index == 0 {
            cwnd += 2;
        }
        cwnd
    }

    fn inflight(&self, bandwidth: u64, gain: u64, window: &Window, mss: u32) -> u32 {
        self.with_aggregates(self.bdp(bandwidth, gain), window, mss)
    }

    /// What will be in the network when the newest packet has left the sender's queue.
    #[inline(always)]
    fn in_network(&self, in_flight: u32, window: &Window, context: &Context) -> u32 {
        let gain = self.pacing_gain;
        in_network(in_flight, self.current_bandwidth(), gain, window, context)
    }

    #[inline(always)]
    fn advance_cycle(&mut self, delivered_at_us: u64) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_start_us = delivered_at_us;
    }

    #[inline(always)]
    fn start_probing_bandwidth(&mut self, context: &Context) {
        self.mode = Mode::ProbeBandwidth;
        // Any phase but the draining one, so that flows do not probe together.
        let phases = CYCLE.len() as u64 - 1;
        let random = (u64::from(context.random()) * phases) >> 32;
        self.cycle_index = CYCLE.len() - 1 - random as usize;
        self.advance_cycle(context.delivered_at.as_nanos() / 1_000);
    }

    #[inline(always)]
    fn is_cycle_phase_over(
        &self,
        window: &Window,
        context: &Context,
        sample: &RateSample,
        delivered_at_us: u64,
    ) -> bool {
        let elapsed_us = delivered_at_us.saturating_sub(self.cycle_start_us);
        let full_length = elapsed_us > self.min_rtt_us;
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_network = self.in_network(sample.prior_in_flight, window, context);
        let bandwidth = self.max_bandwidth();
        if self.pacing_gain > UNIT {
            // Until the queue has seen the higher rate, or cannot hold it.
            return full_length
                && (sample.losses > 0
                    || in_network
                        >= self.inflight(bandwidth, self.pacing_gain, window, context.mss));
        }
        full_length || in_network <= self.inflight(bandwidth, UNIT, window, context.mss)
    }

    #[inline(always)]
    fn update_bandwidth(&mut self, context: &Context, sample: &RateSample) {
        self.round_start = false;
        let Some(delivered) = sample.delivered.filter(|_| sample.interval_us > 0) else {
            cold_path();
            return;
        };
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = context.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(context, sample.losses, sample.app_limited);
        let bandwidth = u64::from(delivered) * BW_UNIT / sample.interval_us;
        if !sample.app_limited || bandwidth >= self.max_bandwidth() {
            let bandwidth = u32::try_from(bandwidth).unwrap_or(u32::MAX);
            self.bandwidth.update(BW_ROUNDS, self.rounds, bandwidth);
        }
    }

    #[inline(always)]
    fn sample_long_term(&mut self, context: &Context, losses: u32, app_limited: bool) {
        if unlikely(self.long_term.in_use || self.long_term.sampling || losses > 0) {
            self.look_for_policer(context, losses, app_limited);
        }
    }

    /// The same with a loss, or after one.
    #[inline(always)]
    fn look_for_policer(&mut self, context: &Context, losses: u32, app_limited: bool) {
        if unlikely(self.long_term.in_use) {
            if self.mode == Mode::ProbeBandwidth && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= LONG_TERM_MAX_ROUNDS {
                    self.long_term.reset(context);
                    self.start_probing_bandwidth(context);
                }
            }
            return;
        }
        let sampler = &mut self.long_term;
        if !sampler.sampling {
            sampler.start_interval(context);
            sampler.sampling = true;
        }
        sampler.rounds += u32::from(self.round_start);
        if unlikely(app_limited || sampler.rounds > 4 * LONG_TERM_MIN_ROUNDS) {
            return sampler.reset(context);
        }
        // An interval ends with a loss, when the policer's bucket is empty.
        if likely(sampler.rounds < LONG_TERM_MIN_ROUNDS || losses == 0) {
            return;
        }
        let lost = context.lost - sampler.start_lost;
        let delivered = context.delivered - sampler.start_delivered;
        if delivered == 0 || lost * UNIT < LONG_TERM_LOSS * delivered {
            return;
        }
        let elapsed_ms =
            (context.delivered_at.as_nanos() / 1_000_000).saturating_sub(sampler.start_ms);
        if elapsed_ms == 0 {
            return;
        }
        let bandwidth = delivered * BW_UNIT / (elapsed_ms * 1_000);
        self.end_long_term_interval(bandwidth, context);
    }

    #[inline(always)]
    fn end_long_term_interval(&mut self, bandwidth: u64, context: &Context) {
        let sampler = &mut self.long_term;
        if sampler.bandwidth > 0 {
            let difference = bandwidth.abs_diff(sampler.bandwidth);
            if difference * UNIT <= LONG_TERM_RATIO * sampler.bandwidth
                || bytes_per_second(difference, UNIT, context.mss) <= LONG_TERM_DIFFERENCE
            {
                sampler.bandwidth = u64::midpoint(bandwidth, sampler.bandwidth);
                sampler.in_use = true;
                sampler.rounds = 0;
                self.pacing_gain = UNIT;
                return;
            }
        }
        sampler.bandwidth = bandwidth;
        sampler.start_interval(context);
    }
}

impl Bbr {
    #[inline(always)]
    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if likely(self.full_bandwidth_reached || !self.round_start || sample.app_limited) {
            return;
        }
        if self.max_bandwidth() >= (self.full_bandwidth * FULL_BW_GROWTH) >> 8 {
            self.full_bandwidth = self.max_bandwidth();
            self.full_bandwidth_rounds = 0;
            return;
        }
        self.full_bandwidth_rounds += 1;
        self.full_bandwidth_reached = self.full_bandwidth_rounds >= FULL_BW_ROUNDS;
    }

    #[inline(always)]
    fn check_drain(&mut self, window: &mut Window, context: &Context) {
        let bdp = |bbr: &Self, window: &Window| {
            bbr.inflight(bbr.max_bandwidth(), UNIT, window, context.mss)
        };
        if unlikely(self.mode == Mode::Startup && self.full_bandwidth_reached) {
            self.mode = Mode::Drain;
            window.ssthresh = bdp(self, window);
        }
        if unlikely(self.mode == Mode::Drain)
            && self.in_network(context.packets_in_flight, window, context) <= bdp(self, window)
        {
            self.start_probing_bandwidth(context);
        }
    }

    #[inline(always)]
    fn end_probe_rtt_if_done(&mut self, window: &mut Window, context: &Context) {
        let jiffies = context.jiffies();
        let Some(done) = self.probe_rtt_done else { return };
        if (jiffies.wrapping_sub(done) as i32) <= 0 {
            return;
        }
        self.min_rtt_jiffies = jiffies;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full_bandwidth_reached {
            self.start_probing_bandwidth(context);
        } else {
            self.mode = Mode::Startup;
        }
    }

    #[inline(always)]
    fn update_min_rtt(&mut self, window: &mut Window, context: &Context, sample: &RateSample) {
        let jiffies = context.jiffies();
        let window_jiffies = MIN_RTT_WINDOW_SECONDS * context.tick.hertz();
        let expired = jiffies.wrapping_sub(self.min_rtt_jiffies) as i32 > window_jiffies as i32;
        if let Some(rtt_us) = sample.rtt_us
            && unlikely(rtt_us < self.min_rtt_us || (expired && !sample.ack_delayed))
        {
            self.min_rtt_us = rtt_us;
            self.min_rtt_jiffies = jiffies;
        }
        if unlikely(expired) && !self.idle_restart && self.mode != Mode::ProbeRtt {
            // In this order, so that the largest window ever saved is the one to return to.
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt_done = None;
        }
        if unlikely(self.mode == Mode::ProbeRtt) {
            window.app_limited = true;
            if self.probe_rtt_done.is_none() {
                if context.packets_in_flight <= MIN_CWND {
                    let length = context.tick.jiffies_in(PROBE_RTT_MICROS);
                    self.probe_rtt_done = Some(jiffies.wrapping_add(length));
                    self.probe_rtt_round_done = false;
                    self.next_round_delivered = context.delivered;
                }
            } else {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.end_probe_rtt_if_done(window, context);
                }
            }
        }
        if sample.delivers {
            self.idle_restart = false;
        }
    }

    #[inline(always)]
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.long_term.in_use => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle_index], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Follows the sender through recovery: packet conservation for its first round trip, the old window after it.
    /// Returns whether the window is decided by that.
    #[inline(always)]
    fn follow_recovery(
        &mut self,
        window: &mut Window,
        context: &Context,
        sample: &RateSample,
    ) -> bool {
        let is_calm = sample.losses == 0 && context.state == self.prior_state;
        if likely(is_calm && !self.packet_conservation) {
            return false;
        }
        let mut cwnd = window.cwnd;
        if sample.losses > 0 {
            cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        let conserved = context.packets_in_flight + sample.acked_sacked;
        if context.state == State::Recovery && self.prior_state != State::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = context.delivered;
            cwnd = conserved;
        } else if self.prior_state >= State::Recovery && context.state < State::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prior_state = context.state;
        window.cwnd = if self.packet_conservation { cwnd.max(conserved) } else { cwnd };
        self.packet_conservation
    }

    #[inline(always)]
    fn set_cwnd(&mut self, window: &mut Window, context: &Context, sample: &RateSample) {
        let acked = sample.acked_sacked;
        if acked > 0 && !self.follow_recovery(window, context, sample) {
            let bandwidth = self.current_bandwidth();
            let mut target = self.bdp(bandwidth, self.cwnd_gain);
            if self.full_bandwidth_reached {
                target += self.aggregation.extra(bandwidth);
            }
            target = self.with_aggregates(target, window, context.mss);
            let mut cwnd = window.cwnd;
            if self.full_bandwidth_reached {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || context.delivered < u64::from(INITIAL_CWND) {
                cwnd += acked;
            }
            window.cwnd = cwnd.max(MIN_CWND);
        }
        if unlikely(self.mode == Mode::ProbeRtt) {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }
}

impl CongestionControl for Bbr {
    fn start(&mut self, window: &mut Window, context: &Context) {
        window.ssthresh = INFINITE_SSTHRESH;
        self.next_round_delivered = context.delivered;
        self.min_rtt_us = context.min_rtt_us;
        self.min_rtt_jiffies = context.jiffies();
        self.aggregation.restart(context.now.as_nanos());
        self.long_term.reset(context);
        self.init_pacing_rate(window, context);
    }

    fn ssthresh(&mut self, window: &Window, _context: &Context) -> u32 {
        self.save_cwnd(window);
        window.ssthresh
    }

    fn increase(&mut self, _window: &mut Window, _context: &Context, _acked: u32) {}

    fn on_state(&mut self, _window: &mut Window, context: &Context, next: State) {
        if next == State::Loss {
            self.prior_state = State::Loss;
            self.full_bandwidth = 0;
            self.round_start = true;
            self.sample_long_term(context, 1, false);
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

    #[inline]
    fn control(&mut self, window: &mut Window, context: &Context, sample: &RateSample) -> bool {
        self.update_bandwidth(context, sample);
        let bandwidth = self.current_bandwidth();
        let rounds = (self.round_start, EXTRA_ACKED_ROUNDS);
        let delivered_at_us = context.delivered_at.as_nanos() / 1_000;
        self.aggregation.update(window, context, sample, bandwidth, rounds);
        if self.mode == Mode::ProbeBandwidth
            && self.is_cycle_phase_over(window, context, sample, delivered_at_us)
        {
            self.advance_cycle(delivered_at_us);
        }
        self.check_full_bandwidth(sample);
        self.check_drain(window, context);
        self.update_min_rtt(window, context, sample);
        self.update_gains();
        self.set_pacing_rate(window, context, self.pacing_gain);
        self.set_cwnd(window, context, sample);
        true
    }

    fn sets_window(&self) -> bool {
        true
    }

    fn undo(&mut self, window: &mut Window, context: &Context) -> u32 {
        self.full_bandwidth = 0;
        self.full_bandwidth_rounds = 0;
        self.long_term.reset(context);
        window.cwnd
    }

    /// Its window in start-up is almost three times what the path holds.
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

    fn needs_pacing(&self) -> bool {
        true
    }

    fn phase(&self) -> Option<&'static str> {
        Some(match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBandwidth => "probe_bw",
            Mode::ProbeRtt => "probe_rtt",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cc::test_support::{context, window};

    /// A path of a fixed rate that delivers all that a round trip holds, one acknowledgement a round.
    struct Path {
        bbr: Bbr,
        window: Window,
        seen: Context,
        packets_per_second: u64,
    }

    impl Path {
        fn new(packets_per_second: u64) -> Self {
            let mut path = Self {
                bbr: Bbr::default(),
                window: window(10),
                seen: context(),
                packets_per_second,
            };
            path.bbr.start(&mut path.window, &path.seen);
            path
        }

        /// One round trip of 50 ms, or longer if a queue stands.
        fn round(&mut self) {
            let in_flight = u64::from(self.window.cwnd);
            let paced = self.window.pacing_rate / u64::from(self.seen.mss) / 20;
            let sent = in_flight.min(paced.max(1));
            let rtt_us = 50_000.max(sent * 1_000_000 / self.packets_per_second);
            self.seen.now = self.seen.now + Duration::from_nanos(rtt_us * 1_000);
            let prior_delivered = self.seen.delivered;
            self.seen.delivered += sent;
            self.seen.delivered_at = self.seen.now;
            self.seen.departure = self.seen.now;
            self.seen.packets_in_flight = sent as u32;
            let sample = RateSample {
                delivered: Some(sent as u32),
                prior_delivered,
                interval_us: rtt_us,
                rtt_us: Some(rtt_us),
                acked_sacked: sent as u32,
                // An aggregate or two wait in the sender's queue.
                prior_in_flight: sent as u32 + 30,
                ..RateSample::default()
            };
            self.bbr.control(&mut self.window, &self.seen, &sample);
        }
    }

    #[test]
    fn startup_finds_the_bandwidth_and_drains() {
        let mut path = Path::new(4_000);
        for _ in 0..40 {
            path.round();
        }
        assert!(path.bbr.full_bandwidth_reached);
        assert_eq!(path.bbr.mode, Mode::ProbeBandwidth);
        let per_second = path.bbr.max_bandwidth() * 1_000_000 / BW_UNIT;
        assert!((3_900..=4_000).contains(&per_second), "{per_second}");
        assert_eq!(path.bbr.min_rtt_us, 50_000);
        // Twice the bandwidth-delay product of 200 packets, 100 ms more for acknowledgements that come all at once, and
        // room for aggregates.
        assert!((400..=830).contains(&path.window.cwnd), "{}", path.window.cwnd);
    }

    #[test]
    fn the_cycle_raises_and_lowers_the_rate() {
        let mut path = Path::new(4_000);
        for _ in 0..40 {
            path.round();
        }
        let mut gains = Vec::new();
        for _ in 0..16 {
            path.round();
            gains.push(path.bbr.pacing_gain);
        }
        assert!(gains.contains(&320) && gains.contains(&192) && gains.contains(&256));
    }

    #[test]
    fn ten_seconds_without_a_smaller_rtt_shrink_the_window_to_four() {
        let mut path = Path::new(4_000);
        for _ in 0..40 {
            path.round();
        }
        path.seen.now = path.seen.now + Duration::from_nanos(10_100_000_000);
        path.round();
        assert_eq!(path.bbr.mode, Mode::ProbeRtt);
        assert_eq!(path.window.cwnd, MIN_CWND);
        assert!(path.window.app_limited);
        for _ in 0..10 {
            path.round();
        }
        assert_eq!(path.bbr.mode, Mode::ProbeBandwidth);
        assert!(path.window.cwnd > 100);
    }

    #[test]
    fn the_largest_window_ever_saved_is_the_one_to_return_to() {
        let mut path = Path::new(4_000);
        for _ in 0..40 {
            path.round();
        }
        path.bbr.prior_cwnd = 5_000;
        path.seen.now = path.seen.now + Duration::from_nanos(10_100_000_000);
        path.round();
        assert_eq!((path.bbr.mode, path.bbr.prior_cwnd), (Mode::ProbeRtt, 5_000));
    }

    #[test]
    fn entering_recovery_conserves_packets() {
        let mut path = Path::new(4_000);
        for _ in 0..40 {
            path.round();
        }
        let before = path.bbr.ssthresh(&path.window, &path.seen);
        assert_eq!(before, path.window.ssthresh, "the threshold is not touched");
        let saved = path.bbr.prior_cwnd;
        path.seen.state = State::Recovery;
        path.seen.packets_in_flight = 50;
        let sample = RateSample { acked_sacked: 2, losses: 3, ..RateSample::default() };
        path.bbr.set_cwnd(&mut path.window, &path.seen, &sample);
        assert_eq!(path.window.cwnd, 52);
        path.seen.state = State::Open;
        path.bbr.set_cwnd(
            &mut path.window,
            &path.seen,
            &RateSample { acked_sacked: 2, ..RateSample::default() },
        );
        assert!(path.window.cwnd >= saved.min(400), "{} {saved}", path.window.cwnd);
    }

    #[test]
    fn a_delivery_ends_the_restart_though_it_makes_no_sample() {
        let mut path = Path::new(4_000);
        let late = RateSample { delivers: true, ..RateSample::default() };
        for (sample, restarting) in [(RateSample::default(), true), (late, false)] {
            path.window.app_limited = true;
            path.bbr.on_event(&mut path.window, &path.seen, Event::TransmitStart);
            path.bbr.control(&mut path.window, &path.seen, &sample);
            assert_eq!(path.bbr.idle_restart, restarting);
        }
    }
}
