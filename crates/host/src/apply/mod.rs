//! Plans applied to this machine, confirmed, and taken back.
//!
//! [`prepare`](Host::prepare) looks at everything that a plan changes and refuses it if anything is not as the plan says, or
//! could not be put back exactly. [`Ready::make`] then writes a [`Record`] of all that was there, and makes what does not
//! outlast a restart: modules, sysctls, queue disciplines, routes. [`confirm`](Host::confirm) writes the files that do. Until
//! then [`watch_over`](Host::watch_over), in another process, takes everything back when the time is up or whoever applied it
//! died; and whichever of these comes next, finishes what an earlier one could not
//! ([`recover`](Host::recover)).
//!
//! Before each change the record says that it is under way, and is on the disk. So wherever power or process end, it is known
//! what has to be restored, and restoring is something that can be done twice.

mod bounds;
mod change;
mod clock;
mod confirm;
mod difference;
mod error;
mod make;
mod on_boot;
mod prepare;
mod record;
mod rollback;
mod status;
mod store;
mod watch;

use std::path::PathBuf;

use dualq_netlink::Netlink;

use crate::Root;
pub use bounds::name;
pub use change::file::Saved;
pub use change::qdisc::Node;
pub use change::route::Made;
pub use clock::Moment;
pub use confirm::Confirmed;
pub use difference::Difference;
pub use error::ApplyError;
pub use prepare::{Already, Prepared, Ready};
pub use record::{Before, Entry, Phase, Progress, Record};
pub use rollback::Rollback;
pub use status::{Live, Standing, State, Status};
pub use store::{Lock, Store};

/// Something that was done and will still be there if the process ends now: whoever is told can say so, or end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The record says how far things are.
    Recorded,
    /// A part of a change was made or restored.
    Part(String),
    /// A change was made.
    Made(String),
    /// What was before a change is there again.
    Restored(String),
}

/// A machine, and where dualq keeps what it knows of its changes.
pub struct Host {
    root: Root,
    netlink: Netlink,
    store: Store,
}

impl Host {
    /// The machine whose files are below `root`, and whose network `netlink` is about.
    #[must_use]
    pub fn new(root: Root, netlink: Netlink, state: impl Into<PathBuf>) -> Self {
        Self { root, netlink, store: Store::new(state) }
    }

    /// Where records are kept.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The time now.
    pub(crate) fn now(&self) -> Result<Moment, ApplyError> {
        Moment::now(&self.root).map_err(ApplyError::io("read the clock"))
    }
}
