//! A queue discipline below a class of a tree that somebody else made.

use super::options::{self, Traffic};
use super::queue::{self, Queue, can_come_back, some_of};
use super::sysctls::Path;
use super::{ClassId, PlanError, Profile, Requirements};
use crate::Facts;
use crate::facts::{Class, Interface, Qdisc, in_class};

/// Kinds whose classes let through no more than they are to: what they hold back waits in them.
const LIMITING: [&str; 2] = ["hfsc", "htb"];

/// The numbers of those classes into which packets go.
fn leaves(classes: &[Class]) -> impl Iterator<Item = &Class> {
    classes.iter().filter(|class| inside(classes, &class.id).next().is_none())
}

fn inside<'a>(classes: &'a [Class], id: &'a str) -> impl Iterator<Item = &'a Class> {
    classes.iter().filter(move |class| class.parent == id)
}

fn ids<'a>(classes: impl Iterator<Item = &'a Class>) -> Vec<String> {
    classes.map(|class| class.id.clone()).collect()
}

/// Whether a discipline of the interface has more than the one class that can be put back.
pub(super) fn has_several(interface: &Interface) -> bool {
    let major = |class: &Class| class.id.split(':').next().map(str::to_owned);
    let classes = &interface.classes;
    classes.iter().any(|class| {
        classes.iter().any(|other| other.id != class.id && major(other) == major(class))
    })
}

/// A class below which something could be put, to name it: of the interface's tree, the first.
pub(super) fn example(interface: &Interface) -> Option<&str> {
    leaves(&interface.classes).map(|class| class.id.as_str()).next()
}

/// The class, if it is a leaf of this interface.
fn leaf<'a>(facts: &Facts, interface: &'a Interface, id: &str) -> Result<&'a Class, String> {
    let Interface { name, classes, .. } = interface;
    let Some(class) = classes.iter().find(|class| class.id == id) else {
        let has = |other: &&Interface| other.classes.iter().any(|class| class.id == id);
        if let Some(Interface { name: other, .. }) = facts.interfaces.iter().find(has) {
            return Err(format!("{name} has no class {id}, {other} has one: --dev {other}"));
        }
        let leaves = ids(leaves(classes));
        if !leaves.is_empty() {
            let leaves = some_of(&leaves);
            return Err(format!("{name} has no class {id}; its leaves are {leaves}"));
        }
        let root = interface.leaving().find(|qdisc| qdisc.parent == "root");
        let root = root.map_or("nothing that the facts tell of", |root| root.kind.as_str());
        return Err(format!(
            "{name} has no classes below which something could be put: at its root is {root}, in whose place a plan without --parent puts something"
        ));
    };
    let inside = ids(inside(classes, id));
    if inside.is_empty() {
        return Ok(class);
    }
    Err(format!(
        "class {id} of {name} is not a leaf, packets go to the classes in it: name one of {}",
        some_of(&inside)
    ))
}

/// Says what in the class could not be put back, if there is such.
fn somebodys(interface: &Interface, id: &str, inside: &[&Qdisc]) -> Option<String> {
    let of = |qdisc: &Qdisc| {
        let of_it = interface.classes.iter().filter(|class| class.id.starts_with(&qdisc.handle));
        ids(of_it)
    };
    let stays = inside.iter().find(|qdisc| !can_come_back(&qdisc.kind) || of(qdisc).len() > 1)?;
    let Qdisc { kind, handle, .. } = stays;
    let classes = of(stays);
    let instead = match classes.is_empty() {
        true => String::new(),
        false => format!("; what waits in it is in its classes: --parent {}", some_of(&classes)),
    };
    Some(format!(
        "class {id} of {} has {kind} {handle}, which dualq did not make and could not put back exactly{instead}",
        interface.name
    ))
}

pub(super) fn choose(
    facts: &Facts,
    requirements: &Requirements,
    interface: &Interface,
    cc: Option<&str>,
    traffic: &Traffic,
    parent: ClassId,
) -> Result<Queue, PlanError> {
    let (name, id) = (&interface.name, parent.to_string());
    let refuse = |message: String| PlanError::Requirement(format!("--parent {id}: {message}"));
    let class = leaf(facts, interface, &id).map_err(refuse)?;
    let there = in_class(&interface.qdiscs, &id);
    let mut notes = Vec::new();
    if requirements.rate.is_some() {
        notes.push(format!(
            "with --parent nothing is shaped, for that is up to the class: --rate is taken for what {id} of {name} lets through"
        ));
    }
    if !LIMITING.contains(&class.kind.as_str()) {
        notes.push(format!(
            "the classes of {} limit nothing: packets wait in {id} only where {name} itself is the bottleneck, or what is around them limits",
            class.kind
        ));
    }
    let mut queue = if let Some(line) = &requirements.qdisc {
        queue::asked(facts, "--qdisc", line, requirements.rate, None)?
    } else {
        let kind = queue::unshaped(facts, requirements.profile, cc, traffic);
        let is_called_for = kind == Some("dualpi2") || requirements.profile == Profile::Datacenter;
        let first = there.first().map(|qdisc| qdisc.kind.as_str());
        let manages = first.is_some_and(|first| queue::KEEPING_APART.contains(&first));
        match (kind, first) {
            (Some(kind), _) if !manages || is_called_for => {
                let own = class.rate.as_deref().and_then(|rate| rate.parse().ok());
                let rate = requirements.rate.or(own).or(queue::speed(interface));
                let rtt = Path::rtt(facts, requirements).0;
                let line = options::leaf(kind, rate.unwrap_or(queue::MANY), traffic, rtt);
                let (why, source) = queue::reason(kind, requirements.profile);
                Queue {
                    line: Some(queue::own(&line)),
                    why: why.to_owned(),
                    source,
                    notes: Vec::new(),
                    each: false,
                    parent: None,
                }
            }
            (_, first) => {
                notes.push(match first {
                    Some(first) if manages => format!(
                        "class {id} of {name} has {first}, which manages its queue: it stays, --qdisc asks for another"
                    ),
                    _ => format!("this kernel has no better queue than what class {id} of {name} has; it is left so"),
                });
                Queue {
                    line: None,
                    why: String::new(),
                    source: "",
                    notes: Vec::new(),
                    each: false,
                    parent: None,
                }
            }
        }
    };
    queue.parent = Some(parent);
    if let Some(line) = &queue.line
        && !queue::is_there(interface, line.spec(), queue.part())
    {
        if let Some(message) = somebodys(interface, &id, &there) {
            return Err(refuse(message));
        }
        notes.push(format!(
            "the tree of {name} stays as somebody else made it. What is below its classes goes when they make it anew: `dualq status` then says that it \
             is missing, and how it comes back"
        ));
    }
    notes.append(&mut queue.notes);
    queue.notes = notes;
    Ok(queue)
}
