//! A tree of Linux sources.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Origin;
use crate::error::KernelError;
use crate::hash::fnv1a;
use crate::process::Runner;
use crate::version::Version;

/// Sources that can be built.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) version: Version,
    pub(crate) origin: Origin,
}

/// What marks a tree in which somebody has built a kernel: `make O=...` refuses it.
const BUILT_IN: [&str; 3] = [".config", "include/config", "arch/um/include/generated"];

/// What a tarball is unpacked with beside tar. `None`: it is no tarball; `Some(None)`: it is not compressed.
pub(super) fn compression(path: &Path) -> Option<Option<&'static str>> {
    let name = path.file_name()?.to_str()?;
    let endings = [
        (".tar", None),
        (".tar.gz", Some("gzip")),
        (".tgz", Some("gzip")),
        (".tar.xz", Some("xz")),
        (".tar.zst", Some("zstd")),
        (".tar.bz2", Some("bzip2")),
    ];
    endings.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, program)| *program)
}

impl Tree {
    /// A tree that belongs to somebody else.
    pub(crate) fn open(path: &Path) -> Result<Self, KernelError> {
        let origin = Origin::Directory { path: path.to_owned(), state: None };
        let tree = Self::at(path, origin, path)?;
        let wrong = |fault: &str| {
            Err(KernelError::Source { path: path.to_owned(), fault: fault.to_owned() })
        };
        if BUILT_IN.iter().any(|name| path.join(name).exists()) {
            return wrong(
                "a kernel was configured or built inside this tree, and make builds elsewhere from clean trees \
                 only; run `make mrproper` in it, or add a clean `git worktree` and give that",
            );
        }
        let state = state(path).map_err(|(path, error)| KernelError::file("read", &path)(error))?;
        let origin =
            Origin::Directory { path: path.to_owned(), state: Some(format!("{state:08x}")) };
        Ok(Self { origin, ..tree })
    }

    /// Unpacks a tarball into a folder that is not there yet.
    pub(crate) fn unpack(
        tarball: &Path,
        into: &Path,
        origin: Origin,
        runner: &mut Runner<'_>,
    ) -> Result<Self, KernelError> {
        fs::create_dir(into).map_err(KernelError::file("write", into))?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(tarball).arg("--no-same-owner").arg("-C").arg(into);
        runner.run(&format!("unpacking {}", tarball.display()), &mut tar, &mut |_| {})?;
        // Tarballs have one folder at their top.
        let entries = fs::read_dir(into).map_err(KernelError::file("read", into))?;
        let mut folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        let root = match (folders.next(), folders.next()) {
            (Some(only), None) => only,
            _ => into.to_owned(),
        };
        Self::at(&root, origin, tarball)
    }

    /// A tree in `folder`, which is not there yet, with `text` as its `file` and all else of this one, by links. Nothing is written to this one.
    ///
    /// git's files are left out: the kernel's name would tell that something was changed.
    pub(crate) fn with(&self, file: &Path, text: &str, folder: &Path) -> Result<Self, KernelError> {
        let (mut from, mut to) = (self.root.clone(), folder.to_owned());
        for name in file {
            fs::create_dir(&to).map_err(KernelError::file("write", &to))?;
            for entry in fs::read_dir(&from).map_err(KernelError::file("read", &from))? {
                let entry = entry.map_err(KernelError::file("read", &from))?;
                if entry.file_name() == name || entry.file_name() == ".git" {
                    continue;
                }
                let link = to.join(entry.file_name());
                symlink(entry.path(), &link).map_err(KernelError::file("write", &link))?;
            }
            from.push(name);
            to.push(name);
        }
        fs::write(&to, text).map_err(KernelError::file("write", &to))?;
        let (version, origin) = (self.version.clone(), self.origin.clone());
        Ok(Self { root: folder.to_owned(), version, origin })
    }

    fn at(root: &Path, origin: Origin, given: &Path) -> Result<Self, KernelError> {
        let wrong =
            |fault: &str| KernelError::Source { path: given.to_owned(), fault: fault.to_owned() };
        // make has its own, longer words for this.
        if root.to_string_lossy().contains([' ', ':', '\t', '\n']) {
            return Err(wrong(
                "Linux cannot be built where a folder's name has a space or a colon",
            ));
        }
        let version = fs::read_to_string(root.join("Makefile"))
            .ok()
            .filter(|_| root.join("arch/um").is_dir())
            .and_then(|makefile| Version::of_makefile(&makefile))
            .ok_or_else(|| {
                wrong("not a Linux source tree: a Makefile with VERSION, and arch/um")
            })?;
        Ok(Self { root: root.to_owned(), version, origin })
    }
}

/// Tells whether a file below a folder was added, removed or written to: by names, sizes and times of modification, as to read all
/// takes too long. git's own files, which change as somebody only looks, do not count.
fn state(folder: &Path) -> Result<u32, (PathBuf, io::Error)> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    let (mut folders, mut sum) = (vec![folder.to_owned()], 0_u32);
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(&below).map_err(failed(&below))? {
            let entry = entry.map_err(failed(&below))?;
            if entry.file_name() == ".git" {
                continue;
            }
            let path = entry.path();
            let metadata = entry.metadata().map_err(failed(&path))?;
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).as_os_str().as_bytes();
            let numbers = [metadata.size(), metadata.mtime() as u64, metadata.mtime_nsec() as u64];
            let numbers = numbers.into_iter().flat_map(u64::to_le_bytes);
            // Folders have no order.
            sum = sum.wrapping_add(fnv1a(name.iter().copied().chain([0]).chain(numbers)));
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tarballs_are_known_by_their_names() {
        let compression = |name: &str| compression(Path::new(name));
        assert_eq!(compression("/x/linux-7.3.tar.xz"), Some(Some("xz")));
        assert_eq!(compression("linux.tar"), Some(None));
        assert_eq!(compression("linux-7.3.patch.xz"), None);
    }

    #[test]
    fn only_clean_trees_of_linux_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let opened = || Tree::open(folder.path()).map(|tree| tree.version.to_string());
        assert!(opened().unwrap_err().to_string().contains("not a Linux source tree"));
        fs::create_dir_all(folder.path().join("arch/um")).unwrap();
        let makefile = "VERSION = 6\nPATCHLEVEL = 17\nSUBLEVEL = 0\nEXTRAVERSION =\n";
        fs::write(folder.path().join("Makefile"), makefile).unwrap();
        assert_eq!(opened().unwrap(), "6.17.0");
        fs::write(folder.path().join(".config"), "").unwrap();
        assert!(opened().unwrap_err().to_string().contains("make mrproper"));
    }

    #[test]
    fn what_was_written_to_is_another_tree() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("net/ipv4")).unwrap();
        fs::create_dir(path(".git")).unwrap();
        fs::write(path("net/ipv4/Makefile"), "obj-y := a.o\n").unwrap();
        let mut states = vec![state(folder.path()).unwrap()];
        fs::write(path(".git/index"), "looked at").unwrap();
        assert_eq!(state(folder.path()).unwrap(), states[0]);
        // The same length: the time alone tells.
        fs::write(path("net/ipv4/Makefile"), "obj-y := b.o\n").unwrap();
        let file = fs::File::options().write(true).open(path("net/ipv4/Makefile")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        states.push(state(folder.path()).unwrap());
        fs::rename(path("net/ipv4/Makefile"), path("net/ipv4/Kconfig")).unwrap();
        states.push(state(folder.path()).unwrap());
        fs::write(path("net/ipv4/tcp_own.c"), "").unwrap();
        states.push(state(folder.path()).unwrap());
        let mut different = states.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), states.len(), "{states:?}");
    }
}
