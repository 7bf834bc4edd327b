//! A folder with a module: the source, what is put before it, and what was built of it.

use std::fs;
use std::path::{Path, PathBuf};

use dualq_kernel::Origin;
use serde::{Deserialize, Serialize};

use crate::MODULE;
use crate::error::ModuleError;

/// The name of the folder's own document.
const FACTS: &str = "module.json";

/// The version of that document.
const FORMAT: u32 = 1;

/// Our files in it. The source stands beside them as Linux has it.
const FILES: [(&str, &str); 4] = [
    ("Kbuild", include_str!("folder/Kbuild")),
    ("Makefile", include_str!("folder/Makefile")),
    ("compat.h", include_str!("folder/compat.h")),
    ("net/gso.h", include_str!("folder/net/gso.h")),
];

/// The name of the source's file.
const SOURCE: &str = "sch_dualpi2.c";

/// What is recorded beside a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    format: u32,
    /// Of the kernel that it was built for: `6.12.9-amd64`.
    pub release: String,
    /// Of the Linux that its source is of: `7.3.4`.
    pub version: String,
    /// Where that came from.
    pub origin: Origin,
}

/// A folder with a module that was built.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// What is known of it.
    pub facts: Facts,
}

impl Facts {
    pub(crate) fn new(release: &str, version: &str, origin: Origin) -> Self {
        let (release, version) = (release.to_owned(), version.to_owned());
        Self { format: FORMAT, release, version, origin }
    }
}

impl Folder {
    /// The one at `path`; nothing if there is none that dualq made.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path.join(FACTS)).ok()?;
        let facts: Facts = serde_json::from_str(&text).ok()?;
        let folder = Self { path: path.to_owned(), facts };
        let Facts { format, release, version, .. } = &folder.facts;
        // Root may be given a folder of somebody else's: both become parts of paths, and the version a part of a script of DKMS's.
        let is_right = *format == FORMAT && is_version(release) && is_version(version);
        (is_right && folder.module().is_file()).then_some(folder)
    }

    /// The one that was built for the kernel `release`, and is kept where they are kept by default.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn of(release: &str) -> Result<Self, ModuleError> {
        let folder = store()?;
        let release = release.to_owned();
        Self::open(&folder.join(&release)).ok_or(ModuleError::NotBuilt { release, folder })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The module itself.
    #[must_use]
    pub fn module(&self) -> PathBuf {
        self.path.join(format!("{MODULE}.ko"))
    }

    /// Linux's source.
    pub(crate) fn source(&self) -> PathBuf {
        self.path.join(SOURCE)
    }

    /// The files that it is built of, by name. Ours are those that this program has: DKMS runs them as root.
    pub(crate) fn sources(&self) -> Result<Vec<(&'static str, Vec<u8>)>, ModuleError> {
        let path = self.source();
        let source = fs::read(&path).map_err(ModuleError::file("read", &path))?;
        let ours = FILES.iter().map(|(name, text)| (*name, text.as_bytes().to_vec()));
        Ok(ours.chain([(SOURCE, source)]).collect())
    }

    /// Writes all that is needed to build into `path`, which is there.
    pub(crate) fn write(path: &Path, source: &str) -> Result<(), ModuleError> {
        let files = FILES.into_iter().chain([(SOURCE, source)]);
        for (name, text) in files {
            let file = path.join(name);
            let folder = file.parent().unwrap_or(path);
            fs::create_dir_all(folder).map_err(ModuleError::file("write", folder))?;
            fs::write(&file, text).map_err(ModuleError::file("write", &file))?;
        }
        Ok(())
    }

    /// Says that what is in `path` is whole.
    pub(crate) fn seal(path: &Path, facts: &Facts) -> Result<(), ModuleError> {
        let file = path.join(FACTS);
        let text = serde_json::to_string_pretty(facts).unwrap_or_default() + "\n";
        fs::write(&file, text).map_err(ModuleError::file("write", &file))
    }
}

/// Whether it could be what `uname -r` says of a kernel, or the version of Linux's sources: no more than a name.
#[must_use]
pub fn is_version(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit()) && text.len() < 128 && text.chars().all(is_plain)
}

/// Where modules are kept that were built: a folder for each kernel, below the user's cache.
pub(crate) fn store() -> Result<PathBuf, ModuleError> {
    Ok(dualq_kernel::cache()?.join("modules"))
}

/// The modules that were built and kept where they are kept by default, by the release of their kernels.
///
/// # Errors
///
/// If the environment does not tell where the user's cache is.
pub fn built() -> Result<Vec<Folder>, ModuleError> {
    let entries = fs::read_dir(store()?).into_iter().flatten().flatten();
    let mut folders: Vec<Folder> =
        entries.filter_map(|entry| Folder::open(&entry.path())).collect();
    folders.sort_by(|one, other| one.facts.release.cmp(&other.facts.release));
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_names_are_more_than_names_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sch_dualpi2.ko"), "").unwrap();
        let opened = |release: &str, version: &str| {
            let origin = Origin::Directory { path: "/x".into(), state: None };
            Folder::seal(folder.path(), &Facts::new(release, version, origin)).unwrap();
            Folder::open(folder.path()).is_some()
        };
        assert!(opened("6.12.9+deb13-amd64", "7.3.4") && opened("6.1.0-56-amd64", "7.3-rc1"));
        for evil in ["", "..", "../../etc", "6/..", "6\"; id; \"", "6$(id)", "6 7", "6\n", "-k"] {
            assert!(!opened(evil, "7.3.4") && !opened("6.1", evil), "{evil:?}");
        }
    }
}
