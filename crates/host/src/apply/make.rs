//! Making the changes that do not outlast a restart.

use dualq_qdisc::Config;

use super::change::{self, Now};
use super::record::{Phase, Progress};
use super::{ApplyError, Entry, Host, Ready, Record, Step, bounds};
use crate::plan::What;

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
        let of_modules = |what: &What| matches!(what, What::Module { .. });
        let mut changes = record.plan.changes.iter().zip(&due);
        // To rehearse a queue discipline loads its module: what is to be loaded is recorded and loaded before.
        let loads = changes.any(|(change, due)| *due && of_modules(&change.what));
        let mut rehearsed = Vec::new();
        if !loads {
            rehearsed = rehearse(host, &mut record, &due)?;
        }
        host.store.save(&record, &lock)?;
        host.store.prune(&record, &lock);
        step(&Step::Recorded);
        let mut work = || -> Result<(), ApplyError> {
            guard(&record)?;
            let mut make = |host: &mut Host, record: &mut Record, index: usize, rehearsed| {
                record.entries[index].progress = Progress::Underway;
                host.store.save(record, &lock)?;
                step(&Step::Recorded);
                let what = &record.plan.changes[index].what;
                let entry = &mut record.entries[index];
                change::make(host, what, &mut entry.before, rehearsed, &lock, step)?;
                entry.progress = Progress::Made;
                step(&Step::Made(bounds::name(what)));
                Ok::<(), ApplyError>(())
            };
            for (index, due) in due.iter().enumerate() {
                if *due && of_modules(&record.plan.changes[index].what) {
                    make(host, &mut record, index, None)?;
                }
            }
            if loads {
                rehearsed = rehearse(host, &mut record, &due)?;
            }
            for (index, due) in due.iter().enumerate() {
                let entry = &record.entries[index];
                if *due && !entry.is_file() && entry.progress != Progress::Made {
                    make(host, &mut record, index, rehearsed[index].as_ref())?;
                }
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

/// Tries each change that is due where nothing comes of it; what the kernel makes of each.
fn rehearse(
    host: &mut Host,
    record: &mut Record,
    due: &[bool],
) -> Result<Vec<Option<Config>>, ApplyError> {
    let all = record.plan.changes.iter().zip(&mut record.entries).zip(due);
    all.map(|((change, entry), due)| match due {
        true => change::rehearse(host, &change.what, &mut entry.before),
        false => Ok(None),
    })
    .collect()
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
