//! Where guests run. A guest is a pair of processes, kernel and program, that wait for each other; on two CPUs each of these
//! handovers has to wake a CPU, which makes a guest several times slower than on one.

use std::sync::{Mutex, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// How many guests run on each CPU.
static TAKEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The calling thread, or process.
const SELF: Pid = Pid::from_raw(0);

/// A CPU that a guest has, alone if there are enough.
pub(crate) struct Affinity {
    cpu: Option<usize>,
}

impl Affinity {
    /// Takes the CPU with the fewest guests of those that this process may use. If that cannot be found out, the guest runs
    /// wherever it likes.
    pub(crate) fn take() -> Self {
        let allowed = sched_getaffinity(SELF).ok();
        let allowed = (0..CpuSet::count())
            .filter(|cpu| allowed.is_some_and(|set| set.is_set(*cpu).unwrap_or(false)));
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken.resize(CpuSet::count(), 0);
        let cpu = allowed.min_by_key(|cpu| taken[*cpu]);
        if let Some(cpu) = cpu {
            taken[cpu] += 1;
        }
        Self { cpu }
    }

    /// Puts the calling thread there, and with it what it starts from now on.
    pub(crate) fn pin(&self) {
        let mut set = CpuSet::new();
        if let Some(cpu) = self.cpu
            && set.set(cpu).is_ok()
        {
            // It only costs time if it does not.
            let _ = sched_setaffinity(SELF, &set);
        }
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        if let Some(cpu) = self.cpu {
            TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[cpu] -= 1;
        }
    }
}
