//! Which guests run, so that whoever is interrupted can end them: they are no part of the terminal's group of processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Each with the folder of its memory.
static RUNNING: Mutex<Vec<(Pid, PathBuf)>> = Mutex::new(Vec::new());

/// Ends every guest that this process has started, and removes the folders of their memory.
pub fn end_all() {
    for (pid, memory) in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // It may have ended by itself.
        let _ = kill(pid, Signal::SIGKILL);
        let _ = fs::remove_dir_all(memory);
    }
}

/// Takes note of a guest for as long as it lives.
pub(crate) struct Entry(Pid);

impl Entry {
    pub(crate) fn of(pid: u32, memory: &Path) -> Self {
        let pid = Pid::from_raw(pid.cast_signed());
        let entry = (pid, memory.to_owned());
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        Self(pid)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|(pid, _)| *pid != self.0);
    }
}
