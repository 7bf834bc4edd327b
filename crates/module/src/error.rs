//! What can go wrong, and what to do then.

use std::io;
use std::path::{Path, PathBuf};

use dualq_host::building::OLDEST_SOURCE;
use dualq_kernel::KernelError;
use dualq_units::plain;

/// Why there is no module, or why it is not installed.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The sources cannot be had, or a program failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Things stand in the way.
    #[error("{}", .lines.join("; "))]
    Obstacles {
        /// A line each: what it is and what would be right.
        lines: Vec<String>,
    },
    /// The headers are those of another kernel.
    #[error("{headers} has the headers of Linux {found}, not of {wanted}")]
    OtherHeaders {
        /// As they were given.
        headers: String,
        /// The release that they say.
        found: String,
        /// The release that was asked for.
        wanted: String,
    },
    /// Nothing tells which kernel it is for.
    #[error("{headers} holds no headers of a kernel: there is no include/generated/utsrelease.h")]
    NoHeaders {
        /// As they were given.
        headers: String,
    },
    /// The sources have no dualpi2.
    #[error(
        "Linux {version} has no net/sched/sch_dualpi2.c, which came with 6.17; give --source Linux {}.{} or later",
        OLDEST_SOURCE.0, OLDEST_SOURCE.1
    )]
    NoDualpi2 {
        /// Of the sources.
        version: String,
    },
    /// The sources have a dualpi2 that is too old.
    #[error(
        "the sch_dualpi2.c of Linux {version} is without later fixes: {}; give --source Linux {}.{} or later",
        .lacking.join("; "), OLDEST_SOURCE.0, OLDEST_SOURCE.1
    )]
    OldSource {
        /// Of the sources.
        version: String,
        /// What it is without.
        lacking: Vec<&'static str>,
    },
    /// A folder that is not ours.
    #[error("{} is there, and is no folder that dualq made for a module; name another with --out", .path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// make does not stand such names.
    #[error("{}: modules cannot be built where a folder's name has a space or a colon", .path.display())]
    Name {
        /// The folder.
        path: PathBuf,
    },
    /// What was built is for another kernel.
    #[error(
        "the module that was built says it is for {found}, not for Linux {wanted}: are these the headers of that kernel?"
    )]
    OtherModule {
        /// What the module says.
        found: String,
        /// The release of the headers.
        wanted: String,
    },
    /// Nothing was built for a kernel.
    #[error("there is no module for Linux {release} in {}; `dualq module build` makes one", .folder.display())]
    NotBuilt {
        /// Of the kernel.
        release: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// No such kernel is installed.
    #[error("Linux {release} is not installed: there is no {}", .folder.display())]
    NoKernel {
        /// Of the kernel.
        release: String,
        /// Where its modules would be.
        folder: PathBuf,
    },
    /// There is one.
    #[error("{what} is there already; `dualq module remove` takes away what dualq put there")]
    Already {
        /// The file or folder.
        what: String,
    },
    /// Nothing is installed.
    #[error("dualq has installed no module{}", .below.as_ref().map_or(String::new(), |root| format!(" below {root}")))]
    NotInstalled {
        /// The root, if it is not `/`.
        below: Option<String>,
    },
    /// A record cannot be used.
    #[error("{}: {fault}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// What only an image's own programs can do.
    #[error("{}: run `{command}` in it (chroot), which has to know its own modules", .root.display())]
    Inside {
        /// With its arguments.
        command: String,
        /// The root.
        root: PathBuf,
    },
    /// A system's program failed.
    #[error("{command} failed: {said}")]
    Program {
        /// With its arguments.
        command: String,
        /// The line that matters.
        said: String,
    },
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

impl ModuleError {
    /// For `map_err`: what could not be done with which file.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::File { doing, path, cause }
    }
}
