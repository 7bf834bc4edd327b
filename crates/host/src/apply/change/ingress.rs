//! What arrives at an interface, taken through a queue: an ifb, and the filter that takes it there.

use dualq_netlink::{Arriving, Link, Netlink, NetlinkError};
use dualq_qdisc::{Config, QdiscLine};

use super::qdisc::{self, Node, Wanted};
use super::{Now, module};
use crate::Root;
use crate::apply::{ApplyError, Difference, Lock, Step};
use crate::plan::sorter;

/// The module that makes such devices. Nothing tells whether somebody has one in another network namespace, and with the module all of
/// them go: so it stays loaded.
pub(crate) const MODULE: &str = "ifb";

/// Whether the module is still to be loaded, as far as anything tells: one that is built in and told by no list shows nowhere.
pub(crate) fn is_missing(root: &Root) -> bool {
    root.at("/proc/modules").exists() && !module::is_there(root, MODULE)
}

/// Loads it, without devices of its own. Where that fails, making one will tell why.
pub(crate) fn load(root: &Root, lock: &Lock) {
    if is_missing(root) {
        let _ = module::load(MODULE, lock);
    }
}

/// What is meant to be there, in words.
pub(crate) fn words(ifb: &str, line: &str) -> String {
    format!("redirected to {ifb}: root {line}")
}

/// A device of that name, if there is one.
fn device(netlink: &mut Netlink, name: &str) -> Result<Option<Link>, ApplyError> {
    match netlink.link(name) {
        Err(NetlinkError::NoLink { .. }) => Ok(None),
        found => Ok(Some(found?)),
    }
}

fn is_ifb(link: &Link) -> bool {
    link.kind.as_deref() == Some(MODULE)
}

/// What is there: before is nothing, neither filters nor the ifb.
pub(crate) fn now(
    netlink: &mut Netlink,
    link: &Link,
    ifb: &str,
    after: &QdiscLine,
    made: Option<&[Node]>,
) -> Result<Now, ApplyError> {
    let (arriving, own) = (netlink.arriving(link.index)?, device(netlink, ifb)?);
    let found = match (&arriving, &own) {
        (Arriving::Plain, None) => return Ok(Now::Before),
        (Arriving::Redirected { to }, Some(own)) if *to == own.index && is_ifb(own) => {
            let found = qdisc::tree(netlink, own.index, None)?;
            let queues = netlink.qdiscs(own.index)?;
            let as_made = made.is_some_and(|made| qdisc::same(made, &found));
            if own.up && (as_made || qdisc::is(&queues, &qdisc::Wanted::at_root(after), own)) {
                return Ok(Now::After);
            }
            let down = if own.up { "" } else { " (it is down)" };
            format!("redirected to {ifb}{down}: {}", qdisc::lines(&queues, None).join(", "))
        }
        (Arriving::Plain, Some(own)) if is_ifb(own) => {
            format!("{ifb}, to which nothing is redirected")
        }
        (Arriving::Plain, Some(_)) => format!("a device {ifb} that is no ifb"),
        (Arriving::Unfiltered, _) => "an ingress with no filters".to_owned(),
        (Arriving::Sorted { by }, _) => by.clone(),
        (Arriving::Redirected { to }, _) => {
            let to = netlink
                .link_at(*to)
                .map_or_else(|_| "a device that is gone".to_owned(), |to| to.name);
            format!("redirected to {to}")
        }
    };
    Ok(Now::Other(Difference {
        name: format!("what arrives at {}", link.name),
        expected: Some(words(ifb, after.text())),
        found: Some(found),
    }))
}

/// Refuses to share with whoever has something there.
pub(crate) fn taken(dev: &str, ifb: &str, difference: &Difference) -> ApplyError {
    let found = difference.found.as_deref().unwrap_or_default();
    let cure = match found.contains(ifb) {
        true => format!("`dualq rollback`, or `ip link delete {ifb}` if no plan is in force"),
        false => format!(
            "`tc qdisc delete dev {dev} {}` takes it away, with what it is for",
            sorter(found)
        ),
    };
    ApplyError::Plan(format!(
        "what arrives at {dev} is somebody else's already ({found}), and is not shared: {cure}; then make a new plan"
    ))
}

/// Puts all of it in place, or what of it is missing, and gives the ifb. The queue is there before anything comes to it.
pub(crate) fn put(
    netlink: &mut Netlink,
    link: &Link,
    ifb: &str,
    wanted: &Wanted,
    step: &mut dyn FnMut(&Step),
) -> Result<Link, ApplyError> {
    let mut part = |what: &str| step(&Step::Part(format!("{}: {what}", link.name)));
    let own = match device(netlink, ifb)? {
        Some(own) if is_ifb(&own) => own,
        Some(_) => return Err(ApplyError::Plan(format!("{ifb} is there and no ifb"))),
        None => {
            netlink.add_ifb(ifb)?;
            part(&format!("ifb {ifb}"));
            netlink.link(ifb)?
        }
    };
    if !qdisc::is(&netlink.qdiscs(own.index)?, wanted, &own) {
        qdisc::put(netlink, &own, wanted, step)?;
    }
    let mut part = |what: &str| step(&Step::Part(format!("{}: {what}", link.name)));
    if !own.up {
        netlink.set_up(own.index)?;
        part(&format!("{ifb} is up"));
    }
    let mut arriving = netlink.arriving(link.index)?;
    if arriving == Arriving::Plain {
        netlink.add_ingress(link.index)?;
        part("qdisc ingress");
        arriving = Arriving::Unfiltered;
    }
    match arriving {
        Arriving::Redirected { to } if to == own.index => {}
        Arriving::Unfiltered => {
            netlink.redirect(link.index, own.index)?;
            part(&format!("redirected to {ifb}"));
        }
        other => {
            let by = match other {
                Arriving::Sorted { by } => by,
                _ => "redirected elsewhere".to_owned(),
            };
            return Err(ApplyError::Plan(format!(
                "what arrives at {} is somebody else's already ({by})",
                link.name
            )));
        }
    }
    Ok(netlink.link(ifb)?)
}

/// Takes all of it away, whatever of it is there; without `link`, that is gone. What arrives is no longer taken to the ifb
/// before that goes.
pub(crate) fn remove(
    netlink: &mut Netlink,
    link: Option<&Link>,
    ifb: &str,
    step: &mut dyn FnMut(&Step),
) -> Result<(), ApplyError> {
    if let Some(link) = link
        && netlink.arriving(link.index)? != Arriving::Plain
    {
        netlink.delete_ingress(link.index)?;
        step(&Step::Part(format!("{}: no redirection", link.name)));
    }
    if device(netlink, ifb)?.is_some_and(|own| is_ifb(&own)) {
        netlink.delete_link(ifb)?;
        step(&Step::Part(format!("no {ifb}")));
    }
    Ok(())
}

/// Tries all of it where nothing comes of it, and gives what the kernel makes of the line; nothing if it cannot be tried.
pub(crate) fn rehearse(
    root: &Root,
    link: &Link,
    ifb: &str,
    wanted: Wanted,
) -> Result<Option<Config>, ApplyError> {
    // The kernel would load it by itself, with devices that nobody asked for.
    if is_missing(root) {
        return Ok(None);
    }
    let ifb = ifb.to_owned();
    qdisc::on_stage(link, move |mut netlink, stage| {
        let own = put(&mut netlink, &stage, &ifb, &wanted, &mut |_| {})?;
        Ok(qdisc::config(&netlink.qdiscs(own.index)?, None).cloned())
    })
}
