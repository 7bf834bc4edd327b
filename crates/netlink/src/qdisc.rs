//! Putting queue disciplines in place.

use std::fmt;

use dualq_qdisc::Spec;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use crate::attributes::Writer;
use crate::channel::Failure;
use crate::dump::{self, Queue};
use crate::error::ENOENT;
use crate::header::Tc;
use crate::kinds::{self, TCA_KIND};
use crate::{Handle, Link, Netlink, NetlinkError, Place};

pub(crate) const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
pub(crate) const RTM_GETQDISC: u16 = 38;
pub(crate) const RTM_NEWTCLASS: u16 = 40;
pub(crate) const RTM_GETTCLASS: u16 = 42;

/// How a discipline comes to its place, as tc's verbs have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Change,
    Replace,
}

impl Verb {
    const fn flags(self) -> u16 {
        match self {
            Self::Add => NLM_F_CREATE | NLM_F_EXCL,
            Self::Change => 0,
            Self::Replace => NLM_F_CREATE | NLM_F_REPLACE,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Replace => "replace",
        }
    }
}

/// One of the messages that put a discipline, and what is inside it, in place. They are for whoever wants to know, between
/// one and the next, how far things are; each leaves the device able to send.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) link: u32,
    pub(crate) verb: Verb,
    pub(crate) kind: u16,
    pub(crate) payload: Vec<u8>,
    /// What it asks for, in tc's words, and the kind of discipline.
    pub(crate) thing: String,
    pub(crate) qdisc: String,
    pub(crate) parent: Handle,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.thing, self.parent)
    }
}

fn requests(at: &Place, spec: &Spec, verb: Verb) -> Result<Vec<Request>, NetlinkError> {
    let kind = spec.kind();
    let needs_handle = || NetlinkError::NeedsHandle { kind };
    let mut requests = Vec::new();
    let request = |kind, message: Writer, thing, parent| Request {
        link: at.link,
        verb,
        kind,
        payload: message.finish(),
        thing,
        qdisc: spec.kind().to_owned(),
        parent,
    };
    // A standing htb has nothing that could be changed but its class.
    if !(verb == Verb::Change && matches!(spec, Spec::Htb(_))) {
        let mut message = Writer::after(Tc::of(at.link, at.handle, at.parent).bytes());
        message.string(TCA_KIND, kind);
        kinds::write(spec, &mut message);
        let thing = match spec {
            Spec::Htb(_) => "qdisc htb default 1".to_owned(),
            _ => format!("qdisc {}", spec.clone().without_leaf()),
        };
        requests.push(request(RTM_NEWQDISC, message, thing, at.parent));
    }
    if let Spec::Htb(options) = spec {
        let class = at.inside().ok_or_else(needs_handle)?.parent;
        let parent = Handle::qdisc(at.handle.major());
        let mut message = Writer::after(Tc::of(at.link, class, parent).bytes());
        message.string(TCA_KIND, kind);
        kinds::write_class(options, &mut message);
        let thing = format!("class {}", spec.clone().without_leaf());
        requests.push(request(RTM_NEWTCLASS, message, thing, parent));
    }
    if let Some(leaf) = spec.leaf() {
        let inside = at.inside().ok_or_else(needs_handle)?;
        requests.extend(self::requests(&inside, leaf, verb)?);
    }
    Ok(requests)
}

impl Netlink {
    /// Puts a discipline where there is none but the kernel's own: `tc qdisc add`. What is inside it gets the handles that
    /// follow: in `1:`, class `1:1` (for `htb` it is made) holds `2:`, and so on. If one of them is refused, none stays.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchKind`] if the kernel lacks it, [`NetlinkError::Refused`] if it refuses,
    /// [`NetlinkError::NeedsHandle`] if something is inside and the place has no handle.
    pub fn add_qdisc(&mut self, at: &Place, spec: &Spec) -> Result<(), NetlinkError> {
        for (done, request) in requests(at, spec, Verb::Add)?.iter().enumerate() {
            if let Err(error) = self.perform(request) {
                if done > 0 {
                    // The error that matters is the first.
                    let _ = self.delete_qdisc(at);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Changes what the options say, and leaves all else as it is: `tc qdisc change`, of what is inside too. Of an `htb` the
    /// class is changed.
    ///
    /// # Errors
    /// If there is another discipline at one of the places, or none; or if the kernel refuses.
    pub fn change_qdisc(&mut self, at: &Place, spec: &Spec) -> Result<(), NetlinkError> {
        requests(at, spec, Verb::Change)?.iter().try_for_each(|request| self.perform(request))
    }

    /// Puts a discipline in the place of what is there: `tc qdisc replace`. As with tc, one that has the same handle must be of
    /// the same kind and is changed instead, which `htb` refuses.
    ///
    /// # Errors
    /// As [`add_qdisc`](Self::add_qdisc). If something inside is refused, what is outside it stays.
    pub fn replace_qdisc(&mut self, at: &Place, spec: &Spec) -> Result<(), NetlinkError> {
        Self::replacement(at, spec)?.iter().try_for_each(|request| self.perform(request))
    }

    /// What [`replace_qdisc`](Self::replace_qdisc) asks for, one after the other: what is outside comes first.
    ///
    /// # Errors
    /// [`NetlinkError::NeedsHandle`] if something is inside and the place has no handle.
    pub fn replacement(at: &Place, spec: &Spec) -> Result<Vec<Request>, NetlinkError> {
        requests(at, spec, Verb::Replace)
    }

    /// Asks for one thing.
    ///
    /// # Errors
    /// As [`add_qdisc`](Self::add_qdisc).
    pub fn perform(&mut self, request: &Request) -> Result<(), NetlinkError> {
        let answer = self.route.ask(request.kind, request.verb.flags(), &request.payload);
        answer.map(drop).map_err(|failure| {
            let verb = request.verb.word();
            let what = self.what(verb, &request.thing, request.link, request.parent);
            let creates = request.verb != Verb::Change && request.kind == RTM_NEWQDISC;
            refusal(failure, what, creates.then_some(&request.qdisc))
        })
    }

    /// Adds a discipline of any kind that the kernel has, with its defaults.
    ///
    /// # Errors
    /// As [`add_qdisc`](Self::add_qdisc).
    pub fn add_qdisc_kind(&mut self, at: &Place, kind: &str) -> Result<(), NetlinkError> {
        let mut message = Writer::after(Tc::of(at.link, at.handle, at.parent).bytes());
        message.string(TCA_KIND, kind);
        let answer = self.route.ask(RTM_NEWQDISC, Verb::Add.flags(), &message.finish());
        answer.map(drop).map_err(|failure| {
            let what = self.what(Verb::Add.word(), &format!("qdisc {kind}"), at.link, at.parent);
            refusal(failure, what, Some(kind))
        })
    }

    /// Removes a discipline with all that is inside it; the kernel puts its own in the place.
    ///
    /// # Errors
    /// If there is none, or only the kernel's own.
    pub fn delete_qdisc(&mut self, at: &Place) -> Result<(), NetlinkError> {
        let message = Tc::of(at.link, at.handle, at.parent).bytes();
        let answer = self.route.ask(RTM_DELQDISC, 0, &message);
        answer.map(drop).map_err(|failure| {
            let thing = format!("qdisc {}", at.handle);
            failure.of(self.what("delete", &thing, at.link, at.parent))
        })
    }

    /// The disciplines of a device with their statistics, in the kernel's order: `tc -s qdisc show`. One that is inside another
    /// is in the list, and also in the [`config`](Queue::config) and [`stats`](Queue::stats) of that.
    ///
    /// # Errors
    /// If there is no such device, or the kernel does not tell.
    pub fn qdiscs(&mut self, index: u32) -> Result<Vec<Queue>, NetlinkError> {
        let link = self.link_at(index)?;
        let mut queues = self.qdiscs_of(std::slice::from_ref(&link))?;
        Ok(queues.pop().unwrap_or_default())
    }

    /// The same of several devices, in their order: fewer questions than one for each.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn qdiscs_of(&mut self, links: &[Link]) -> Result<Vec<Vec<Queue>>, NetlinkError> {
        let question = |index: u32| Tc::all_of(index).bytes();
        let what = || match links {
            [link] => format!("list the qdiscs of {}", link.name),
            _ => "list the qdiscs of all devices".to_owned(),
        };
        let index = match links {
            [link] => link.index,
            _ => 0,
        };
        let answer = self.route.dump(RTM_GETQDISC, &question(index));
        let mut answer = answer.map_err(|failure| failure.of(what()))?;
        for link in links {
            if dump::has_classes(&answer, link.index) {
                let classes = self.route.dump(RTM_GETTCLASS, &question(link.index));
                answer.extend(classes.map_err(|failure| failure.of(what()))?);
            }
        }
        let queues = |link: &Link| Queue::read(&answer, link.index, link.tx_queue_length);
        Ok(links.iter().map(queues).collect())
    }

    fn what(&mut self, verb: &str, thing: &str, link: u32, parent: Handle) -> String {
        let name = self.name_of(link);
        match parent {
            Handle::ROOT => format!("{verb} {thing} at the root of {name}"),
            parent => format!("{verb} {thing} in {parent} of {name}"),
        }
    }
}

/// The error of a question that may have `created` a discipline of that kind.
fn refusal(failure: Failure, what: String, created: Option<&str>) -> NetlinkError {
    // Other things may be missing as well, so the number alone does not tell. Kernels without words get the benefit of the
    // doubt.
    let is_kind = |message: &Option<String>| {
        message.as_ref().is_none_or(|words| words.contains("kind is unknown"))
    };
    match (failure, created) {
        (Failure::Refused { errno: ENOENT, message }, Some(kind)) if is_kind(&message) => {
            let message = message.unwrap_or_else(|| "no such file or directory".to_owned());
            NetlinkError::NoSuchKind { what, kind: kind.to_owned(), message }
        }
        (failure, _) => failure.of(what),
    }
}
