//! The queue, and its average.

use std::collections::VecDeque;
use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;

use super::tables::{Averaging, CELLS};
use super::{Config, Options, Stats};
use crate::kinds::Grammar;
use crate::show::{self, Counters, OwnStats};
use crate::timer::fires_after;
use crate::{ChangeError, Departure, DropReason, Dropped, FlowPacket, Qdisc, Spec, UPCOMING};

/// How often `adaptive` looks at the average (Adaptive RED, section 4: half a second).
const ADAPTS_EVERY: Duration = Duration::from_millis(500);
/// 1 % in units of 2⁻³².
const ONE_PERCENT: u32 = 42_949_673;
/// Up to here the probability is raised, and from 1 % on it is lowered.
const LARGEST_PROBABILITY: u32 = 50 * ONE_PERCENT;

/// The law: an average length, and what it means for a packet that arrives.
struct Average {
    wlog: u8,
    /// The thresholds, scaled as the average is.
    min: u64,
    max: u64,
    /// The distance of the thresholds in bytes, at least 1.
    distance: u32,
    /// The probability at `max`, in units of 2⁻³².
    max_probability: u32,
    /// That for each byte between the thresholds, at least 1.
    slope: u32,
    cell_log: u8,
    cells: [u8; CELLS],
    /// The average length in units of 2⁻ʷ bytes.
    length: u64,
    /// Packets since the last early drop; `None` below `min` and above `max`.
    count: Option<u64>,
    /// Uniform from 0 to the inverse of the slope.
    die: u64,
    idle_since: Option<Instant>,
}

/// What happens to a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Enters,
    /// The dice hit it.
    Early,
    /// The average is above `max`.
    Forced,
}

impl Average {
    fn new(config: &Config, averaging: &Averaging, now: Instant) -> Self {
        let distance = ((config.max.0 - config.min.0) as u32).max(1);
        let wlog = config.wlog;
        Self {
            wlog,
            min: config.min.0 << wlog,
            max: config.max.0 << wlog,
            distance,
            max_probability: config.max_probability,
            slope: (config.max_probability / distance).max(1),
            cell_log: config.cell_log,
            cells: averaging.cells,
            length: 0,
            count: None,
            die: 0,
            idle_since: Some(now),
        }
    }

    /// The average after idle time.
    fn after_idle_time(&self, idle: Duration) -> u64 {
        let longest = (CELLS as u64 - 1) << self.cell_log;
        let micros = u64::try_from(idle.as_micros()).unwrap_or(u64::MAX).min(longest);
        let shift = self.cells[(micros >> self.cell_log) as usize & (CELLS - 1)];
        if shift > 0 {
            return self.length >> shift;
        }
        // Less than the table's first power of two: a straight line.
        let fall = self.length.saturating_mul(micros) >> self.cell_log;
        self.length - fall.min(self.length - (self.length >> 1))
    }

    /// A packet arrives at so many bytes.
    #[inline]
    fn judge(&mut self, now: Instant, backlog: u64, random: &mut impl Random) -> Verdict {
        self.length = match self.idle_since.take() {
            Some(since) => self.after_idle_time(now - since),
            None => self.length + backlog - (self.length >> self.wlog),
        };
        if self.length < self.min {
            self.count = None;
            return Verdict::Enters;
        }
        if self.length >= self.max {
            self.count = None;
            return Verdict::Forced;
        }
        let mut roll = |slope: u32| u64::from(random.next_u32() / slope);
        let Some(count) = &mut self.count else {
            self.count = Some(0);
            self.die = roll(self.slope);
            return Verdict::Enters;
        };
        *count += 1;
        if ((self.length - self.min) >> self.wlog) * *count < self.die {
            return Verdict::Enters;
        }
        *count = 0;
        self.die = roll(self.slope);
        Verdict::Early
    }

    /// Moves the probability so that the average stays in the middle between the thresholds.
    fn adapt(&mut self, now: Instant) {
        let length = match self.idle_since {
            Some(since) => self.after_idle_time(now - since),
            None => self.length,
        } >> self.wlog;
        let fifth = u64::from(self.distance / 5);
        let min = self.min >> self.wlog;
        if length > min + 3 * fifth && self.max_probability <= LARGEST_PROBABILITY {
            self.max_probability += ONE_PERCENT.min(self.max_probability / 4);
        } else if length < min + 2 * fifth && self.max_probability >= ONE_PERCENT {
            self.max_probability = self.max_probability / 10 * 9;
        }
        let half = u64::from(self.distance / 2);
        let slope = (u64::from(self.max_probability) + half) / u64::from(self.distance);
        self.slope = (slope as u32).max(1);
    }
}

/// The discipline.
pub(super) struct Red<P, R> {
    config: Config,
    average: Average,
    next_update: Instant,
    random: R,
    queue: VecDeque<(Instant, P, bool)>,
    stats: Stats,
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Red<P, R> {
    /// An empty queue at time `now`.
    pub(super) fn new(options: &Options, random: R, now: Instant) -> Self {
        let config = options.config();
        Self {
            average: Average::new(&config, &options.averaging(), now),
            next_update: first_update(&config, now),
            config,
            random,
            queue: VecDeque::new(),
            stats: Stats::default(),
            counters: Counters::ZERO,
        }
    }

    fn flush(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some((_, packet, _)) = self.queue.pop_front() {
            self.counters.backlog_packets -= 1;
            self.counters.backlog_bytes -= u64::from(packet.length());
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
    }
}

fn first_update(config: &Config, now: Instant) -> Instant {
    if config.flags.adaptive { fires_after(now, ADAPTS_EVERY) } else { Instant::NEVER }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Red<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["red"]
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> usize {
        let Self { config, average, random, stats, counters, .. } = self;
        let verdict = average.judge(now, counters.backlog_bytes, random);
        let flags = config.flags;
        let mut marks = false;
        if verdict != Verdict::Enters {
            counters.overlimits += 1;
            let may_mark = flags.ecn && !(flags.harddrop && verdict == Verdict::Forced);
            marks = may_mark && packet.ecn().is_capable();
            if !(marks || may_mark && flags.nodrop) {
                stats.early += 1;
                counters.drops += 1;
                dropped(Dropped { packet, band: 0, reason: DropReason::Congested });
                return 0;
            }
        }
        let length = u64::from(packet.length());
        if marks {
            packet.set_ce();
            stats.marked += 1;
        }
        if counters.backlog_bytes + length > config.limit.0 {
            stats.pdrop += 1;
            counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }
        counters.backlog_packets += 1;
        counters.backlog_bytes += length;
        self.queue.push_back((now, packet, marks));
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let Some((enqueued, packet, marked)) = self.queue.pop_front() else {
            self.average.idle_since.get_or_insert(now);
            return None;
        };
        self.counters.left(&packet);
        Some(Departure {
            packet,
            band: 0,
            sojourn_ns: now.nanos_since(enqueued),
            marked_by_probability: marked,
            marked_by_step: false,
        })
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

    fn on_timer(&mut self, now: Instant) {
        if now >= self.next_update {
            self.average.adapt(now);
            self.next_update = fires_after(now, ADAPTS_EVERY);
        }
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        while !self.queue.is_empty() {
            self.flush(dropped);
        }
        // What it is to be idle since is not known before it is asked for a packet.
        (self.average.length, self.average.count, self.average.idle_since) = (0, None, None);
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Red(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        self.config = options.config();
        // tc gives all parameters again, and the kernel begins anew. The adaptive timer runs from the next call on.
        let idle_since = self.average.idle_since;
        self.average = Average::new(&self.config, &options.averaging(), Instant::ZERO);
        self.average.idle_since = idle_since;
        self.next_update = match self.config.flags.adaptive {
            true if self.next_update == Instant::NEVER => Instant::ZERO,
            true => self.next_update,
            false => Instant::NEVER,
        };
        while self.counters.backlog_bytes > self.config.limit.0 {
            self.flush(dropped);
        }
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::Red(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        show::Stats { counters: self.counters, own: OwnStats::Red(self.stats) }
    }
}
