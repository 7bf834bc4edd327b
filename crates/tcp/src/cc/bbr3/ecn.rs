//! What marks say, where the route is declared to be one whose marks mean a short queue (`ecn_low`, a route's feature of Google's tree).
//! Without that a mark changes nothing.

use std::collections::VecDeque;

use super::{Bbr3, UNIT};
use crate::cc::{Context, State, Window};
use crate::rate::RateSample;

/// A share of marked packets that says that too much is in flight: a half.
pub(super) const ECN_THRESHOLD: u64 = UNIT / 2;
/// How much the share of one round trip counts: 1/16.
pub(super) const ECN_ALPHA_GAIN: u64 = UNIT / 16;
/// The part of that share by which a round trip with marks lowers the short-term bound: a third.
pub(super) const ECN_FACTOR: u64 = UNIT / 3;
/// Marks count where the least round trip takes no longer.
pub(super) const ECN_MAX_RTT_US: u64 = 5_000;
/// Round trips in a row with so many marks that end startup.
pub(super) const FULL_ECN_COUNT: u32 = 2;
/// When marks cease the upper bound grows by a half of it in the first round trip.
const ECN_REPROBE_GAIN: u64 = UNIT / 2;

/// What is known of marks.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// The path is short enough; once, for ever.
    pub(super) count: bool,
    /// The smoothed share of marked packets.
    alpha: u64,
    /// Packets delivered and marked before the round trip under way.
    round: (u64, u64),
    startup_rounds: u32,
    /// Marked packets since the newest acknowledged one was sent.
    pub(super) in_sample: u64,
    pub(super) in_round: bool,
    /// Since the last probe began to end; the same of losses.
    pub(super) in_cycle: bool,
    pub(super) loss_in_cycle: bool,
    /// Packets delivered, and marked, after each acknowledgement: those a round trip ago are asked for.
    history: VecDeque<(u64, u64)>,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            count: false,
            alpha: UNIT,
            round: (0, 0),
            startup_rounds: 0,
            in_sample: 0,
            in_round: false,
            in_cycle: false,
            loss_in_cycle: false,
            history: VecDeque::new(),
        }
    }
}

impl Marks {
    /// Counts those since the newest acknowledged packet was sent, when `prior_delivered` were delivered.
    fn count_sample(&mut self, context: &Context, sample: &RateSample) {
        let prior = sample.prior_delivered;
        while self.history.get(1).is_some_and(|(delivered, _)| *delivered <= prior) {
            self.history.pop_front();
        }
        let known = self.history.front().filter(|(delivered, _)| *delivered <= prior);
        let before = known.map_or(0, |(_, marked)| *marked);
        self.in_sample = context.delivered_ce.saturating_sub(before);
        self.history.push_back((context.delivered, context.delivered_ce));
    }

    /// A round trip is over: the share of it that was marked, if anything was delivered.
    fn end_round(&mut self, context: &Context) -> Option<u64> {
        let delivered = context.delivered - self.round.0;
        let marked = context.delivered_ce - self.round.1;
        let share = (marked << 8).checked_div(delivered)?;
        let kept = ((UNIT - ECN_ALPHA_GAIN) * self.alpha) >> 8;
        let alpha = kept + ((ECN_ALPHA_GAIN * share) >> 8);
        self.alpha = alpha.min(UNIT);
        self.round = (context.delivered, context.delivered_ce);
        Some(share)
    }

    /// What is left of so many packets after a round trip with marks.
    pub(super) fn cut(&self, inflight: u32) -> u32 {
        let left = UNIT - ((self.alpha * ECN_FACTOR) >> 8);
        ((u64::from(inflight) * left) >> 8) as u32
    }

    /// Whether more than half of what a sample delivers was marked.
    pub(super) fn are_too_many(&self, sample: &RateSample) -> bool {
        let delivered = u64::from(sample.delivered.unwrap_or(0));
        self.count && self.in_sample > 0 && delivered > 0 && {
            self.in_sample > (delivered * ECN_THRESHOLD) >> 8
        }
    }

    /// Where marks, and no losses, have ceased there may be room: the doublings of growth with which the next probe begins.
    pub(super) fn reprobe(&self, context: &Context, inflight_hi: u32) -> Option<u32> {
        let ceased = self.count && self.in_cycle && !self.loss_in_cycle;
        let growth = (u64::from(inflight_hi) * ECN_REPROBE_GAIN) >> 8;
        (ceased && context.state == State::Open).then(|| growth.max(1).ilog2())
    }
}

impl Bbr3 {
    /// An acknowledgement tells of marks, and perhaps ends a round trip.
    pub(super) fn update_marks(&mut self, window: &Window, context: &Context, sample: &RateSample) {
        if !context.low_latency_ecn {
            return;
        }
        self.marks.count_sample(context, sample);
        if self.round_start {
            self.marks.count |= self.min_rtt.min_us <= ECN_MAX_RTT_US;
            let share = if self.marks.count { self.marks.end_round(context) } else { None };
            if let Some(share) = share.filter(|_| !self.full_bandwidth_reached) {
                let rounds = &mut self.marks.startup_rounds;
                *rounds = if share >= ECN_THRESHOLD { *rounds + 1 } else { 0 };
                if *rounds >= FULL_ECN_COUNT {
                    self.end_startup(window, context);
                }
            }
        }
        self.marks.in_round |= self.marks.count && sample.ece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::CongestionControl;
    use crate::cc::bbr3::{Mode, Phase};
    use crate::cc::test_support::{context, window};

    /// A control on a path of so many microseconds, and what it is told.
    struct Path {
        control: Bbr3,
        window: Window,
        context: Context,
    }

    impl Path {
        fn of(rtt_us: u64) -> Self {
            let context = Context {
                min_rtt_us: rtt_us,
                srtt_eighth_us: 8 * rtt_us,
                delivered: 1,
                low_latency_ecn: true,
                ..context()
            };
            let (mut control, mut window) = (Bbr3::default(), window(100));
            control.start(&mut window, &context);
            Self { control, window, context }
        }

        /// A round trip delivers so many packets, of which some are marked, with one acknowledgement.
        fn round(&mut self, delivered: u32, marked: u64) {
            let prior_delivered = self.context.delivered;
            self.context.delivered += u64::from(delivered);
            self.context.delivered_ce += marked;
            let sample = RateSample {
                delivered: Some(delivered),
                delivers: true,
                prior_delivered,
                interval_us: self.context.min_rtt_us,
                rtt_us: Some(self.context.min_rtt_us),
                acked_sacked: delivered,
                ece: marked > 0,
                tx_in_flight: delivered,
                prior_in_flight: delivered,
                ..RateSample::default()
            };
            self.control.control(&mut self.window, &self.context, &sample);
        }

        fn cruise(&mut self) {
            self.control.mode = Mode::ProbeBandwidth;
            self.control.full_bandwidth_reached = true;
            self.control.start_down(&self.context);
            self.control.start_cruise();
        }
    }

    /// A sixteenth of each round trip's share, in 256ths and rounded down.
    #[test]
    fn the_share_of_marks_is_smoothed() {
        let mut path = Path::of(2_000);
        let mut expected = 256;
        for (delivered, marked) in [(100, 0), (100, 100), (64, 16), (3, 1), (50, 0), (200, 77)] {
            path.round(delivered, marked);
            let share = marked * 256 / u64::from(delivered);
            expected = 240 * expected / 256 + 16 * share / 256;
            assert_eq!(path.control.marks.alpha, expected);
        }
        assert_eq!(expected, 198, "after 240, 241, 229, 219, 205");
    }

    /// Two round trips in a row with half of all marked: the pipe is full.
    #[test]
    fn many_marks_end_startup() {
        // The rate doubles, so that it is no plateau that ends it.
        let ends_after = |rounds: &[(u32, u64)]| {
            let mut path = Path::of(2_000);
            let full = rounds.iter().position(|(delivered, marked)| {
                path.round(*delivered, *marked);
                path.control.full_bandwidth_reached
            });
            (full, path.control.inflight_hi)
        };
        assert_eq!(ends_after(&[(100, 50), (200, 99), (400, 200), (800, 0)]), (None, u32::MAX));
        // What the path held in the round trip before; what this one had in flight, if it is not too much by its own marks.
        assert_eq!(ends_after(&[(100, 0), (200, 100), (400, 201)]), (Some(2), 200));
        assert_eq!(ends_after(&[(100, 0), (200, 100), (400, 200)]), (Some(2), 400));
    }

    /// Marks lower what is in flight by a third of their smoothed share, and leave the bandwidth.
    #[test]
    fn marks_lower_the_short_term_bound() {
        let mut path = Path::of(2_000);
        path.round(100, 0);
        path.cruise();
        path.context.state = State::Cwr;
        let cwnd = path.window.cwnd;
        path.round(100, 10);
        // 240 and then 226 of 256; a third of that is 75.
        let alpha = 240 * 240 / 256 + 16 * 25 / 256;
        assert_eq!(path.control.marks.alpha, alpha);
        let left = 256 - alpha * 85 / 256;
        assert_eq!(u64::from(path.control.inflight_lo), u64::from(cwnd) * left / 256);
        assert_eq!(path.control.bandwidth_lo, u64::MAX);
        let before = path.control.inflight_lo;
        path.round(100, 0);
        assert_eq!(path.control.inflight_lo, before, "without marks it stays");
    }

    /// More than half of what one sample delivers: a probe has gone too far, once.
    #[test]
    fn many_marks_end_a_probe() {
        for (marked, phase) in [(50, Phase::Up), (51, Phase::Down)] {
            let mut path = Path::of(2_000);
            path.round(100, 0);
            path.cruise();
            path.round(100, 0);
            path.control.cycle.phase = Phase::Up;
            path.control.cycle.probe_samples = true;
            path.round(100, marked);
            assert_eq!(path.control.cycle.phase, phase, "{marked}");
            assert_eq!(path.control.inflight_hi < u32::MAX, phase == Phase::Down);
        }
    }

    /// Marks that cease without losses: the next probe begins at once, with half of the upper bound as its first growth.
    #[test]
    fn marks_that_cease_let_it_probe() {
        for lost in [false, true] {
            let mut path = Path::of(2_000);
            path.round(100, 0);
            path.cruise();
            path.control.inflight_hi = 130;
            path.context.state = State::Cwr;
            path.round(100, 10);
            assert_eq!(path.control.cycle.phase, Phase::Cruise);
            path.control.marks.loss_in_cycle |= lost;
            path.context.state = State::Open;
            path.round(100, 0);
            let refills = path.control.cycle.phase == Phase::Refill;
            assert_eq!(refills, !lost);
            assert!(lost || path.control.cycle.up_rounds() == 6, "2⁶ of 65");
        }
    }

    /// On longer paths, and where the route is not declared, a mark changes nothing.
    #[test]
    fn marks_count_on_short_declared_paths_only() {
        for (rtt_us, low_latency_ecn, counts) in
            [(5_000, true, true), (5_001, true, false), (2_000, false, false)]
        {
            let mut path = Path::of(rtt_us);
            path.context.low_latency_ecn = low_latency_ecn;
            path.round(100, 0);
            path.cruise();
            path.round(100, 90);
            assert_eq!(path.control.inflight_lo < u32::MAX, counts, "{rtt_us}");
        }
    }

    /// Of several acknowledgements in a round trip, a sample has the marks since its packet was sent.
    #[test]
    fn a_sample_has_the_marks_of_its_own_time() {
        let mut marks = Marks::default();
        let mut told = |delivered: u64, delivered_ce, prior_delivered| {
            let context = Context { delivered, delivered_ce, ..context() };
            let sample = RateSample { prior_delivered, ..RateSample::default() };
            marks.count_sample(&context, &sample);
            marks.in_sample
        };
        assert_eq!(told(10, 2, 0), 2);
        assert_eq!(told(20, 5, 0), 5);
        assert_eq!(told(30, 9, 10), 7);
        assert_eq!(told(40, 9, 20), 4);
        assert_eq!(told(50, 12, 40), 3);
    }
}
