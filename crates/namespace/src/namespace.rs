//! Network namespaces that live as long as somebody holds them.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};

use crate::NamespaceError;

/// The namespace of the calling thread, as the kernel shows it.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. It has no name: once it and all sockets in it are dropped, the kernel takes it away with all its
/// devices, however the program ends.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new one, empty but for a loopback device that is down. The calling thread stays where it is.
    ///
    /// # Errors
    /// If the kernel refuses: it takes `CAP_SYS_ADMIN`, which [`become_able`](crate::become_able) may give.
    pub fn create() -> Result<Self, NamespaceError> {
        let home = Self::own()?;
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| NamespaceError::system("make a network namespace", error))?;
        let created = Self::own();
        home.enter()?;
        created
    }

    /// The same one once more.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub fn try_clone(&self) -> Result<Self, NamespaceError> {
        let file = self.file.try_clone().map_err(cannot_open)?;
        Ok(Self { file })
    }

    /// Does `work` inside, in this thread. What it starts, such as threads and processes, stays there.
    ///
    /// # Errors
    /// If the thread cannot go there, or not come back.
    pub fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T, NamespaceError> {
        let home = Self::own()?;
        self.enter()?;
        let done = work();
        home.enter()?;
        Ok(done)
    }

    /// That of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not there.
    pub fn own() -> Result<Self, NamespaceError> {
        Ok(Self { file: File::open(OWN).map_err(cannot_open)? })
    }

    /// Goes there for good, with the calling thread alone.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|error| NamespaceError::system("enter a network namespace", error))
    }
}

impl From<Namespace> for OwnedFd {
    fn from(namespace: Namespace) -> Self {
        namespace.file.into()
    }
}

fn cannot_open(error: std::io::Error) -> NamespaceError {
    NamespaceError::system(format!("open {OWN}"), error)
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
