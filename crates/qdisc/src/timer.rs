//! The kernel's coarse timers, by which disciplines do what they do now and then.

use std::time::Duration;

use dualq_units::{Instant, wheel};

/// A tick of the reference kernel: `CONFIG_HZ=100`.
pub(crate) const TICK: Duration = Duration::from_micros(TICK_US as u64);
pub(crate) const TICK_US: u32 = 10_000;
const HERTZ: u32 = 100;

/// When such a timer fires that is set at `now` for so long, where the kernel's clock and a discipline's are one (Linux: `mod_timer`).
pub(crate) fn fires_after(now: Instant, delay: Duration) -> Instant {
    let tick = TICK.as_nanos() as u64;
    let jiffies = delay.as_nanos().div_ceil(TICK.as_nanos());
    let jiffies = u32::try_from(jiffies).unwrap_or(u32::MAX);
    let fires = wheel::fires(wheel::initial_jiffies(HERTZ), now.as_nanos() / tick, jiffies);
    Instant::from_nanos(fires * tick)
}
