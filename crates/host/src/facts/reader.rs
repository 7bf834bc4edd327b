//! Reading a machine's files, and keeping what went wrong.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Root;

/// Reads below a [`Root`]. What is not there is no trouble; what is there and cannot be read is told in [`Reader::unread`].
pub(super) struct Reader<'a> {
    root: &'a Root,
    /// A line for each thing that could not be read.
    pub(super) unread: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, unread: Vec::new() }
    }

    pub(super) fn bytes(&mut self, path: &str) -> Option<Vec<u8>> {
        match fs::read(self.root.at(path)) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            // A folder where a file was looked for, or a device that has no speed.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::InvalidInput) =>
            {
                None
            }
            Err(error) => {
                self.unread(path, &error.to_string());
                None
            }
        }
    }

    /// A text file; bytes that are no text are refused.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        let text = String::from_utf8(self.bytes(path)?);
        text.map_err(|_| self.unread(path, "it is not UTF-8")).ok()
    }

    /// The one line of a file of the kernel's, its words separated by single spaces.
    pub(super) fn line(&mut self, path: &str) -> Option<String> {
        self.text(path).map(|text| words(&text))
    }

    pub(super) fn sysctl(&mut self, key: &str) -> Option<String> {
        let path = self.root.sysctl(key);
        let below = path.strip_prefix(self.root.at("/")).unwrap_or(&path);
        let path = format!("/{}", below.display());
        self.line(&path)
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        // Of a link, that it is there counts: what it leads to may be below another root.
        self.root.at(path).symlink_metadata().is_ok()
    }

    /// The names in a folder, sorted; none if there is no such folder.
    pub(super) fn names(&mut self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = match fs::read_dir(self.root.at(folder)) {
            Ok(entries) => {
                entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
            }
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                    self.unread(folder, &error.to_string());
                }
                Vec::new()
            }
        };
        names.sort_unstable();
        names
    }

    /// Those of the folders that are there, each once: `/lib` may be a link to `/usr/lib`.
    pub(super) fn folders<'f>(&self, folders: &[&'f str]) -> Vec<&'f str> {
        let mut seen = Vec::new();
        let mut distinct = folders.to_vec();
        distinct.retain(|folder| match self.at(folder).canonicalize() {
            Ok(real) if !seen.contains(&real) => {
                seen.push(real);
                true
            }
            _ => false,
        });
        distinct
    }

    /// Where a symbolic link leads, as it says itself.
    pub(super) fn link(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.root.at(path)).ok()
    }

    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.at(path)
    }

    pub(super) fn unread(&mut self, what: &str, why: &str) {
        self.unread.push(format!("{what}: {}", dualq_units::plain(&why)));
    }
}

/// Words separated by single spaces.
pub(super) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
