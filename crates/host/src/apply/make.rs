//! Making the changes that do not outlast a restart.

use super::change;
use super::record::{Phase, Progress};
use super::{ApplyError, Ready, Record, Step, bounds};

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
        step(&Step::Recorded);
        let mut work = || -> Result<(), ApplyError> {
            guard(&record)?;
            for index in 0..due.len() {
                if !due[index] || record.entries[index].is_file() {
                    continue;
                }
                record.entries[index].progress = Progress::Underway;
                host.store.save(&record, &lock)?;
                step(&Step::Recorded);
                let what = &record.plan.changes[index].what;
                let entry = &mut record.entries[index];
                change::make(host, what, &mut entry.before, rehearsed[index].as_ref(), step)?;
                entry.progress = Progress::Made;
                step(&Step::Made(bounds::name(what)));
            }
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
