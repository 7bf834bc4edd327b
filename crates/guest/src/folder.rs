//! The folders of guests: what they share with the host, and where their memory is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use tempfile::TempDir;

/// Where a guest's memory is, if it fits there.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
const GUEST_FOLDER: &str = "dualq-guest-";
const LOCK: &str = "lock";

/// Those that are there.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary folder for a guest. It goes when this is dropped; what a killed process has left is removed by the next one.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    /// Held for as long as this process lives.
    _lock: Flock<File>,
}

impl Folder {
    /// A new one, where temporary files are.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    pub(crate) fn create_in(place: &Path) -> io::Result<Self> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(|| {
            remove_abandoned(&std::env::temp_dir());
            remove_abandoned(Path::new(SHARED_MEMORY));
        });
        let folder = tempfile::Builder::new().prefix(GUEST_FOLDER).tempdir_in(place)?;
        folders().push(folder.path().to_owned());
        // It gets its name once it is locked: nobody else can take it for abandoned.
        let new = folder.path().join(".lock");
        let lock = locked(File::create(&new)?)?;
        fs::rename(new, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        folders().retain(|path| path != self.folder.path());
    }
}

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn locked(file: File) -> io::Result<Flock<File>> {
    Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?)
}

/// Removes all of this process's.
pub(crate) fn remove_all() {
    for path in folders().drain(..) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Removes this user's guest folders whose owner was killed. Those without a lock may be about to get one.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let is_guests =
            entry.file_name().to_str().is_some_and(|name| name.starts_with(GUEST_FOLDER));
        let is_ours = || {
            // Not that of a link.
            entry
                .metadata()
                .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == geteuid().as_raw())
        };
        if !is_guests || !is_ours() {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if let Ok(_lock) = locked(lock) {
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
        let _held = locked(make("dualq-guest-runs", Some(LOCK)).unwrap()).unwrap();
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
