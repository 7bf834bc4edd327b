//! The queue disciplines of an interface: what is there, putting another there, and putting back what was.

use dualq_netlink::{Handle, Link, Netlink, Place, Queue, Request};
use dualq_qdisc::grammar::ParseError;
use dualq_qdisc::{Config, QdiscLine, Spec, show};
use serde::{Deserialize, Serialize};

use crate::apply::{ApplyError, Difference, Step};
use crate::facts::interfaces::qdiscs;
use crate::facts::{Qdisc, in_class};
use crate::plan::check::only;
use crate::plan::{ClassId, MQ, can_come_back, some_of};

/// Handles of what dualq puts in place begin here, or at the next that is free.
const FIRST_MAJOR: u16 = 0xd0;
/// More than any line has disciplines inside one another.
const MAJORS: u16 = 0x10;

/// `struct tc_netem_qopt`: the last of its numbers.
const NETEM_JITTER: std::ops::Range<usize> = 20..24;

/// A queue discipline, or a class of one, as the kernel tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Whether it is a class.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub class: bool,
    /// Its kind.
    pub kind: String,
    /// Its number: major in the upper 16 bits.
    pub handle: u32,
    /// Where it is.
    pub parent: u32,
    /// Its options, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// What the kernel has to be told instead, so that it tells these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}

impl Node {
    fn of(node: &dualq_netlink::Node) -> Self {
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            class: node.class,
            kind: node.kind.clone(),
            handle: node.handle.as_raw(),
            parent: node.parent.as_raw(),
            options: node.options.as_ref().map(hex),
            asked: node.asked.as_ref().map(hex),
        }
    }

    fn raw(&self) -> Result<dualq_netlink::Node, ApplyError> {
        let damaged = || ApplyError::Plan(format!("the record of the {} is damaged", self.kind));
        let bytes = |hex: &Option<String>| {
            let bytes = hex.as_ref().map(|hex| bytes(hex).ok_or_else(damaged));
            bytes.transpose()
        };
        Ok(dualq_netlink::Node {
            class: self.class,
            kind: self.kind.clone(),
            handle: Handle::from_raw(self.handle),
            parent: Handle::from_raw(self.parent),
            options: bytes(&self.options)?,
            asked: bytes(&self.asked)?,
            size_table: false,
        })
    }

    /// Refuses what is no discipline.
    pub(crate) fn check(&self) -> Result<(), String> {
        let plain = !self.kind.is_empty() && self.kind.len() < 16 && only(&self.kind, "_-");
        if !plain {
            return Err(format!("{:?} is no kind of qdisc", self.kind));
        }
        self.raw().map(drop).map_err(|error| error.to_string())
    }

    /// Whether the kernel tells the same of both.
    fn is_as(&self, other: &Self) -> bool {
        let told = |node: &Self| (node.class, node.handle, node.parent);
        told(self) == told(other) && (&self.kind, &self.options) == (&other.kind, &other.options)
    }

    const fn is_root(&self) -> bool {
        !self.class && self.parent == Handle::ROOT.as_raw()
    }
}

/// What two hexadecimal digits each stand for.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The device that had that number when the plan was applied, whatever its name is now; without a number, or if there is no such
/// device any more, the one of that name.
pub(crate) fn device(
    netlink: &mut Netlink,
    name: &str,
    number: Option<u32>,
) -> Result<Link, ApplyError> {
    if let Some(link) = number.and_then(|number| netlink.link_at(number).ok()) {
        return Ok(link);
    }
    Ok(netlink.link(name)?)
}

/// The disciplines of a device, what is outside first; of what is in a class alone, if one is named.
pub(crate) fn tree(
    netlink: &mut Netlink,
    link: u32,
    class: Option<ClassId>,
) -> Result<Vec<Node>, ApplyError> {
    Ok(part(netlink.tree(link)?, class).iter().map(Node::of).collect())
}

/// Of a tree what is in that class, if one is named.
fn part(tree: Vec<dualq_netlink::Node>, class: Option<ClassId>) -> Vec<dualq_netlink::Node> {
    let Some(class) = class else { return tree };
    let mut majors = Vec::new();
    let mut found = tree;
    // What is outside comes first.
    found.retain(|node| {
        let around = if node.class { node.handle } else { node.parent };
        let is_there = (!node.class && node.parent == place(Some(class)))
            || (around.major() != 0 && majors.contains(&around.major()));
        if is_there && !node.class {
            majors.push(node.handle.major());
        }
        is_there
    });
    found
}

/// Where something is put: the root, if no class is named.
pub(crate) fn place(class: Option<ClassId>) -> Handle {
    class.map_or(Handle::ROOT, |class| Handle::class(class.major(), class.minor()))
}

/// Looks for a class of a device, and gives whether it is a leaf.
///
/// # Errors
/// [`ApplyError::NoClass`] if there is none.
pub(crate) fn is_leaf(
    netlink: &mut Netlink,
    link: &Link,
    class: ClassId,
) -> Result<bool, ApplyError> {
    let classes = netlink.classes(link.index)?;
    let wanted = place(Some(class));
    match classes.iter().any(|found| found.handle == wanted) {
        true => Ok(!classes.iter().any(|found| found.parent == wanted)),
        false => Err(ApplyError::NoClass { class, dev: link.name.clone() }),
    }
}

/// Puts a discipline into a class that has none of its own, if that class is there.
pub(crate) fn put_back(
    netlink: &mut Netlink,
    dev: &str,
    class: ClassId,
    line: &str,
) -> Result<(), ApplyError> {
    let link = netlink.link(dev)?;
    let line: QdiscLine =
        line.parse().map_err(|error: ParseError| ApplyError::Plan(error.to_string()))?;
    // What its owner has put there is not contended with.
    if is_leaf(netlink, &link, class)? && tree(netlink, link.index, Some(class))?.is_empty() {
        put(netlink, &link, &Wanted::of(&line, false, Some(class)), &mut |_| {})?;
    }
    Ok(())
}

/// As plans name what is there: a line for each discipline; of what is in a class alone, if one is named.
pub(crate) fn lines(queues: &[Queue], class: Option<ClassId>) -> Vec<String> {
    let found = qdiscs(queues);
    match class {
        Some(class) => in_class(&found, &class.to_string()).into_iter().map(Qdisc::line).collect(),
        None => found.iter().filter(|qdisc| qdisc.queues()).map(Qdisc::line).collect(),
    }
}

/// What is at the root of a device or in a class, if dualq can say all of it.
pub(crate) fn config(queues: &[Queue], class: Option<ClassId>) -> Option<&Config> {
    queues.iter().find(|queue| queue.parent == place(class))?.config.as_ref()
}

/// What is put where, by a plan.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The discipline, with what is inside.
    pub(crate) spec: Spec,
    /// Whether each transmit queue gets one of its own, below an `mq`.
    pub(crate) each: bool,
    /// The class below which it is put, if that is not the root.
    pub(crate) class: Option<ClassId>,
}

impl Wanted {
    pub(crate) fn of(line: &QdiscLine, each: bool, class: Option<ClassId>) -> Self {
        Self { spec: line.spec().clone(), each, class }
    }

    /// At the root of a device.
    pub(crate) fn at_root(line: &QdiscLine) -> Self {
        Self::of(line, false, None)
    }
}

/// The disciplines below an `mq` at the root, if that is there.
fn below_mq(queues: &[Queue]) -> Option<impl Iterator<Item = &Queue> + Clone> {
    let root = queues.iter().find(|queue| queue.parent == Handle::ROOT && queue.kind == MQ)?;
    let major = root.handle.major();
    let is_below = move |queue: &&Queue| {
        !matches!(queue.parent, Handle::ROOT | Handle::INGRESS) && queue.parent.major() == major
    };
    Some(queues.iter().filter(is_below))
}

/// Whether what a device has is what is `wanted`.
pub(crate) fn is(queues: &[Queue], wanted: &Wanted, link: &Link) -> bool {
    // Kernels keep times in ticks of their own, of which tc shows nothing.
    let shown = |config: &Config| (show::text(config), show::json(config));
    let meant = wanted.spec.configure(&link.device());
    let is_meant = |found: Option<&Config>| {
        let found = found.cloned().map(|mut found| {
            // Since Linux 6.6 the kernel draws a seed where nobody gave one, and tells it.
            if let (Config::Netem(found), Config::Netem(meant)) = (&mut found, &meant)
                && meant.seed.is_none()
            {
                found.seed = None;
            }
            found
        });
        found.as_ref().map(shown) == Some(shown(&meant))
    };
    if !wanted.each {
        return is_meant(config(queues, wanted.class));
    }
    below_mq(queues).is_some_and(|mut below| {
        let is_one = below.clone().next().is_some();
        is_one && below.all(|queue| is_meant(queue.config.as_ref()))
    })
}

/// Whether the kernel put it there by itself, so that it comes again when what is there instead is removed.
fn is_default(tree: &[Node]) -> bool {
    tree.iter().all(|node| node.handle == 0)
}

/// What `net.core.default_qdisc` was when the kernel put there what nobody asked for, if that made a difference.
pub(crate) fn default_kind(tree: &[Node]) -> Option<&str> {
    let defaults = tree.iter().filter(|node| node.handle == 0 && !node.class);
    let mut kinds = defaults.map(|node| node.kind.as_str());
    kinds.find(|kind| !matches!(*kind, MQ | "noqueue"))
}

/// Says why what is there could not be put back exactly, if it could not.
pub(crate) fn transient(
    netlink: &mut Netlink,
    link: &Link,
    class: Option<ClassId>,
) -> Result<Option<String>, ApplyError> {
    let tree = part(netlink.tree(link.index)?, class);
    let name = &link.name;
    for node in tree.iter().filter(|node| !node.class) {
        let kind = node.kind.as_str();
        if netlink.has_filters(link.index, node.handle)? {
            return Ok(Some(format!("the filters in the {kind} of {name}")));
        }
        if node.handle == Handle::UNSPECIFIED {
            continue;
        }
        let what = format!("the {kind} {} of {name}", node.handle);
        if !can_come_back(kind) {
            return Ok(Some(what));
        }
        if node.size_table {
            return Ok(Some(format!("the size table of {what}")));
        }
        let jitter = node.options.as_ref().and_then(|options| options.get(NETEM_JITTER));
        if kind == "netem" && jitter.is_none_or(|jitter| jitter != [0; 4]) {
            // The kernel does not tell of a table of delays.
            return Ok(Some(format!("the jitter of {what}")));
        }
        let classes =
            tree.iter().filter(|class| class.class && class.handle.major() == node.handle.major());
        let classes: Vec<String> = classes.map(|class| class.handle.to_string()).collect();
        if classes.len() > 1 {
            return Ok(Some(format!("the classes of {what} ({})", some_of(&classes))));
        }
    }
    Ok(None)
}

/// A handle that neither the device's disciplines have nor those that come inside.
fn free_handle(tree: &[Node]) -> Handle {
    let taken = |first: u16| {
        let mut majors = tree.iter().map(|node| Handle::from_raw(node.handle).major());
        majors.any(|major| (first..first + MAJORS).contains(&major))
    };
    let mut firsts = (FIRST_MAJOR..0x7000).step_by(MAJORS.into());
    Handle::qdisc(firsts.find(|first| !taken(*first)).unwrap_or(0x7000))
}

/// Puts what is `wanted` at the root of a device, or below its class. What was there works until then, and the new one from the first message on.
pub(crate) fn put(
    netlink: &mut Netlink,
    link: &Link,
    wanted: &Wanted,
    step: &mut dyn FnMut(&Step),
) -> Result<(), ApplyError> {
    let handle = free_handle(&tree(netlink, link.index, None)?);
    let root = Place { handle, parent: place(wanted.class), link: link.index };
    let mut perform = |netlink: &mut Netlink, request: &Request| {
        netlink.perform(request)?;
        step(&Step::Part(format!("{}: {request}", link.name)));
        Ok::<(), ApplyError>(())
    };
    if !wanted.each {
        let all = Netlink::replacement(&root, &wanted.spec)?;
        return all.iter().try_for_each(|request| perform(netlink, request));
    }
    // Below one that the kernel put there itself nothing can be put.
    perform(netlink, &Netlink::mq(&root))?;
    let queues = netlink.qdiscs(link.index)?;
    let places: Vec<Handle> =
        below_mq(&queues).into_iter().flatten().map(|queue| queue.parent).collect();
    for parent in places {
        let place = Place { handle: Handle::UNSPECIFIED, parent, ..root };
        for request in Netlink::replacement(&place, &wanted.spec)? {
            perform(netlink, &request)?;
        }
    }
    Ok(())
}

/// What the kernel made of what was put there. A `rehearsal` may have shown that.
pub(crate) fn made(
    netlink: &mut Netlink,
    link: &Link,
    wanted: &Wanted,
    rehearsed: Option<&Config>,
) -> Result<Vec<Node>, ApplyError> {
    let queues = netlink.qdiscs(link.index)?;
    let found = tree(netlink, link.index, wanted.class)?;
    // Some kernels round times to their ticks, which the rehearsal showed.
    let as_rehearsed = match below_mq(&queues).filter(|_| wanted.each) {
        None => config(&queues, wanted.class) == rehearsed,
        Some(mut below) => below.all(|queue| queue.config.as_ref() == rehearsed),
    };
    let as_meant = is(&queues, wanted, link)
        || (rehearsed.is_some() && as_rehearsed)
        || (rehearsed.is_none()
            && !wanted.each
            && is_of_kinds(&found, wanted.class, &kinds(&wanted.spec)));
    if as_meant {
        return Ok(found);
    }
    Err(ApplyError::Plan(format!(
        "{} has {:?} where {:?} was put",
        link.name,
        lines(&queues, wanted.class).join(", "),
        wanted.spec.to_string()
    )))
}

/// Puts back what was there.
pub(crate) fn restore(
    netlink: &mut Netlink,
    link: u32,
    class: Option<ClassId>,
    before: &[Node],
    step: &mut dyn FnMut(&Step),
) -> Result<(), ApplyError> {
    if is_default(before) {
        if !is_default(&tree(netlink, link, class)?) {
            let root = Place { handle: Handle::UNSPECIFIED, parent: place(class), link };
            netlink.delete_qdisc(&root)?;
        }
        return Ok(());
    }
    // What has no number comes with what is around it.
    for node in before.iter().filter(|node| node.handle != 0) {
        if !tree(netlink, link, None)?.iter().any(|found| found.is_as(node)) {
            let request = node.raw()?.request(link);
            netlink.perform(&request)?;
            step(&Step::Part(request.to_string()));
        }
    }
    Ok(())
}

/// Whether one tree is another, in whatever order the kernel tells of them.
pub(crate) fn same(one: &[Node], other: &[Node]) -> bool {
    // A device that is down has none, until it is up.
    let none = one.is_empty() || other.is_empty();
    (none && is_default(one) && is_default(other))
        || (one.len() == other.len()
            && one.iter().all(|node| other.iter().any(|found| found.is_as(node))))
}

/// Both trees in words, if they differ.
pub(crate) fn difference(dev: &str, expected: &[Node], found: &[Node]) -> Option<Difference> {
    let words = |tree: &[Node]| {
        let line = |node: &Node| {
            let (handle, parent) = (Handle::from_raw(node.handle), Handle::from_raw(node.parent));
            let what = if node.class { "class" } else { "qdisc" };
            let options = node.options.as_deref().unwrap_or_default();
            format!("{what} {} {handle} {parent} {options}", node.kind)
        };
        Some(tree.iter().map(line).collect::<Vec<_>>().join("\n"))
    };
    (!same(expected, found)).then(|| Difference {
        name: dev.to_owned(),
        expected: words(expected),
        found: words(found),
    })
}

/// What a rehearsal showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rehearsal {
    /// What was there, with what the kernel has to be told to put it back.
    pub(crate) before: Option<Vec<Node>>,
    /// What the kernel makes of the line.
    pub(crate) after: Option<Config>,
}

/// Tries, on a device of that name in a network namespace of its own, whether the kernel takes the line, and how it takes back
/// what is there now. Shows nothing if it has no such namespaces or devices.
pub(crate) fn rehearse(
    link: &Link,
    before: &[Node],
    wanted: &Wanted,
) -> Result<Rehearsal, ApplyError> {
    let (link, before) = (link.clone(), before.to_vec());
    // What each transmit queue or a class gets is tried at a root.
    let wanted = Wanted { each: false, class: None, ..wanted.clone() };
    on_stage(&link.clone(), move |mut netlink, stage| {
        let Some(before) = learn(&mut netlink, stage.index, &before)? else {
            return Err(ApplyError::Plan(format!(
                "the qdisc of {} could not be put back exactly: replace it by hand first, and make a new plan",
                link.name
            )));
        };
        put(&mut netlink, &stage, &wanted, &mut |_| {})?;
        let after = config(&netlink.qdiscs(stage.index)?, None).cloned();
        Ok(Rehearsal { before: Some(before), after })
    })
}

/// Calls `try_it` in a network namespace of its own, with a device of the same name; nothing comes of it where there are no such
/// namespaces or devices.
pub(crate) fn on_stage<T: Default + Send + 'static>(
    link: &Link,
    try_it: impl FnOnce(Netlink, Link) -> Result<T, ApplyError> + Send + 'static,
) -> Result<T, ApplyError> {
    let link = link.clone();
    // A thread that entered a namespace stays there.
    let rehearsal = std::thread::spawn(move || match stage(&link) {
        Some((netlink, stage)) => try_it(netlink, stage),
        None => Ok(T::default()),
    });
    rehearsal.join().unwrap_or_else(|_| Ok(T::default()))
}

/// Finds out how to ask for what is there. Of `mq`, each queue is tried alone, for another device may have fewer.
fn learn(
    netlink: &mut Netlink,
    stage: u32,
    before: &[Node],
) -> Result<Option<Vec<Node>>, ApplyError> {
    let is_mq = before.iter().any(|node| node.is_root() && node.kind == MQ);
    let mut learnt = before.to_vec();
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (index, node) in before.iter().enumerate() {
        // What has no number comes with what is around it.
        if node.handle == 0 || (is_mq && node.is_root()) {
            continue;
        }
        let major = |raw| Handle::from_raw(raw).major();
        let inside = |part: &&mut Vec<usize>| {
            part.iter().any(|of| {
                major(before[*of].handle) == major(node.parent)
                    || (node.class && major(before[*of].handle) == major(node.handle))
            })
        };
        match parts.iter_mut().find(inside) {
            Some(part) => part.push(index),
            None => parts.push(vec![index]),
        }
    }
    for part in parts {
        let nodes: Result<Vec<_>, _> = part.iter().map(|index| before[*index].raw()).collect();
        let mut nodes = nodes?;
        let place = std::mem::replace(&mut nodes[0].parent, Handle::ROOT);
        let Some(mut nodes) = netlink.learn(stage, &nodes)? else { return Ok(None) };
        nodes[0].parent = place;
        for (index, node) in part.iter().zip(&nodes) {
            learnt[*index] = Node::of(node);
        }
    }
    Ok(Some(learnt))
}

fn stage(link: &Link) -> Option<(Netlink, Link)> {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
    let mut netlink = Netlink::open().ok()?;
    let end = |name, last| dualq_netlink::VethEnd {
        name,
        mac: [2, 0, 0, 0, 0, last],
        mtu: link.mtu,
        namespace: None,
    };
    let other = if link.name == "other" { "another" } else { "other" };
    netlink.add_veth(&end(&link.name, 1), &end(other, 2)).ok()?;
    let stage = netlink.link(&link.name).ok()?;
    Some((netlink, stage))
}

/// Which queue disciplines are around one another, by the kernel's names.
fn kinds(spec: &Spec) -> Vec<&'static str> {
    let mut kinds = vec![spec.kind()];
    let mut inside = spec.leaf();
    while let Some(leaf) = inside {
        kinds.push(leaf.kind());
        inside = leaf.leaf();
    }
    kinds
}

/// Whether the tree at the root of a device, or in a class, is of these kinds, one in the other.
fn is_of_kinds(tree: &[Node], class: Option<ClassId>, kinds: &[&str]) -> bool {
    let qdiscs: Vec<&Node> = tree.iter().filter(|node| !node.class).collect();
    qdiscs.first().is_some_and(|first| first.parent == place(class).as_raw())
        && qdiscs.iter().map(|node| node.kind.as_str()).eq(kinds.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_options_are_no_shorter_options() {
        assert_eq!(bytes("00ff1A"), Some(vec![0, 255, 26]));
        assert_eq!(bytes(""), Some(Vec::new()));
        for damaged in ["0", "00f", "0x", "zz", "+1", "00 0", "0\u{e9}"] {
            assert_eq!(bytes(damaged), None, "{damaged}");
        }
        let node = Node {
            class: false,
            kind: "tbf".to_owned(),
            handle: 1,
            parent: u32::MAX,
            options: Some("00fg".to_owned()),
            asked: None,
        };
        assert_eq!(node.check().unwrap_err(), "the record of the tbf is damaged");
    }
}
