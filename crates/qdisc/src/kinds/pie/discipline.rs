//! The queue, and the controller that keeps it short.

use std::collections::VecDeque;
use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;

use super::{CERTAIN, Config, DELAY_SHIFT, Options, Stats, TICK, TICK_US};
use crate::kinds::Grammar;
use crate::show::{self, Counters, OwnStats};
use crate::{ChangeError, Departure, Device, DropReason, Dropped, Packet, Qdisc, Spec, UPCOMING};

/// From the start to the first update.
const FIRST_UPDATE: Duration = Duration::from_millis(500);
const DELAYS_PER_SECOND: u64 = 1_000_000_000 >> DELAY_SHIFT;
/// Bursts up to this long pass when the queue was short before (`MAX_BURST`, RFC 8033 §4.4).
const BURST_ALLOWANCE: u64 = delay(Duration::from_millis(150));
/// Above this the probability rises faster (RFC 8033 §5.2).
const LONG_DELAY: u64 = delay(Duration::from_millis(250));
/// Marking instead of dropping ends here (`MARK_ECNTH`, RFC 8033 §5.1).
const ECN_THRESHOLD: u64 = CERTAIN / 10;

const fn delay(span: Duration) -> u64 {
    (span.as_nanos() as u64) >> DELAY_SHIFT
}

/// The controller (RFC 8033 §4.2, §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Controller {
    probability: u64,
    /// The probabilities that have passed without a drop.
    accumulated: u64,
    delay: u64,
    previous_delay: u64,
    burst_left: u64,
    last_departure: Option<u64>,
}

impl Controller {
    const START: Self = Self {
        probability: 0,
        accumulated: 0,
        delay: 0,
        previous_delay: 0,
        burst_left: BURST_ALLOWANCE,
        last_departure: None,
    };

    /// Whether a packet that arrives should go.
    #[inline]
    fn drops(
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
        let probability = if config.bytemode && length <= mtu {
            u64::from(length) * (self.probability / u64::from(mtu))
        } else {
            self.probability
        };
        if probability == 0 {
            self.accumulated = 0;
        } else {
            self.accumulated = self.accumulated.saturating_add(probability);
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
    fn departed(&mut self, enqueued: Instant, now: Instant, is_last: bool) {
        let moment = now.as_nanos() >> DELAY_SHIFT;
        self.delay = if is_last { 0 } else { moment - (enqueued.as_nanos() >> DELAY_SHIFT) };
        let passed = self.last_departure.map_or(0, |last| moment - last);
        self.last_departure = Some(moment);
        self.burst_left = self.burst_left.saturating_sub(passed);
    }

    /// The periodic update (RFC 8033 §4.2).
    fn update(&mut self, config: &Config, backlog: u64) {
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
        let gain = |gain: u32| i128::from((u64::from(gain) * unit) >> shift);
        let (now, before) = (i128::from(self.delay), i128::from(self.previous_delay));
        let target = i128::from(delay(config.target));
        let mut step = gain(config.alpha) * (now - target) + gain(config.beta) * (now - before);

        let two_percent = i128::from(CERTAIN / 50);
        if step > two_percent && self.probability >= CERTAIN / 10 {
            step = two_percent;
        }
        if self.delay > LONG_DELAY {
            step += two_percent;
        }
        let moved = (i128::from(self.probability) + step).clamp(0, i128::from(CERTAIN));
        self.probability = moved as u64;

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

/// The discipline.
pub(super) struct Pie<P, R> {
    config: Config,
    mtu: u32,
    controller: Controller,
    next_update: Instant,
    random: R,
    queue: VecDeque<(Instant, P, bool)>,
    stats: Stats,
    counters: Counters,
}

impl<P: Packet, R: Random> Pie<P, R> {
    /// An empty queue at time `now`.
    pub(super) fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self {
        let tick = u64::from(TICK_US) * 1000;
        let ticked = Instant::from_nanos(now.as_nanos() / tick * tick);
        Self {
            config: Config::DEFAULT.with(options),
            mtu: device.max_frame,
            controller: Controller::START,
            next_update: ticked + FIRST_UPDATE + TICK,
            random,
            queue: VecDeque::new(),
            stats: Stats::default(),
            counters: Counters::ZERO,
        }
    }

    /// From one update to the next: timers never fire early, and are started anew within a tick that has begun, which is one more each
    /// time.
    fn interval(&self) -> Duration {
        self.config.tupdate + TICK
    }

    fn flush(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some((_, packet, _)) = self.queue.pop_front() {
            self.counters.backlog_packets -= 1;
            self.counters.backlog_bytes -= u64::from(packet.length());
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
    }
}

impl<P: Packet, R: Random> Qdisc<P> for Pie<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["pie"]
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> usize {
        let Self { config, mtu, controller, random, counters, stats, .. } = self;
        let length = packet.length();
        let is_full = self.queue.len() >= config.limit as usize;
        let hit =
            !is_full && controller.drops(config, length, counters.backlog_bytes, *mtu, random);
        let marks = hit
            && config.ecn
            && controller.probability <= ECN_THRESHOLD
            && packet.ecn().is_capable();
        if is_full || (hit && !marks) {
            stats.overlimit += u64::from(is_full);
            stats.dropped += 1;
            controller.accumulated = 0;
            counters.drops += 1;
            let reason = if is_full { DropReason::Overlimit } else { DropReason::Congested };
            dropped(Dropped { packet, band: 0, reason });
            return 0;
        }
        if marks {
            packet.set_ce();
            stats.ecn_mark += 1;
        }
        stats.pkts_in += 1;
        counters.backlog_packets += 1;
        counters.backlog_bytes += u64::from(length);
        self.queue.push_back((now, packet, marks));
        stats.maxq = stats.maxq.max(self.queue.len() as u32);
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let (enqueued, packet, marked) = self.queue.pop_front()?;
        self.controller.departed(enqueued, now, self.queue.is_empty());
        self.counters.left(packet.length());
        let sojourn = now - enqueued;
        let marked_by_probability = marked;
        Some(Departure { packet, band: 0, sojourn, marked_by_probability, marked_by_step: false })
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        self.queue.get(UPCOMING).map(|(_, packet, _)| packet)
    }

    fn peek(&mut self, _now: Instant, _dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        self.queue.front().map(|(_, packet, _)| packet)
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, _now: Instant) {
        self.controller.update(&self.config, self.counters.backlog_bytes);
        self.next_update = self.next_update + self.interval();
    }

    fn on_idle(&mut self, until: Instant) {
        while self.next_update <= until && self.next_update < Instant::NEVER {
            let before = self.controller;
            self.on_timer(self.next_update);
            // Without a packet every update is like the one before, so that one which changed nothing ends all change.
            if self.queue.is_empty() && self.controller == before && self.next_update <= until {
                // On to the last update that is due.
                let interval = self.interval().as_nanos() as u64;
                let left = (until.as_nanos() - self.next_update.as_nanos()) / interval;
                self.next_update =
                    Instant::from_nanos(self.next_update.as_nanos() + left * interval);
            }
        }
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        while !self.queue.is_empty() {
            self.flush(dropped);
        }
        self.controller = Controller::START;
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Pie(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        self.config = self.config.with(options);
        while self.queue.len() > self.config.limit as usize {
            self.flush(dropped);
        }
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::Pie(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        let own = Stats {
            probability: self.controller.probability,
            delay: Duration::from_nanos(self.controller.delay << DELAY_SHIFT),
            ..self.stats
        };
        show::Stats { counters: self.counters, own: OwnStats::Pie(own) }
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
        assert!((update(0.999, 260) - 1.0).abs() < 1e-9);
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
