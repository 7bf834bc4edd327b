//! Writing the files that make a plan outlast a restart.

use super::change::{self, Now};
use super::clock::ago;
use super::record::{Phase, Progress};
use super::{ApplyError, Host, Record, Step, bounds};
use crate::Plan;

/// What came of confirming.
#[derive(Clone, Debug, PartialEq)]
pub enum Confirmed {
    /// The plan is there to stay.
    Now(Record),
    /// It was before.
    Already(Record),
}

impl Host {
    /// Writes the files of the plan that waits for it; with `pretend` only looks whether it could. If a plan is `named`, it has to be
    /// that one.
    ///
    /// # Errors
    /// [`ApplyError::Nothing`] if none waits, [`ApplyError::WasTakenBack`] if the last one came off before, [`ApplyError::NotAsPlanned`] if a file changed since it was applied: then the plan
    /// still waits. If a file cannot be written, the whole plan is taken back.
    pub fn confirm(
        &mut self,
        named: Option<&Plan>,
        pretend: bool,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Confirmed, ApplyError> {
        // Who asks in vain should leave no folder behind.
        self.store.newest()?.ok_or(ApplyError::Nothing)?;
        let lock = self.store.lock()?;
        let now = self.now()?;
        let in_force = self.in_force()?;
        let is_named = |record: &Record| named.is_some_and(|named| *named == record.plan);
        let last = self.store.last()?.filter(|last| !last.is_in_force());
        // Who names the plan that is in force does not ask for a later one.
        if let Some(last) = last.filter(|_| !in_force.as_ref().is_some_and(is_named)) {
            let in_force = in_force.map(|record| record.plan.about);
            return Err(ApplyError::WasTakenBack {
                when: ago(last.ended, now.unix),
                about: last.plan.about,
                why: last.why.unwrap_or_default(),
                in_force,
            });
        }
        let mut record = in_force.ok_or(ApplyError::Nothing)?;
        if named.is_some() && !is_named(&record) {
            return Err(ApplyError::AnotherPlan { about: record.plan.about });
        }
        match record.phase {
            Phase::Confirmed => return Ok(Confirmed::Already(record)),
            Phase::Applied if record.unfinished(&now).is_none() => {}
            _ => return Err(ApplyError::TooLate { within: record.within }),
        }
        let (mut due, mut differences) = (Vec::new(), Vec::new());
        for (change, entry) in record.plan.changes.iter().zip(&record.entries) {
            let is_due = entry.is_file()
                && entry.progress != Progress::Kept
                && match change::now(self, &change.what, entry)? {
                    Now::Before => true,
                    Now::After => false,
                    Now::Other(difference) => {
                        differences.push(difference);
                        false
                    }
                };
            due.push(is_due);
        }
        if !differences.is_empty() {
            return Err(ApplyError::NotAsPlanned(differences));
        }
        // Since it was applied, somebody may have put another program there.
        self.check_callers(&record.plan)?;
        if pretend {
            return Ok(Confirmed::Now(record));
        }
        let mut work = || -> Result<(), ApplyError> {
            record.phase = Phase::Confirming;
            for (index, _) in due.iter().enumerate().filter(|(_, due)| **due) {
                record.entries[index].progress = Progress::Underway;
                self.store.save(&record, &lock)?;
                step(&Step::Recorded);
                let what = &record.plan.changes[index].what;
                let entry = &mut record.entries[index];
                change::make(self, what, &mut entry.before, None, &lock, step)?;
                entry.progress = Progress::Made;
                step(&Step::Made(bounds::name(what)));
            }
            self.check(&record, &super::Entry::is_file)?;
            record.phase = Phase::Confirmed;
            self.store.save(&record, &lock)?;
            step(&Step::Recorded);
            Ok(())
        };
        match work() {
            Ok(()) => Ok(Confirmed::Now(record)),
            Err(error) => Err(self.take_back_after(error, record, &lock, step)),
        }
    }
}
