//! What must not stay behind when somebody presses Ctrl-C: unfinished files, guests and their folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

/// As the shell reports a program that was ended by an interrupt.
pub(crate) const EXIT_STATUS: u8 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

static LEFTOVERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file or folder that is to go if this process is interrupted while the guard is there.
pub(crate) struct Leftover(PathBuf);

impl Leftover {
    pub(crate) fn of(path: &Path) -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // Without a handler an interrupt still ends the program; only its leftovers would stay.
            let _ = ctrlc::set_handler(|| {
                INTERRUPTED.store(true, Ordering::SeqCst);
                dualq_guest::end_all();
                for path in LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                    let _ = if path.is_dir() {
                        fs::remove_dir_all(path)
                    } else {
                        fs::remove_file(path)
                    };
                }
                std::process::exit(EXIT_STATUS.into());
            });
        });
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// Waits for the end if it is near: whatever fails then fails because of it, and is nothing to report.
pub(crate) fn rest_if_interrupted() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        thread::park();
    }
}
