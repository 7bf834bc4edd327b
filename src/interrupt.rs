//! What happens when somebody presses Ctrl-C: unfinished files, guests and their folders do not stay behind, and the reading
//! of what has no end of its own ends.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use crate::signals;

/// As the shell reports a program that was ended by an interrupt.
pub(crate) const EXIT_STATUS: u8 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

static LEFTOVERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What is closed by the first interrupt, which ends nothing else then.
static READING: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// A file or folder that is to go if this process is interrupted while the guard is there.
pub(crate) struct Leftover(PathBuf);

impl Leftover {
    pub(crate) fn of(path: &Path) -> Self {
        handle();
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Self(path.to_owned())
    }
}

/// From now on the first interrupt closes a pipe, whose other end tells a reader to stop. Another one ends the program. It is so
/// until the program ends: the writer's end may be seen, and all be reported, before the interrupt that ended it.
pub(crate) fn stops_reading_by_closing(pipe: OwnedFd) {
    *READING.lock().unwrap_or_else(PoisonError::into_inner) = Some(pipe);
    handle();
}

/// Whether the first interrupt is to end a work, and whether it came.
static WORKING: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// While this is there, the first interrupt ends all guests and nothing else: whoever works asks, and ends. Another one ends the program.
pub(crate) struct StopsWork(());

impl StopsWork {
    pub(crate) fn begin() -> Self {
        STOPPED.store(false, Ordering::SeqCst);
        WORKING.store(true, Ordering::SeqCst);
        handle();
        Self(())
    }

    /// Whether it came.
    pub(crate) fn came(&self) -> bool {
        STOPPED.load(Ordering::SeqCst)
    }
}

impl Drop for StopsWork {
    fn drop(&mut self) {
        WORKING.store(false, Ordering::SeqCst);
    }
}

/// From now on an interrupt ends all guests and takes away what is not to stay.
pub(crate) fn handle() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Whoever was started by nohup(1), or in the background by a shell's script, is not ended by what that keeps away: a handler takes all of them.
        signals::hold_ignored();
        // Without a handler an interrupt still ends the program; only its leftovers would stay.
        let _ = ctrlc::set_handler(|| {
            if READING.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
                return;
            }
            if WORKING.swap(false, Ordering::SeqCst) {
                STOPPED.store(true, Ordering::SeqCst);
                dualq_worlds::kernel::end_all();
                return;
            }
            INTERRUPTED.store(true, Ordering::SeqCst);
            dualq_worlds::kernel::end_all();
            for path in LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                let _ =
                    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
            std::process::exit(EXIT_STATUS.into());
        });
    });
}

impl Drop for Leftover {
    fn drop(&mut self) {
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// Whether the program is about to end because of an interrupt.
pub(crate) fn is_there() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Waits for the end if it is near: whatever fails then fails because of it, and is nothing to report.
pub(crate) fn rest_if_interrupted() {
    while is_there() {
        thread::park();
    }
}
