//! Threads that are not to be late.

use rustix::process::{getpriority_process, setpriority_process};

/// How urgent a thread is where it may not be of real time, as nice(1) counts. Where sessions are groups to the scheduler
/// (sched(7), autogroup) that helps only against others of the same session.
const NICE: i32 = -15;

/// The lowest of the priorities of real time: above all that has none, below all that was given one on purpose.
const LOWEST: i32 = 1;

/// While this is there, the thread that made it goes before others as far as it may, and so do threads that it starts: who moves packets
/// late, or answers a probe late, makes figures wrong. On a machine with eight programs for two processors, a thread woke 12 ms late at
/// the 99th percentile, and 0.15 ms with this.
///
/// Real time takes `CAP_SYS_NICE`; without it, little is gained. The kernel keeps some of each second for others
/// (`kernel.sched_rt_runtime_us`).
#[derive(Debug)]
pub struct Urgent {
    policy: Option<i32>,
    nice: Option<i32>,
}

impl Urgent {
    /// The calling thread from now on.
    #[must_use]
    pub fn new() -> Self {
        let policy = policy();
        if policy == libc::SCHED_OTHER && set_policy(libc::SCHED_RR, LOWEST) {
            return Self { policy: Some(policy), nice: None };
        }
        let before = getpriority_process(None).ok();
        let nice = before.filter(|_| setpriority_process(None, NICE).is_ok());
        Self { policy: None, nice }
    }
}

impl Default for Urgent {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(policy) = self.policy {
            set_policy(policy, 0);
        }
        if let Some(nice) = self.nice {
            // To be less urgent takes no privilege.
            let _ = setpriority_process(None, nice);
        }
    }
}

/// The calling thread's policy.
#[allow(unsafe_code)]
fn policy() -> i32 {
    // SAFETY: it reads a number of the calling thread's. No library has this system call for a thread.
    unsafe { libc::sched_getscheduler(0) }
}

/// Says whether it was allowed.
#[allow(unsafe_code)]
fn set_policy(policy: i32, priority: i32) -> bool {
    // SAFETY: all zeros are a parameter, and some systems have more fields than the one that counts.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the kernel reads `parameter`, which is there. No library has this system call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}
