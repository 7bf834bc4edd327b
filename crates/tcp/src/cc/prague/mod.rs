//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control-04), as version 0.7 of the L4S team's `tcp_prague.c` behaves.
//!
//! A scalable control for L4S (RFC 9330): its packets are ECT(1), marks are counted by Accurate ECN (RFC 9768), and the window
//! sinks by half the share of marks, α, at most once a round trip, while each packet without a mark lets it grow. Parameters:
//! g = 1/16; α starts at 0, and the window is halved at the first mark instead; below 25 ms flows behave as if their round trip
//! took that long, from the fourth round after slow start on; aggregates last 2⁻¹² s. What is below a few packets is a rate
//! rather than a window, and packets get shorter, so that there are always two in a virtual round trip.
//!
//! A connection without Accurate ECN gets Reno instead. `classic.rs` is what a flow may ask for: to tell classic queues, and to give way
//! there.

mod classic;

use super::about::{About, Constant};
use super::{CongestionControl, Context, EcnStyle, Event, State, Window};
use crate::packet::HEADER_BYTES;
use crate::rate::RateSample;
use classic::ClassicEcn;

/// α of 1.
const ALPHA_BITS: u32 = 24;
const MAX_ALPHA: u64 = 1 << ALPHA_BITS;
/// g = 2⁻⁴, the weight of a new observation.
const SHIFT_G: u32 = 4;
/// A window of one packet.
const WINDOW_BITS: u32 = 20;
const PACKET: u64 = 1 << WINDOW_BITS;
/// More than any connection has in flight.
const MAX_WINDOW: u64 = PACKET << 30;
/// The blocking window is never smaller, and packets are so short that there are as many in a virtual round trip.
const MIN_PACKETS: u32 = 2;
/// The virtual round trip: shorter ones count as this (draft §2.4.4).
const TARGET_US: u64 = 25_000;
const TARGET_EIGHTH_US: u64 = TARGET_US * 8;
/// It is used from this round on after slow start.
const INDEPENDENT_ROUND: u32 = 4;
/// The lowest rate, in bytes per second: 100 kbit/s.
const MIN_RATE: u64 = 12_500;
/// The shortest packets: 150 bytes of payload, less what options take that not all packets have.
const MIN_PACKET_BYTES: u32 = 150 + HEADER_BYTES;
/// The packets that growth is reckoned in: an MTU of 1500 bytes.
const FULL_PACKET: u64 = 1_500;
/// Up to so many full packets the rate leads, above that the window.
const RATE_LED_PACKETS: u64 = 4;
/// An aggregate lasts 2⁻¹² s at the pacing rate, a quarter of a millisecond.
const BURST_SHIFT: u32 = 12;
/// The rate swings by 4/128 up and down in a virtual round trip, for a queue that marks by a step (RFC 9332 §2.5.1.1).
const SWING: u64 = 4;
const SWING_SHIFT: u32 = 7;
/// A slower mean of the round trip keeps 127/128.
const SLOW_SHIFT: u32 = 7;
/// Eighths of a microsecond in a second, by shifting: 2²³ for 8,000,000.
const SECOND_SHIFT: u32 = 23;
const SECOND_EIGHTH_US: u64 = 8_000_000;

/// What there is to say of it.
pub(super) const ABOUT: About = About {
    title: "TCP Prague",
    what: "The scalable control for L4S: the window sinks by half the share of marked packets, \
        alpha, at most once a virtual round trip, and each packet without a mark lets it grow. \
        Paced, with a fractional window and shorter packets where the window is small.",
    reacts_to: "ECN: the share of CE marks, counted by Accurate ECN; its packets are ECT(1), so that \
        dualpi2 has them in the low-latency queue. Loss: halves the window. Not to delay.",
    source: "draft-briscoe-iccrg-prague-congestion-control-04; RFC 9330, RFC 9331; L4STeam/linux \
        net/ipv4/tcp_prague.c, version 0.7; not in stock kernels",
    not_for: "Not where the receiver lacks Accurate ECN (net.ipv4.tcp_ecn=3): it is Reno without ECN \
        there. Not beside classic flows in a single queue that marks both (codel ecn): it \
        starves them, unless it is told to look for such queues (prague_ecn_fallback; ecn_fallback \
        = true of a flow, in the model), which is off by default.",
    constants: &[
        Constant::new(
            "prague_shift_g",
            || format!("{SHIFT_G} (g = 1/{})", 1 << SHIFT_G),
            "the weight of a round trip's share of marks in alpha",
        ),
        Constant::new(
            "prague_rtt_target",
            || format!("{} ms", TARGET_US / 1000),
            "the virtual round trip: shorter ones count as this",
        ),
        Constant::new(
            "prague_rtt_transition",
            || format!("{INDEPENDENT_ROUND} rounds"),
            "after slow start, until the virtual round trip is used",
        ),
        Constant::new(
            "prague_burst_shift",
            || format!("{BURST_SHIFT} (1/{} s)", 1 << BURST_SHIFT),
            "how long an aggregate lasts at the pacing rate",
        ),
        Constant::new(
            "MIN_CWND",
            || format!("{MIN_PACKETS} packets"),
            "the smallest window; below it packets get shorter",
        ),
        Constant::new("MIN_RATE", || format!("{} kbit/s", MIN_RATE * 8 / 1000), "the lowest rate"),
    ],
};

/// Prague's state.
#[derive(Clone, Debug)]
pub struct Prague {
    /// α, the estimated share of marked packets, times 1/g: so its remainders are kept.
    scaled_alpha: u64,
    /// The fractional window, in 2⁻²⁰ packets.
    window: u64,
    /// The rate in bytes per second.
    rate: u64,
    /// Which of the two leads.
    rate_leads: bool,
    /// What the window grows by in a round trip, in 2⁻²⁰ packets.
    increase: u64,
    /// The longest packet, as the connection began, and those of now.
    most_packet_bytes: u32,
    packet_bytes: u32,
    /// Segments in an aggregate.
    burst: u32,
    /// Rounds since slow start.
    round: u32,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    delivered: u64,
    delivered_ce: u64,
    alpha_at_us: u64,
    reduced_at_us: u64,
    /// A slow mean of the round trip, in 1/1024 of a microsecond.
    slow_rtt: u64,
    /// Something on the path marks.
    saw_mark: bool,
    /// After a loss, until the state is open again.
    in_loss: bool,
    window_at_loss: u32,
    rate_at_loss: u64,
    /// Looks for classic queues, if it is to.
    classic: Option<Box<ClassicEcn>>,
}

impl Default for Prague {
    fn default() -> Self {
        Self {
            scaled_alpha: 0,
            window: 0,
            rate: MIN_RATE,
            rate_leads: false,
            increase: PACKET,
            most_packet_bytes: 0,
            packet_bytes: 0,
            burst: 1,
            round: 0,
            round_end: 0,
            delivered: 0,
            delivered_ce: 0,
            alpha_at_us: 0,
            reduced_at_us: 0,
            slow_rtt: 1 << (SLOW_SHIFT + 3),
            saw_mark: false,
            in_loss: false,
            window_at_loss: 0,
            rate_at_loss: 0,
            classic: None,
        }
    }
}

/// `a` · `b` · 2⁻ˢ.
#[inline]
const fn scaled(a: u64, b: u64, shift: u32) -> u64 {
    ((a as u128 * b as u128) >> shift) as u64
}

/// The nearest whole number to `a` / `b`.
#[inline]
const fn nearest(a: u64, b: u64) -> u64 {
    (a + b / 2) / b
}

/// Now, on a clock that never shows zero.
#[inline]
const fn now_us(context: &Context) -> u64 {
    context.now.as_nanos() / 1_000
}

impl Prague {
    /// Whether round trips below the target count as the target.
    #[inline]
    const fn is_independent(&self, window: &Window) -> bool {
        !window.in_slow_start() && self.round >= INDEPENDENT_ROUND
    }

    /// Whether the rate is what grows and shrinks.
    #[inline]
    const fn is_rate_led(&self, window: &Window) -> bool {
        self.rate_leads && self.is_independent(window)
    }

    /// The virtual round trip.
    #[inline]
    fn virtual_rtt(context: &Context) -> u64 {
        context.srtt_eighth_us.max(TARGET_EIGHTH_US)
    }

    /// The window for which the round trip's packets are counted: the fractional one, rounded up.
    #[inline]
    fn whole_window(&self) -> u32 {
        u32::try_from(self.window.div_ceil(PACKET)).unwrap_or(u32::MAX).max(MIN_PACKETS)
    }

    /// The rate of one packet in a round trip.
    #[inline]
    fn rate_of_packet(&self, context: &Context) -> u64 {
        let rate = SECOND_EIGHTH_US * u64::from(self.packet_bytes);
        rate.checked_div(context.srtt_eighth_us).unwrap_or(rate)
    }

    fn rate_of_window(&self, context: &Context) -> u64 {
        scaled(self.rate_of_packet(context), self.window, WINDOW_BITS).max(MIN_RATE)
    }

    fn window_of_rate(&self, context: &Context) -> u64 {
        let slow = self.slow_rtt >> SLOW_SHIFT;
        let rtt = if slow > 0 { slow } else { context.srtt_eighth_us };
        scaled(self.rate, rtt, SECOND_SHIFT - WINDOW_BITS).div_ceil(u64::from(self.packet_bytes))
    }

    /// How fast the window grows: by a packet a round trip, below the target by as much as is a packet in its time, at the rate
    /// that the target would have (RTT independence by rates).
    fn set_increase(&mut self, context: &Context) {
        let rtt = context.srtt_eighth_us;
        self.increase = if self.round < INDEPENDENT_ROUND || rtt == 0 || rtt >= TARGET_EIGHTH_US {
            PACKET
        } else {
            nearest((rtt << WINDOW_BITS) * rtt, TARGET_EIGHTH_US * TARGET_EIGHTH_US)
        };
    }

    fn start_round(&mut self, window: &Window, context: &Context) {
        self.round_end = context.snd_nxt;
        self.delivered = context.delivered;
        self.delivered_ce = context.delivered_ce;
        if !window.in_slow_start() {
            self.round = self.round.saturating_add(1);
        }
        self.set_increase(context);
    }

    /// What an acknowledgement does to the window: unmarked packets let it grow, and the blocking window follows it by one.
    fn take(&mut self, window: &mut Window, context: &Context, sample: &RateSample) {
        if sample.marks > 0 {
            if !self.saw_mark {
                self.window = self.window.div_ceil(2);
            }
            self.saw_mark = true;
        }
        let acked = sample.acked_sacked.saturating_sub(sample.marks);
        if acked > 0 && !self.in_loss && context.cwnd_limited {
            let mut acked = acked;
            if window.in_slow_start() {
                acked = window.slow_start(acked);
                self.window = u64::from(window.cwnd) << WINDOW_BITS;
                if acked == 0 {
                    return self.set_increase(context);
                }
            }
            self.grow(window, context, acked.into());
        }
        let wanted = self.whole_window();
        if window.cwnd > wanted {
            window.cwnd -= 1;
            window.ssthresh = window.cwnd;
            self.set_increase(context);
        } else if window.cwnd < wanted {
            window.cwnd += 1;
            self.set_increase(context);
        }
    }

    /// Additive increase, for `acked` packets without marks.
    fn grow(&mut self, window: &Window, context: &Context, acked: u64) {
        let packet = u64::from(self.packet_bytes);
        if self.is_rate_led(window) {
            let virtual_rtt = Self::virtual_rtt(context);
            let increase = ((acked * FULL_PACKET) << SECOND_SHIFT) / virtual_rtt;
            let bytes = u128::from(self.rate) * u128::from(virtual_rtt);
            let packets = bytes.div_ceil(u128::from(packet) << SECOND_SHIFT) as u64;
            if packets > 0 {
                self.rate += nearest(increase, packets);
            }
            self.window = (self.window + acked).max(self.window_of_rate(context)).min(MAX_WINDOW);
        } else {
            let mut increase = acked * self.increase;
            if self.window > 0 {
                increase = nearest(increase << WINDOW_BITS, self.window);
            }
            let increase = increase.saturating_mul(FULL_PACKET) / packet;
            self.window = (self.window + acked.max(increase)).min(MAX_WINDOW);
            self.rate = (self.rate + acked).max(self.rate_of_window(context));
        }
    }

    /// α = (1 - g) α + g M once a round, and a virtual round trip at least: flows of different round trips see the same.
    fn observe(&mut self, window: &mut Window, context: &Context) {
        let now_us = now_us(context);
        if context.snd_una < self.round_end
            || (self.is_independent(window) && now_us - self.alpha_at_us < TARGET_US)
        {
            return;
        }
        if self.saw_mark {
            if let Some(classic) = &mut self.classic {
                classic.look(context.min_rtt_us);
            }
            let marked = (context.delivered_ce - self.delivered_ce) << ALPHA_BITS;
            let share = marked / (context.delivered - self.delivered).max(1);
            let decay = self.scaled_alpha >> SHIFT_G;
            self.scaled_alpha = (self.scaled_alpha - decay + share).min(MAX_ALPHA << SHIFT_G);
            self.alpha_at_us = now_us;
            if self.is_independent(window) && !self.in_loss {
                self.resize(window, context);
            }
        }
        self.slow_rtt += context.srtt_eighth_us;
        self.slow_rtt -= (self.slow_rtt - context.srtt_eighth_us) >> SLOW_SHIFT;
        self.start_round(window, context);
    }

    /// Packets get shorter where fewer than two full ones go in a virtual round trip, and longer again.
    fn resize(&mut self, window: &mut Window, context: &Context) {
        let old = u64::from(self.packet_bytes);
        let bytes = if self.is_rate_led(window) {
            scaled(self.rate, Self::virtual_rtt(context), SECOND_SHIFT)
        } else {
            let rtt = context.srtt_eighth_us;
            let packets = match rtt {
                1..TARGET_EIGHTH_US => {
                    let product = u128::from(self.window) * u128::from(TARGET_EIGHTH_US);
                    (product / u128::from(rtt)) as u64
                }
                _ => self.window,
            };
            scaled(packets, old, WINDOW_BITS)
        };
        let wanted = u32::try_from(bytes.div_ceil(MIN_PACKETS.into())).unwrap_or(u32::MAX);
        self.packet_bytes = wanted.min(self.most_packet_bytes).max(MIN_PACKET_BYTES);
        let new = u64::from(self.packet_bytes);
        if new == old {
            return;
        }
        self.window = self.window * old / new;
        let cwnd = self.whole_window();
        if window.cwnd != cwnd {
            window.cwnd = cwnd;
            window.ssthresh = (u64::from(window.ssthresh) * old / new) as u32;
            self.set_increase(context);
        }
    }

    /// The pacing rate, and what an aggregate may be.
    fn pace(&mut self, window: &mut Window, context: &Context) {
        let mut rate = if self.is_rate_led(window) {
            let swing = scaled(SWING, self.rate, SWING_SHIFT);
            let elapsed_us = now_us(context) - self.alpha_at_us;
            let second_half = Self::virtual_rtt(context) >> 4 <= elapsed_us;
            if second_half { self.rate - swing } else { self.rate + swing }
        } else {
            let packets = (self.window >> WINDOW_BITS).max(context.packets_in_flight.into());
            self.rate = (self.rate_of_packet(context) * packets).max(MIN_RATE);
            self.rate
        };
        if window.cwnd < window.ssthresh / 2 {
            rate *= 2;
        }
        let packets = rate / u64::from(self.packet_bytes);
        self.burst = u32::try_from(packets >> BURST_SHIFT).unwrap_or(u32::MAX).max(1);
        window.pacing_rate = rate;
    }

    /// Whether rate or window leads follows from how small the window is.
    fn choose_leader(&mut self, window: &Window, context: &Context) {
        let bytes = u64::from(window.cwnd) * u64::from(self.packet_bytes);
        self.rate_leads = self.saw_mark && bytes <= RATE_LED_PACKETS * FULL_PACKET;
        if self.rate_leads {
            self.window = self.window_of_rate(context);
        } else {
            self.rate = self.rate_of_window(context);
        }
    }

    /// A loss halves it, as it does Reno's.
    fn halve(&mut self, window: &Window, context: &Context) {
        self.window_at_loss = window.cwnd;
        self.rate_at_loss = self.rate;
        if self.is_rate_led(window) {
            self.rate -= self.rate / 2;
            self.window = self.window_of_rate(context);
        } else {
            self.window -= self.window / 2;
            self.rate = self.rate_of_window(context);
        }
        self.in_loss = true;
    }

    /// A mark: less by α / 2, once a round trip and a virtual one.
    fn reduce(&mut self, window: &Window, context: &Context) {
        let now_us = now_us(context);
        if self.is_independent(window) && now_us - self.reduced_at_us < TARGET_US {
            return;
        }
        self.reduced_at_us = now_us;
        let least = self.classic.as_ref().map_or(0, |classic| classic.least_alpha());
        let alpha = (self.scaled_alpha >> SHIFT_G).max(least);
        if self.is_rate_led(window) {
            let reduction = scaled(self.rate, alpha, ALPHA_BITS + 1);
            self.rate = (self.rate - reduction).max(MIN_RATE);
            self.window = self.window_of_rate(context);
        } else {
            let product = u128::from(alpha) * u128::from(self.window) + u128::from(MAX_ALPHA);
            self.window -= (product >> (ALPHA_BITS + 1)) as u64;
            self.rate = self.rate_of_window(context);
        }
    }
}

impl CongestionControl for Prague {
    fn start(&mut self, window: &mut Window, context: &Context) {
        let rtt = context.srtt_eighth_us;
        self.packet_bytes = context.packet_bytes();
        self.most_packet_bytes = context.packet_bytes();
        self.window = u64::from(window.cwnd) << WINDOW_BITS;
        let packets = window.cwnd.max(context.packets_in_flight);
        if rtt > 0 {
            self.rate = (self.rate_of_packet(context) * u64::from(packets)).max(MIN_RATE);
            self.slow_rtt = rtt << SLOW_SHIFT;
        }
        self.alpha_at_us = now_us(context);
        self.pace(window, context);
        self.saw_mark = context.delivered_ce > 0;
        self.classic = context.ecn_fallback.then(|| Box::new(ClassicEcn::new(rtt / 8)));
        self.start_round(window, context);
    }

    /// Slow start ends where the window first sinks, not by this.
    fn ssthresh(&mut self, window: &Window, _context: &Context) -> u32 {
        if let Some(classic) = &mut self.classic {
            classic.rescale(window.ssthresh);
        }
        window.ssthresh
    }

    fn on_rtt(&mut self, _window: &mut Window, _context: &Context, rtt_us: u64) {
        if let Some(classic) = &mut self.classic {
            classic.measure(rtt_us);
        }
    }

    fn increase(&mut self, _window: &mut Window, _context: &Context, _acked: u32) {}

    fn control(&mut self, window: &mut Window, context: &Context, sample: &RateSample) -> bool {
        self.take(window, context, sample);
        self.observe(window, context);
        self.pace(window, context);
        self.choose_leader(window, context);
        true
    }

    fn sets_window(&self) -> bool {
        true
    }

    fn on_state(&mut self, window: &mut Window, context: &Context, next: State) {
        if next == context.state {
            return;
        }
        match next {
            State::Recovery => self.halve(window, context),
            State::Cwr => self.reduce(window, context),
            State::Open => self.in_loss = false,
            State::Disorder | State::Loss => {}
        }
    }

    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        if event == Event::Loss {
            self.halve(window, context);
        }
    }

    fn undo(&mut self, window: &mut Window, context: &Context) -> u32 {
        self.in_loss = false;
        self.rate = self.rate.max(self.rate_at_loss);
        self.window = self.window_of_rate(context);
        window.cwnd.max(self.window_at_loss)
    }

    fn gso_segments(&self) -> Option<u32> {
        Some(self.burst)
    }

    fn packet_bytes(&self) -> Option<u32> {
        Some(self.packet_bytes)
    }

    fn needs_ack_events(&self) -> bool {
        false
    }

    fn needs_rtt(&self, _window: &Window, _rtt_us: u64) -> bool {
        self.classic.is_some()
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn ecn_style(&self) -> EcnStyle {
        EcnStyle::Accurate
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Instant;

    use super::*;
    use crate::cc::test_support::{context, window};

    /// A connection of `cwnd` packets beyond slow start, over `rtt_us`.
    fn steady(cwnd: u32, rtt_us: u64) -> (Prague, Window, Context) {
        let mut path = Window { ssthresh: cwnd, ..window(cwnd) };
        let seen = Context { srtt_eighth_us: rtt_us * 8, packets_in_flight: 0, ..context() };
        let mut prague = Prague::default();
        prague.start(&mut path, &seen);
        (prague, path, seen)
    }

    /// Rounds in which so many of a hundred packets are marked, evenly, and what the windows were.
    fn rounds(count: u64, marked: u32, rtt_us: u64) -> (Prague, Vec<f64>) {
        let (mut prague, mut path, mut seen) = steady(100, rtt_us);
        let mut windows = Vec::new();
        let mut debt = 0;
        for round in 1..=count {
            seen.now = seen.now + Duration::from_nanos(rtt_us * 1_000);
            (seen.snd_una, seen.snd_nxt) = (round * 20_000, round * 20_000 + 20_000);
            let mut reduced = false;
            for _ in 0..path.cwnd {
                debt += marked;
                let marks = u32::from(debt >= 100);
                debt -= 100 * marks;
                seen.delivered += 1;
                seen.delivered_ce += u64::from(marks);
                if marks > 0 && !reduced {
                    reduced = true;
                    seen.state = State::Open;
                    prague.on_state(&mut path, &seen, State::Cwr);
                    seen.state = State::Cwr;
                }
                let sample = RateSample { acked_sacked: 1, marks, ..RateSample::default() };
                prague.control(&mut path, &seen, &sample);
            }
            windows.push(prague.window as f64 / PACKET as f64);
        }
        (prague, windows)
    }

    /// RFC 8257 §3.3, step 5: a steady share of marks is what α becomes, by 1/16 of the rest each round.
    #[test]
    fn alpha_is_the_moving_average_of_the_share_of_marks() {
        let (prague, _) = rounds(400, 25, 50_000);
        let alpha = (prague.scaled_alpha >> SHIFT_G) as f64 / MAX_ALPHA as f64;
        assert!((0.22..0.28).contains(&alpha), "{alpha}");

        let (mut prague, mut path, mut seen) = steady(100, 50_000);
        prague.saw_mark = true;
        let mut expected = 0.0_f64;
        for round in 1..60 {
            seen.now = seen.now + Duration::from_nanos(50_000_000);
            (seen.snd_una, seen.snd_nxt) = (round * 20_000, round * 20_000 + 20_000);
            seen.delivered += 100;
            seen.delivered_ce += 10;
            prague.observe(&mut path, &seen);
            expected += (0.1 - expected) / 16.0;
            let alpha = prague.scaled_alpha as f64 / (MAX_ALPHA << SHIFT_G) as f64;
            assert!((alpha - expected).abs() < 1e-6, "round {round}: {alpha}, not {expected}");
        }
    }

    /// A scalable control has two marks a round trip (RFC 9332 §2.1): the window is 2/p, here 2 (1 - p) / p as only what is not
    /// marked lets it grow.
    #[test]
    fn the_window_is_two_by_the_share_of_marks() {
        for marked in [5, 10, 20] {
            let share = f64::from(marked) / 100.0;
            let (_, windows) = rounds(3_000, marked, 50_000);
            let settled = &windows[1_000..];
            let mean = settled.iter().sum::<f64>() / settled.len() as f64;
            let law = 2.0 * (1.0 - share) / share;
            assert!((mean / law - 1.0).abs() < 0.15, "{share}: {mean}, not {law}");
        }
    }

    /// RTT independence: with 5 ms the rate grows as with 25 ms, so the window by a 25th.
    #[test]
    fn below_the_target_the_rate_grows_as_at_the_target() {
        let (mut prague, mut path, mut seen) = steady(100, 5_000);
        prague.set_increase(&seen);
        assert_eq!(prague.increase, PACKET, "not at once");
        prague.round = INDEPENDENT_ROUND;
        prague.set_increase(&seen);
        assert_eq!(prague.increase, nearest(PACKET, 25));
        // Nor is the window reduced more often than each 25 ms.
        prague.scaled_alpha = MAX_ALPHA << SHIFT_G;
        for (after_ms, packets) in [(30, 50), (40, 50), (60, 25)] {
            seen.now = Instant::from_nanos(1_000_000_000 + after_ms * 1_000_000);
            seen.state = State::Open;
            prague.on_state(&mut path, &seen, State::Cwr);
            assert_eq!(prague.window >> WINDOW_BITS, packets, "after {after_ms} ms");
        }
    }

    #[test]
    fn the_first_mark_and_a_loss_halve_the_window() {
        let (mut prague, mut path, seen) = steady(40, 50_000);
        let marked = RateSample { acked_sacked: 1, marks: 1, ..RateSample::default() };
        prague.control(&mut path, &seen, &marked);
        assert_eq!((prague.window >> WINDOW_BITS, path.cwnd), (20, 39));
        prague.on_state(&mut path, &seen, State::Recovery);
        assert_eq!(prague.window >> WINDOW_BITS, 10);
        let unmarked = RateSample { acked_sacked: 1, ..RateSample::default() };
        prague.control(&mut path, &seen, &unmarked);
        assert_eq!(prague.window >> WINDOW_BITS, 10, "no growth before it is over");
        prague.undo(&mut path, &seen);
        assert!((19..=21).contains(&(prague.window >> WINDOW_BITS)), "{}", prague.window);
    }

    #[test]
    fn packets_get_shorter_where_the_rate_is_low_and_longer_again() {
        let (mut prague, mut path, mut seen) = steady(2, 1_000);
        prague.saw_mark = true;
        prague.round = INDEPENDENT_ROUND;
        prague.rate_leads = true;
        // Half of 25 ms of it, which are by shifts 24 ms.
        for (rate, bytes) in [(12_500, 202), (60_000, 715), (1_000_000, 1_500)] {
            prague.rate = rate;
            seen.mss = prague.packet_bytes - HEADER_BYTES;
            prague.resize(&mut path, &seen);
            assert_eq!(prague.packet_bytes, bytes, "{rate}");
        }
    }
}
