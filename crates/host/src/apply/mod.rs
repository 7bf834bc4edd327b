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
mod keep;
mod make;
mod on_boot;
mod prepare;
mod record;
mod rollback;
mod status;
mod store;
mod watch;

use std::path::{Path, PathBuf};

use dualq_netlink::Netlink;

use crate::plan::{Caller, USUAL_STATE, What, callers};
use crate::program::{how_to_install, installed};
use crate::{Plan, Root};
pub use bounds::name;
pub use change::file::Saved;
pub use change::qdisc::Node;
pub use change::route::Made;
pub use clock::{Moment, ago};
pub use confirm::Confirmed;
pub use difference::Difference;
pub use error::ApplyError;
pub use prepare::{Already, Prepared, Ready};
pub use record::{Before, Entry, Phase, Progress, Record};
pub use rollback::Rollback;
pub use status::{Last, Live, Standing, State, Status};
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
    /// The dualq that rules may call.
    program: Option<PathBuf>,
}

impl Host {
    /// The machine whose files are below `root`, and whose network `netlink` is about.
    #[must_use]
    pub fn new(root: Root, netlink: Netlink, state: impl Into<PathBuf>) -> Self {
        Self { root, netlink, store: Store::new(state), program: None }
    }

    /// Says where the running program is. Plans whose rules call another one, or one that is not
    /// [installed], are refused; without this, all whose rules call one.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Where records are kept.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The newest record that is open, else the newest of all, without what a restart made untrue.
    pub(crate) fn newest(&self) -> Result<Option<Record>, ApplyError> {
        let open = self.find(Record::is_open)?;
        open.map_or_else(|| self.find(|_| true), |record| Ok(Some(record)))
    }

    /// The record of the plan that is in force.
    pub(crate) fn in_force(&self) -> Result<Option<Record>, ApplyError> {
        self.find(Record::is_in_force)
    }

    fn find(&self, wanted: impl Fn(&Record) -> bool) -> Result<Option<Record>, ApplyError> {
        let now = self.now()?;
        self.store.find(&mut |record| {
            if now.restarted_since(&record.applied) {
                record.after_a_restart();
            }
            wanted(record)
        })
    }

    /// Refuses a plan by which root would run another program than this one, or look for records elsewhere.
    pub(crate) fn check_callers(&self, plan: &Plan) -> Result<(), ApplyError> {
        let refused = |message: String| Err(ApplyError::Plan(message));
        for change in &plan.changes {
            let What::File { path, after, .. } = &change.what else { continue };
            for Caller { program, state } in callers(path, after) {
                let own = self.program.as_deref().and_then(Path::to_str).unwrap_or("dualq");
                if own != program {
                    return refused(format!(
                        "{path} would have root run {program}, and this is {own}: {}, and apply the plan by that",
                        how_to_install(own, program)
                    ));
                }
                if let Err(why) = installed(&self.root, Path::new(program)) {
                    return refused(format!(
                        "{path} would have root run {program}, but {why}: {}, and make a new plan by that",
                        how_to_install(own, "/usr/local/bin/dualq")
                    ));
                }
                let state = state.unwrap_or(USUAL_STATE);
                let own = std::path::absolute(self.store.folder())
                    .map_err(ApplyError::io("find the current folder"))?;
                if own != Path::new(state) {
                    return refused(format!(
                        "{path} would look for records in {state}, and --state is {}: give both the same folder, a plan by `dualq plan --state`",
                        own.display()
                    ));
                }
            }
        }
        Ok(())
    }

    /// The time now.
    pub(crate) fn now(&self) -> Result<Moment, ApplyError> {
        Moment::now(&self.root).map_err(ApplyError::io("read the clock"))
    }
}
