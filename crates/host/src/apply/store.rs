//! Where records are kept, and who may write there.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{ApplyError, Record};

const LOCK: &str = "lock";
const RECORD: &str = "record-";
const SUFFIX: &str = ".json";
/// tmpfs and ramfs (`TMPFS_MAGIC`, `RAMFS_MAGIC`).
const MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// The folder of the records, `/var/lib/dualq`: one file for each plan that was applied.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Whoever has it may change the machine; it goes with its process, however that ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Store {
    /// Where dualq keeps them if nobody says otherwise.
    pub const FOLDER: &str = "/var/lib/dualq";

    /// The records in `folder`, which need not be there.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder if it is not there, and takes the lock.
    ///
    /// # Errors
    /// [`ApplyError::Busy`] if another process has it; another if the folder cannot be made or written to.
    pub fn lock(&self) -> Result<Lock, ApplyError> {
        let file = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(ApplyError::Busy),
            Err(error) => Err(ApplyError::io(self.use_it())(error.into())),
        }
    }

    /// Takes the lock when nobody else has it any more.
    ///
    /// # Errors
    /// If the folder cannot be made or written to.
    pub fn wait_for_lock(&self) -> Result<Lock, ApplyError> {
        let file = self.lock_file()?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(ApplyError::io(self.use_it())(error.into())),
            }
        }
    }

    fn use_it(&self) -> String {
        format!("use {}, where dualq records what it changes", self.folder.display())
    }

    fn lock_file(&self) -> Result<File, ApplyError> {
        if !self.folder.exists() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
            let above = self.folder.parent().filter(|above| !above.as_os_str().is_empty());
            made.and_then(|()| File::open(above.unwrap_or(Path::new(".")))?.sync_all())
                .map_err(ApplyError::io(self.use_it()))?;
        }
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        options.open(self.folder.join(LOCK)).map_err(ApplyError::io(self.use_it()))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{RECORD}{number:06}{SUFFIX}"))
    }

    /// The numbers of all records, in order.
    fn numbers(&self) -> Result<Vec<u64>, ApplyError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(ApplyError::io(self.use_it()))?,
        };
        let number = |name: &str| name.strip_prefix(RECORD)?.strip_suffix(SUFFIX)?.parse().ok();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|name| number(&name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// One record, if there is one of that number.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(&self, number: u64) -> Result<Option<Record>, ApplyError> {
        let path = self.path(number);
        let what = || format!("read {}", path.display());
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(ApplyError::io(what()))?,
        };
        let record: Record = serde_json::from_slice(&bytes)
            .map_err(|error| ApplyError::io(what())(io::Error::other(error.to_string())))?;
        if record.format != super::record::FORMAT
            || record.entries.len() != record.plan.changes.len()
        {
            return Err(ApplyError::io(what())(io::Error::other(
                "another version of dualq wrote it",
            )));
        }
        Ok(Some(record))
    }

    /// The newest record that is open, and before that the newest of all.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn newest(&self) -> Result<Option<Record>, ApplyError> {
        let mut closed = None;
        for number in self.numbers()?.into_iter().rev() {
            match self.load(number)? {
                Some(record) if record.is_open() => return Ok(Some(record)),
                record => closed = closed.or(record),
            }
        }
        Ok(closed)
    }

    /// The open records before that of a number, the newest first.
    pub(crate) fn below(&self, number: u64) -> Result<Vec<Record>, ApplyError> {
        let mut below = Vec::new();
        for earlier in self.numbers()?.into_iter().rev().filter(|earlier| *earlier < number) {
            below.extend(self.load(earlier)?.filter(Record::is_open));
        }
        Ok(below)
    }

    /// The number of the record after all that are there.
    pub(crate) fn next_number(&self) -> Result<u64, ApplyError> {
        Ok(self.numbers()?.last().map_or(1, |last| last + 1))
    }

    /// Removes the records of plans that were taken back before this one.
    pub(crate) fn prune(&self, record: &Record, _lock: &Lock) {
        for earlier in self.numbers().unwrap_or_default() {
            let is_over = matches!(self.load(earlier), Ok(Some(found)) if !found.is_open());
            if is_over && earlier < record.number {
                // They only take space.
                let _ = fs::remove_file(self.path(earlier));
            }
        }
    }

    /// Whether a restart of the machine would lose the records.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        rustix::fs::statfs(&self.folder).is_ok_and(|found| MEMORY.contains(&(found.f_type as u32)))
    }

    /// Writes a record so that after a power cut there is either the old one or the new one.
    pub(crate) fn save(&self, record: &Record, _lock: &Lock) -> Result<(), ApplyError> {
        let path = self.path(record.number);
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(record)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| {
            // Half a record on a full disk is of no use.
            let _ = fs::remove_file(&new);
            ApplyError::io(format!("write {}", path.display()))(error)
        })
    }
}
