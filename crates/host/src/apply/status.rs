//! What is applied here, and whether it still is.

use dualq_netlink::{Handle, Queue};
use dualq_qdisc::show;
use serde::Serialize;
use serde_json::Value;

use super::change::{self, Now, qdisc};
use super::{ApplyError, Before, Difference, Host, Phase, Record};
use crate::plan::{At, Caller, ClassId, Kept, Part, USUAL_STATE, What};

/// What is known of the newest plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// How far it is; `None` if there never was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// When it was applied, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<u64>,
    /// Seconds that are left to confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Why it has to be taken back, if nobody does it: `dualq rollback` will.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// When it was taken back, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Why it was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was not put back then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// The plan that was applied after it, and is there no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// What the plans are for that were confirmed before it and are still there, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
    /// Its changes, if it is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<State>,
    /// The queue disciplines of the interfaces that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Live>,
}

/// A plan that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Last {
    /// What it was for.
    pub about: String,
    /// When it was taken back, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was not put back then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// A change, and what is there now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// What is changed.
    pub name: String,
    /// Whether that outlasts a restart.
    pub file: bool,
    /// What is there.
    pub standing: Standing,
    /// What is there, against what the plan put there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// How what the plan put below a class comes back, if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What is where a plan changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// What the plan asks for.
    AsPlanned,
    /// What was there before: of a file that is still to be written, or because somebody put it back.
    AsBefore,
    /// Something else.
    Drifted,
}

/// An interface's queue disciplines with what they count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Live {
    /// Its name.
    pub dev: String,
    /// What `tc -j -s qdisc show` says of each that is at the root; what is inside is inside.
    pub qdiscs: Vec<Value>,
    /// The same as `tc -s qdisc show` has it.
    #[serde(skip)]
    pub text: String,
}

impl Host {
    /// Looks at the newest plan and at the machine; changes nothing.
    ///
    /// # Errors
    /// If the record or the machine cannot be read.
    pub fn status(&mut self) -> Result<Status, ApplyError> {
        let now = self.now()?;
        let record = match self.in_force()? {
            None => match self.newest()?.filter(Record::is_open) {
                None => self.store.ended_last()?,
                open => open,
            },
            record => record,
        };
        let mut status = Status {
            phase: record.as_ref().map(|record| record.phase),
            about: record.as_ref().map(|record| record.plan.about.clone()),
            applied: record.as_ref().map(|record| record.applied.unix),
            seconds_left: None,
            unfinished: None,
            ended: record.as_ref().and_then(|record| record.ended),
            why: record.as_ref().and_then(|record| record.why.clone()),
            left: record.as_ref().map(|record| record.left.clone()).unwrap_or_default(),
            last: None,
            below: Vec::new(),
            changes: Vec::new(),
            interfaces: Vec::new(),
        };
        let Some(record) = record.filter(Record::is_open) else { return Ok(status) };
        let below = self.store.below(record.number)?;
        status.below = below.into_iter().map(|record| record.plan.about).collect();
        let last = self.store.last()?.filter(|last| last.number > record.number);
        status.last = last.map(|Record { plan, ended, why, left, .. }| Last {
            about: plan.about,
            ended,
            why,
            left,
        });
        // Of what is under way, nobody can tell from here whether somebody still works on it.
        if record.phase == Phase::Applied || now.restarted_since(&record.applied) {
            status.unfinished = record.unfinished(&now);
        }
        if record.phase == Phase::Applied {
            status.seconds_left = Some(record.left_to_confirm(&now).as_secs());
        }
        for (change, entry) in record.plan.changes.iter().zip(&record.entries) {
            let file = entry.is_file();
            let now = change::now(self, &change.what, entry);
            let remedy = match &now {
                Ok(Now::After) => None,
                now => self.remedy(&change.what, now.as_ref().err())?,
            };
            let now = now.unwrap_or_else(|error| change::unseen(&change.what, &error));
            let (standing, difference) = match now {
                Now::After => (Standing::AsPlanned, None),
                Now::Before => (Standing::AsBefore, None),
                Now::Other(difference) => (Standing::Drifted, Some(difference)),
            };
            status.changes.push(State {
                name: change::name_now(self, &change.what, entry),
                file,
                standing,
                difference,
                remedy,
            });
            if let (What::Qdisc { dev, parent, .. }, Before::Qdisc { link, .. }) =
                (&change.what, &entry.before)
                && let Ok(link) = qdisc::device(&mut self.netlink, dev, *link)
            {
                status.interfaces.push(live(
                    &link.name,
                    *parent,
                    &self.netlink.qdiscs(link.index)?,
                ));
            }
            if let What::Ingress { ifb, .. } = &change.what
                && let Ok(link) = self.netlink.link(ifb)
            {
                status.interfaces.push(live(&link.name, None, &self.netlink.qdiscs(link.index)?));
            }
        }
        Ok(status)
    }

    /// How what was put below a class comes back: a tree of somebody else's takes it along when it goes, or is made anew.
    fn remedy(
        &mut self,
        what: &What,
        error: Option<&ApplyError>,
    ) -> Result<Option<String>, ApplyError> {
        let What::Qdisc { dev, parent: Some(class), after, .. } = what else { return Ok(None) };
        let state = std::path::absolute(self.store.folder())
            .map_err(ApplyError::io("find the current folder"))?;
        let state = Some(state.to_string_lossy()).filter(|state| state.as_ref() != USUAL_STATE);
        let at = At { dev, part: Part::Below { class: *class } };
        let caller = Caller { program: "dualq", state: state.as_deref() };
        let call = format!("`sudo {}`", caller.command(at, after.text()));
        let kept = Kept::Below { dev: dev.clone(), class: *class, line: after.text().to_owned() };
        let is_kept = self.to_keep()?.contains(&kept) && self.store.is_kept()?;
        let is_gone = matches!(error, Some(ApplyError::NoClass { .. }));
        Ok(Some(match (is_gone, is_kept) {
            (true, true) => format!("it comes back by itself when {dev} has class {class} again"),
            (true, false) => format!("when {dev} has class {class} again, {call} puts it there"),
            (false, true) => format!(
                "where class {class} of {dev} has a discipline of somebody else's, that stays until {call}; where it has none, it comes back by itself"
            ),
            (false, false) => format!("{call} puts it there"),
        }))
    }
}

/// The numbers of a discipline and of those inside it.
fn handles(queues: &[Queue], outside: &Queue) -> Vec<u16> {
    let mut handles = vec![outside.handle.major()];
    let inside = |major: u16| {
        queues.iter().find(|queue| queue.parent.major() == major && queue.parent != Handle::ROOT)
    };
    while let Some(queue) = handles.last().and_then(|major| inside(*major)) {
        // No discipline is inside itself, whatever the kernel says.
        if handles.contains(&queue.handle.major()) {
            break;
        }
        handles.push(queue.handle.major());
    }
    handles
}

/// What is at the root of a device, or in that class.
fn live(dev: &str, class: Option<ClassId>, queues: &[Queue]) -> Live {
    let (mut qdiscs, mut text) = (Vec::new(), String::new());
    let place = qdisc::place(class);
    for queue in queues.iter().filter(|queue| queue.parent == place) {
        match (&queue.config, &queue.stats) {
            (Some(config), Some(stats)) => {
                let handles = handles(queues, queue);
                let mut object = show::json_at(config, stats, &handles);
                let mut shown = show::text_at(config, stats, &handles);
                if class.is_some() {
                    object.retain(|key, _| !matches!(key.as_str(), "root" | "refcnt"));
                    object.insert("parent".to_owned(), place.to_string().into());
                    shown = shown.replacen("root refcnt 2", &format!("parent {place}"), 1);
                }
                qdiscs.push(Value::from(object));
                text.push_str(&shown);
            }
            _ => {
                let counters = &queue.counters;
                qdiscs.push(serde_json::json!({
                    "kind": queue.kind,
                    "handle": queue.handle.to_string(),
                    "bytes": counters.sent_bytes,
                    "packets": counters.sent_packets,
                    "drops": counters.drops,
                    "overlimits": counters.overlimits,
                    "requeues": queue.requeues,
                    "backlog": counters.backlog_bytes,
                    "qlen": counters.backlog_packets,
                }));
                text.push_str(&format!(
                    "qdisc {} {} {}\n Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})\n",
                    queue.kind, queue.handle, class.map_or("root".to_owned(), |class| format!("parent {class}")), counters.sent_bytes, counters.sent_packets,
                    counters.drops, counters.overlimits, queue.requeues,
                ));
            }
        }
    }
    Live { dev: dev.to_owned(), qdiscs, text }
}
