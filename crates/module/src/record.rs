//! What was put where, so that it can be taken away: a document for each installation, written before the first file.

use std::path::Path;
use std::{fs, io};

use dualq_host::Root;
use serde::{Deserialize, Serialize};

use crate::error::ModuleError;
use crate::folder::is_version;
use crate::install::{PACKAGE, by_hand, sources};
use crate::place::Place;

/// Where records are.
const FOLDER: &str = "/var/lib/dualq/module";

const SUFFIX: &str = ".json";

const FORMAT: u32 = 1;

/// In bytes; no record is longer.
const LONGEST: u64 = 1 << 20;

/// What was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    format: u32,
    /// For DKMS the name and version by which it knows the module: `dualq-dualpi2/7.3.4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dkms: Option<String>,
    /// The kernel that it was installed for; by DKMS later ones may have it too.
    pub(crate) release: String,
    /// Files that were made, as absolute paths.
    pub(crate) files: Vec<String>,
    /// Folders that were made, the outer first.
    pub(crate) folders: Vec<String>,
    /// Whether the module was loaded.
    #[serde(default)]
    pub(crate) loaded: bool,
}

impl Record {
    pub(crate) fn new(release: &str, dkms: Option<String>) -> Self {
        Self {
            format: FORMAT,
            dkms,
            release: release.to_owned(),
            files: Vec::new(),
            folders: Vec::new(),
            loaded: false,
        }
    }

    /// All records, by name.
    pub(crate) fn all(root: &Root) -> Result<Vec<Self>, ModuleError> {
        let entries = fs::read_dir(root.at(FOLDER)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        // Not what a write that was cut short has left.
        names.retain(|name| name.ends_with(SUFFIX));
        names.sort();
        names.iter().map(|name| Self::read(root, &format!("{FOLDER}/{name}"))).collect()
    }

    fn read(root: &Root, path: &str) -> Result<Self, ModuleError> {
        let shown = root.at(path);
        let read = Place::find(root, path).and_then(|place| {
            place.map_or_else(|| Err(io::ErrorKind::NotFound.into()), |place| place.read(LONGEST))
        });
        let bytes = read.map_err(ModuleError::file("read", &shown))?;
        let wrong = |fault: String| ModuleError::Record { path: shown.clone(), fault };
        let record: Self = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("no record of a module: {error}")))?;
        if record.format != FORMAT {
            return Err(wrong(format!("a record of format {}, not {FORMAT}", record.format)));
        }
        record.check().map_err(|what| wrong(format!("no record of dualq's: it names {what}")))?;
        Ok(record)
    }

    /// Refuses what `install` puts nowhere: a record may be part of somebody else's image, and root removes what it names.
    fn check(&self) -> Result<(), String> {
        if !is_version(&self.release) {
            return Err(format!("{:?} for a kernel", self.release));
        }
        let place = match &self.dkms {
            None => by_hand(&self.release),
            Some(name) => {
                match name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/')) {
                    Some(version) if is_version(version) => sources(version),
                    _ => return Err(format!("{name:?} for a module of DKMS's")),
                }
            }
        };
        let is_name = |part: &str| !["", ".", ".."].contains(&part);
        let is_own = |file: &&String| {
            let name = file.strip_prefix(&place).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| name.split('/').all(is_name))
        };
        if let Some(file) = self.files.iter().find(|file| !is_own(file)) {
            return Err(format!("the file {file:?}"));
        }
        let is_above = |folder: &&String| {
            let above = format!("{folder}/");
            !folder.is_empty() && self.files.iter().any(|file| file.starts_with(&above))
        };
        match self.folders.iter().find(|folder| !is_above(folder)) {
            Some(folder) => Err(format!("the folder {folder:?}")),
            None => Ok(()),
        }
    }

    fn path(&self) -> String {
        let name = match self.dkms {
            Some(_) => "dkms",
            None => self.release.as_str(),
        };
        format!("{FOLDER}/{name}{SUFFIX}")
    }

    /// Adds what is going to be made: `path`, and the folders above it that are not there yet.
    pub(crate) fn add(&mut self, root: &Root, path: &str) {
        let mut missing = Vec::new();
        let mut folder = Path::new(path).parent();
        while let Some(above) = folder.filter(|folder| !root.at(folder).exists()) {
            missing.push(above.display().to_string());
            folder = above.parent();
        }
        missing.reverse();
        missing.retain(|folder| !self.folders.contains(folder));
        self.folders.extend(missing);
        self.files.push(path.to_owned());
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, root: &Root) -> Result<(), ModuleError> {
        let path = self.path();
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        // As `apply` makes the folder of its records above this one.
        let write = Place::make(root, &path, 0o700).and_then(|at| at.write(text.as_bytes(), 0o600));
        write.map_err(ModuleError::file("write", &root.at(&path)))
    }

    /// Removes what is recorded, and the record. What is gone already is no trouble; folders that others use stay.
    pub(crate) fn take_back(&self, root: &Root) -> Result<(), ModuleError> {
        for file in &self.files {
            remove(root, file)?;
        }
        for folder in self.folders.iter().rev() {
            // It fails if there is something in it that is not ours.
            let _ = Place::find(root, folder).map(|at| at.map(|at| at.remove_folder()));
        }
        Ok(())
    }

    /// Removes the record, when all that it names is gone.
    pub(crate) fn remove(&self, root: &Root) -> Result<(), ModuleError> {
        remove(root, &self.path())?;
        // Of `/var/lib/dualq` too, if nothing else is kept there.
        for folder in Path::new(FOLDER).ancestors().take(2) {
            let folder = folder.to_string_lossy();
            let _ = Place::find(root, &folder).map(|at| at.map(|at| at.remove_folder()));
        }
        Ok(())
    }
}

fn remove(root: &Root, path: &str) -> Result<(), ModuleError> {
    let removed = Place::find(root, path).and_then(|at| at.map_or(Ok(()), |at| at.remove()));
    removed.map_err(ModuleError::file("remove", &root.at(path)))
}
