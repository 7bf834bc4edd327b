//! Putting a queue discipline on an interface that has just appeared.

use dualq_qdisc::QdiscLine;

use super::change::{ingress, qdisc};
use super::{ApplyError, Before, Host, Phase, Record};
use crate::plan::{At, What, calls};

impl Host {
    /// Puts what `line` asks for at the root of `dev`, unless it is there; with an `ifb` at the root of that, and takes there what
    /// arrives at `dev`.
    ///
    /// # Errors
    /// If there is no such interface, what arrives is somebody else's, or the kernel refuses.
    pub fn on_boot(
        &mut self,
        dev: &str,
        ifb: Option<&str>,
        line: &QdiscLine,
    ) -> Result<(), ApplyError> {
        let link = self.netlink.link(dev)?;
        if let Some(ifb) = ifb {
            crate::plan::ifb(ifb).map_err(ApplyError::Plan)?;
            if ingress::is_missing(&self.root)
                && let Ok(lock) = self.store.lock()
            {
                ingress::load(&self.root, &lock);
            }
            ingress::put(&mut self.netlink, &link, ifb, line.spec(), &mut |_| {})?;
            let _ = self.take_note_of(dev, link.index);
            return Ok(());
        }
        let is_there = qdisc::is(&self.netlink.qdiscs(link.index)?, line.spec(), &link);
        if !is_there {
            qdisc::put(&mut self.netlink, &link, line.spec(), &mut |_| {})?;
        }
        // Without that it is still known by its name.
        let _ = self.take_note_of(dev, link.index);
        Ok(())
    }

    /// Whether the plan by which this is called was taken back since the machine started: what was read of its rules before is still done.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn was_taken_back(
        &self,
        dev: &str,
        ifb: Option<&str>,
        line: &QdiscLine,
    ) -> Result<bool, ApplyError> {
        let now = self.now()?;
        let is_called =
            |path: &str, content: &str| calls(path, content, At { dev, ifb }, line.text());
        let called = |what: &What| match what {
            What::File { path, before, after, .. } => {
                let before = before.as_deref().unwrap_or_default();
                is_called(path, after) && !is_called(path, before)
            }
            _ => false,
        };
        Ok(self.store.last()?.is_some_and(|last| {
            last.phase == Phase::RolledBack
                && !now.restarted_since(&last.applied)
                && last.plan.changes.iter().any(|change| called(&change.what))
        }))
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
            if let Before::Qdisc { link, .. } | Before::Ingress { link, .. } = &mut entry.before
                && is_about(&change.what, dev)
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
        let found = self.find(|record| {
            record.phase == Phase::Confirmed
                && record.plan.changes.iter().any(|change| is_about(&change.what, dev))
        })?;
        let Some(record) = found else { return Ok(None) };
        let known =
            record.plan.changes.iter().zip(&record.entries).find_map(
                |(change, entry)| match &entry.before {
                    Before::Qdisc { link, .. } | Before::Ingress { link, .. }
                        if is_about(&change.what, dev) =>
                    {
                        Some(*link)
                    }
                    _ => None,
                },
            );
        let is_another = known
            .flatten()
            .is_none_or(|known| known != number && self.netlink.link_at(known).is_err());
        Ok(is_another.then_some(record))
    }
}

/// Whether a change is made at that interface itself.
fn is_about(what: &What, interface: &str) -> bool {
    matches!(what, What::Qdisc { dev, .. } | What::Ingress { dev, .. } if dev == interface)
}
