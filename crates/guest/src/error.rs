use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dualq_units::plain;

/// Why a guest came to no good end.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// It could not be started.
    #[error("cannot start {}: {}", kernel.display(), plain(.error))]
    Start {
        /// The kernel's executable.
        kernel: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its folder could not be used.
    #[error("cannot use the guest's folder {}: {}", folder.display(), plain(.error))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It ended without a word from its init: the kernel panicked, or was killed.
    #[error("the guest died; the last that it said: {console}")]
    Died {
        /// The last lines of its console.
        console: String,
    },
    /// It gave no sign of life for too long, and was ended.
    #[error("the guest gave no sign of life for {} s and was ended; the last that it said: {console}", patience.as_secs())]
    Hung {
        /// How long it was waited for.
        patience: Duration,
        /// The last lines of its console.
        console: String,
    },
    /// It restarted. What it was started for would begin anew, so it is ended.
    #[error(
        "the guest restarted, which ends it; what comes after a restart is another start with the same folders"
    )]
    Restarted,
    /// Whoever looked at it ended it.
    #[error("the guest was ended")]
    Ended,
    /// Its init says that something went wrong.
    #[error("{0}")]
    Failed(String),
}
