//! Which guests run, so that whoever is interrupted can end them: they are no part of the terminal's group of processes.

use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::folder;

static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends every guest that this process has started, and removes their folders: for a program that is about to end, as in its handler of
/// interrupts. What runs in them fails then.
pub fn end_all() {
    for pid in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // It may have ended by itself.
        let _ = kill(pid, Signal::SIGKILL);
    }
    folder::remove_all();
}

/// Takes note of a guest for as long as it lives.
pub(crate) struct Entry(Pid);

impl Entry {
    pub(crate) fn of(pid: u32) -> Self {
        let pid = Pid::from_raw(pid.cast_signed());
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        Self(pid)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|pid| *pid != self.0);
    }
}
