//! When a run begins, and what time it is.

use std::time::Duration;

use dualq_scenario::CLOCK_AT_START;
use nix::sys::timerfd::{
    ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags,
};
use nix::time::{ClockId, clock_gettime};

use crate::LabError;

/// When an experiment begins, on the monotonic clock and on the system's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) monotonic: Duration,
    pub(crate) real: Duration,
}

impl Began {
    /// Now, or in a kernel that has just started for it as its clock shows the time that the model's shows then: jiffies lie by it.
    pub(crate) fn soon() -> Result<Self, LabError> {
        let (monotonic, real) = (monotonic()?, read(ClockId::CLOCK_REALTIME)?);
        let later = CLOCK_AT_START.saturating_sub(monotonic);
        Ok(Self { monotonic: monotonic + later, real: real + later })
    }

    /// Waits for it, to the nanosecond in virtual time: a `timerfd` has no slack.
    pub(crate) fn wait(self) -> Result<(), LabError> {
        let failed = |error| LabError::system("timerfd", error);
        let timer =
            TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::empty()).map_err(failed)?;
        let expiration = Expiration::OneShot(self.monotonic.into());
        timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME).map_err(failed)?;
        timer.wait().map_err(failed)
    }

    /// How long ago that was.
    pub(crate) fn elapsed(self) -> Result<Duration, LabError> {
        Ok(monotonic()?.saturating_sub(self.monotonic))
    }
}

/// What the clock shows that only goes on.
fn monotonic() -> Result<Duration, LabError> {
    read(ClockId::CLOCK_MONOTONIC)
}

fn read(clock: ClockId) -> Result<Duration, LabError> {
    let time = clock_gettime(clock).map_err(|error| LabError::system("clock_gettime", error))?;
    Ok(Duration::from(time))
}
