//! The controller, for one queue: what drops or marks packets at random as they arrive.

use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;
use dualq_units::hint::unlikely;

use super::{CERTAIN, Config, DELAY_SHIFT};

/// From the start to the first update.
pub(crate) const FIRST_UPDATE: Duration = Duration::from_millis(500);
const DELAYS_PER_SECOND: u64 = 1_000_000_000 >> DELAY_SHIFT;
/// Bursts up to this long pass when the queue was short before (`MAX_BURST`, RFC 8033 §4.4).
const BURST_ALLOWANCE: u64 = delay(Duration::from_millis(150));
/// Above this the probability rises faster (RFC 8033 §5.2).
const LONG_DELAY: u64 = delay(Duration::from_millis(250));
/// Marking instead of dropping ends here (`MARK_ECNTH`, RFC 8033 §5.1).
pub(super) const ECN_THRESHOLD: u64 = CERTAIN / 10;

const fn delay(span: Duration) -> u64 {
    (span.as_nanos() as u64) >> DELAY_SHIFT
}

/// The controller (RFC 8033 §4.2, §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    pub(crate) probability: u64,
    /// The probabilities that have passed without a drop.
    pub(crate) accumulated: u64,
    delay: u64,
    previous_delay: u64,
    burst_left: u64,
    last_departure: Option<u64>,
}

impl Controller {
    pub(crate) const START: Self = Self {
        probability: 0,
        accumulated: 0,
        delay: 0,
        previous_delay: 0,
        burst_left: BURST_ALLOWANCE,
        last_departure: None,
    };

    /// Whether a packet that arrives should go.
    #[inline]
    pub(crate) fn drops(
        &mut self,
        config: &Config,
        length: u32,
        backlog: u64,
        mtu: u32,
        random: &mut impl Random,
    ) -> bool {
        let is_short = self.delay < delay(config.target) / 2;
        if self.burst_left > 0
            || (is_short && self.probability < CERTAIN / 5)
            || backlog < 2 * u64::from(mtu)
        {
            return false;
        }
        let probability = if unlikely(config.bytemode) && length <= mtu {
            u64::from(length) * (self.probability / u64::from(mtu))
        } else {
            self.probability
        };
        if probability == 0 {
            self.accumulated = 0;
        } else {
            self.accumulated = self.accumulated.wrapping_add(probability);
        }
        // Neither soon after the last drop nor long after it is all left to chance (RFC 8033 §5.4).
        if self.accumulated < CERTAIN / 100 * 85 {
            return false;
        }
        if self.accumulated >= CERTAIN / 2 * 17 {
            return true;
        }
        let die = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let hit = (die >> 8) < probability;
        if hit {
            self.accumulated = 0;
        }
        hit
    }

    /// A packet leaves that waited from `enqueued` to `now`; `is_last` if none is behind it.
    #[inline]
    pub(crate) fn departed(&mut self, enqueued: Instant, now: Instant, is_last: bool) {
        let moment = now.as_nanos() >> DELAY_SHIFT;
        self.delay = if is_last { 0 } else { moment - (enqueued.as_nanos() >> DELAY_SHIFT) };
        let passed = self.last_departure.map_or(0, |last| moment - last);
        self.last_departure = Some(moment);
        self.burst_left = self.burst_left.saturating_sub(passed);
    }

    /// The probability of a drop, which is certain from [`CERTAIN`] on.
    pub(super) fn probability(&self) -> u64 {
        self.probability.min(CERTAIN)
    }

    /// How long the packet last sent had waited.
    pub(super) const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay << DELAY_SHIFT)
    }

    /// The periodic update (RFC 8033 §4.2).
    pub(crate) fn update(&mut self, config: &Config, backlog: u64) {
        let unit = (CERTAIN / DELAYS_PER_SECOND) >> 4;
        // A low probability moves in small steps (RFC 8033 §5.2): half at less than 10 %, and a quarter of that for each
        // power of ten, down to a millionth.
        let mut shift = 0;
        if self.probability < CERTAIN / 10 {
            shift = 1;
            let mut power = 100;
            while power <= 1_000_000 && self.probability < CERTAIN / power {
                shift += 2;
                power *= 10;
            }
        }
        let gain = |gain: u32| (u64::from(gain) * unit) >> shift;
        let (now, before) = (self.delay, self.previous_delay);
        let excess = gain(config.alpha).wrapping_mul(now.wrapping_sub(delay(config.target)));
        let trend = gain(config.beta).wrapping_mul(now.wrapping_sub(before));
        let mut step = excess.wrapping_add(trend) as i64;

        let two_percent = (CERTAIN / 50) as i64;
        if step > two_percent && self.probability >= CERTAIN / 10 {
            step = two_percent;
        }
        if self.delay > LONG_DELAY {
            step = step.wrapping_add(two_percent);
        }
        // Certainty is no bound: only where 64 bits overflow the kernel goes back to it.
        let moved = self.probability.checked_add_signed(step);
        self.probability = moved.unwrap_or(if step > 0 { CERTAIN } else { 0 });

        // The queue is idle: let go exponentially.
        if self.delay == 0 && self.previous_delay == 0 && backlog == 0 {
            self.probability -= self.probability / 64;
        }
        let half = delay(config.target) / 2;
        if self.delay < half && self.previous_delay < half && self.probability == 0 {
            (self.accumulated, self.burst_left) = (0, BURST_ALLOWANCE);
            self.last_departure = None;
        }
        self.previous_delay = self.delay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One update from `probability` with the delay one second above a target of zero and steady: alpha, scaled.
    fn step(probability: f64) -> f64 {
        let config = Config { target: Duration::ZERO, beta: 0, alpha: 1, ..Config::DEFAULT };
        let milli = delay(Duration::from_millis(1));
        let mut controller = Controller {
            probability: (probability * CERTAIN as f64) as u64,
            delay: milli,
            previous_delay: milli,
            ..Controller::START
        };
        let before = controller.probability;
        controller.update(&config, 1);
        (controller.probability - before) as f64 / CERTAIN as f64
    }

    /// RFC 8033 §5.2: the steps at low probabilities.
    #[test]
    fn steps_scale_with_the_probability() {
        let full = step(0.1);
        assert!((full - 0.001 / 16.0).abs() < 1e-8, "{full}");
        for (probability, divisor) in [
            (0.099, 2.0),
            (0.009, 8.0),
            (0.0009, 32.0),
            (0.000_09, 128.0),
            (0.000_009, 512.0),
            (0.000_000_9, 2048.0),
            (0.0, 2048.0),
        ] {
            let ratio = full / step(probability);
            assert!((ratio / divisor - 1.0).abs() < 1e-3, "{probability}: 1/{ratio}");
        }
    }

    #[test]
    fn steps_are_bounded_and_long_delays_add_two_percent() {
        let update = |probability: f64, delay_ms: u64| {
            let mut controller = Controller {
                probability: (probability * CERTAIN as f64) as u64,
                delay: delay(Duration::from_millis(delay_ms)),
                ..Controller::START
            };
            controller.update(&Config::DEFAULT, 1);
            controller.probability as f64 / CERTAIN as f64
        };
        assert!((update(0.2, 200) - 0.22).abs() < 1e-6);
        assert!((update(0.2, 260) - 0.24).abs() < 1e-6);
        // The kernel's arithmetic does not end at certainty, and falls back to it only from 256 times as much.
        assert!((update(0.999, 260) - 1.039).abs() < 1e-6);
        assert!((update(255.9, 260) - 255.94).abs() < 1e-6);
        assert!((update(255.99, 260) - 1.0).abs() < 1e-9);
        assert!(update(0.0, 0) == 0.0);
        // Below 10 % the step is not bounded: 0.5 × (0.125 × 0.185 + 1.25 × 0.2).
        assert!((update(0.05, 200) - (0.05 + 0.5 * (0.125 * 0.185 + 0.25))).abs() < 1e-3);
    }

    #[test]
    fn an_idle_queue_lets_go() {
        let start = CERTAIN / 2;
        // Far below the target, alpha pulls as well; without it one part in 64 goes.
        let config = Config { alpha: 0, ..Config::DEFAULT };
        let mut controller = Controller { probability: start, ..Controller::START };
        controller.update(&config, 0);
        assert_eq!(controller.probability, start - start / 64);
        controller.update(&config, 1);
        assert_eq!(controller.probability, start - start / 64, "a short backlog is not idle");
    }

    #[test]
    fn drops_are_spread_out() {
        struct Same(u32);
        impl Random for Same {
            fn next_u32(&mut self) -> u32 {
                self.0
            }
        }
        let one_in_ten = || Controller {
            probability: CERTAIN / 10,
            delay: delay(Duration::from_millis(20)),
            burst_left: 0,
            ..Controller::START
        };
        let first = |mut controller: Controller, die: u32| {
            let config = Config::DEFAULT;
            (1..200).find(|_| controller.drops(&config, 1514, 100_000, 1514, &mut Same(die)))
        };
        // Nobody before 85 % have added up, everybody once 850 % have.
        assert_eq!(first(one_in_ten(), 0), Some(9));
        assert_eq!(first(one_in_ten(), u32::MAX), Some(86));
        // Neither in a burst, nor with a short delay, nor with next to no backlog.
        let burst = Controller { burst_left: 1, ..one_in_ten() };
        assert_eq!(first(burst, 0), None);
        let short = Controller { delay: 0, ..one_in_ten() };
        assert_eq!(first(short, 0), None);
    }
}
