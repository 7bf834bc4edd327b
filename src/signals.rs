//! Signals as something to wait for beside other things.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{self, SigSet};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::Signal;

/// Those that end programs, and that can be waited for.
const ENDING: [signal::Signal; 4] =
    [signal::SIGINT, signal::SIGTERM, signal::SIGHUP, signal::SIGQUIT];

/// Those that a keeper is told by.
const KEEPERS: [signal::Signal; 2] = [signal::SIGCHLD, signal::SIGUSR1];

/// Sent by the kernel, as a terminal's keys are (`SI_KERNEL`, sigaction(2)).
const BY_KERNEL: i32 = 0x80;

/// The signals that end programs. They are blocked, in this whole process if this is made before its threads, and in what it starts.
pub(crate) struct Signals {
    fd: SignalFd,
}

/// One that came.
pub(crate) struct Came {
    pub(crate) signal: Signal,
    /// A terminal sent it, to all that are in its foreground.
    pub(crate) by_terminal: bool,
}

impl Signals {
    /// From now on they end nothing. For a keeper also those that tell of children, and of a parent.
    pub(crate) fn take(of_a_keeper: bool) -> io::Result<Self> {
        let ignored = ignored();
        // Whoever was started by nohup(1) is to stay.
        let wanted = ENDING.into_iter().chain(KEEPERS.into_iter().filter(|_| of_a_keeper));
        let set: SigSet = wanted.filter(|signal| !is_in(ignored, *signal)).collect();
        set.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { fd })
    }

    /// They end this process again, as they do a program that was just started.
    pub(crate) fn let_all_through() -> io::Result<()> {
        let all: SigSet = ENDING.into_iter().chain(KEEPERS).collect();
        Ok(all.thread_unblock()?)
    }

    /// The next one that is there.
    pub(crate) fn next(&self) -> io::Result<Option<Came>> {
        loop {
            let Some(info) = self.fd.read_signal()? else { return Ok(None) };
            if let Some(signal) = Signal::from_named_raw(info.ssi_signo.cast_signed()) {
                return Ok(Some(Came { signal, by_terminal: info.ssi_code == BY_KERNEL }));
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Signals that end programs and that this process ignores reach no handler either, of this thread and those that it starts.
pub(crate) fn hold_ignored() {
    let ignored = ignored();
    let held: SigSet = ENDING.into_iter().filter(|signal| is_in(ignored, *signal)).collect();
    // Otherwise the program ends as it would have without.
    let _ = held.thread_block();
}

fn is_in(mask: u64, signal: signal::Signal) -> bool {
    mask >> (signal as u32 - 1) & 1 == 1
}

/// The signals that this process ignores, a bit for each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
