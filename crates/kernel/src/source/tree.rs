//! A tree of Linux sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Origin;
use crate::error::KernelError;
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
        let origin = Origin::Directory { path: path.to_owned() };
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
        Ok(tree)
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
}
