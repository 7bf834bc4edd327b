//! Making the changes that do not outlast a restart.

use super::change::{self, Now};
use super::record::{Phase, Progress};
use super::{ApplyError, Entry, Host, Ready, Record, Step, bounds};

impl Ready<'_> {
    /// Makes them. `guard` is called when all that was there is recorded and before the first change: it starts whatever will
    /// [watch over](super::Host::watch_over) the record. `step` is told of everything that has come to stay.
    ///
    /// # Errors
    /// Why nothing was changed, or why all was taken back ([`ApplyError::TakenBack`]).
    pub fn make(
        self,
        guard: &mut dyn FnMut(&Record) -> Result<(), ApplyError>,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Record, ApplyError> {
        let Self { host, lock, mut record, due } = self;
        let lock = lock.map_or_else(|| host.store.lock(), Ok)?;
        let mut rehearsed = Vec::new();
        for (index, change) in record.plan.changes.iter().enumerate() {
            let before = &mut record.entries[index].before;
            rehearsed.push(match due[index] {
                true => change::rehearse(host, &change.what, before)?,
                false => None,
            });
        }
        host.store.save(&record, &lock)?;
        host.store.prune(&record, &lock);
        step(&Step::Recorded);
        let mut work = || -> Result<(), ApplyError> {
            guard(&record)?;
            for (index, due) in due.iter().enumerate() {
                if !due || record.entries[index].is_file() {
                    continue;
                }
                record.entries[index].progress = Progress::Underway;
                host.store.save(&record, &lock)?;
                step(&Step::Recorded);
                let what = &record.plan.changes[index].what;
                let entry = &mut record.entries[index];
                change::make(
                    host,
                    what,
                    &mut entry.before,
                    rehearsed[index].as_ref(),
                    &lock,
                    step,
                )?;
                entry.progress = Progress::Made;
                step(&Step::Made(bounds::name(what)));
            }
            host.check(&record, &|entry| !entry.is_file())?;
            record.phase = Phase::Applied;
            record.applied = host.now()?;
            host.store.save(&record, &lock)?;
            step(&Step::Recorded);
            Ok(())
        };
        match work() {
            Ok(()) => Ok(record),
            Err(error) => Err(host.take_back_after(error, record, &lock, step)),
        }
    }
}

impl Host {
    /// Reads back what was made: a change may undo another, or somebody else does.
    pub(crate) fn check(
        &mut self,
        record: &Record,
        which: &dyn Fn(&Entry) -> bool,
    ) -> Result<(), ApplyError> {
        for (change, entry) in record.plan.changes.iter().zip(&record.entries) {
            if which(entry)
                && entry.progress == Progress::Made
                && change::now(self, &change.what, entry)? != Now::After
            {
                let name = bounds::name(&change.what);
                return Err(ApplyError::Plan(format!("{name} does not stay as the plan asks for")));
            }
        }
        Ok(())
    }
}
