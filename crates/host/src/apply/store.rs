//! Where records are kept, and who may write there.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, fstatfs, fsync,
    openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{ApplyError, Record};

const LOCK: &str = "lock";
const RECORD: &str = "record-";
const SUFFIX: &str = ".json";
const WATCH: &str = "watch-";
const KEPT: &str = "kept";
/// tmpfs and ramfs (`TMPFS_MAGIC`, `RAMFS_MAGIC`).
const MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
/// More than any record has: each of its files is at most 1 MiB long.
const LONGEST: u64 = 64 << 20;
/// How long somebody else may be at work before that is an error, and how often it is tried meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(20);
/// Writable to the group or to everybody.
const BY_OTHERS: u32 = 0o022;

/// The folder of the records, `/var/lib/dualq`: one file for each plan that was applied. Whoever could write there could have root
/// write anything, so a folder or file that belongs to anybody but root and the caller, or that others may write to, is refused.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Whoever has it may change the machine; it goes with its process, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// The lock as what a program is given to read: it lasts until that program has ended too.
    pub(crate) fn held_on(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }
}

/// Whoever has it watches over a record; it goes with its process.
#[derive(Debug)]
pub(crate) struct Watch {
    _file: File,
}

/// Whoever has it keeps this machine's routes; it goes with its process.
#[derive(Debug)]
pub(crate) struct Keep {
    _file: File,
}

impl Store {
    /// Where dualq keeps them if nobody says otherwise.
    pub const FOLDER: &str = crate::plan::USUAL_STATE;

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

    /// Makes the folder if it is not there, and takes the lock. Whoever has it is given a second: a watchdog, say, that takes back what
    /// was not confirmed.
    ///
    /// # Errors
    /// [`ApplyError::Busy`] if another process keeps it; another if the folder cannot be made or written to.
    pub fn lock(&self) -> Result<Lock, ApplyError> {
        let file = self.lock_file()?;
        if self.try_for_a_while(&file)? { Ok(Lock { file }) } else { Err(ApplyError::Busy) }
    }

    /// Locks it, unless another process keeps that up.
    fn try_for_a_while(&self, file: &File) -> Result<bool, ApplyError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(RETRY),
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(error) => return Err(self.cannot_use(error.into())),
            }
        }
    }

    /// Takes the lock when nobody else has it any more.
    ///
    /// # Errors
    /// If the folder cannot be made or written to.
    pub fn wait_for_lock(&self) -> Result<Lock, ApplyError> {
        let file = self.lock_file()?;
        self.wait_for(&file)?;
        Ok(Lock { file })
    }

    /// Begins to watch over a record, once nobody else does.
    pub(crate) fn watch(&self, number: u64) -> Result<Watch, ApplyError> {
        let folder = self.existing()?;
        let file = self.open_to_lock(&folder, &watch(number))?;
        self.wait_for(&file)?;
        Ok(Watch { _file: file })
    }

    /// Whether a process watches over a record.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn is_watched(&self, number: u64) -> Result<bool, ApplyError> {
        self.is_held(&watch(number))
    }

    /// Begins to keep what others may take away, unless another process does.
    pub(crate) fn keep(&self) -> Result<Option<Keep>, ApplyError> {
        let file = self.open_to_lock(&self.existing()?, KEPT)?;
        Ok(self.try_for_a_while(&file)?.then_some(Keep { _file: file }))
    }

    /// Whether a process [keeps](super::Host::keep) what others may take away.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn is_kept(&self) -> Result<bool, ApplyError> {
        self.is_held(KEPT)
    }

    fn is_held(&self, name: &str) -> Result<bool, ApplyError> {
        let file = self.open_to_lock(&self.existing()?, name)?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(self.cannot_use(error.into())),
        }
    }

    fn wait_for(&self, file: &File) -> Result<(), ApplyError> {
        loop {
            match flock(file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.cannot_use(error.into())),
            }
        }
    }

    fn cannot_use(&self, error: io::Error) -> ApplyError {
        let what = format!("use {}, where dualq records what it changes", self.folder.display());
        ApplyError::io(what)(error)
    }

    /// The folder, if there is one, and nobody else could have written there.
    fn open(&self) -> Result<Option<OwnedFd>, ApplyError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::open(&self.folder, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let error = io::Error::other("it is a symbolic link or no folder");
                return Err(self.cannot_use(error));
            }
            Err(error) => return Err(self.cannot_use(error.into())),
        };
        let found = fstat(&folder).map_err(|error| self.cannot_use(error.into()))?;
        trusted(&found).map_err(|why| self.cannot_use(io::Error::other(why)))?;
        Ok(Some(folder))
    }

    fn existing(&self) -> Result<OwnedFd, ApplyError> {
        self.open()?.ok_or_else(|| self.cannot_use(Errno::NOENT.into()))
    }

    fn lock_file(&self) -> Result<File, ApplyError> {
        let folder = match self.open()? {
            Some(folder) => folder,
            None => {
                let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
                let above = self.folder.parent().filter(|above| !above.as_os_str().is_empty());
                made.and_then(|()| File::open(above.unwrap_or(Path::new(".")))?.sync_all())
                    .map_err(|error| self.cannot_use(error))?;
                self.existing()?
            }
        };
        self.open_to_lock(&folder, LOCK)
    }

    fn open_to_lock(&self, folder: &OwnedFd, name: &str) -> Result<File, ApplyError> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR);
        file.map(File::from).map_err(|error| self.cannot_use(error.into()))
    }

    fn shown(&self, number: u64) -> String {
        self.folder.join(name(number)).display().to_string()
    }

    /// The numbers of all records, in order.
    fn numbers(&self) -> Result<Vec<u64>, ApplyError> {
        let Some(folder) = self.open()? else { return Ok(Vec::new()) };
        let entries = Dir::read_from(&folder).map_err(|error| self.cannot_use(error.into()))?;
        let number = |name: &CStr| -> Option<u64> {
            let name = name.to_str().ok()?;
            name.strip_prefix(RECORD)?.strip_suffix(SUFFIX)?.parse().ok()
        };
        let mut numbers: Vec<u64> =
            entries.filter_map(|entry| number(entry.ok()?.file_name())).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// One record, if there is one of that number.
    ///
    /// # Errors
    /// If it cannot be read, somebody else could have written it, or it asks for what no record of dualq's does.
    pub fn load(&self, number: u64) -> Result<Option<Record>, ApplyError> {
        let cannot =
            |error: io::Error| ApplyError::io(format!("read {}", self.shown(number)))(error);
        let refused = |why: &str| Err(cannot(io::Error::other(why.to_owned())));
        let Some(folder) = self.open()? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, name(number), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return refused("it is a symbolic link"),
            Err(error) => return Err(cannot(error.into())),
        };
        let found = fstat(&file).map_err(|error| cannot(error.into()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return refused("it is no file");
        }
        if let Err(why) = trusted(&found) {
            return refused(&why);
        }
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(cannot)?;
        if bytes.len() as u64 > LONGEST {
            return refused("it is longer than any record");
        }
        let record: Record = match serde_json::from_slice(&bytes) {
            Ok(record) => record,
            Err(error) => return refused(&error.to_string()),
        };
        if record.format != super::record::FORMAT {
            return refused("another version of dualq wrote it");
        }
        match record.check(number) {
            Ok(()) => Ok(Some(record)),
            Err(why) => refused(&format!("it is no record of dualq's: {why}")),
        }
    }

    /// The newest record that is open, and before that the newest of all.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn newest(&self) -> Result<Option<Record>, ApplyError> {
        let open = self.find(&mut |record| record.is_open())?;
        open.map_or_else(|| self.last(), |record| Ok(Some(record)))
    }

    /// The newest record that is wanted, as `wanted` leaves it.
    pub(crate) fn find(
        &self,
        wanted: &mut dyn FnMut(&mut Record) -> bool,
    ) -> Result<Option<Record>, ApplyError> {
        for number in self.numbers()?.into_iter().rev() {
            if let Some(mut record) = self.load(number)?
                && wanted(&mut record)
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The record that was ended last: not the newest, if an older plan was taken back after that.
    pub(crate) fn ended_last(&self) -> Result<Option<Record>, ApplyError> {
        let mut last: Option<Record> = None;
        self.find(&mut |record| {
            // Of one second, an older one: it is taken back after those above it.
            if last.as_ref().is_none_or(|last| record.ended >= last.ended) {
                last = Some(record.clone());
            }
            false
        })?;
        Ok(last)
    }

    /// The record of the plan that was applied last, whatever became of it.
    pub(crate) fn last(&self) -> Result<Option<Record>, ApplyError> {
        self.numbers()?.last().map_or(Ok(None), |number| self.load(*number))
    }

    /// The records before that of a number whose plans are in force, the newest first.
    pub(crate) fn below(&self, number: u64) -> Result<Vec<Record>, ApplyError> {
        let mut below = Vec::new();
        for earlier in self.numbers()?.into_iter().rev().filter(|earlier| *earlier < number) {
            below.extend(self.load(earlier)?.filter(Record::is_in_force));
        }
        Ok(below)
    }

    /// The number of the record after all that are there.
    pub(crate) fn next_number(&self) -> Result<u64, ApplyError> {
        Ok(self.numbers()?.last().map_or(1, |last| last + 1))
    }

    /// Removes the records of plans that were taken back before this one.
    pub(crate) fn prune(&self, record: &Record, _lock: &Lock) {
        let Ok(Some(folder)) = self.open() else { return };
        for earlier in self.numbers().unwrap_or_default() {
            let is_over = matches!(self.load(earlier), Ok(Some(found)) if !found.is_open());
            if is_over && earlier < record.number {
                // They only take space.
                let _ = unlinkat(&folder, name(earlier), AtFlags::empty());
                let _ = unlinkat(&folder, watch(earlier), AtFlags::empty());
            }
        }
    }

    /// Whether a restart of the machine would lose the records.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        let found = self.open().ok().flatten().and_then(|folder| fstatfs(&folder).ok());
        found.is_some_and(|found| MEMORY.contains(&(found.f_type as u32)))
    }

    /// Writes a record so that after a power cut there is either the old one or the new one.
    pub(crate) fn save(&self, record: &Record, _lock: &Lock) -> Result<(), ApplyError> {
        let folder = self.existing()?;
        let new = format!("{RECORD}{:06}.new", record.number);
        let write = || -> io::Result<()> {
            let flags = OFlags::CREATE
                | OFlags::TRUNC
                | OFlags::WRONLY
                | OFlags::NOFOLLOW
                | OFlags::CLOEXEC;
            let mut file = File::from(openat(&folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
            file.write_all(&serde_json::to_vec_pretty(record)?)?;
            file.sync_all()?;
            renameat(&folder, &new, &folder, name(record.number))?;
            Ok(fsync(&folder)?)
        };
        write().map_err(|error| {
            // Half a record on a full disk is of no use.
            let _ = unlinkat(&folder, &new, AtFlags::empty());
            ApplyError::io(format!("write {}", self.shown(record.number)))(error)
        })
    }
}

fn name(number: u64) -> String {
    format!("{RECORD}{number:06}{SUFFIX}")
}

fn watch(number: u64) -> String {
    format!("{WATCH}{number:06}")
}

/// Whether nobody but root and the caller could have written there.
fn trusted(found: &Stat) -> Result<(), String> {
    if found.st_uid != 0 && found.st_uid != geteuid().as_raw() {
        return Err(format!("it belongs to user {}, not to root", found.st_uid));
    }
    if found.st_mode & BY_OTHERS != 0 {
        let mode = found.st_mode & 0o7777;
        return Err(format!("others than its owner may write to it (mode {mode:04o})"));
    }
    Ok(())
}
