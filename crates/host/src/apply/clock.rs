//! What time it is, in a way that a restart cannot confuse.

use std::fs;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::Root;

/// An instant on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Which start of the machine it belongs to: `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
    /// The time since then, sleep included (`CLOCK_BOOTTIME`).
    pub since_boot: Duration,
    /// Seconds since 1970, which is only for people: clocks are set.
    pub unix: u64,
}

/// How long ago that was, roughly, in words; both are seconds since 1970.
#[must_use]
pub fn ago(unix: Option<u64>, now: u64) -> String {
    let Some(unix) = unix else { return "some time ago".to_owned() };
    let seconds = now.saturating_sub(unix);
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

impl Moment {
    /// This one.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn now(root: &Root) -> io::Result<Self> {
        let boot = fs::read_to_string(root.sysctl("kernel.random.boot_id"))?;
        let time = clock_gettime(ClockId::Boottime);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            boot: boot.trim().to_owned(),
            since_boot: Duration::new(
                time.tv_sec.unsigned_abs(),
                time.tv_nsec.unsigned_abs() as u32,
            ),
            unix: unix.as_secs(),
        })
    }

    /// Whether the machine was restarted between `earlier` and this.
    #[must_use]
    pub fn restarted_since(&self, earlier: &Self) -> bool {
        self.boot != earlier.boot || self.since_boot < earlier.since_boot
    }
}
