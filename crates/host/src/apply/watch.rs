//! The process that takes a plan back when nobody confirms it.

use std::thread;
use std::time::{Duration, Instant};

use super::record::Phase;
use super::{ApplyError, Host, Record, Step};

/// It looks so often whether it is still needed.
const LOOK: Duration = Duration::from_secs(1);
/// What does not succeed is tried again, after that time at most,
const PAUSE: Duration = Duration::from_secs(10);
/// until so long after the plan's time is up.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is to be done about a record.
enum Look {
    /// Nothing any more: it was confirmed, or taken back, or removed.
    Done(Option<Box<Record>>),
    /// It may be confirmed for so long.
    Wait(Duration),
}

impl Host {
    /// Waits until the record of that number is confirmed or taken back, or takes it back: when its time is up, or when the
    /// process that worked on it ended before it was done, which it is known by that nobody has the lock. Whatever fails is tried
    /// again. From its beginning on the record [is watched](super::Store::is_watched).
    ///
    /// # Errors
    /// What still failed ten minutes after the time was up.
    pub fn watch_over(
        &mut self,
        number: u64,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Option<Record>, ApplyError> {
        let (mut watch, mut until, mut pause) = (None, Instant::now() + PATIENCE, LOOK);
        loop {
            // Not even that is worth giving up for.
            watch = watch.or_else(|| self.store.watch(number).ok());
            match self.look_after(number, step) {
                Ok(Look::Done(record)) => return Ok(record.map(|record| *record)),
                Ok(Look::Wait(left)) => {
                    (until, pause) = (Instant::now() + left + PATIENCE, LOOK);
                    thread::sleep(left.min(LOOK));
                }
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => {
                    thread::sleep(pause);
                    pause = PAUSE.min(pause * 2);
                }
            }
        }
    }

    fn look_after(&mut self, number: u64, step: &mut dyn FnMut(&Step)) -> Result<Look, ApplyError> {
        if let Some(look) = self.look_at(number)? {
            return Ok(look);
        }
        let lock = self.store.wait_for_lock()?;
        // Whoever had it may have finished.
        match self.look_at(number)? {
            Some(look) => Ok(look),
            None => {
                let record = self.recover_locked(&lock, step)?;
                Ok(Look::Done(record.map(Box::new)))
            }
        }
    }

    /// What is to be done about it; `None` if it has to be taken back.
    fn look_at(&self, number: u64) -> Result<Option<Look>, ApplyError> {
        let now = self.now()?;
        // Somebody may have removed it, and perhaps the folder with it.
        let Some(record) = self.store.load(number)? else { return Ok(Some(Look::Done(None))) };
        if record.unfinished(&now).is_some() {
            return Ok(None);
        }
        Ok(Some(match record.phase {
            Phase::Applied => Look::Wait(record.left_to_confirm(&now)),
            _ => Look::Done(None),
        }))
    }
}
