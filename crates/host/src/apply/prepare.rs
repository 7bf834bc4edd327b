//! Looking at a machine before a plan is applied to it.

use std::time::Duration;

use super::change::{self, Now, sysctl};
use super::record::{Before, Entry, FORMAT, Phase, Progress, Record};
use super::{ApplyError, Host, Lock, bounds};
use crate::Plan;

/// What is to be done for a plan.
pub enum Prepared<'a> {
    /// Nothing.
    Already(Already),
    /// Its changes, or some of them.
    Ready(Box<Ready<'a>>),
}

/// Why nothing is to be done for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Already {
    /// All is as it asks for.
    There,
    /// It is applied, and waits to be confirmed for so long.
    Waiting(Duration),
}

/// A plan that can be applied: nothing is changed yet, and nobody else changes anything meanwhile.
pub struct Ready<'a> {
    pub(super) host: &'a mut Host,
    /// `None` if it is only pretended.
    pub(super) lock: Option<Lock>,
    pub(super) record: Record,
    /// Which of its changes are to be made.
    pub(super) due: Vec<bool>,
}

impl Ready<'_> {
    /// The changes that are to be made, by their place in the plan.
    #[must_use]
    pub fn due(&self) -> &[bool] {
        &self.due
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.record.plan
    }
}

impl Host {
    /// Looks whether a plan can be applied. It may then be confirmed `within` that time. What an earlier call left unfinished
    /// has to be [recovered](Self::recover) before. With `pretend` no folder of records is made for it.
    ///
    /// # Errors
    /// If another process is at it, the plan asks for what no plan should, the machine is not as the plan found it, something
    /// could not be put back, or a file could not be written. Nothing is changed.
    pub fn prepare(
        &mut self,
        plan: &Plan,
        within: Duration,
        pretend: bool,
    ) -> Result<Prepared<'_>, ApplyError> {
        bounds::check(plan)?;
        self.check_callers(plan)?;
        let lock = match pretend && !self.store.folder().exists() {
            true => None,
            false => Some(self.store.lock()?),
        };
        let now = self.now()?;
        if let Some(record) = self.newest()? {
            if record.unfinished(&now).is_some() {
                return Err(ApplyError::Busy);
            }
            if record.phase == Phase::Applied {
                if record.plan == *plan {
                    return Ok(Prepared::Already(Already::Waiting(record.left_to_confirm(&now))));
                }
                return Err(ApplyError::Unconfirmed { about: record.plan.about });
            }
        }
        let release = sysctl::read(&self.root, "kernel.osrelease")?;
        if release != plan.kernel {
            return Err(ApplyError::Plan(format!(
                "the plan was made for Linux {}, this is {release}: make a new plan",
                plan.kernel.escape_debug()
            )));
        }
        let (mut entries, mut due, mut differences) = (Vec::new(), Vec::new(), Vec::new());
        for change in &plan.changes {
            let (before, now) = change::survey(self, &change.what)?;
            due.push(now == Now::Before);
            let progress = if now == Now::After { Progress::Kept } else { Progress::Untouched };
            entries.push(Entry { before, progress });
            if let Now::Other(difference) = now {
                differences.push(difference);
            }
        }
        if !differences.is_empty() {
            return Err(ApplyError::NotAsPlanned(differences));
        }
        if !due.contains(&true) {
            return Ok(Prepared::Already(Already::There));
        }
        let record = Record {
            format: FORMAT,
            number: self.store.next_number()?,
            phase: Phase::Applying,
            plan: plan.clone(),
            applied: now,
            within,
            entries,
            borrowed: None,
            ended: None,
            why: None,
            force: false,
            left: Vec::new(),
        };
        // What could not be read back could not be taken back.
        record.check(record.number).map_err(ApplyError::Plan)?;
        Ok(Prepared::Ready(Box::new(Ready { host: self, lock, record, due })))
    }
}

impl Entry {
    /// Whether it is about a file, which is changed when the plan is confirmed.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self.before, Before::File { .. })
    }
}
