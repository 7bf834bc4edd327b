//! Where a kernel's sources come from.

mod apt;
mod tree;

use std::fmt;
use std::path::{self, Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::error::KernelError;
use crate::hash::fnv1a;
use crate::tools;

pub(crate) use apt::{Package, Wanted};
pub(crate) use tree::Tree;

/// Where a kernel's sources came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// A source package of the distribution.
    Package {
        /// `linux-source-7.3`.
        name: String,
        /// The package's own version: `7.3.4-1~bpo13+1`.
        package_version: String,
    },
    /// A tarball.
    Tarball {
        /// Where it was.
        path: PathBuf,
        /// In bytes.
        size: u64,
        /// Its time of modification, in seconds since 1970.
        modified_s: u64,
    },
    /// A source tree.
    Directory {
        /// Where it was.
        path: PathBuf,
        /// What was in it: another value where a file was added, removed or written to. Not known where only single files were
        /// taken, nor of kernels that older versions of dualq built.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    },
}

impl Origin {
    /// Tells these sources from others of the same version: eight hexadecimal digits. A distribution has no two of one version.
    pub(crate) fn hash(&self) -> Option<String> {
        let all = match self {
            Self::Package { .. } => return None,
            Self::Tarball { path, size, modified_s } => {
                format!("{}\n{size}\n{modified_s}\n", path.display())
            }
            Self::Directory { path, state } => {
                format!("{}\n{}\n", path.display(), state.as_deref().unwrap_or_default())
            }
        };
        Some(format!("{:08x}", fnv1a(all.bytes())))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { name, package_version } => write!(f, "{name} {package_version}"),
            Self::Tarball { path, .. } | Self::Directory { path, .. } => {
                write!(f, "{}", path.display())
            }
        }
    }
}

/// Sources that are not ready yet.
#[derive(Debug)]
pub(crate) enum Source {
    /// The newest that fits of the distribution's source packages.
    Distribution,
    /// To be unpacked.
    Tarball { origin: Origin, path: PathBuf },
    /// To be used as it is, and never written to.
    Directory { path: PathBuf },
}

impl Source {
    /// What `--source` says, or what there is without it.
    pub(crate) fn of(given: Option<&Path>) -> Result<Self, KernelError> {
        let Some(given) = given else {
            if tools::is_there("apt-get") && tools::is_there("apt-cache") {
                return Ok(Self::Distribution);
            }
            let reason = "there is no apt here to get kernel sources with".to_owned();
            return Err(KernelError::NoPackage { reason });
        };
        let path = path::absolute(given).map_err(KernelError::file("find", given))?;
        let metadata = path.metadata().map_err(KernelError::file("read", given))?;
        if metadata.is_dir() {
            return Ok(Self::Directory { path });
        }
        if tree::compression(&path).is_none() {
            let fault =
                "neither a source tree nor a tarball (.tar, .tar.gz, .tar.xz, .tar.zst, .tar.bz2)";
            return Err(KernelError::Source { path: given.to_owned(), fault: fault.to_owned() });
        }
        let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified_s = modified.map_or(0, |since| since.as_secs());
        let origin = Origin::Tarball { path: path.clone(), size: metadata.len(), modified_s };
        Ok(Self::Tarball { origin, path })
    }

    /// The programs that getting and unpacking it needs.
    pub(crate) fn tools(&self) -> Vec<&'static str> {
        match self {
            Self::Distribution => vec!["tar", "xz", "dpkg-deb"],
            Self::Tarball { path, .. } => {
                let decompressor = tree::compression(path).flatten();
                ["tar"].into_iter().chain(decompressor).collect()
            }
            Self::Directory { .. } => Vec::new(),
        }
    }
}
