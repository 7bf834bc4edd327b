//! Network namespaces that live as long as somebody holds them.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sched::{CloneFlags, setns, unshare};

use crate::LabError;

/// The namespace of the calling thread, as the kernel shows it.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. It has no name: once it and all sockets in it are dropped, the kernel takes it away with all its
/// devices, however the program ends.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: File,
}

impl Namespace {
    /// A new one, empty but for a loopback device that is down. The calling thread stays where it is.
    pub(crate) fn create() -> Result<Self, LabError> {
        let home = Self::own()?;
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| LabError::system("cannot make a network namespace", error))?;
        let created = Self::own();
        home.enter()?;
        created
    }

    /// The same one once more.
    pub(crate) fn try_clone(&self) -> Result<Self, LabError> {
        let file = self.file.try_clone();
        Ok(Self { file: file.map_err(|error| LabError::system(OWN, error))? })
    }

    /// Does `work` inside.
    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T, LabError> {
        let home = Self::own()?;
        self.enter()?;
        let done = work();
        home.enter()?;
        Ok(done)
    }

    fn own() -> Result<Self, LabError> {
        let file = File::open(OWN).map_err(|error| LabError::system(OWN, error))?;
        Ok(Self { file })
    }

    fn enter(&self) -> Result<(), LabError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|error| LabError::system("cannot enter a network namespace", error))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
