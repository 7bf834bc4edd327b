//! Which queue disciplines could be put before a bottleneck, and which of them the traffic calls for.
//!
//! What the traffic calls for follows from how it looks to a queue. Where flows can be told apart, each gets a queue of its own:
//! no sender can then make another wait. Where they cannot, as inside a tunnel, or where senders are scalable, it is DualPI2.
//! A simulation chooses among those; it is not asked whether a flow that nobody listens to should share a queue with others.

use std::time::Duration;

use dualq_units::{Bytes, Rate};

use super::queue::{FULL_FRAME, Queue, bytes_in, has, own, rate_words, shaped};
use super::sysctls::Path;
use super::{PlanError, Profile, Requirements};
use crate::Facts;
use crate::facts::{Availability, Interface};
use crate::margin::below;

/// So much a queue that only drops what does not fit may hold; without a simulation it is the first.
const FIFO_TIMES: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(60), Duration::from_millis(180)];
/// dualpi2's own defaults.
const CLASSIC_TARGET: Duration = Duration::from_millis(15);
const STEP: Duration = Duration::from_millis(1);
/// What a sender hands down at once at most (GSO), and for how long at its rate (TCP's sizing of aggregates).
pub(super) const AGGREGATE: Bytes = Bytes(65_536);
const BURST: Duration = Duration::from_millis(1);

/// How the traffic looks to a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Why all of it is one flow, if it is.
    pub(super) one_flow: Option<String>,
    /// Whether its senders answer to how much is marked.
    pub(super) scalable: bool,
    /// Whether they are DCTCP's: they send ECT(0).
    pub(super) dctcp: bool,
    /// Whether only such senders are in this network.
    datacenter: bool,
}

impl Traffic {
    pub(super) fn of(
        facts: &Facts,
        requirements: &Requirements,
        interface: &Interface,
        cc: Option<&str>,
    ) -> Self {
        let datacenter = requirements.profile == Profile::Datacenter;
        let one_flow = if requirements.tunnel {
            Some("--tunnel".to_owned())
        } else {
            let hidden = facts.hidden_in().filter(|it| it.interface.name != interface.name);
            hidden.map(|tunnel| {
                let name = &tunnel.interface.name;
                format!("the default route is by {name}, a tunnel ({})", tunnel.kind)
            })
        };
        let asked = matches!(requirements.cc.as_deref(), Some("prague" | "dctcp"));
        Self {
            one_flow,
            scalable: datacenter || requirements.scalable || asked,
            dctcp: cc == Some("dctcp"),
            datacenter,
        }
    }

    /// Whether fq_codel could mark its scalable senders as DualPI2's low-latency queue does. DCTCP's ECT(0) is as the classic senders'.
    fn marks_ect1(&self, facts: &Facts) -> bool {
        self.scalable && !self.dctcp && !self.datacenter && facts.kernel.version() >= SELECTOR_SINCE
    }

    /// Whether per-flow queues do what they are for.
    pub(super) const fn is_apart(&self) -> bool {
        self.one_flow.is_none()
    }
}

/// Of whom fq_codel marks all above a threshold, by the codepoint under a mask: ECT(1), which scalable senders use (RFC 9331 §4.1).
pub(crate) const ECT1: &str = "ce_threshold_selector 0x1/0x3";
/// `fq_codel: generalise ce_threshold marking for L4S`.
pub(crate) const SELECTOR_SINCE: (u32, u32) = (5, 16);
/// What fq_codel with it is without, of what dualpi2 has.
pub(crate) const ECT1_LACKS: &str = "the coupling of both queues, so that shares are equal by flow and not by who asks for little, and all that is inside one \
    tunnel is one flow";

/// A discipline that could be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) kind: &'static str,
    /// All of it, shaper included.
    pub(super) line: String,
    /// Whether it is what the traffic calls for.
    pub(super) fits: bool,
}

fn packet(rate: Rate) -> Duration {
    rate.transmission_time(Bytes(FULL_FRAME))
}

/// In milliseconds, at least one and a half packets: a shorter target can never be met.
fn at_least(usual: Duration, rate: Rate) -> Option<u128> {
    let needed = packet(rate) * 3 / 2;
    (needed > usual).then(|| needed.as_millis() + 1)
}

/// A discipline under CoDel's law.
pub(super) fn codel(kind: &str, rate: Rate) -> String {
    match at_least(Duration::from_millis(5), rate) {
        None => kind.to_owned(),
        Some(target) => format!("{kind} target {target}ms interval {}ms", 100.max(target * 10)),
    }
}

/// Where DCTCP's marks begin: RFC 8257 §4.1 has K > RTT·C/7, and what arrives at once must fit below it.
pub(super) fn step(rate: Rate, rtt: Duration) -> Duration {
    let burst = rate.transmission_time(AGGREGATE).min(BURST);
    let step = rtt / 7 + burst.max(packet(rate) * 2);
    Duration::from_micros(u64::try_from(step.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX))
}

/// dualpi2 with another target for the classic queue than its default, if it is to have one.
fn dualpi2(rate: Rate, traffic: &Traffic, target: Option<Duration>, rtt: Duration) -> String {
    let mut words = "dualpi2".to_owned();
    if traffic.dctcp && traffic.scalable {
        words += " any_ect";
    }
    let usual = target.unwrap_or(CLASSIC_TARGET);
    match (at_least(usual, rate), target) {
        (Some(target), _) => words += &format!(" target {target}ms"),
        (None, Some(target)) => words += &format!(" target {}ms", target.as_millis()),
        (None, None) => {}
    }
    // RFC 9332 §2.5.1.1: no step below two packets, or they are marked for the time that they themselves take.
    let two = packet(rate) * 2;
    let step = if traffic.datacenter { step(rate, rtt) } else { STEP.max(two) };
    if step != STEP {
        words += &format!(" step_thresh {}us", step.as_nanos().div_ceil(1000));
    }
    words
}

/// The words for a discipline without a shaper.
pub(super) fn leaf(kind: &str, rate: Rate, traffic: &Traffic, rtt: Duration) -> String {
    match kind {
        "dualpi2" => dualpi2(rate, traffic, None, rtt),
        "fq_codel" if traffic.datacenter => {
            format!("fq_codel ce_threshold {}us", step(rate, rtt).as_micros())
        }
        "fq_codel" | "codel" => codel(kind, rate),
        "pie" => match at_least(CLASSIC_TARGET, rate) {
            None => "pie".to_owned(),
            Some(target) => format!("pie target {target}ms"),
        },
        kind => kind.to_owned(),
    }
}

/// Which packets a discipline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Those that leave by an interface.
    Leaving,
    /// Those that arrive at it: what is dropped has used the link already.
    Arriving,
}

/// All that this kernel can put before a bottleneck, what the traffic calls for first. `rate` is the shaper's.
pub(super) fn all(
    facts: &Facts,
    requirements: &Requirements,
    traffic: &Traffic,
    rate: Rate,
    way: Way,
) -> Result<Vec<Choice>, PlanError> {
    let rtt = Path::rtt(facts, requirements).0;
    let mut choices: Vec<Choice> = Vec::new();
    let mut add = |kind: &'static str, line: Option<String>| {
        choices.extend(line.map(|line| Choice { kind, line, fits: false }));
    };
    for kind in order(traffic) {
        if !has(facts, kind) {
            continue;
        }
        if kind == "cake" {
            let link = requirements.link.map_or(String::new(), |link| format!(" {}", link.word()));
            let used = if way == Way::Arriving { " ingress" } else { "" };
            add(kind, Some(format!("cake bandwidth {}{link}{used}", rate_words(rate))));
            continue;
        }
        if kind == "fq_codel" && traffic.marks_ect1(facts) {
            let step = STEP.max(packet(rate) * 2).as_nanos().div_ceil(1000);
            let leaf = codel(kind, rate);
            let words = format!("{leaf} ce_threshold {step}us {ECT1}");
            add(kind, shaped(facts, rate, &words));
        }
        add(kind, shaped(facts, rate, &leaf(kind, rate, traffic, rtt)));
        if kind == "dualpi2" && !traffic.scalable {
            let short = Some(Duration::from_millis(5));
            add(kind, shaped(facts, rate, &dualpi2(rate, traffic, short, rtt)));
        }
    }
    // Where it has to be scaled for the rate, a target may be the same as another.
    let mut lines = Vec::new();
    choices.retain(|choice| {
        let new = !lines.contains(&choice.line);
        lines.push(choice.line.clone());
        new
    });
    if choices.is_empty() {
        // Who loses much of a short one waits for timeouts, and that may be longer than the queue: a simulation knows.
        for time in FIFO_TIMES {
            let packets = (bytes_in(rate, time) / FULL_FRAME).max(10);
            let line = shaped(facts, rate, &format!("pfifo limit {packets}"));
            let line = line.filter(|line| choices.iter().all(|choice| choice.line != *line));
            choices.extend(line.map(|line| Choice { kind: "pfifo", line, fits: true }));
        }
    }
    let wanted = order(traffic);
    let best = |kinds: &[&str]| choices.iter().any(|choice| kinds.contains(&choice.kind));
    let fitting: &[&str] = match traffic {
        Traffic { scalable: true, .. } | Traffic { one_flow: Some(_), .. }
            if best(&["dualpi2"]) =>
        {
            &["dualpi2"]
        }
        Traffic { datacenter: true, .. } if best(&["fq_codel"]) => &["fq_codel"],
        Traffic { one_flow: None, .. } if best(&APART) => &APART,
        Traffic { one_flow: Some(_), .. } if best(&WITHIN_A_FLOW) => &WITHIN_A_FLOW,
        _ => &wanted,
    };
    for choice in &mut choices {
        choice.fits |= fitting.contains(&choice.kind);
    }
    choices.sort_by_key(|choice| !choice.fits);
    if choices.is_empty() { Err(no_shaper(facts)) } else { Ok(choices) }
}

/// Every discipline that this kernel has and could put before the bottleneck of `requirements`, whatever the traffic calls for: for whoever
/// wants to know what was not chosen.
///
/// # Errors
/// As [`Plan::make`](super::Plan::make); and if no rate is given.
pub fn disciplines(facts: &Facts, requirements: &Requirements) -> Result<Vec<String>, PlanError> {
    let link =
        requirements.rate.ok_or_else(|| PlanError::Requirement("give a --rate".to_owned()))?;
    let rate = below(link);
    let choices = all(facts, requirements, &Traffic::default(), rate, Way::Leaving)?;
    let mut lines: Vec<String> = choices.into_iter().map(|choice| choice.line).collect();
    lines.extend(
        ["pfifo", "bfifo", "pfifo_fast"].iter().filter_map(|kind| shaped(facts, rate, kind)),
    );
    Ok(lines)
}

/// Disciplines in which each flow has a queue of its own.
const APART: [&str; 3] = ["cake", "fq_codel", "fq"];

/// Those that drop or mark early within one flow too, where there is no dualpi2. `fq` does not: to it one flow is a FIFO of a hundred packets
/// (tc-fq(8): flow_limit).
pub(crate) const WITHIN_A_FLOW: [&str; 4] = ["pie", "codel", "cake", "fq_codel"];

/// All disciplines, those first that are preferred where nothing else tells them apart.
const fn order(traffic: &Traffic) -> [&'static str; 6] {
    if traffic.scalable || traffic.one_flow.is_some() {
        ["dualpi2", "pie", "codel", "cake", "fq_codel", "fq"]
    } else {
        ["cake", "fq_codel", "fq", "dualpi2", "pie", "codel"]
    }
}

fn no_shaper(facts: &Facts) -> PlanError {
    let unknown = |kind: &&str| facts.qdiscs.get(*kind) == Some(&Availability::Unknown);
    let message = if ["htb", "tbf", "cake"].iter().any(unknown) {
        "nothing here tells whether this kernel has htb, tbf or cake, one of which --rate needs; to try, say what by --qdisc, such \
         as 'htb rate 48mbit leaf fq_codel'"
    } else {
        "this kernel has no shaper, neither htb nor tbf nor cake: --rate cannot be had here; see `dualq doctor`"
    };
    PlanError::Requirement(message.to_owned())
}

impl Choice {
    /// As what is to be at a root; what is given up with it may be `said` already.
    pub(super) fn queue(&self, facts: &Facts, traffic: &Traffic, said: bool) -> Queue {
        let (why, source) = self.why(traffic);
        let notes = if said { Vec::new() } else { self.notes(facts, traffic) };
        Queue { line: Some(own(&self.line)), why, source, notes, each: false, parent: None }
    }

    /// Why it is chosen, and who says so.
    pub(super) fn why(&self, traffic: &Traffic) -> (String, &'static str) {
        let here = "the queue is where the shaper is";
        match self.kind {
            "dualpi2" if traffic.scalable => {
                let marks = if traffic.dctcp {
                    "any_ect puts DCTCP's ECT(0) under the step, from which all of it is marked"
                } else {
                    "dualpi2's low-latency queue is for scalable senders"
                };
                (format!("{here}; {marks}"), "RFC 9332 §2.4, RFC 8257 §4.1, tc-dualpi2(8)")
            }
            "dualpi2" => {
                let why = "one flow is all that this queue sees, so that per-flow queues keep nothing apart; dualpi2 keeps the one \
                           queue short";
                (format!("{here}; {why}"), "RFC 9332 §2.4, tc-dualpi2(8), tc-htb(8)")
            }
            "cake" | "fq_codel" if !traffic.is_apart() => (
                format!("{here}; {} drops early within the one flow that it sees", self.kind),
                "RFC 8289, tc-cake(8), tc-fq_codel(8)",
            ),
            "fq" if !traffic.is_apart() => (
                format!("{here}; fq lets the one flow that it sees fill 100 packets"),
                "tc-fq(8), tc-htb(8)",
            ),
            "cake" => (
                format!("{here}; cake keeps each flow's queue and each host's share apart"),
                "RFC 8290, tc-cake(8)",
            ),
            "fq_codel" if traffic.datacenter => (
                "without dualpi2, fq_codel's ce_threshold gives DCTCP the shallow marking that it needs".to_owned(),
                "RFC 8257 §4.1, tc-fq_codel(8)",
            ),
            "fq_codel" if self.line.contains(ECT1) => (
                format!("{here}; fq_codel keeps each flow's queue apart, and marks scalable senders from a threshold on"),
                "RFC 8290, RFC 9331 §4.1, tc-fq_codel(8), tc-htb(8)",
            ),
            "fq_codel" => (
                format!("{here}; fq_codel keeps each flow's queue apart and drops early"),
                "RFC 8290, tc-htb(8), tc-fq_codel(8)",
            ),
            "fq" => (format!("{here}; fq serves flows in turn, new ones first"), "tc-fq(8), tc-htb(8)"),
            "pie" => (format!("{here}; pie drops before it is full"), "RFC 8033, tc-pie(8)"),
            "codel" => (format!("{here}; codel drops before it is full"), "RFC 8289, tc-codel(8)"),
            _ => ("a short queue is at least bounded".to_owned(), "tc-pfifo(8), RFC 7567 §1.2"),
        }
    }

    /// What is given up with it.
    pub(super) fn notes(&self, facts: &Facts, traffic: &Traffic) -> Vec<String> {
        let mut notes = Vec::new();
        let wants = traffic.scalable || traffic.one_flow.is_some();
        if wants && self.kind != "dualpi2" {
            let lost = if traffic.scalable {
                "the L4S queue, 1 ms for Prague and for DCTCP with any_ect"
            } else {
                "a queue that stays short whoever shares it"
            };
            let instead = facts.buildable().map_or(String::new(), |buildable| {
                format!("; to have it, {}, and plan again", buildable.advice())
            });
            notes.push(format!("{}: lost is {lost}{instead}", lacks_dualpi2(facts)));
        }
        match self.kind {
            "fq_codel" if self.line.contains(ECT1) => notes.push(format!(
                "fq_codel marks scalable senders (ECT(1)) at a fixed threshold, each in its own queue: what is lost against dualpi2 is {ECT1_LACKS}"
            )),
            "fq_codel" if traffic.is_apart() && !traffic.scalable && !has(facts, "cake") => notes.push(
                "without cake: lost are fairness between hosts and the splitting of aggregates in the queue".to_owned(),
            ),
            "fq" => {
                let lacks = !has(facts, "cake") && !has(facts, "fq_codel");
                let why = if lacks { "this kernel has neither cake nor fq_codel, and " } else { "" };
                notes.push(format!(
                    "{why}fq drops nothing early, so that each flow still waits for its own packets, up to 100 of them"
                ));
            }
            "pie" | "codel" | "dualpi2" if traffic.is_apart() && !traffic.scalable => notes.push(
                "without cake, fq_codel and fq, flows are not kept apart: a sender that does not slow down makes all others wait"
                    .to_owned(),
            ),
            "pfifo" => notes.push(
                "this kernel has nothing that manages a queue; this one is only kept small, so it drops in bursts, and flows are not \
                 kept apart"
                    .to_owned(),
            ),
            _ => {}
        }
        notes
    }
}

fn lacks_dualpi2(facts: &Facts) -> &'static str {
    match facts.qdiscs.get("dualpi2") {
        Some(Availability::Unknown) => "it is not known whether this kernel has dualpi2",
        _ if facts.kernel.version() < (6, 17) => {
            "this kernel has no dualpi2, which came with Linux 6.17"
        }
        Some(Availability::Module) if !has(facts, "dualpi2") => {
            "dualpi2 is a module that cannot be loaded here"
        }
        _ if has(facts, "dualpi2") => "this kernel has neither htb nor tbf to shape before dualpi2",
        _ => "this kernel is built without dualpi2",
    }
}
