//! The folders that guests share with the host.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::WorldError;

/// Those that are there.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The folder that a guest shares with the host. It goes with the guest; what a killed process has left is removed by the
/// next one.
pub(super) struct GuestFolder {
    folder: TempDir,
    /// Held for as long as this process lives.
    _lock: File,
}

const GUEST_FOLDER: &str = "dualq-guest-";
const LOCK: &str = "lock";

impl GuestFolder {
    pub(super) fn create() -> Result<Self, WorldError> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(|| remove_abandoned(&std::env::temp_dir()));
        let create = || {
            let folder = tempfile::Builder::new().prefix(GUEST_FOLDER).tempdir()?;
            folders().push(folder.path().to_owned());
            // It gets its name once it is locked: nobody else can take it for abandoned.
            let new = folder.path().join(".lock");
            let lock = File::create(&new)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            fs::rename(new, folder.path().join(LOCK))?;
            Ok(Self { folder, _lock: lock })
        };
        create().map_err(WorldError::Folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for GuestFolder {
    fn drop(&mut self) {
        folders().retain(|path| path != self.folder.path());
    }
}

fn folders() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all of this process's.
pub(super) fn remove_all() {
    for path in folders().drain(..) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Removes this user's guest folders whose owner was killed. Those without a lock may be about to get one.
fn remove_abandoned(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let is_guests =
            entry.file_name().to_str().is_some_and(|name| name.starts_with(GUEST_FOLDER));
        let is_ours = || {
            // Not that of a link.
            entry.metadata().is_ok_and(|metadata| {
                metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
            })
        };
        if !is_guests || !is_ours() {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What cannot be removed is no reason not to run.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As after SIGKILL: the folder is there, and nobody holds its lock.
    #[test]
    fn folders_of_killed_processes_are_removed_and_no_others() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str, lock: Option<&str>| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("console"), "words").unwrap();
            lock.map(|lock| File::create(folder.join(lock)).unwrap())
        };
        make("dualq-guest-killed", Some(LOCK));
        make("dualq-guest-begins", None);
        make("dualq-guest-locking", Some(".lock"));
        make("somebody-elses", Some(LOCK));
        let held = make("dualq-guest-runs", Some(LOCK)).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        std::os::unix::fs::symlink("dualq-guest-runs", temporary.path().join("dualq-guest-link"))
            .unwrap();
        remove_abandoned(temporary.path());
        let entries = fs::read_dir(temporary.path()).unwrap();
        let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let expected =
            ["begins", "link", "locking", "runs"].map(|name| format!("dualq-guest-{name}"));
        assert_eq!(left[..4], expected.map(std::ffi::OsString::from));
        assert_eq!(left[4], "somebody-elses");
    }
}
