//! Putting back what was there before a plan.

use super::change::{self, Now, qdisc, sysctl};
use super::record::{Before, Phase, Progress};
use super::{ApplyError, Host, Lock, Record, Step, bounds};
use crate::plan::What;

/// What became of a change that was to be taken back.
enum Outcome {
    /// There is nothing left to do.
    Over,
    /// It is still there.
    Left,
}

/// How a plan is taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rollback {
    /// Only look whether it could be.
    pub pretend: bool,
    /// Also where somebody changed what the plan had put there.
    pub force: bool,
}

impl Host {
    /// Takes back the newest plan that is there. `guard` is called when the record says so and before the first change: it starts whatever will
    /// [watch over](Self::watch_over) the record, and so finish it if this process is killed.
    ///
    /// # Errors
    /// [`ApplyError::Nothing`] if there is none, [`ApplyError::ChangedSince`] if somebody changed since what it had put there (and
    /// then nothing is taken back), [`ApplyError::Left`] if something could not be put back.
    pub fn rollback(
        &mut self,
        how: Rollback,
        guard: &mut dyn FnMut(&Record),
        step: &mut dyn FnMut(&Step),
    ) -> Result<Record, ApplyError> {
        // Who asks in vain should leave no folder behind.
        self.store.newest()?.ok_or(ApplyError::Nothing)?;
        let lock = self.store.lock()?;
        let mut record = self.newest()?.filter(Record::is_open).ok_or(ApplyError::Nothing)?;
        let mut differences = Vec::new();
        for (change, entry) in record.plan.changes.iter().zip(&record.entries) {
            if entry.progress != Progress::Made {
                continue;
            }
            match change::now(self, &change.what, entry) {
                Ok(Now::Other(difference)) => differences.push(difference),
                Ok(Now::Before | Now::After) => {}
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        if !differences.is_empty() && !how.force {
            return Err(ApplyError::ChangedSince(differences));
        }
        if how.pretend {
            return Ok(record);
        }
        let why = "somebody asked for it";
        self.begin_to_take_back(&mut record, why, how.force)?;
        // Where it cannot be recorded, nobody else could finish it.
        if self.store.save(&record, &lock).is_ok() {
            step(&Step::Recorded);
            guard(&record);
        }
        self.take_back(record, why, how.force, &lock, step)
    }

    /// Finishes what an earlier call left unfinished, if it did, and gives its record: a plan that was not confirmed in time, or a process that was
    /// killed on its way.
    ///
    /// # Errors
    /// [`ApplyError::Busy`] if another process has not ended yet; [`ApplyError::Left`] if something could not be put back.
    pub fn recover(&mut self, step: &mut dyn FnMut(&Step)) -> Result<Option<Record>, ApplyError> {
        // Who only looks should leave no folder behind.
        if self.unfinished()?.is_none() {
            return Ok(None);
        }
        let lock = self.store.lock()?;
        self.recover_locked(&lock, step)
    }

    /// Why the newest record has to be taken back without anybody asking for it, if it has.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn unfinished(&self) -> Result<Option<String>, ApplyError> {
        let now = self.now()?;
        Ok(self.store.newest()?.and_then(|record| record.unfinished(&now)))
    }

    pub(crate) fn recover_locked(
        &mut self,
        lock: &Lock,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Option<Record>, ApplyError> {
        let now = self.now()?;
        let Some(mut record) = self.newest()? else { return Ok(None) };
        let Some(why) = record.unfinished(&now) else { return Ok(None) };
        if now.restarted_since(&record.applied) {
            // What does not outlast a restart is gone, unless files that are there brought it back; then it is there as a whole.
            let gone = matches!(record.phase, Phase::Applying | Phase::Applied);
            let progress = if gone { Progress::Untouched } else { Progress::Made };
            for entry in &mut record.entries {
                if !entry.is_file() && entry.progress != Progress::Kept {
                    entry.progress = progress;
                }
            }
            record.borrowed = None;
        }
        let force = record.force;
        let record = self.take_back(record, &why, force, lock, step)?;
        Ok(Some(record))
    }

    /// Takes back a plan of which a change failed.
    pub(crate) fn take_back_after(
        &mut self,
        error: ApplyError,
        record: Record,
        lock: &Lock,
        step: &mut dyn FnMut(&Step),
    ) -> ApplyError {
        match self.take_back(record, &format!("it failed: {error}"), false, lock, step) {
            Ok(record) if record.left.is_empty() => ApplyError::TakenBack { error: error.into() },
            Ok(record) => ApplyError::Left(record.left),
            Err(left) => left,
        }
    }

    fn begin_to_take_back(
        &self,
        record: &mut Record,
        why: &str,
        force: bool,
    ) -> Result<(), ApplyError> {
        record.phase = Phase::RollingBack;
        record.touch(self.now()?);
        record.why = Some(why.to_owned());
        record.force = force;
        record.left.clear();
        Ok(())
    }

    /// Puts back everything that is made or under way. What somebody changed meanwhile is left as it is, unless by `force`.
    fn take_back(
        &mut self,
        mut record: Record,
        why: &str,
        force: bool,
        lock: &Lock,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Record, ApplyError> {
        self.begin_to_take_back(&mut record, why, force)?;
        // A full disk must not keep anything from being restored: restoring can be done twice.
        let mut saved = self.store.save(&record, lock);
        step(&Step::Recorded);
        let mut failures = Vec::new();
        if let Err(error) = self.give_back_default_qdisc(&mut record, step) {
            failures.push(format!("{}: {error}", sysctl::DEFAULT_QDISC));
        }
        for index in order(&record) {
            if matches!(record.entries[index].progress, Progress::Kept | Progress::Untouched) {
                continue;
            }
            let name = bounds::name(&record.plan.changes[index].what);
            match self.take_back_one(&mut record, index, force, lock, step) {
                Ok(Outcome::Over) => record.entries[index].progress = Progress::Untouched,
                // It is known to be there, so that a rollback by force can still take it back.
                Ok(Outcome::Left) => {}
                Err(error) => failures.push(format!("{name}: {error}")),
            }
        }
        if failures.is_empty() {
            record.phase = Phase::RolledBack;
            record.ended = Some(self.now()?.unix);
            saved = self.store.save(&record, lock);
            step(&Step::Recorded);
        } else {
            saved = saved.and(self.store.save(&record, lock));
            step(&Step::Recorded);
        }
        if !failures.is_empty() {
            return Err(ApplyError::Left(failures));
        }
        saved.map(|()| record)
    }

    fn take_back_one(
        &mut self,
        record: &mut Record,
        index: usize,
        force: bool,
        lock: &Lock,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Outcome, ApplyError> {
        let what = record.plan.changes[index].what.clone();
        let name = change::name_now(self, &what, &record.entries[index]);
        let entry = &record.entries[index];
        // Only what is of several parts has something between before and after.
        let halfway = entry.progress == Progress::Underway
            && matches!(entry.before, Before::Qdisc { .. } | Before::Ingress { .. });
        match change::now(self, &what, entry) {
            // With an interface goes what was put there.
            Err(error) if error.is_gone() => {
                if matches!(what, What::Ingress { .. }) {
                    change::restore(self, &what, &entry.before.clone(), lock, step)?;
                }
                // What was in a class was the plan's alone, if the class had nothing of its own.
                let was_empty =
                    matches!(&entry.before, Before::Qdisc { tree, .. } if tree.is_empty());
                if !(was_empty && matches!(error, ApplyError::NoClass { .. })) {
                    record.left.push(format!("{name}: it is gone"));
                }
                return Ok(Outcome::Over);
            }
            Err(error) => return Err(error),
            Ok(Now::Other(_)) if !force && !halfway => {
                record.left.push(format!("{name}: somebody changed it meanwhile"));
                return Ok(Outcome::Left);
            }
            Ok(_) => {}
        }
        record.entries[index].progress = Progress::Underway;
        let _ = self.store.save(record, lock);
        step(&Step::Recorded);
        let before = record.entries[index].before.clone();
        self.borrow_default_qdisc(&before, record, lock, step)?;
        let restored = change::restore(self, &what, &before, lock, step);
        self.give_back_default_qdisc(record, step)?;
        if let (Err(error), Before::Module { .. }) = (&restored, &before) {
            // It does nothing if nobody uses it.
            record.left.push(format!("{name} stays loaded: {error}"));
            return Ok(Outcome::Over);
        }
        restored?;
        step(&Step::Restored(name));
        Ok(Outcome::Over)
    }

    /// What the kernel puts in an empty place is what `net.core.default_qdisc` says, which may have been something else then.
    fn borrow_default_qdisc(
        &mut self,
        before: &Before,
        record: &mut Record,
        lock: &Lock,
        step: &mut dyn FnMut(&Step),
    ) -> Result<(), ApplyError> {
        let Before::Qdisc { tree, .. } = before else { return Ok(()) };
        let Some(kind) = qdisc::default_kind(tree) else { return Ok(()) };
        // Only the machine's first network namespace has it.
        let Ok(now) = sysctl::read(&self.root, sysctl::DEFAULT_QDISC) else { return Ok(()) };
        if now == kind {
            return Ok(());
        }
        // If it could not be given back before, what it was is known from then.
        record.borrowed.get_or_insert(now);
        let _ = self.store.save(record, lock);
        step(&Step::Recorded);
        sysctl::write(&self.root, sysctl::DEFAULT_QDISC, kind)?;
        step(&Step::Part(format!("{} is {kind} for a moment", sysctl::DEFAULT_QDISC)));
        Ok(())
    }

    /// What it was before is forgotten only when it is that again.
    fn give_back_default_qdisc(
        &mut self,
        record: &mut Record,
        step: &mut dyn FnMut(&Step),
    ) -> Result<(), ApplyError> {
        let Some(kind) = &record.borrowed else { return Ok(()) };
        sysctl::write(&self.root, sysctl::DEFAULT_QDISC, kind)?;
        step(&Step::Part(format!("{} is {kind} again", sysctl::DEFAULT_QDISC)));
        record.borrowed = None;
        Ok(())
    }
}

/// Files first, so that a restart brings nothing back; sysctls before queue disciplines, of which one may decide about the other;
/// modules when nobody needs them any more. Among equals, the last comes first.
fn order(record: &Record) -> Vec<usize> {
    let rank = |index: &usize| match record.entries[*index].before {
        Before::File { .. } => 0,
        Before::Sysctl { .. } => 1,
        Before::Qdisc { .. } | Before::Ingress { .. } | Before::Offload { .. } => 2,
        Before::Route { .. } => 3,
        Before::Module { .. } => 4,
    };
    let mut order: Vec<usize> = (0..record.entries.len()).rev().collect();
    order.sort_by_key(rank);
    order
}
