//! What arrives: whether it can be queued here, and how.
//!
//! Its queue is at the other end of the link. An intermediate functional block behind it, that lets a little less through than the
//! link, brings the queue here, as far as senders answer to it: what is dropped has used the link already.

use dualq_qdisc::QdiscLine;
use dualq_units::Rate;

use super::check::only;
use super::options::{self, Choice, Traffic, Way};
use super::queue::{self, can_load, rate_words};
use super::{PlanError, Requirements, boot, offload};
use crate::Facts;
use crate::facts::modules::REDIRECTION;
use crate::facts::{Arriving, Availability, Interface};
use crate::margin::below;

/// What the names of all ifb begin with that plans make; a number follows.
const IFB: &str = "dualq-ifb";
/// More interfaces than any plan is for.
const MOST: u32 = 100;

/// Refuses what is no name of an ifb that plans make: others belong to others.
pub(crate) fn ifb(name: &str) -> Result<(), String> {
    let number = name.strip_prefix(IFB).filter(|number| only(number, ""));
    let known = number.and_then(|number| number.parse::<u32>().ok().filter(|it| *it < MOST));
    match known {
        Some(number) if name == format!("{IFB}{number}") => Ok(()),
        _ => Err(format!("{name:?} is no ifb of a plan: these are {IFB}0 to {IFB}{}", MOST - 1)),
    }
}

/// What is to become of what arrives at an interface.
pub(super) struct Down<'a> {
    /// The name of the ifb.
    pub(super) ifb: String,
    /// The ifb, if all is taken there already.
    pub(super) there: Option<&'a Interface>,
    pub(super) line: QdiscLine,
    pub(super) why: String,
    pub(super) source: &'static str,
    /// What was chosen from.
    pub(super) choices: Vec<Choice>,
    pub(super) rate: Rate,
    pub(super) notes: Vec<String>,
}

/// What it takes: names, modules and options.
fn needed() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    [("ingress", "sch_ingress", "NET_SCH_INGRESS")].into_iter().chain(REDIRECTION)
}

/// What of it this kernel may have, or has.
fn availability(facts: &Facts, name: &str) -> Option<Availability> {
    facts.redirection.get(name).or_else(|| facts.qdiscs.get(name)).copied()
}

/// The parts that this kernel lacks: names and options.
pub(crate) fn lacking(facts: &Facts) -> Vec<(&'static str, &'static str)> {
    let lacks = |name: &str, module: &str| match availability(facts, name) {
        Some(Availability::Absent) => true,
        Some(Availability::Module) => !can_load(facts, module),
        Some(Availability::Ready | Availability::Unknown) | None => false,
    };
    let needed = needed().filter(|(name, module, _)| lacks(name, module));
    needed.map(|(name, _, option)| (name, option)).collect()
}

/// The modules of it that have to be loaded before, but for that of the ifb, which is loaded with it.
pub(super) fn modules(facts: &Facts) -> impl Iterator<Item = (&'static str, Option<Availability>)> {
    let needed = needed().filter(|(name, ..)| *name != "ifb");
    needed.map(|(name, module, _)| (module, availability(facts, name)))
}

/// The ifb for this interface: the one that it has, or the first that nobody has, nor is to have by this plan (`others`).
fn name(facts: &Facts, dev: &str, others: &[&str]) -> Option<String> {
    if let Some(known) = boot::ifbs(facts).find(|at| at.dev == dev).and_then(|at| at.ifb()) {
        return Some(known.to_owned());
    }
    let taken = |name: &String| {
        others.contains(&name.as_str())
            || facts.interfaces.iter().any(|interface| interface.name == *name)
            || boot::ifbs(facts).any(|at| at.ifb() == Some(name.as_str()))
    };
    (0..MOST).map(|number| format!("{IFB}{number}")).find(|name| !taken(name))
}

/// The qdisc whose filters are told so, as tc names it to take it away.
pub(crate) fn sorter(by: &str) -> &'static str {
    if by.contains("clsact") { "clsact" } else { "ingress" }
}

/// The ifb to which all that arrives goes already, by an earlier plan.
pub(crate) fn there<'a>(facts: &'a Facts, interface: &Interface) -> Option<&'a Interface> {
    let Some(Arriving::Redirected(to)) = &interface.arriving else { return None };
    let is_ours = |found: &&Interface| found.name == *to && ifb(to).is_ok();
    facts.interfaces.iter().find(is_ours)
}

/// Chooses; `pick` is one of the lines that could be chosen, and `others` are the ifb that the plan makes for other interfaces. Nothing,
/// if nobody asks for it.
pub(super) fn choose<'a>(
    facts: &'a Facts,
    requirements: &Requirements,
    interface: &Interface,
    traffic: &Traffic,
    pick: Option<&str>,
    others: &[&str],
) -> Result<Option<Down<'a>>, PlanError> {
    let rate = match (requirements.down, &requirements.down_qdisc) {
        (Some(rate), _) => rate,
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            let message =
                "--down-qdisc: what arrives is queued here only below a rate: give --down, too";
            return Err(PlanError::Requirement(message.to_owned()));
        }
    };
    let dev = interface.name.as_str();
    let refused = |message: String| Err(PlanError::Requirement(format!("--down: {message}")));
    if rate.as_bits_per_second() == 0 {
        return refused("zero; give what the bottleneck lets through, such as 48mbit".to_owned());
    }
    if let Some(speed) = queue::speed(interface).filter(|speed| rate > *speed) {
        return refused(format!("{rate} is more than {dev} can, whose link has {speed}"));
    }
    if ifb(dev).is_ok() {
        return refused(format!("{dev} is the ifb of another interface: plan for that"));
    }
    let lacking = lacking(facts);
    if !lacking.is_empty() {
        let (names, options): (Vec<_>, Vec<_>) =
            lacking.iter().map(|(name, option)| (*name, format!("CONFIG_{option}"))).unzip();
        return refused(format!(
            "what arrives cannot be queued here: this kernel has no {} ({})",
            names.join(", no "),
            options.join(", ")
        ));
    }
    let there = there(facts, interface);
    match &interface.arriving {
        Some(Arriving::Redirected(to)) if there.is_none() => {
            return refused(format!(
                "what arrives at {dev} is redirected to {to} already, by somebody else: a second redirection cannot be; shape it there \
                 (--dev {to} --rate), or take that away first (`tc qdisc delete dev {dev} ingress`)"
            ));
        }
        Some(Arriving::Sorted(by)) => {
            return refused(format!(
                "{dev} has {by} already, by somebody else, and what arrives is not shared: take that away first (`tc qdisc delete dev \
                 {dev} {}`), with what it is for",
                sorter(by)
            ));
        }
        _ => {}
    }
    let Some(ifb) = there.map(|there| there.name.clone()).or_else(|| name(facts, dev, others))
    else {
        return refused(format!("there are {MOST} ifb of dualq's already"));
    };
    let (queue, choices) = match &requirements.down_qdisc {
        Some(asked) => {
            let shaper = Some(below(rate));
            (queue::asked(facts, "--down-qdisc", asked, Some(rate), shaper)?, Vec::new())
        }
        None => {
            let choices = options::all(facts, requirements, traffic, below(rate), Way::Arriving)?;
            let picked = choices.iter().find(|choice| Some(choice.line.as_str()) == pick);
            let choice = picked.unwrap_or(&choices[0]);
            // What is lost with it is said where it is chosen for what leaves.
            let said = requirements.rate.is_some() && requirements.qdisc.is_none();
            (choice.queue(facts, traffic, said), choices)
        }
    };
    let line = queue.line.expect("a line was asked for or chosen");
    let mut notes = vec![format!(
        "what arrives at {dev} waits at the other end of its link, where nobody here manages it. {ifb} lets {} of --down {} through, a \
         twentieth less, which is what it costs; so the queue is here, as far as senders slow down: what is dropped here has used the link \
         already, and who sends in bursts still fills the other queue for a moment",
        rate_words(below(rate)),
        rate_words(rate),
    )];
    let unknown =
        |name: &str| matches!(availability(facts, name), None | Some(Availability::Unknown));
    let unknown: Vec<&str> = needed().map(|(name, ..)| name).filter(|name| unknown(name)).collect();
    if !unknown.is_empty() {
        notes.push(format!(
            "it is not known whether this kernel has {}, which --down takes: `dualq apply` tries it before it changes anything",
            unknown.join(", ")
        ));
    }
    notes.extend(queue.notes);
    let merged: Vec<&str> = ["gro", "lro"]
        .into_iter()
        .filter(|name| interface.offloads.get(*name) == Some(&true))
        .collect();
    if offload::splitter(line.spec()).is_none() && !merged.is_empty() && !requirements.offloads {
        let time = below(rate).transmission_time(options::AGGREGATE);
        notes.push(format!(
            "{dev} merges what arrives ({}): an aggregate of up to 64 KB passes the shaper whole, and others wait {:.1} ms for it; cake and \
             dualpi2 take it apart, --offloads has {dev} put nothing together",
            merged.join(", "),
            time.as_secs_f64() * 1e3
        ));
    }
    let (why, source) = (queue.why, queue.source);
    Ok(Some(Down { ifb, there, line, why, source, choices, rate, notes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_make_ifb_of_their_own_names_only() {
        for name in ["dualq-ifb0", "dualq-ifb7", "dualq-ifb99"] {
            assert_eq!(ifb(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "ifb0",
            "dualq-ifb",
            "dualq-ifb00",
            "dualq-ifb+1",
            "dualq-ifb100",
            "dualq-ifb0 ",
            "eth0",
        ] {
            assert!(ifb(name).is_err(), "{name}");
        }
    }
}
