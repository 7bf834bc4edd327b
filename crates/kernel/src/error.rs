//! What can go wrong, and what to do then.

use std::io;
use std::path::{Path, PathBuf};

use dualq_units::plain;

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The environment does not tell where the user's cache folder is.
    #[error("cannot tell where kernels are kept: set XDG_CACHE_HOME or HOME to an absolute path")]
    NoCache,
    /// Nothing has been built yet.
    #[error("there is no kernel yet; `dualq kernel build` makes one in some minutes")]
    NoKernel,
    /// What was built is no longer whole.
    #[error(
        "the kernel {name} is damaged ({fault}): dualq kernel remove {name}; dualq kernel build"
    )]
    Damaged {
        /// The name of its folder.
        name: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A version that has not been built.
    #[error("there is no kernel {wanted}; there are: {}", .there.join(", "))]
    Unknown {
        /// As it was asked for.
        wanted: String,
        /// The versions that have been built.
        there: Vec<String>,
    },
    /// The distribution's sources cannot be had.
    #[error(
        "{reason}; give --source a kernel tree or a tarball from kernel.org, such as \
         https://cdn.kernel.org/pub/linux/kernel/v7.x/linux-7.3.tar.xz"
    )]
    NoPackage {
        /// Why not.
        reason: String,
    },
    /// Programs that a build needs are not installed.
    #[error("a build needs {}{}", .missing.join(", "), hint(.install.as_deref()))]
    ToolsMissing {
        /// The programs.
        missing: Vec<String>,
        /// The distribution's command that installs them, where it is known.
        install: Option<String>,
    },
    /// `--source` cannot be used.
    #[error("{}: {fault}", .path.display())]
    Source {
        /// As it was given.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        fault: String,
    },
    /// The sources are of another version than asked for.
    #[error(
        "the source is Linux {found}, not {wanted}; leave out --version or give another source"
    )]
    OtherVersion {
        /// As it was asked for.
        wanted: String,
        /// What the sources say.
        found: String,
    },
    /// A kernel that could not run scenarios.
    #[error("Linux {version} cannot be configured with what dualq needs: {}; log: {}", .options.join(", "), .log.display())]
    Required {
        /// The version of the sources.
        version: String,
        /// The options, as `NAME=value`.
        options: Vec<String>,
        /// All that was said.
        log: PathBuf,
    },
    /// A program failed.
    #[error("{doing} failed ({how}); the whole log: {}", .log.display())]
    Step {
        /// What was done.
        doing: String,
        /// How the program ended.
        how: String,
        /// The last lines that matter.
        lines: Vec<String>,
        /// All that was said.
        log: PathBuf,
    },
    /// The user had enough.
    #[error("interrupted; nothing was kept")]
    Interrupted,
    /// A file could not be read or written.
    #[error("cannot {doing} {}: {}", .path.display(), plain(.cause))]
    File {
        /// What was done with it.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

impl KernelError {
    /// For `map_err`: what could not be done with which file.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::File { doing, path, cause }
    }
}

fn hint(install: Option<&str>) -> String {
    install.map_or(String::new(), |command| format!("; install: {command}"))
}
