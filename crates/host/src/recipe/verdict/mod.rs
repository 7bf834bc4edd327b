//! What each setting of a recipe does on a machine.

mod buffers;
mod freebsd;
mod interface;
mod qdisc;
mod queue;
mod sysctl;

use std::fmt;
use std::time::Duration;

use dualq_units::Rate;
use serde::Serialize;

use super::{Recipe, Step, What};
use crate::Facts;
use crate::facts::{Availability, Interface, Os};

/// What a setting does here, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It makes something worse.
    Harmful,
    /// It fails here, or does not do what the recipe wants of it.
    WrongHere,
    /// It is a setting of another operating system.
    OtherSystem,
    /// This kernel does not have it any more, or ignores it.
    Obsolete,
    /// dualq does not know it.
    Unknown,
    /// It would change something that has an effect on latency; whether for better, that says.
    BearsOnLatency,
    /// It does nothing for latency, for better or worse.
    Harmless,
    /// It is so already.
    Applied,
}

impl Verdict {
    /// All of them, the worst first.
    pub const ALL: [Self; 8] = [
        Self::Harmful,
        Self::WrongHere,
        Self::OtherSystem,
        Self::Obsolete,
        Self::Unknown,
        Self::BearsOnLatency,
        Self::Harmless,
        Self::Applied,
    ];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Harmful => "harmful",
            Self::WrongHere => "wrong here",
            Self::OtherSystem => "of another system",
            Self::Obsolete => "obsolete",
            Self::Unknown => "unknown",
            Self::BearsOnLatency => "bears on latency",
            Self::Harmless => "harmless",
            Self::Applied => "applied",
        })
    }
}

/// The verdict on one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding<'a> {
    /// The step.
    #[serde(flatten)]
    pub step: &'a Step,
    /// What it does here.
    pub verdict: Verdict,
    /// Why, in a sentence or two.
    pub why: String,
    /// Who says so.
    pub source: String,
}

/// The path that connections take, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The bottleneck's rate.
    pub rate: Rate,
    /// The round-trip time without a queue.
    pub rtt: Duration,
}

/// Says of each step of a recipe what it does where these facts hold, in the recipe's order.
#[must_use]
pub fn check<'a>(recipe: &'a Recipe, facts: &Facts, link: Option<Link>) -> Vec<Finding<'a>> {
    let judge = Judge { recipe, facts, link };
    recipe
        .steps
        .iter()
        .map(|step| {
            let Judgement { verdict, why, source } = judge.step(step);
            Finding { step, verdict, why, source }
        })
        .collect()
}

impl Recipe {
    /// What is to be said of the recipe as a whole where these facts hold.
    #[must_use]
    pub fn notes(&self, facts: &Facts) -> Vec<String> {
        let mut notes = Vec::new();
        let distribution = &facts.distribution;
        let version: u32 = distribution.version.parse().unwrap_or(0);
        let into_old_file =
            self.steps.iter().any(|step| step.file.as_deref() == Some("/etc/sysctl.conf"));
        if distribution.id == "debian" && version >= 13 && into_old_file {
            notes.push(
                "Debian reads no /etc/sysctl.conf at boot since its version 13: use a file in \
                 /etc/sysctl.d (Debian 13 release notes, section 5.1)"
                    .to_owned(),
            );
        }
        if let Some(line) = self.cut {
            notes.push(format!(
                "nothing is read from line {line} on: no recipe has more than {} settings",
                super::MOST_STEPS
            ));
        }
        notes
    }
}

/// How many interfaces are named at most.
const SOME: usize = 8;

/// A verdict that has no step yet.
struct Judgement {
    verdict: Verdict,
    why: String,
    source: String,
}

impl Judgement {
    fn new(verdict: Verdict, why: impl Into<String>, source: &str) -> Self {
        Self { verdict, why: why.into(), source: source.to_owned() }
    }

    /// With another sentence.
    fn and(mut self, sentence: &str) -> Self {
        if !sentence.is_empty() {
            self.why.push(' ');
            self.why.push_str(sentence);
        }
        self
    }
}

/// All that a verdict can follow from.
struct Judge<'a> {
    recipe: &'a Recipe,
    facts: &'a Facts,
    link: Option<Link>,
}

impl Judge<'_> {
    fn step(&self, step: &Step) -> Judgement {
        let dev = match &step.what {
            What::Qdisc { dev, .. }
            | What::Interface { dev, .. }
            | What::Offload { dev, .. }
            | What::Route { dev, .. } => dev.as_deref(),
            What::Sysctl { .. } | What::Module { .. } => None,
        };
        let foreign = match &step.what {
            What::Route { freebsd: true, .. } => self.facts.os != Os::FreeBsd,
            What::Sysctl { .. } | What::Module { .. } => false,
            _ => self.facts.os != Os::Linux,
        };
        if foreign {
            return other_system(if self.facts.os == Os::Linux { "FreeBSD" } else { "Linux" });
        }
        match dev.and_then(|dev| self.missing_interface(dev)) {
            None => self.with_interface(step, self.interface(dev)),
            // Recipes name their author's interface. What else is wrong is to be known too.
            Some(missing) => {
                let otherwise = self.with_interface(step, self.interface(None));
                if otherwise.verdict <= Verdict::WrongHere {
                    let Judgement { verdict, why, source } = otherwise;
                    Judgement { verdict, why: format!("{missing} Apart from that: {why}"), source }
                } else {
                    Judgement::new(Verdict::WrongHere, missing, "this machine's interfaces")
                }
            }
        }
    }

    fn with_interface(&self, step: &Step, interface: Option<&Interface>) -> Judgement {
        match &step.what {
            What::Sysctl { key, value, commented } => self.sysctl(step, key, value, *commented),
            What::Module { name, at_boot } => self.module(name, *at_boot),
            What::Qdisc { root, words, .. } => self.qdisc(interface, *root, words),
            What::Interface { property, value, .. } => {
                self.interface_property(interface, property, value)
            }
            What::Offload { feature, on, .. } => self.offload(interface, feature, *on),
            What::Route { freebsd: true, properties, listed, .. } => {
                self.freebsd_route(step, properties, listed.as_ref())
            }
            What::Route { properties, .. } => self.route(properties),
        }
    }

    /// The interface of that name, or the one of the default route.
    fn interface(&self, dev: Option<&str>) -> Option<&Interface> {
        let name = dev.or(self.facts.default_routes.first().map(|route| route.dev.as_str()))?;
        self.facts.interfaces.iter().find(|found| found.name == name)
    }

    /// What is to be said if interfaces are known and none has that name.
    fn missing_interface(&self, name: &str) -> Option<String> {
        if name.starts_with("ifb") && self.loads("ifb") {
            return None;
        }
        let names: Vec<&str> =
            self.facts.interfaces.iter().map(|found| found.name.as_str()).collect();
        (!names.is_empty() && !names.contains(&name))
            .then(|| format!("There is no interface {name} here, but {}.", some(&names)))
    }

    /// The file that keeps a module from being loaded.
    fn blocked(&self, module: &str) -> Option<&str> {
        let blocked = self.facts.kernel.blocked.iter().find(|blocked| blocked.module == module);
        blocked.map(|blocked| blocked.file.as_str())
    }

    /// The congestion control that holds once the recipe is applied.
    fn congestion_control(&self) -> Option<&str> {
        let of_recipe = self.recipe.steps.iter().rev().find_map(|step| match &step.what {
            What::Sysctl { key, value, .. } if key == "net.ipv4.tcp_congestion_control" => {
                Some(value.as_str())
            }
            _ => None,
        });
        let running = self.facts.sysctls.get("net.ipv4.tcp_congestion_control");
        // One that cannot be had changes nothing.
        of_recipe
            .filter(|name| self.facts.congestion_controls.get(*name) != Some(&Availability::Absent))
            .or(running.map(String::as_str))
    }

    /// The queue disciplines that the recipe puts on interfaces and that can be had here, in tc's words.
    fn qdiscs(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        self.recipe.steps.iter().filter_map(|step| match &step.what {
            What::Qdisc { dev, words, .. } if self.missing_qdisc(qdisc::kind(words)).is_none() => {
                Some((dev.as_deref(), words.as_str()))
            }
            _ => None,
        })
    }

    /// A step that loads a module.
    fn module(&self, name: &str, at_boot: bool) -> Judgement {
        if self.facts.os == Os::FreeBsd {
            return self.freebsd_module(name, at_boot);
        }
        if name.starts_with("cc_") || name == "dummynet" || name == "aio" {
            return other_system("FreeBSD");
        }
        let kind = name.strip_prefix("sch_").map(|kind| (kind, &self.facts.qdiscs));
        let cc = name.strip_prefix("tcp_").map(|cc| (cc, &self.facts.congestion_controls));
        let known =
            kind.or(cc).map(|(name, all)| all.get(name).copied().unwrap_or(Availability::Unknown));
        let source = "Linux Documentation/admin-guide/sysctl/net.rst, modules-load.d(5)";
        let Some(known) = known else {
            let why = "dualq knows modules of queue disciplines and congestion controls only.";
            return Judgement::new(Verdict::Unknown, why, "modprobe(8)");
        };
        let release = &self.facts.kernel.release;
        match known {
            Availability::Absent => {
                let why = format!(
                    "The kernel {release} has no {name}, neither built in nor as a module."
                );
                Judgement::new(Verdict::WrongHere, why, "this machine's kernel")
            }
            Availability::Ready => {
                let why = "It is in the kernel, or loaded.";
                Judgement::new(Verdict::Applied, why, "this machine's kernel")
            }
            Availability::Module if self.blocked(name).is_some() => {
                let file = self.blocked(name).unwrap_or_default();
                let why = format!("{file} keeps it from being loaded.");
                Judgement::new(Verdict::WrongHere, why, "modprobe.d(5)")
            }
            Availability::Module => {
                let why = "The kernel loads it by itself when tc or a sysctl asks for it.";
                Judgement::new(Verdict::Harmless, why, source)
            }
            Availability::Unknown => {
                let why = format!("Nothing tells whether the kernel {release} has it.");
                Judgement::new(Verdict::Unknown, why, "this machine's kernel")
            }
        }
    }
}

/// The first few of several.
fn some<T: AsRef<str>>(names: &[T]) -> String {
    let first: Vec<&str> = names.iter().take(SOME).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(SOME);
    if more == 0 { first.join(", ") } else { format!("{} and {more} more", first.join(", ")) }
}

/// For a setting of `system`, on another.
fn other_system(system: &str) -> Judgement {
    let why = format!("It is a setting of {system}; this machine does not run it.");
    Judgement::new(Verdict::OtherSystem, why, "this machine's operating system")
}

#[cfg(test)]
mod tests;
