//! A queue discipline in front of a link.

use std::fmt;
use std::time::Duration;

use dualq_qdisc::show::Stats;
use dualq_qdisc::{ChangeError, Config, Departure, Discipline, Dropped, Qdisc, Spec};
use dualq_units::{Instant, Rate};

use crate::environment::{Environment, Lost};
use crate::packet::Packet;
use crate::shaper::Shaper;

/// A queue discipline, and a link that sends what it gives at a rate: htb's one class with the discipline as its leaf.
pub struct Queue<P> {
    discipline: Discipline<P>,
    shaper: Shaper,
    observed: Option<usize>,
    /// What the discipline's clock shows at [`Instant::ZERO`].
    clock_ns: u64,
    /// When the discipline's timer runs out, by its own clock.
    timer: Instant,
}

impl<P: Packet> Queue<P> {
    /// A queue at a link of `rate`, with tc's default burst.
    #[must_use]
    pub fn new(discipline: Discipline<P>, rate: Rate) -> Self {
        let timer = discipline.next_timer();
        Self { discipline, shaper: Shaper::new(rate), observed: None, clock_ns: 0, timer }
    }

    /// The environment is told of packets that come and go, with `number` as the queue's.
    #[must_use]
    pub fn observed(mut self, number: usize) -> Self {
        self.observed = Some(number);
        self
    }

    /// The discipline is older than the path: its clock, by which it was made, shows `time` at [`Instant::ZERO`], and what its timers
    /// do without packets has been done by then.
    pub fn start_clock_at(&mut self, time: Duration) {
        self.clock_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.discipline.on_idle(self.clock(Instant::ZERO));
        self.timer = self.discipline.next_timer();
    }

    /// The discipline's time.
    #[inline]
    const fn clock(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos() + self.clock_ns)
    }

    /// The discipline. Its clock may be another one than the path's.
    #[must_use]
    pub const fn discipline(&self) -> &Discipline<P> {
        &self.discipline
    }

    /// What the discipline does, with its options.
    #[must_use]
    pub fn config(&self) -> Config {
        Qdisc::<P>::config(&self.discipline)
    }

    /// Whether a packet may leave at `now`: the discipline has one, and the link tokens for it.
    #[must_use]
    pub fn is_ready(&self, now: Instant) -> bool {
        let clock = self.clock(now);
        self.shaper.is_ready(now.as_nanos())
            && Qdisc::<P>::next_ready(&self.discipline, clock) <= clock
    }

    /// What it has counted, and how it is at `now`.
    #[must_use]
    pub fn stats(&self, now: Instant) -> Stats {
        Qdisc::<P>::stats(&self.discipline, self.clock(now))
    }

    /// How many packets wait, aggregates as one.
    #[must_use]
    pub fn len(&self) -> usize {
        Qdisc::<P>::len(&self.discipline)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts another discipline in its place, which knows the path's own clock; what waits in the old one is gone with it.
    pub fn replace(&mut self, discipline: Discipline<P>) {
        self.timer = discipline.next_timer();
        self.discipline = discipline;
        self.clock_ns = 0;
    }

    /// Changes the parameters that `spec` gives, as `tc qdisc change` does, while packets wait.
    ///
    /// # Errors
    /// As [`Qdisc::change`].
    pub fn change(
        &mut self,
        now: Instant,
        spec: &Spec,
        around: &mut impl Environment<P>,
    ) -> Result<(), ChangeError> {
        self.update(now);
        let observed = self.observed;
        let changed =
            self.discipline.change(spec, &mut |dropped| lose(observed, now, dropped, around));
        self.timer = self.discipline.next_timer();
        changed
    }

    /// Loses all that waits.
    pub fn flush(&mut self, now: Instant, around: &mut impl Environment<P>) {
        let observed = self.observed;
        self.discipline.reset(&mut |dropped| lose(observed, now, dropped, around));
        self.timer = self.discipline.next_timer();
    }

    /// The link has another rate from now on. What waits stays, and tokens too.
    pub fn change_rate(&mut self, rate: Rate) {
        self.shaper = self.shaper.with_rate(rate);
    }

    /// Takes in a packet. Returns whether it waits now, or something of it. Inlined, as it is large to hand on.
    #[inline(always)]
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        packet: P,
        around: &mut impl Environment<P>,
    ) -> bool {
        self.update(now);
        if let Some(number) = self.observed {
            around.arrived(number, now, &packet);
        }
        let (observed, clock) = (self.observed, self.clock(now));
        let queued = self.discipline.enqueue(clock, packet, &mut move |dropped| {
            lose(observed, now, dropped, around);
        });
        queued > 0
    }

    /// The next packet that the link sends at `now`, if its tokens allow one, goes to `out`, where it is looked at: packets are large to
    /// move. Returns when it is to be asked again; if that does not change, at once. Inlined for the same reason.
    #[inline(always)]
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        out: &mut Option<P>,
        around: &mut impl Environment<P>,
    ) -> Option<Instant> {
        let now_ns = now.as_nanos();
        if let Some(ready_ns) = self.shaper.busy_until(now_ns) {
            return Some(Instant::from_nanos(ready_ns + TIMER_LATENCY_NS));
        }
        self.update(now);
        let (observed, clock) = (self.observed, self.clock(now));
        let losses = &mut *around;
        let departure: Option<Departure<P>> = self.discipline.dequeue(clock, &mut move |dropped| {
            lose(observed, now, dropped, losses);
        });
        let Some(departure) = departure else {
            return Some(self.next_ready(clock));
        };
        self.shaper.charge(departure.packet.length());
        if let Some(number) = self.observed {
            around.departed(number, now, &departure);
        }
        *out = Some(departure.packet);
        if self.discipline.is_empty() {
            return Some(Instant::NEVER);
        }
        // Seldom are there tokens for another one.
        let ready_ns = self.shaper.still_busy_until(now_ns)?;
        Some(Instant::from_nanos(ready_ns + TIMER_LATENCY_NS))
    }

    /// When the discipline may have a packet that has none now, though it was asked for one.
    #[cold]
    fn next_ready(&self, clock: Instant) -> Instant {
        match self.discipline.next_ready(clock) {
            Instant::NEVER => Instant::NEVER,
            ready => Instant::from_nanos(ready.as_nanos().saturating_sub(self.clock_ns)),
        }
    }

    /// A packet that will probably leave soon.
    #[inline]
    pub(crate) fn upcoming(&self) -> Option<&P> {
        self.discipline.upcoming()
    }

    /// Lets the discipline do what was due up to now. Nothing can see it do so later than it was due.
    #[inline]
    fn update(&mut self, now: Instant) {
        if self.timer <= self.clock(now) {
            self.run_out(now);
        }
    }

    #[cold]
    fn run_out(&mut self, now: Instant) {
        while self.timer <= self.clock(now) {
            self.discipline.on_timer(self.timer);
            self.timer = self.discipline.next_timer();
        }
    }
}

/// So much later than it was set for a timer runs out, in nanoseconds (User-Mode Linux: `itimer_next_event`). Tokens make up for it.
const TIMER_LATENCY_NS: u64 = 1;

/// The discipline drops a packet.
fn lose<P>(
    observed: Option<usize>,
    now: Instant,
    dropped: Dropped<P>,
    around: &mut impl Environment<P>,
) {
    if let Some(number) = observed {
        around.dropped(number, now, &dropped);
    }
    around.lost(dropped.packet, Lost::Queue(dropped.reason));
}

impl<P: Packet> fmt::Debug for Queue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Queue");
        shown.field("discipline", &self.discipline.config().to_string());
        shown.field("shaper", &self.shaper).finish_non_exhaustive()
    }
}
