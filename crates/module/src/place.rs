//! Files below a root, which may be an image of somebody else's: no link in it leads anywhere outside.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use dualq_host::Root;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RawMode, ResolveFlags, fchmod, fsync, mkdirat, openat, openat2,
    renameat, unlinkat,
};
use rustix::io::Errno;

/// What folders and files on the way to a module are for everybody.
pub(crate) const FOLDERS: RawMode = 0o755;

/// A file's place: its folder is open, so that nobody can put another in its way.
pub(crate) struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Place {
    /// The place of an absolute path, if its folder is there.
    pub(crate) fn find(root: &Root, path: &str) -> io::Result<Option<Self>> {
        let Some((above, name)) = split(path) else { return Err(Errno::INVAL.into()) };
        match folder(root, above) {
            Ok(folder) => Ok(Some(Self { folder, name })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, with the folders above it made if they are not there: for everybody to read if `mode` says so.
    pub(crate) fn make(root: &Root, path: &str, mode: RawMode) -> io::Result<Self> {
        let Some((above, name)) = split(path) else { return Err(Errno::INVAL.into()) };
        match folder(root, above) {
            Ok(folder) => Ok(Self { folder, name }),
            Err(Errno::NOENT) => {
                let parent = Self::make(root, &above.to_string_lossy(), mode)?;
                mkdirat(&parent.folder, &parent.name, Mode::from_raw_mode(mode))?;
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let folder = openat(&parent.folder, &parent.name, flags, Mode::empty())?;
                // Whatever the umask took away.
                fchmod(&folder, Mode::from_raw_mode(mode))?;
                Ok(Self { folder, name })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the file; it is there whole or not at all.
    pub(crate) fn write(&self, bytes: &[u8], mode: RawMode) -> io::Result<()> {
        let temporary = self.temporary();
        // From a call that was cut short.
        unlink(&self.folder, &temporary, AtFlags::empty())?;
        let write = || {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mut file = File::from(openat(&self.folder, &temporary, flags, Mode::RUSR)?);
            file.write_all(bytes)?;
            fchmod(&file, Mode::from_raw_mode(mode))?;
            file.sync_all()?;
            renameat(&self.folder, &temporary, &self.folder, &self.name)?;
            match fsync(&self.folder) {
                // Not every file system can, and then it need not.
                Ok(()) | Err(Errno::INVAL) => Ok(()),
                Err(error) => Err(io::Error::from(error)),
            }
        };
        write().inspect_err(|_| {
            let _ = unlink(&self.folder, &temporary, AtFlags::empty());
        })
    }

    /// The name under which the file is written before it gets its own.
    fn temporary(&self) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".dualq");
        name
    }

    /// What is in the file, which is no link and no longer than `longest`.
    pub(crate) fn read(&self, longest: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.folder, &self.name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut bytes = Vec::new();
        file.take(longest + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > longest {
            return Err(io::Error::other(format!("it is longer than {longest} bytes")));
        }
        Ok(bytes)
    }

    /// Removes the file, or what has its name, and what a write that was cut short has left; if there is none, that is no trouble.
    pub(crate) fn remove(&self) -> io::Result<()> {
        unlink(&self.folder, &self.temporary(), AtFlags::empty())?;
        unlink(&self.folder, &self.name, AtFlags::empty())
    }

    /// Removes the folder of this name, if there is one and nothing is in it.
    pub(crate) fn remove_folder(&self) -> io::Result<()> {
        unlink(&self.folder, &self.name, AtFlags::REMOVEDIR)
    }
}

fn unlink(folder: &OwnedFd, name: &OsStr, flags: AtFlags) -> io::Result<()> {
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a path below the root is the same for the root's own programs, to which its links lead where they say, and for others.
pub(crate) fn stays_inside(root: &Root, path: &str) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let inside = folder(root, Path::new(path)).and_then(rustix::fs::fstat);
    let outside = std::fs::metadata(root.at(path));
    match (inside, outside) {
        (Ok(inside), Ok(outside)) => {
            (inside.st_dev, inside.st_ino) == (outside.dev(), outside.ino())
        }
        _ => false,
    }
}

fn folder(root: &Root, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    if *root == Root::host() {
        return openat(CWD, path, flags, Mode::empty());
    }
    let start = openat(CWD, root.at("/"), flags, Mode::empty())?;
    openat2(start, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)
}

/// The folder and the name of an absolute path, all of whose parts are names.
fn split(path: &str) -> Option<(&Path, OsString)> {
    let path = Path::new(path);
    let is_name = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_name) {
        return None;
    }
    Some((path.parent()?, path.file_name()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_lead_nowhere_outside() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let root = Root::new(at("image"));
        fs::create_dir_all(at("image/usr/lib")).unwrap();
        fs::create_dir(at("host")).unwrap();
        fs::write(at("host/file"), "host").unwrap();
        symlink(at("host"), at("image/absolute")).unwrap();
        symlink("../../../../../host", at("image/relative")).unwrap();
        symlink("usr/lib", at("image/lib")).unwrap();
        for path in ["/absolute/file", "/relative/file"] {
            assert!(Place::find(&root, path).unwrap().is_none(), "{path}");
            assert!(Place::make(&root, path, FOLDERS).is_err(), "{path}");
            assert!(!stays_inside(&root, Path::new(path).parent().unwrap().to_str().unwrap()));
        }
        for path in ["/../host/file", "relative", "/", ""] {
            assert!(Place::find(&root, path).is_err(), "{path}");
        }
        // Inside, they lead where they do on the machine itself.
        let place = Place::make(&root, "/lib/modules/1/x.ko", FOLDERS).unwrap();
        place.write(b"module", 0o644).unwrap();
        assert_eq!(fs::read(at("image/usr/lib/modules/1/x.ko")).unwrap(), b"module");
        assert_eq!(place.read(6).unwrap(), b"module");
        assert_eq!(place.read(5).unwrap_err().to_string(), "it is longer than 5 bytes");
        assert!(stays_inside(&root, "/lib/modules/1"));
        place.remove().unwrap();
        place.remove().unwrap();
        assert_eq!(fs::read_dir(at("image/usr/lib/modules/1")).unwrap().count(), 0);
        // The last name is taken as it is.
        symlink(at("host/file"), at("image/usr/lib/modules/1/x.ko")).unwrap();
        assert!(place.read(6).is_err());
        place.remove().unwrap();
        assert_eq!(fs::read(at("host/file")).unwrap(), b"host");
    }
}
