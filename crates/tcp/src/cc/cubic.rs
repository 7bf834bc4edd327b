//! CUBIC (RFC 9438) with HyStart (Ha, Rhee: *Taming the elephants*, 2011), in the integer units of Linux's `tcp_cubic.c`.
//!
//! Parameters: β = 717/1024, C = 0.4 (410/1024), fast convergence and the Reno-friendly region on; HyStart's ACK train
//! with a spacing of 2 ms and its delay increase of an eighth of the smallest delay, within 4 to 16 ms, from 16 packets on.

use super::about::{About, Constant, share};
use super::{CongestionControl, Context, Event, MIN_SSTHRESH, State, Window};

/// β_cubic in units of 1/1024 (RFC 9438 §4.6 has 0.7).
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// C in units of 1/1024 (RFC 9438 §5: 0.4).
const CUBE_SCALE: u64 = 410;
/// Times in the cubic function are in 1/1024 s.
const TIME_BITS: u32 = 10;
/// Segments acknowledged for each segment that Reno's window would grow, in eighths of the window:
/// α_cubic = 3 (1 - β) / (1 + β) (RFC 9438 §4.3).
const RENO_EIGHTHS: u64 = (8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA)) as u64;
/// Below this window HyStart does not look.
const HYSTART_LOW_WINDOW: u32 = 16;
/// Acknowledgements closer than this are one train.
const HYSTART_TRAIN_US: u64 = 2_000;
/// Round-trip times that make a round's minimum.
const HYSTART_MIN_SAMPLES: u32 = 8;
/// The bounds of the delay increase that ends slow start.
const HYSTART_DELAY_US: (u64, u64) = (4_000, 16_000);

/// What there is to say of it.
pub(super) const ABOUT: About = About {
    title: "CUBIC",
    what: "After a loss the window grows along a cubic function of time, flat where the last loss \
        was, and steep far from it; on short paths it grows as Reno does. HyStart ends slow \
        start when round trips get longer. Linux's default.",
    reacts_to: "Loss: the window sinks to 0.7. With ECN a CE mark does the same, once a round trip; its \
        packets then are ECT(0). Delay: in slow start only.",
    source: "RFC 9438; Ha and Rhee, Taming the elephants, 2011 (HyStart); Linux net/ipv4/tcp_cubic.c",
    not_for: "Not for low delay without help: it fills whatever queue it finds, so the queue must be \
        managed. Not on paths that lose packets at random.",
    constants: &[
        Constant::new(
            "beta",
            || share(BETA.into(), BETA_SCALE.into()),
            "what a loss leaves of the window",
        ),
        Constant::new(
            "C",
            || share(CUBE_SCALE, 1024),
            "how steep the cubic function is, in packets per second cubed",
        ),
        Constant::new(
            "hystart_low_window",
            || format!("{HYSTART_LOW_WINDOW} packets"),
            "below this window HyStart does not look",
        ),
        Constant::new(
            "hystart_ack_delta_us",
            || format!("{HYSTART_TRAIN_US} us"),
            "acknowledgements closer than this are one train",
        ),
        Constant::new(
            "HYSTART_DELAY_MIN, _MAX",
            || format!("{} to {} ms", HYSTART_DELAY_US.0 / 1000, HYSTART_DELAY_US.1 / 1000),
            "the bounds of the delay increase, an eighth of the least, that ends slow start",
        ),
    ],
};

/// CUBIC's state. Windows in packets, times of epochs in jiffies, delays in microseconds.
// In the order in which it is written: what most acknowledgements need comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    min_delay_us: u64,
    /// When the epoch began; `None` right after a reduction.
    epoch_start: Option<u32>,
    last_cwnd: u32,
    last_update: u32,
    /// Acknowledged packets per packet of growth.
    per_packet: u32,
    /// W_est: what Reno's window would be.
    reno_cwnd: u32,
    /// Packets acknowledged that the Reno-friendly window has not counted yet.
    acked: u64,
    /// The plateau of the cubic function.
    origin: u32,
    /// K: from the epoch's start to the plateau, in 1/1024 s.
    time_to_origin: u32,
    /// W_max: the window before the last reduction.
    last_max_cwnd: u32,
    hystart: HyStart,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct HyStart {
    found: bool,
    samples: u32,
    round_start_us: u64,
    last_ack_us: u64,
    round_end: u64,
    round_min_us: u64,
}

impl HyStart {
    fn start_round(&mut self, context: &Context) {
        self.round_start_us = context.now.as_nanos() / 1_000;
        self.last_ack_us = self.round_start_us;
        self.round_end = context.snd_nxt;
        self.round_min_us = u64::MAX;
        self.samples = 0;
    }
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            per_packet: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_update: 0,
            origin: 0,
            time_to_origin: 0,
            min_delay_us: 0,
            epoch_start: None,
            acked: 0,
            reno_cwnd: 0,
            hystart: HyStart {
                found: false,
                samples: 0,
                round_start_us: 0,
                last_ack_us: 0,
                round_end: 0,
                round_min_us: u64::MAX,
            },
        }
    }
}

/// The cube roots of 0 to 63 as Linux has them, in 64ths and a little low (the figures of `cubic_root`, net/ipv4/tcp_cubic.c).
const ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168,
    170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213,
    215, 217, 219, 221, 222, 224, 225, 227, 229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245,
    246, 248, 250, 251, 252, 254,
];

/// The cube root as near as Linux comes to it (`cubic_root`): a root of the first six bits, more or less, and one step of Newton's. Half a per mille
/// of the time until the window is where it was is some packets.
fn cube_root(value: u64) -> u32 {
    let bits = u64::BITS - value.leading_zeros();
    if bits < 7 {
        return (u32::from(ROOTS[value as usize]) + 35) >> 6;
    }
    let shift = bits * 84 / 256 - 1;
    let first = ((u32::from(ROOTS[(value >> (3 * shift)) as usize]) + 10) << shift) >> 6;
    let quotient = value / (u64::from(first) * u64::from(first - 1));
    // A third of it.
    (((2 * u64::from(first) + quotient) * 341) >> 10) as u32
}

impl Cubic {
    /// Chooses how fast the window grows next.
    #[inline]
    fn update(&mut self, cwnd: u32, context: &Context, acked: u32) {
        self.acked += u64::from(acked);
        let (jiffies, tick) = (context.jiffies(), context.tick);
        let since_update = jiffies.wrapping_sub(self.last_update);
        if self.last_cwnd == cwnd && since_update <= tick.hertz() / 32 {
            return;
        }
        if self.epoch_start.is_none() || since_update != 0 {
            self.last_cwnd = cwnd;
            self.last_update = jiffies;
            let min_delay = tick.jiffies_in(self.min_delay_us);
            self.follow_curve(cwnd, acked, (jiffies, min_delay), tick.hertz());
        }
        self.stay_reno_friendly(cwnd);
        // At most one packet for two acknowledged ones.
        self.per_packet = self.per_packet.max(2);
    }

    /// W_cubic(t + RTT) = C (t - K)³ + W_max (RFC 9438 Eq. 1).
    #[inline(never)]
    fn follow_curve(
        &mut self,
        cwnd: u32,
        acked: u32,
        (jiffies, min_delay): (u32, u32),
        hertz: u32,
    ) {
        let start = match self.epoch_start {
            Some(start) => start,
            None => self.begin_epoch(cwnd, acked, jiffies),
        };
        let elapsed = u64::from(jiffies.wrapping_sub(start)) + u64::from(min_delay);
        let time = (elapsed << TIME_BITS) / u64::from(hertz);
        let offset = time.abs_diff(self.time_to_origin.into()).min(1 << 17);
        let delta = (CUBE_SCALE * offset * offset * offset) >> (10 + 3 * TIME_BITS);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        let target = if time < u64::from(self.time_to_origin) {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.per_packet = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        // Without a known maximum the window grows by 5 % an RTT at least.
        if self.last_max_cwnd == 0 {
            self.per_packet = self.per_packet.min(20);
        }
    }

    /// The window grows anew. Returns when it begins to.
    #[cold]
    fn begin_epoch(&mut self, cwnd: u32, acked: u32, jiffies: u32) -> u32 {
        self.epoch_start = Some(jiffies);
        self.acked = acked.into();
        self.reno_cwnd = cwnd;
        if self.last_max_cwnd <= cwnd {
            self.time_to_origin = 0;
            self.origin = cwnd;
        } else {
            // K = cbrt((W_max - cwnd) / C) (RFC 9438 Eq. 2)
            let cube =
                (1_u64 << (10 + 3 * TIME_BITS)) / CUBE_SCALE * u64::from(self.last_max_cwnd - cwnd);
            self.time_to_origin = cube_root(cube);
            self.origin = self.last_max_cwnd;
        }
        jiffies
    }

    /// W_est (RFC 9438 Eq. 4): never slower than Reno would be.
    fn stay_reno_friendly(&mut self, cwnd: u32) {
        let per_packet = ((u64::from(cwnd) * RENO_EIGHTHS) >> 3).max(1);
        if self.acked > per_packet {
            let growth = (self.acked - 1) / per_packet;
            self.acked -= growth * per_packet;
            self.reno_cwnd = self.reno_cwnd.saturating_add(growth as u32);
        }
        if self.reno_cwnd > cwnd {
            self.per_packet = self.per_packet.min(cwnd / (self.reno_cwnd - cwnd));
        }
    }

    /// Whether no round trip was shorter.
    #[inline]
    const fn is_least(&self, rtt_us: u64) -> bool {
        self.min_delay_us == 0 || self.min_delay_us > rtt_us
    }

    /// Whether HyStart looks for the end of slow start.
    #[inline]
    const fn looks(&self, window: &Window) -> bool {
        window.in_slow_start() && !self.hystart.found
    }

    fn look_for_slow_start_exit(&mut self, window: &mut Window, context: &Context, rtt_us: u64) {
        if context.snd_una > self.hystart.round_end {
            self.hystart.start_round(context);
        }
        if window.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        let round = &mut self.hystart;
        let now_us = context.now.as_nanos() / 1_000;
        if now_us.saturating_sub(round.last_ack_us) <= HYSTART_TRAIN_US {
            round.last_ack_us = now_us;
            // Pacing may have stretched the train to half the RTT by itself.
            let slack = (u64::from(context.max_gso_bytes) * 4 * 1_000_000)
                .checked_div(window.pacing_rate)
                .unwrap_or(0)
                .min(1_000);
            let mut threshold = self.min_delay_us + slack;
            if !context.paced {
                threshold /= 2;
            }
            if now_us - round.round_start_us > threshold {
                round.found = true;
                window.ssthresh = window.cwnd;
            }
        }
        round.round_min_us = round.round_min_us.min(rtt_us);
        if round.samples < HYSTART_MIN_SAMPLES {
            round.samples += 1;
        } else {
            let rise = (self.min_delay_us / 8).clamp(HYSTART_DELAY_US.0, HYSTART_DELAY_US.1);
            if round.round_min_us > self.min_delay_us + rise {
                round.found = true;
                window.ssthresh = window.cwnd;
            }
        }
    }
}

impl CongestionControl for Cubic {
    fn start(&mut self, _window: &mut Window, context: &Context) {
        self.hystart.start_round(context);
    }

    fn ssthresh(&mut self, window: &Window, _context: &Context) -> u32 {
        self.epoch_start = None;
        // Fast convergence (RFC 9438 §4.7): give way to newcomers.
        self.last_max_cwnd = if window.cwnd < self.last_max_cwnd {
            (u64::from(window.cwnd) * u64::from(BETA_SCALE + BETA) / u64::from(2 * BETA_SCALE))
                as u32
        } else {
            window.cwnd
        };
        ((u64::from(window.cwnd) * u64::from(BETA) / u64::from(BETA_SCALE)) as u32)
            .max(MIN_SSTHRESH)
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, context: &Context, mut acked: u32) {
        if !context.cwnd_limited {
            return;
        }
        if window.in_slow_start() {
            acked = window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(window.cwnd, context, acked);
        window.additive_increase(self.per_packet, acked);
    }

    #[inline]
    fn on_rtt(&mut self, window: &mut Window, context: &Context, rtt_us: u64) {
        let rtt_us = rtt_us.max(1);
        // Right after a recovery the delays are not the path's.
        if let Some(start) = self.epoch_start
            && context.jiffies().wrapping_sub(start) < context.tick.hertz()
        {
            return;
        }
        if self.is_least(rtt_us) {
            self.min_delay_us = rtt_us;
        }
        if self.looks(window) {
            self.look_for_slow_start_exit(window, context, rtt_us);
        }
    }

    fn needs_ack_events(&self) -> bool {
        false
    }

    #[inline]
    fn needs_rtt(&self, window: &Window, rtt_us: u64) -> bool {
        self.is_least(rtt_us.max(1)) || self.looks(window)
    }

    fn needs_samples(&self) -> bool {
        false
    }

    fn on_state(&mut self, _window: &mut Window, context: &Context, next: State) {
        if next == State::Loss {
            *self = Self::default();
            self.hystart.start_round(context);
        }
    }

    fn on_event(&mut self, _window: &mut Window, context: &Context, event: Event) {
        // Idle time is no time of growth: the epoch moves with it.
        if event == Event::TransmitStart
            && let Some(start) = &mut self.epoch_start
        {
            let jiffies = context.jiffies();
            let idle = jiffies.wrapping_sub(context.tick.count(context.last_sent.as_nanos()));
            if (idle as i32) > 0 {
                *start = start.wrapping_add(idle);
                if (start.wrapping_sub(jiffies) as i32) > 0 {
                    *start = jiffies;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cc::test_support::{context, window};

    /// Acknowledges a window's worth each `rtt_ms` for `seconds`, and returns the window.
    fn grow(
        cubic: &mut Cubic,
        path: &mut Window,
        seen: &mut Context,
        rtt_ms: u64,
        seconds: u64,
    ) -> u32 {
        let end_ns = seen.now.as_nanos() + seconds * 1_000_000_000;
        while seen.now.as_nanos() < end_ns {
            seen.now = seen.now + Duration::from_nanos(rtt_ms * 1_000_000);
            cubic.min_delay_us = rtt_ms * 1_000;
            let mut rest = path.cwnd;
            while rest > 0 {
                let acked = rest.min(2);
                cubic.increase(path, seen, acked);
                rest -= acked;
            }
        }
        path.cwnd
    }

    #[test]
    fn cube_roots_are_as_near_as_linuxs() {
        // 1, 82 and 1000 packets from the last maximum: 1389, 6035 and 13893 would be exact.
        let unit = (1_u64 << 40) / CUBE_SCALE;
        assert_eq!([1, 82, 1_000].map(|packets| cube_root(packets * unit)), [1_388, 6_036, 13_897]);
        assert_eq!([0, 1, 8, 27].map(cube_root), [0, 1, 2, 3]);
        for power in 12..60 {
            let (root, exact) = (cube_root(1 << power), f64::from(power).exp2().cbrt());
            assert!(
                (f64::from(root) / exact - 1.0).abs() < 0.01 + 1.0 / exact,
                "2^{power}: {root}"
            );
        }
    }

    #[test]
    fn a_reduction_is_by_three_tenths_and_a_second_one_gives_way() {
        let mut cubic = Cubic::default();
        let mut path = window(1000);
        assert_eq!(cubic.ssthresh(&path, &context()), 700);
        assert_eq!(cubic.last_max_cwnd, 1000);
        path.cwnd = 900;
        cubic.ssthresh(&path, &context());
        assert_eq!(cubic.last_max_cwnd, 900 * (1024 + 717) / 2048);
    }

    #[test]
    fn the_window_returns_to_its_maximum_after_k() {
        let mut cubic = Cubic::default();
        let mut path = window(1000);
        path.ssthresh = cubic.ssthresh(&path, &context());
        path.cwnd = path.ssthresh;
        let mut seen = context();
        // K = cbrt(300 / 0.4) = 9.1 s (RFC 9438 Eq. 2): flat around the old maximum, then beyond it.
        let early = grow(&mut cubic, &mut path, &mut seen, 100, 3);
        assert!((800..960).contains(&early), "{early}");
        let plateau = grow(&mut cubic, &mut path, &mut seen, 100, 6);
        assert!((970..1010).contains(&plateau), "{plateau}");
        let beyond = grow(&mut cubic, &mut path, &mut seen, 100, 6);
        assert!((1050..1150).contains(&beyond), "{beyond}");
    }

    #[test]
    fn rising_delay_ends_slow_start() {
        let mut cubic = Cubic::default();
        let mut path = window(100);
        let mut seen = context();
        cubic.start(&mut path, &seen);
        for sample in 0..40_u64 {
            // Far apart, so that no train is seen.
            seen.now = seen.now + Duration::from_nanos(3_000_000);
            let rtt_us = if sample < 10 { 50_000 } else { 60_000 };
            seen.snd_una = 20_000 * (sample / 10);
            seen.snd_nxt = seen.snd_una + 14_480;
            cubic.on_rtt(&mut path, &seen, rtt_us);
        }
        assert_eq!(path.ssthresh, 100);
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut cubic = Cubic { last_max_cwnd: 500, ..Cubic::default() };
        cubic.on_state(&mut window(10), &context(), State::Loss);
        assert_eq!(cubic.last_max_cwnd, 0);
    }
}
