//! The kernel's coarse clock: jiffies, and the timer wheel that rounds what is measured in them.

use dualq_units::{Instant, wheel};
use std::time::Duration;

/// The length of a jiffy. Linux counts retransmission, reordering and delayed-ACK timers in these, and CUBIC its
/// epochs: 10 ms at `CONFIG_HZ=100`, 4 ms at 250, 1 ms at 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    nanos: u32,
    /// 2⁶⁴ divided by that, times 2 to the power of `shift`, rounded up: what is counted in jiffies is counted for each packet, and a
    /// product takes less time than a quotient.
    reciprocal: u64,
    shift: u32,
    /// What the clock shows at the beginning.
    start_ns: u64,
    /// What the kernel's jiffies are counted from.
    initial: u32,
    hertz: u32,
}

impl Default for Tick {
    /// 10 ms.
    fn default() -> Self {
        Self::of(10_000_000)
    }
}

impl Tick {
    /// Jiffies of that length, at least a microsecond.
    #[must_use]
    pub fn new(length: Duration) -> Self {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Self::of(nanos.clamp(1_000, 1_000_000_000) as u32)
    }

    const fn of(nanos: u32) -> Self {
        let shift = (nanos - 1).ilog2();
        let reciprocal = (1_u128 << (u64::BITS + shift)).div_ceil(nanos as u128) as u64;
        let hertz = 1_000_000_000 / nanos;
        let initial = wheel::initial_jiffies(hertz);
        Self { nanos, reciprocal, shift, start_ns: 0, initial, hertz }
    }

    /// The same where the kernel's clock shows `time` at [`Instant::ZERO`]: timestamps are taken from it, and jiffies begin with its
    /// multiples. What begins together with a millisecond or a jiffy sees times as none does that begins somewhere in one.
    #[must_use]
    pub fn starting_at(self, time: Duration) -> Self {
        Self { start_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), ..self }
    }

    /// What the kernel's clock shows, which wraps around after centuries.
    #[inline]
    const fn shows(self, now_ns: u64) -> u64 {
        now_ns.wrapping_add(self.start_ns)
    }

    /// The clock's millisecond: what timestamps tell (RFC 7323; Linux: `tcp_time_stamp_ms`).
    #[inline]
    pub(crate) const fn millisecond(self, now_ns: u64) -> u32 {
        (self.shows(now_ns) / 1_000_000) as u32
    }

    /// `nanos` divided by the length of a jiffy, rounded down: exactly, up to 2⁶³ (Granlund, Montgomery: *Division by Invariant Integers
    /// using Multiplication*, 1994).
    #[inline]
    const fn divide(self, nanos: u64) -> u64 {
        ((nanos as u128 * self.reciprocal as u128) >> u64::BITS) as u64 >> self.shift
    }

    /// Jiffies a second (`HZ`).
    #[must_use]
    #[inline]
    pub const fn hertz(self) -> u32 {
        self.hertz
    }

    /// Jiffies since the kernel started.
    #[inline]
    pub(crate) const fn since_start(self, now_ns: u64) -> u64 {
        self.divide(self.shows(now_ns))
    }

    /// The jiffy that `now_ns` lies in. Only differences of these are of use.
    #[inline]
    pub(crate) const fn count(self, now_ns: u64) -> u32 {
        self.since_start(now_ns) as u32
    }

    /// Microseconds in jiffies, rounded up.
    #[inline]
    pub(crate) const fn jiffies_in(self, micros: u64) -> u32 {
        self.divide(micros * 1_000 + self.nanos as u64 - 1) as u32
    }

    /// A duration in jiffies, rounded up; the longest are as one.
    fn jiffies_of(self, duration: Duration) -> u32 {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        u32::try_from(self.divide(nanos.saturating_add(u64::from(self.nanos) - 1)))
            .unwrap_or(u32::MAX)
    }

    /// Nanoseconds in jiffies, rounded down (Linux: `nsecs_to_jiffies`).
    #[inline]
    pub(crate) const fn whole_jiffies_in(self, nanos: u64) -> u32 {
        self.divide(nanos) as u32
    }

    /// The microseconds since what is echoed was sent, as timestamps tell them: whole milliseconds, and one at least (RFC 7323 §4.1; Linux:
    /// `tcp_rtt_tsopt_us`).
    pub(crate) fn since_echo_us(self, now_ns: u64, echo_ms: u32) -> u64 {
        u64::from(self.millisecond(now_ns).saturating_sub(echo_ms).max(1)) * 1_000
    }

    /// Jiffies in microseconds.
    #[inline]
    pub(crate) const fn micros_in(self, jiffies: u32) -> u64 {
        jiffies as u64 * self.nanos as u64 / 1_000
    }

    /// When a kernel timer of `delay` fires that is started at `now`.
    #[must_use]
    pub fn after(self, now: Instant, delay: Duration) -> Instant {
        instant(self.expiry(now.as_nanos(), self.jiffies_of(delay)))
    }

    /// When the next jiffy begins.
    #[must_use]
    pub fn next(self, now: Instant) -> Instant {
        let next = self.since_start(now.as_nanos()) + 1;
        instant(next.saturating_mul(u64::from(self.nanos)) - self.start_ns + TIMER_LATENCY_NS)
    }

    /// Whether fewer jiffies than `most` has began between `earlier` and `later_ns`; not if there is no earlier.
    #[must_use]
    pub fn is_within(self, earlier_ns: Option<u64>, later_ns: u64, most: Duration) -> bool {
        let most = self.jiffies_of(most);
        earlier_ns
            .is_some_and(|earlier| self.count(later_ns).wrapping_sub(self.count(earlier)) < most)
    }

    /// When a timer of `jiffies` that is started at `now_ns` fires.
    #[inline]
    pub(crate) const fn expiry(self, now_ns: u64, jiffies: u32) -> u64 {
        self.expiry_from(self.since_start(now_ns), jiffies)
    }

    /// The same of a timer that is started in the jiffy `now`, as [`since_start`](Self::since_start) counts them.
    #[inline(always)]
    pub(crate) const fn expiry_from(self, now: u64, jiffies: u32) -> u64 {
        let fires = wheel::fires(self.initial, now, jiffies);
        fires.saturating_mul(self.nanos as u64) - self.start_ns + TIMER_LATENCY_NS
    }
}

/// So much later than it was set for a timer runs out, where the clock is told in nanoseconds (User-Mode Linux: `itimer_next_event`). What is
/// due at one time and what is a nanosecond later run out together so.
pub const TIMER_LATENCY: Duration = Duration::from_nanos(1);
pub(crate) const TIMER_LATENCY_NS: u64 = TIMER_LATENCY.as_nanos() as u64;

/// The microseconds from one time to a later one, as a clock counts them that shows whole ones (Linux: `tcp_stamp_us_delta`).
#[inline]
pub(crate) const fn micros_between(earlier_ns: u64, later_ns: u64) -> u64 {
    (later_ns / 1_000).saturating_sub(earlier_ns / 1_000)
}

/// Where a timer lies in the kernel's wheel, which decides who comes first of several that run out together. A timer that is stopped
/// stays there, and one that is set to what it is set to does not move (Linux: `mod_timer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WheelTimer {
    runs_out_ns: u64,
    level: u8,
    moves: u32,
}

impl Default for WheelTimer {
    fn default() -> Self {
        Self { runs_out_ns: u64::MAX, level: 0, moves: 0 }
    }
}

impl WheelTimer {
    /// Starts it for so many jiffies. Returns when it runs out.
    #[inline]
    pub const fn start(&mut self, tick: Tick, now: Instant, jiffies: u32) -> Instant {
        let runs_out_ns = tick.expiry(now.as_nanos(), jiffies);
        self.start_until(runs_out_ns, jiffies);
        instant(runs_out_ns)
    }

    /// The same where it is known when a timer of so many jiffies runs out.
    #[inline]
    pub(crate) const fn start_until(&mut self, runs_out_ns: u64, jiffies: u32) {
        if runs_out_ns != self.runs_out_ns {
            self.runs_out_ns = runs_out_ns;
            self.level = wheel::level(jiffies) as u8;
            self.moves = self.moves.wrapping_add(1);
        }
    }

    /// Another timer takes its place, which was not started.
    #[inline]
    pub(crate) const fn end(&mut self) {
        self.runs_out_ns = u64::MAX;
        self.moves = self.moves.wrapping_add(1);
    }

    /// When its bucket runs out; [`Instant::NEVER`] before it is started.
    #[must_use]
    #[inline]
    pub const fn runs_out(&self) -> Instant {
        instant(self.runs_out_ns)
    }

    /// The level that its bucket is in. Of buckets that run out together, that of the highest comes first (Linux:
    /// `collect_expired_timers`).
    #[must_use]
    #[inline]
    pub const fn level(&self) -> u8 {
        self.level
    }

    /// How often it was put into a bucket. Of a bucket, what was put in last comes first (Linux: `enqueue_timer`).
    #[must_use]
    #[inline]
    pub const fn moves(&self) -> u32 {
        self.moves
    }
}

/// A deadline, or [`Instant::NEVER`].
#[inline]
pub(crate) const fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_never_early_and_at_most_a_bucket_late() {
        let tick = Tick::default();
        assert_eq!(tick.expiry(0, 4), 50_000_001);
        assert_eq!(tick.expiry(9_999_999, 30), 310_000_001);
        assert_eq!(tick.expiry(0, 100), 1_040_000_001);
        assert_eq!(tick.hertz(), 100);
        assert_eq!(tick.jiffies_in(10_001), 2);
        assert_eq!(tick.whole_jiffies_in(9_999_999), 0);
        assert_eq!(tick.whole_jiffies_in(20_000_000), 2);
    }

    /// Linux 7.3 sends SYNs that nothing answers so many milliseconds after the first, where its clock shows 500.112 ms then.
    #[test]
    fn buckets_begin_at_multiples_of_their_width_by_the_kernels_own_count() {
        let tick = Tick::default().starting_at(Duration::from_micros(500_112));
        let mut now_ns = 0;
        for (jiffies, expected) in [
            (100, 1_020),
            (100, 2_060),
            (100, 3_100),
            (100, 4_140),
            (100, 5_180),
            (200, 7_260),
            (400, 11_340),
            (800, 19_820),
        ] {
            now_ns = tick.expiry(now_ns, jiffies);
            assert_eq!(now_ns, expected * 1_000_000 - 111_999);
        }
        assert_eq!(tick.expiry(0, 4), 49_888_001);
        assert_eq!(tick.expiry(9_887_999, 4), 49_888_001);
        assert_eq!(tick.expiry(9_888_000, 4), 59_888_001);
    }

    #[test]
    fn milliseconds_are_those_of_the_clock() {
        let tick = Tick::default();
        assert_eq!(tick.millisecond(999_999), 0);
        let tick = tick.starting_at(Duration::from_micros(500_112));
        assert_eq!((tick.millisecond(887_999), tick.millisecond(888_000)), (500, 501));
    }

    #[test]
    fn a_product_with_the_reciprocal_is_the_quotient() {
        for length in [1_000, 1_001, 3_333_333, 4_000_000, 10_000_000, 1 << 29, 1_000_000_000] {
            let (tick, length) = (Tick::of(length), u64::from(length));
            for power in 0..63 {
                let near = (1_u64 << power) / length * length;
                for nanos in [near, near.saturating_sub(1), near + length - 1, 1 << power] {
                    assert_eq!(tick.divide(nanos), nanos / length, "{nanos} / {length}");
                }
            }
            assert_eq!(tick.divide((1 << 63) - 1), ((1 << 63) - 1) / length);
        }
    }
}
