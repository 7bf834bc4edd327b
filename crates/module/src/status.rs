//! Which kernels of a machine have a dualpi2 that is a module, and whose it is.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::MODULE;
use crate::install::Installation;

/// Who put a module there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// It came with the kernel.
    Kernel,
    /// DKMS.
    Dkms,
    /// `dualq module install`, by hand.
    Dualq,
    /// Somebody else.
    Other,
}

/// A module that is installed for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The kernel's release.
    pub release: String,
    /// The file, as the machine knows it.
    pub file: String,
    /// Who put it there.
    pub by: By,
    /// Whether a signature is appended to it; nothing if the file is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
}

/// Where modules are put below a kernel's folder, and by whom.
const PLACES: [(&str, By); 5] = [
    ("updates/dualq", By::Dualq),
    ("updates/dkms", By::Dkms),
    ("updates", By::Other),
    // Where DKMS puts them on Fedora, and others by hand.
    ("extra", By::Other),
    ("kernel/net/sched", By::Kernel),
];

/// What the kernel's sign-file leaves at the end (scripts/sign-file.c).
const SIGNATURE: &[u8] = b"~Module signature appended~\n";

impl Installation {
    /// All kernels that have one, by release.
    #[must_use]
    pub fn kernels(&self) -> Vec<Found> {
        let releases = names(&self.root.at("/lib/modules"));
        releases.iter().filter_map(|release| self.found(release)).collect()
    }

    fn found(&self, release: &str) -> Option<Found> {
        PLACES.iter().find_map(|(place, by)| {
            let folder = format!("/lib/modules/{release}/{place}");
            let files = names(&self.root.at(&folder));
            let name = files.iter().find(|name| {
                let packed = name.strip_prefix(MODULE).and_then(|rest| rest.strip_prefix(".ko"));
                matches!(packed, Some("" | ".gz" | ".xz" | ".zst"))
            })?;
            let file = format!("{folder}/{name}");
            let signed = name.ends_with(".ko").then(|| {
                fs::read(self.root.at(&file)).is_ok_and(|bytes| bytes.ends_with(SIGNATURE))
            });
            Some(Found { release: release.to_owned(), file, by: *by, signed })
        })
    }

    /// Whether the running kernel has it, built in or loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.root.at("/sys/module").join(MODULE).exists()
    }

    /// What the running kernel is.
    #[must_use]
    pub fn running(&self) -> String {
        let release = fs::read_to_string(self.root.sysctl("kernel.osrelease"));
        release.unwrap_or_default().trim().to_owned()
    }
}

/// What is in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
