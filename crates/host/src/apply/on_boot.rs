//! Putting back what belongs to an interface that has just appeared.

use dualq_qdisc::QdiscLine;
use dualq_qdisc::grammar::ParseError;

use super::change::qdisc::Wanted;
use super::change::{ingress, offload, qdisc, route};
use super::{ApplyError, Host, Phase, Record};
use crate::plan::{At, Kept, Part, What, calls, mtu_of_line, offload_line};

impl Host {
    /// Puts there what `line` asks for, unless it is there: at the root of an interface; below a class of it; at the root of the ifb that takes what
    /// arrives there; limits what puts packets together; or a route, if there is a way by that interface yet. What the rules call for and has no way or
    /// class yet is waited for by [`keep`](Self::keep).
    ///
    /// # Errors
    /// If the line does not belong there, there is no such interface, no such class and no rule that calls for it, what arrives is somebody else's, or
    /// the kernel refuses.
    pub fn on_boot(&mut self, at: At<'_>, line: &str) -> Result<(), ApplyError> {
        at.check(line).map_err(ApplyError::Plan)?;
        let link = self.netlink.link(at.dev)?;
        let qdisc = || -> Result<QdiscLine, ApplyError> {
            line.parse().map_err(|error: ParseError| ApplyError::Plan(error.to_string()))
        };
        match at.part {
            Part::Offloads => {
                for (key, value) in offload_line(line).map_err(ApplyError::Plan)? {
                    if offload::read(&mut self.netlink, &link, key)? != value {
                        offload::write(&mut self.netlink, &link, key, value)?;
                    }
                }
            }
            // It has no number to take note of, and mostly there is no way yet.
            Part::Route { to } => {
                let mtu = mtu_of_line(line).map_err(ApplyError::Plan)?;
                let _ = route::put_back(&mut self.netlink, at.dev, to, mtu);
                return Ok(());
            }
            Part::Arriving { ifb } => {
                if ingress::is_missing(&self.root)
                    && let Ok(lock) = self.store.lock()
                {
                    ingress::load(&self.root, &lock);
                }
                let wanted = Wanted::at_root(&qdisc()?);
                ingress::put(&mut self.netlink, &link, ifb, &wanted, &mut |_| {})?;
            }
            Part::Leaving | Part::Each | Part::Below { .. } => {
                let class = match at.part {
                    Part::Below { class } => Some(class),
                    _ => None,
                };
                let wanted = Wanted::of(&qdisc()?, at.part == Part::Each, class);
                let is_leaf = class.map(|class| qdisc::is_leaf(&mut self.netlink, &link, class));
                match (is_leaf, class) {
                    (Some(Err(error)), Some(class)) => {
                        let (dev, line) = (at.dev.to_owned(), line.to_owned());
                        if !self.to_keep()?.contains(&Kept::Below { dev, class, line }) {
                            return Err(error);
                        }
                        let _ = self.take_note_of(at.dev, link.index);
                        return Ok(());
                    }
                    (Some(Ok(false)), Some(class)) => {
                        return Err(ApplyError::Plan(format!(
                            "class {class} of {} is not a leaf, packets go to the classes in it",
                            at.dev
                        )));
                    }
                    _ => {}
                }
                if !qdisc::is(&self.netlink.qdiscs(link.index)?, &wanted, &link) {
                    qdisc::put(&mut self.netlink, &link, &wanted, &mut |_| {})?;
                }
            }
        }
        // Without that it is still known by its name.
        let _ = self.take_note_of(at.dev, link.index);
        Ok(())
    }

    /// Whether the plan by which this is called was taken back since the machine started: what was read of its rules before is still done.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn was_taken_back(&self, at: At<'_>, line: &str) -> Result<bool, ApplyError> {
        let now = self.now()?;
        let is_called = |path: &str, content: &str| calls(path, content, at, line);
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
            if is_about(&change.what, dev) {
                entry.before.set_link(Some(number));
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
        let mut all = record.plan.changes.iter().zip(&record.entries);
        let known = all.find(|(change, _)| is_about(&change.what, dev));
        let known = known.and_then(|(_, entry)| entry.before.link());
        let is_another =
            known.is_none_or(|known| known != number && self.netlink.link_at(known).is_err());
        Ok(is_another.then_some(record))
    }
}

/// Whether a change is made at that interface itself.
fn is_about(what: &What, interface: &str) -> bool {
    what.interface() == Some(interface)
}
