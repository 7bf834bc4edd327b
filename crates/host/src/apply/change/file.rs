//! Files: read, proven to be writable, written, and put back.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, StatxAttributes, StatxFlags, Timespec, Timestamps, Uid,
    fchmod, fchown, fstat, fsync, futimens, mkdirat, openat, renameat, statx, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Root;
use crate::apply::{ApplyError, Step};

/// No file of a plan is longer.
const LONGEST: u64 = 1 << 20;
/// As far as permissions go: no more bits than these are kept or set.
const PERMISSIONS: u32 = 0o7777;

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// What is in it.
    pub content: String,
    /// Its permissions.
    pub mode: u32,
    /// Its owner and its group.
    pub owner: (u32, u32),
    /// When it was last changed: seconds and nanoseconds.
    pub changed: (i64, u32),
}

impl Saved {
    /// Refuses what no file is.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.content.len() as u64 > LONGEST || self.mode & !PERMISSIONS != 0 {
            return Err("it has a file that dualq would not have recorded".to_owned());
        }
        Ok(())
    }

    /// Whether both have the same content, permissions and owners.
    #[must_use]
    pub fn is_as(&self, other: &Self) -> bool {
        (&self.content, self.mode, self.owner) == (&other.content, other.mode, other.owner)
    }
}

/// What is to be in a file.
pub(crate) struct Wanted<'a> {
    pub(crate) content: &'a str,
    pub(crate) mode: u32,
    /// If it is to have those of a file that was there.
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) changed: Option<(i64, u32)>,
}

/// A file's place: its folder is open, so that nobody can put another in its way.
pub(crate) struct Place {
    path: String,
    folder: OwnedFd,
    /// Folders between that one and the file that are not there.
    missing: Vec<OsString>,
    name: OsString,
}

impl Place {
    /// Goes there from the root, through folders only.
    pub(crate) fn find(root: &Root, path: &str) -> Result<Self, ApplyError> {
        let walk = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut names: Vec<OsString> =
            path.split('/').filter(|name| !name.is_empty()).map(OsString::from).collect();
        let name = names.pop().unwrap_or_default();
        let start = root.at("/");
        let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(&start, open, Mode::empty())
            .map_err(|error| ApplyError::io(format!("open {}", start.display()))(error.into()))?;
        for (depth, step) in names.iter().enumerate() {
            match openat(&folder, step, walk, Mode::empty()) {
                Ok(next) => folder = next,
                Err(Errno::NOENT) => {
                    let missing = names[depth..].to_vec();
                    return Ok(Self { path: path.to_owned(), folder, missing, name });
                }
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Err(ApplyError::Plan(format!(
                        "{path} is not written: /{} on the way is a link or no folder",
                        names[..=depth].join("/".as_ref()).to_string_lossy()
                    )));
                }
                Err(error) => return Err(ApplyError::io(format!("reach {path}"))(error.into())),
            }
        }
        Ok(Self { path: path.to_owned(), folder, missing: Vec::new(), name })
    }

    pub(crate) fn missing_folders(&self) -> usize {
        self.missing.len()
    }

    /// The file, if there is one.
    pub(crate) fn read(&self) -> Result<Option<Saved>, ApplyError> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        let cannot = |error: Errno| ApplyError::io(format!("read {}", self.path))(error.into());
        let refused =
            |what: &str| ApplyError::Plan(format!("{} is not written: it is {what}", self.path));
        // To open some things is to do something to them; so first look.
        let open = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let kind = match statx(
            &self.folder,
            &self.name,
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::BASIC_STATS,
        ) {
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(cannot(error)),
            Ok(found) => FileType::from_raw_mode(found.stx_mode.into()),
        };
        match kind {
            FileType::RegularFile => {}
            FileType::Directory => return Err(refused("a folder")),
            FileType::Symlink => return Err(refused("a symbolic link")),
            _ => return Err(refused("no regular file")),
        }
        let file = openat(&self.folder, &self.name, open | OFlags::RDONLY, Mode::empty());
        let file = File::from(file.map_err(cannot)?);
        let found = fstat(&file).map_err(cannot)?;
        let mut content = Vec::new();
        let read = (&file).take(LONGEST + 1).read_to_end(&mut content);
        read.map_err(ApplyError::io(format!("read {}", self.path)))?;
        if content.len() as u64 > LONGEST {
            return Err(refused("longer than any file that dualq writes"));
        }
        let content = String::from_utf8(content).map_err(|_| refused("no text now"))?;
        Ok(Some(Saved {
            content,
            mode: found.st_mode & PERMISSIONS,
            owner: (found.st_uid, found.st_gid),
            changed: (found.st_mtime, found.st_mtime_nsec as u32),
        }))
    }

    /// Makes sure, without a trace, that the file can be written later on.
    pub(crate) fn prove(&self, content: &str) -> Result<(), ApplyError> {
        let refused = |what: &str| {
            Err(ApplyError::Plan(format!("{} cannot be replaced: it is {what}", self.path)))
        };
        let look =
            statx(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
        if let (true, Ok(found)) = (self.missing.is_empty(), look) {
            if found.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND)
            {
                return refused("immutable (chattr -i lets it be changed)");
            }
            if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
                return refused("mounted there");
            }
        }
        let fill = |file: OwnedFd| {
            let mut file = File::from(file);
            file.write_all(content.as_bytes())?;
            // Some file systems find out only then that there is no space.
            file.sync_all()
        };
        let unnamed = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let proven = match openat(&self.folder, ".", unnamed, Mode::RUSR | Mode::WUSR) {
            Ok(file) => fill(file),
            // Not every file system has files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                self.create().map_err(io::Error::from).and_then(|file| {
                    let filled = fill(file);
                    let removed = unlinkat(&self.folder, self.temporary(), AtFlags::empty());
                    filled.and(removed.map_err(io::Error::from))
                })
            }
            Err(error) => Err(error.into()),
        };
        proven.map_err(ApplyError::io(format!("write {}", self.path)))
    }

    /// The name under which the file is written before it gets its own. None of the programs that read such folders takes it for
    /// theirs.
    fn temporary(&self) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".dualq");
        name
    }

    fn create(&self) -> Result<OwnedFd, Errno> {
        let create =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.folder, self.temporary(), create, Mode::RUSR | Mode::WUSR)
    }

    /// Removes what a write that was cut short left behind.
    pub(crate) fn clean(&self) -> Result<(), ApplyError> {
        match unlinkat(&self.folder, self.temporary(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.cannot_write(error)),
        }
    }

    fn cannot_write(&self, error: Errno) -> ApplyError {
        ApplyError::io(format!("write {}", self.path))(error.into())
    }

    /// Writes the file whole: there is the old one, or the new one.
    pub(crate) fn write(
        &mut self,
        wanted: &Wanted<'_>,
        step: &mut dyn FnMut(&Step),
    ) -> Result<(), ApplyError> {
        for name in std::mem::take(&mut self.missing) {
            let mode = Mode::from_raw_mode(0o755);
            let made = match mkdirat(&self.folder, &name, mode) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(self.cannot_write(error)),
            };
            self.synchronize()?;
            let walk = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            self.folder = openat(&self.folder, &name, walk, Mode::empty())
                .map_err(|error| self.cannot_write(error))?;
            if made {
                // Whatever the umask took away.
                fchmod(&self.folder, mode).map_err(|error| self.cannot_write(error))?;
            }
            step(&Step::Part(format!("the folder for {}", self.path)));
        }
        self.clean()?;
        let written = self.fill(wanted).and_then(|()| {
            step(&Step::Part(format!("{} under another name", self.path)));
            renameat(&self.folder, self.temporary(), &self.folder, &self.name)
                .map_err(io::Error::from)
        });
        if let Err(error) = written {
            let _ = self.clean();
            return Err(ApplyError::io(format!("write {}", self.path))(error));
        }
        step(&Step::Part(format!("{} by its name", self.path)));
        self.synchronize()
    }

    fn fill(&self, wanted: &Wanted<'_>) -> io::Result<()> {
        let mut file = File::from(self.create()?);
        file.write_all(wanted.content.as_bytes())?;
        if let Some((user, group)) = wanted.owner {
            let found = fstat(&file)?;
            if (found.st_uid, found.st_gid) != (user, group) {
                fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
            }
        }
        // Behind the owner, which takes some bits away.
        fchmod(&file, Mode::from_raw_mode(wanted.mode))?;
        if let Some((seconds, nanos)) = wanted.changed {
            let time = Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
            futimens(&file, &Timestamps { last_access: time, last_modification: time })?;
        }
        file.sync_all()
    }

    fn synchronize(&self) -> Result<(), ApplyError> {
        match fsync(&self.folder) {
            // Not every file system can, and then it need not.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(self.cannot_write(error)),
        }
    }

    /// Puts back what was there: a file, or none, and no folder that was not there either.
    pub(crate) fn restore(
        &mut self,
        before: Option<&Saved>,
        root: &Root,
        missing_folders: usize,
        step: &mut dyn FnMut(&Step),
    ) -> Result<(), ApplyError> {
        if let Some(before) = before {
            let (owner, changed) = (Some(before.owner), Some(before.changed));
            let wanted = Wanted { content: &before.content, mode: before.mode, owner, changed };
            return self.write(&wanted, step);
        }
        if self.missing.is_empty() {
            self.clean()?;
            match unlinkat(&self.folder, &self.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => self.synchronize()?,
                Err(error) => return Err(self.cannot_write(error)),
            }
            step(&Step::Part(format!("{} is removed", self.path)));
        }
        self.remove_folders(root, missing_folders, step)
    }

    fn remove_folders(
        &self,
        root: &Root,
        count: usize,
        step: &mut dyn FnMut(&Step),
    ) -> Result<(), ApplyError> {
        let mut path = self.path.as_str();
        for _ in 0..count {
            path = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let place = Self::find(root, path)?;
            if !place.missing.is_empty() {
                continue;
            }
            match unlinkat(&place.folder, &place.name, AtFlags::REMOVEDIR) {
                Ok(()) => {
                    place.synchronize()?;
                    step(&Step::Part(format!("{path} is removed")));
                }
                // Somebody else put something there meanwhile.
                Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(place.cannot_write(error)),
            }
        }
        Ok(())
    }
}
