//! The process that takes a plan back when nobody confirms it.

use std::thread;
use std::time::Duration;

use super::record::Phase;
use super::{ApplyError, Host, Record, Step};

/// It looks so often whether it is still needed.
const LOOK: Duration = Duration::from_secs(1);
/// It tries so often, with so much time between, to put back what cannot be put back at once.
const ATTEMPTS: u32 = 60;
const PAUSE: Duration = Duration::from_secs(10);

impl Host {
    /// Waits until the record of that number is confirmed or taken back, or takes it back: when its time is up, or when the
    /// process that worked on it ended before it was done, which it is known by that nobody has the lock.
    ///
    /// # Errors
    /// If the record cannot be read, or something could not be put back.
    pub fn watch_over(
        &mut self,
        number: u64,
        step: &mut dyn FnMut(&Step),
    ) -> Result<Option<Record>, ApplyError> {
        let mut attempts = 0;
        loop {
            // Somebody removed it, and perhaps the folder with it.
            if self.store.load(number)?.is_none() {
                return Ok(None);
            }
            let waits = |host: &Self| -> Result<Option<Duration>, ApplyError> {
                let now = host.now()?;
                let record = host.store.load(number)?;
                let record = record.filter(|record| record.unfinished(&now).is_none());
                Ok(record.map(|record| match record.phase {
                    Phase::Applied => record.left_to_confirm(&now),
                    _ => Duration::ZERO,
                }))
            };
            match waits(self)? {
                // It was confirmed, or taken back.
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => thread::sleep(left.min(LOOK)),
                None => {
                    let lock = self.store.wait_for_lock()?;
                    if waits(self)?.is_some() {
                        continue;
                    }
                    attempts += 1;
                    match self.recover_locked(&lock, step) {
                        Err(ApplyError::Left(_)) if attempts < ATTEMPTS => {
                            drop(lock);
                            thread::sleep(PAUSE);
                        }
                        ended => return ended,
                    }
                }
            }
        }
    }
}
