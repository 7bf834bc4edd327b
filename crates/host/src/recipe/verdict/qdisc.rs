//! Queue disciplines.

use std::time::Duration;

use dualq_qdisc::grammar::{self, RefusedBy};
use dualq_qdisc::{Config, Device, Spec};

use super::{Judge, Judgement, Verdict};
use crate::facts::{Availability, Interface};

const THIS_KERNEL: &str = "this machine's kernel";
/// What cuts down to a rate, so that the queue is here.
const SHAPERS: [&str; 5] = ["htb", "tbf", "cake", "hfsc", "cbq"];
const FIFOS: [&str; 3] = ["pfifo", "bfifo", "pfifo_fast"];
/// Disciplines that split GSO packets themselves.
const SPLITTERS: [&str; 2] = ["dualpi2", "cake"];
/// What people who say 5 ms of DualPI2 have in mind.
const CLAIMED: Duration = Duration::from_millis(5);

impl Judge<'_> {
    /// Why a kind cannot be had here, if so.
    pub(super) fn missing_qdisc(&self, kind: &str) -> Option<Judgement> {
        let release = &self.facts.kernel.release;
        let available = self.facts.qdiscs.get(kind);
        if available == Some(&Availability::Module)
            && let Some(file) = self.blocked(&format!("sch_{kind}"))
        {
            let why = format!(
                "{file} keeps the module sch_{kind} from being loaded: the kernel refuses the setting."
            );
            return Some(Judgement::new(Verdict::WrongHere, why, "modprobe.d(5)"));
        }
        if available != Some(&Availability::Absent) {
            return None;
        }
        let why = format!(
            "The kernel {release} has no {kind}, neither built in nor as a module: it refuses the setting."
        );
        Some(Judgement::new(Verdict::WrongHere, why, THIS_KERNEL))
    }

    pub(super) fn qdisc(
        &self,
        interface: Option<&Interface>,
        root: bool,
        words: &str,
    ) -> Judgement {
        let kind = kind(words);
        if let Some(missing) = self.missing_qdisc(kind) {
            return missing;
        }
        let page = format!("tc-{}(8)", kind.replace('_', "-"));
        // Trees of classes take several commands, of which this is the first.
        if !grammar::KINDS.contains(&kind) || (kind == "htb" && !words.contains("leaf")) {
            let why = format!(
                "{kind} is here, or nothing tells that it is not; its options are not judged."
            );
            return Judgement::new(Verdict::Unknown, why, &page);
        }
        let parsed = match grammar::parse(words) {
            Ok(parsed) => parsed,
            Err(error) => {
                let by = match error.refused_by() {
                    RefusedBy::Kernel => "The kernel refuses it",
                    RefusedBy::Tc | RefusedBy::TcIncomplete => "tc refuses it",
                    RefusedBy::Dualq => {
                        let why = format!("dualq cannot judge it: {error}.");
                        return Judgement::new(Verdict::Unknown, why, &page);
                    }
                };
                return Judgement::new(Verdict::WrongHere, format!("{by}: {error}."), &page);
            }
        };
        if kind == "dualpi2"
            && let Some(refused) = self.tc_without_dualpi2()
        {
            return refused;
        }
        let config =
            parsed.spec.configure(&Device::ethernet(interface.map_or(1500, |found| found.mtu)));
        // What max_rtt comes to is told, and is what was asked for.
        let (derived, surprises): (Vec<&str>, Vec<&str>) = parsed
            .notices
            .iter()
            .map(String::as_str)
            .partition(|notice| notice.starts_with("from "));
        if !surprises.is_empty() {
            let why = format!("tc takes it otherwise than it reads: {}.", surprises.join("; "));
            return Judgement::new(Verdict::WrongHere, why, &page);
        }
        let queues = queues(interface);
        if let Some(harm) = self.harmful_qdisc(interface, &config) {
            return Judgement::new(Verdict::Harmful, harm, &page).and(&queues);
        }
        if let Some(not_here) = self.shaper_above(&config) {
            return Judgement::new(Verdict::WrongHere, not_here, &page).and(&queues);
        }
        if let Some(claimed) = self.claimed_target(&parsed.spec, &config) {
            return claimed.and(&queues);
        }
        if let Some(interface) = interface.filter(|_| root)
            && interface.qdiscs.first().is_some_and(|there| is_same(there, kind, &config))
        {
            let why = format!("{} has it already.", interface.name);
            return Judgement::new(Verdict::Applied, why, "this machine's interfaces");
        }
        let there = interface.and_then(|interface| Some((interface, interface.qdiscs.first()?)));
        let there = there.map_or(String::new(), |(interface, there)| {
            format!("{} has {} now. ", interface.name, there.kind)
        });
        let why = if SHAPERS.contains(&kind) {
            format!("{there}It keeps the queue here, if its rate is below the bottleneck's.")
        } else if FIFOS.contains(&kind) {
            format!("{there}It lets packets wait until it is full, and manages nothing.")
        } else {
            format!(
                "{there}It manages the queue of this interface: where the bottleneck is further on, as a provider's \
                 shaper is, it does nothing without a shaper below that rate."
            )
        };
        let derived =
            derived.iter().map(|notice| format!("tc takes it {notice}.")).collect::<String>();
        Judgement::new(Verdict::BearsOnLatency, why, &page)
            .and(&derived)
            .and(&self.bbr_in_dualpi2(kind))
            .and(&queues)
    }

    /// A tc that is too old for dualpi2, or missing.
    fn tc_without_dualpi2(&self) -> Option<Judgement> {
        let why = match &self.facts.tc {
            Some(tc) if tc.dualpi2 => return None,
            Some(tc) => format!(
                "tc here is {} and does not know dualpi2: it came with iproute2 6.17.",
                tc.version
            ),
            None => "There is no tc here.".to_owned(),
        };
        Some(Judgement::new(Verdict::WrongHere, why, "tc-dualpi2(8)"))
    }

    /// A default target that the text takes for 5 ms.
    fn claimed_target(&self, spec: &Spec, config: &Config) -> Option<Judgement> {
        let line = self.recipe.target_claim?;
        let (Spec::Dualpi2(change), Config::Dualpi2(config)) = (spec, config) else { return None };
        if change.target.is_some() || config.target == CLAIMED {
            return None;
        }
        let why = format!(
            "The recipe takes the target for 5 ms (line {line}). It is {} ms unless it is given: `dualpi2 target 5ms`.",
            config.target.as_millis()
        );
        Some(Judgement::new(Verdict::WrongHere, why, "tc-dualpi2(8), RFC 9332 appendix A.1"))
    }

    fn bbr_in_dualpi2(&self, kind: &str) -> String {
        if kind != "dualpi2" || self.congestion_control() != Some("bbr") {
            return String::new();
        }
        "Several flows of BBR (version 1), which answers neither marks nor loss, keep it dropping packets: on Linux 7.3 \
         four of them lost 5 % at 50 Mbit/s."
            .to_owned()
    }

    /// Whether the recipe or the machine splits GSO packets in the queue of an interface.
    pub(super) fn splits_gso(&self, interface: Option<&Interface>) -> Option<&'static str> {
        let splits = |words: &str| {
            let kind = kind(words);
            let off = ["no_split_gso", "no-split-gso"].iter().any(|option| words.contains(option));
            SPLITTERS.into_iter().find(|splitter| *splitter == kind && !off)
        };
        self.qdiscs()
            .find_map(|(dev, words)| {
                let here = dev.is_none() || dev == interface.map(|found| found.name.as_str());
                splits(words).filter(|_| here)
            })
            .or_else(|| splits(&interface?.qdiscs.first()?.kind))
    }
}

/// The discipline that tc's words begin with.
pub(super) fn kind(words: &str) -> &str {
    words.split_whitespace().next().unwrap_or_default()
}

/// Several queues under one discipline.
fn queues(interface: Option<&Interface>) -> String {
    match interface {
        Some(Interface { name, tx_queues, .. }) if *tx_queues > 1 => format!(
            "{name} has {tx_queues} transmit queues: as the root it replaces mq, and all CPUs share one queue and its lock."
        ),
        _ => String::new(),
    }
}

/// Whether an interface has just that.
fn is_same(there: &crate::facts::Qdisc, kind: &str, config: &Config) -> bool {
    let options = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    there.kind == kind
        && there
            .options
            .as_deref()
            .is_some_and(|there| options(there) == options(&config.to_string()))
}
