//! Putting a queue discipline on an interface that has just appeared.

use dualq_qdisc::QdiscLine;

use super::change::qdisc;
use super::{ApplyError, Before, Host, Phase, Record};
use crate::plan::What;

impl Host {
    /// Puts what `line` asks for at the root of `dev`, unless it is there. Whether it did.
    ///
    /// # Errors
    /// If there is no such interface, or the kernel refuses.
    pub fn on_boot(&mut self, dev: &str, line: &QdiscLine) -> Result<bool, ApplyError> {
        let link = self.netlink.link(dev)?;
        let is_there = qdisc::is(&self.netlink.qdiscs(link.index)?, line.spec(), &link);
        if !is_there {
            qdisc::put(&mut self.netlink, &link, line.spec(), &mut |_| {})?;
        }
        // Without that it is still known by its name.
        let _ = self.take_note_of(dev, link.index);
        Ok(!is_there)
    }

    /// An interface that comes back, or that a restart brings, has another number than in the record. There it gets the new one,
    /// so that another name does not hide it from `status` and `rollback`.
    fn take_note_of(&mut self, dev: &str, number: u32) -> Result<(), ApplyError> {
        if self.with_another_number(dev, number)?.is_none() {
            return Ok(());
        }
        let lock = self.store.lock()?;
        let Some(mut record) = self.with_another_number(dev, number)? else { return Ok(()) };
        for (change, entry) in record.plan.changes.iter().zip(&mut record.entries) {
            if let (What::Qdisc { dev: name, .. }, Before::Qdisc { link, .. }) =
                (&change.what, &mut entry.before)
                && name == dev
            {
                *link = Some(number);
            }
        }
        record.touch(self.now()?);
        self.store.save(&record, &lock)
    }

    /// The newest confirmed record about an interface of that name, if the one that it knows is not there any more.
    fn with_another_number(
        &mut self,
        dev: &str,
        number: u32,
    ) -> Result<Option<Record>, ApplyError> {
        let is_about = |what: &What| matches!(what, What::Qdisc { dev: name, .. } if name == dev);
        let found = self.find(|record| {
            record.phase == Phase::Confirmed
                && record.plan.changes.iter().any(|change| is_about(&change.what))
        })?;
        let Some(record) = found else { return Ok(None) };
        let known =
            record.plan.changes.iter().zip(&record.entries).find_map(
                |(change, entry)| match &entry.before {
                    Before::Qdisc { link, .. } if is_about(&change.what) => Some(*link),
                    _ => None,
                },
            );
        let is_another = known
            .flatten()
            .is_none_or(|known| known != number && self.netlink.link_at(known).is_err());
        Ok(is_another.then_some(record))
    }
}
