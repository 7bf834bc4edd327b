//! What was put where, so that it can be taken away: a document for each installation, written before the first file.

use std::fs;
use std::path::{Path, PathBuf};

use dualq_host::Root;
use serde::{Deserialize, Serialize};

use crate::error::ModuleError;

/// Where records are.
const FOLDER: &str = "/var/lib/dualq/module";

const FORMAT: u32 = 1;

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
        let folder = root.at(FOLDER);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, ModuleError> {
        let text = fs::read_to_string(path).map_err(ModuleError::file("read", path))?;
        let wrong = |fault: String| ModuleError::Record { path: path.to_owned(), fault };
        let record: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("no record of a module: {error}")))?;
        if record.format != FORMAT {
            return Err(wrong(format!("a record of format {}, not {FORMAT}", record.format)));
        }
        Ok(record)
    }

    fn path(&self, root: &Root) -> PathBuf {
        let name = match self.dkms {
            Some(_) => "dkms",
            None => self.release.as_str(),
        };
        root.at(FOLDER).join(format!("{name}.json"))
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
        let path = self.path(root);
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        put(&path, text.as_bytes())
    }

    /// Removes what is recorded, and the record. What is gone already is no trouble; folders that others use stay.
    pub(crate) fn take_back(&self, root: &Root) -> Result<(), ModuleError> {
        for file in &self.files {
            let path = root.at(file);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ModuleError::file("remove", &path)(error));
                }
                _ => {}
            }
        }
        for folder in self.folders.iter().rev() {
            // It fails if there is something in it that is not ours.
            let _ = fs::remove_dir(root.at(folder));
        }
        Ok(())
    }

    /// Removes the record, when all that it names is gone.
    pub(crate) fn remove(&self, root: &Root) -> Result<(), ModuleError> {
        let path = self.path(root);
        fs::remove_file(&path).map_err(ModuleError::file("remove", &path))?;
        // Of `/var/lib/dualq` too, if nothing else is kept there.
        for folder in path.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// Writes a file and the folders above it; it is there whole or not at all.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), ModuleError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(ModuleError::file("write", folder))?;
    let mut file =
        tempfile::NamedTempFile::new_in(folder).map_err(ModuleError::file("write", path))?;
    std::io::Write::write_all(&mut file, bytes)
        .and_then(|()| {
            use std::os::unix::fs::PermissionsExt as _;
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))
        })
        .and_then(|()| file.as_file().sync_all())
        .map_err(ModuleError::file("write", path))?;
    file.persist(path).map_err(|error| ModuleError::file("write", path)(error.error))?;
    Ok(())
}
