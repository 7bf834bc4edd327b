//! What is decided before it becomes changes: for each interface, and for the machine.

use dualq_units::Rate;

use super::ingress::{self, Down};
use super::linux::CC;
use super::options::{Choice, Traffic};
use super::sysctls::{self, Path, Paths, Wanted};
use super::{Evidence, PlanError, Profile, Requirements, check, offload, queue};
use crate::Facts;
use crate::facts::interfaces::LOOPBACK;
use crate::facts::{Availability, Interface};

pub(super) fn interface<'a>(
    facts: &'a Facts,
    requirements: &Requirements,
) -> Result<&'a Interface, PlanError> {
    let names =
        || facts.interfaces.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>();
    let wish = |message| Err(PlanError::Requirement(message));
    let default = facts.default_routes.first().map(|route| &route.dev);
    let Some(dev) = requirements.dev.as_ref().or(default) else {
        if names().is_empty() {
            return wish("there is no default route, and no interface to plan for".to_owned());
        }
        return wish(format!(
            "there is no default route: say by --dev which of {}",
            names().join(", ")
        ));
    };
    match facts.interfaces.iter().find(|interface| interface.name == *dev) {
        Some(interface) => {
            check::interface(dev).map_err(PlanError::Requirement)?;
            Ok(interface)
        }
        None if names().is_empty() => wish(format!("{dev}: this machine has no interfaces")),
        None if dev == LOOPBACK => {
            let here = names().join(", ");
            wish(format!(
                "what goes by {dev} leaves no machine, and waits nowhere; there are {here}"
            ))
        }
        None => wish(format!("there is no interface {dev}; there are {}", names().join(", "))),
    }
}

/// The congestion control that will be: asked for, or the profile's, or what suits the queue, or the one that there is.
fn congestion_control(
    facts: &Facts,
    requirements: &Requirements,
    interfaces: &[&Interface],
) -> Result<Option<String>, PlanError> {
    let running = facts.sysctls.get(CC).cloned();
    let known = |cc: &str| match facts.congestion_controls.get(cc) {
        Some(Availability::Ready | Availability::Unknown) => true,
        Some(Availability::Module) => queue::can_load(facts, &format!("tcp_{cc}")),
        Some(Availability::Absent) | None => false,
    };
    let asked = match (&requirements.cc, requirements.profile) {
        (Some(cc), _) => cc.as_str(),
        (None, Profile::Datacenter) => "dctcp",
        // Where flows share one queue, one that does not answer to it makes all others wait.
        (None, profile)
            if profile.sends()
                && running.as_deref() == Some("bbr")
                && known("cubic")
                && !interfaces.iter().all(|interface| {
                    Traffic::of(facts, requirements, interface, None).is_apart()
                }) =>
        {
            "cubic"
        }
        (None, _) => return Ok(running),
    };
    if known(asked) {
        if running.is_none() {
            let message = format!("--cc: the facts do not tell {CC}, so it cannot be changed");
            return Err(PlanError::Requirement(message));
        }
        return Ok(Some(asked.to_owned()));
    }
    let has = facts.congestion_controls.keys().map(String::as_str).filter(|cc| known(cc));
    let has: Vec<&str> = has.collect();
    let option = if requirements.cc.is_some() { "--cc" } else { "--profile datacenter" };
    Err(PlanError::Requirement(format!(
        "{option}: this kernel does not have the congestion control {asked}; it has {}",
        has.join(", ")
    )))
}

/// Everything that was decided, before it becomes changes.
pub(super) struct Decision<'a> {
    /// The interfaces, in the order in which they were asked for.
    pub(super) sites: Vec<Site<'a>>,
    pub(super) cc: Option<String>,
    pub(super) wanted: Vec<Wanted<'a>>,
}

/// What was decided for one interface.
pub(super) struct Site<'a> {
    /// What was asked of it, as if it were the only one.
    pub(super) requirements: Requirements,
    pub(super) interface: &'a Interface,
    pub(super) queue: queue::Queue,
    /// What the queue was chosen from, if there was a choice.
    pub(super) choices: Vec<Choice>,
    /// What is to become of what arrives, if that was asked for.
    pub(super) down: Option<Down<'a>>,
    /// What is to be limited of what puts packets together.
    pub(super) offloads: Vec<offload::Wanted>,
    pub(super) traffic: Traffic,
    pub(super) rate: Option<Rate>,
    /// The rate that a shaper gives it, or that was asked for.
    shaped: Option<Rate>,
}

/// Each interface has changes of its own, and a plan has some dozens.
const MOST_INTERFACES: usize = 8;

/// The evidence for one direction of an interface, if there is any.
fn found<'a>(evidence: &[&'a Evidence], dev: &str, arriving: bool) -> Option<&'a Evidence> {
    evidence.iter().copied().find(|evidence| {
        let question = evidence.question();
        question.dev == dev && question.arriving == arriving
    })
}

/// Decides; `evidence` picks among the queue disciplines that could be chosen.
pub(super) fn decide<'a>(
    facts: &'a Facts,
    requirements: &Requirements,
    evidence: &[&Evidence],
) -> Result<Decision<'a>, PlanError> {
    if requirements.route.is_some() {
        let message = "--route, --via and --mtu are for FreeBSD".to_owned();
        return Err(PlanError::Requirement(message));
    }
    let all = requirements.each();
    if all.len() > MOST_INTERFACES {
        let message =
            format!("--dev: a plan is for at most {MOST_INTERFACES} interfaces, not {}", all.len());
        return Err(PlanError::Requirement(message));
    }
    let interfaces: Result<Vec<&Interface>, _> =
        all.iter().map(|requirements| interface(facts, requirements)).collect();
    let interfaces = interfaces?;
    for (index, interface) in interfaces.iter().enumerate() {
        if interfaces[..index].iter().any(|other| other.name == interface.name) {
            let message = format!("--dev: {} is given twice", interface.name);
            return Err(PlanError::Requirement(message));
        }
    }
    let cc = congestion_control(facts, requirements, &interfaces)?;
    let mut sites: Vec<Site<'a>> = Vec::new();
    let several = interfaces.len() > 1;
    for (requirements, interface) in all.into_iter().zip(interfaces) {
        let ifbs: Vec<&str> =
            sites.iter().filter_map(|site| Some(site.down.as_ref()?.ifb.as_str())).collect();
        let name = &interface.name;
        let site = Site::decide(facts, requirements, interface, cc.as_deref(), evidence, &ifbs);
        sites.push(site.map_err(|error| match error {
            PlanError::Requirement(message) if several => {
                PlanError::Requirement(about(name, message))
            }
            other => other,
        })?);
    }
    // Buffers are the machine's, so the fastest interface counts. What arrives is taken to be as fast as what leaves where nobody says it.
    let up = sites.iter().filter_map(|site| site.shaped).max();
    let down = sites.iter().filter_map(|site| {
        let down = site.requirements.down.map(|rate| (rate, true));
        down.or(site.shaped.map(|rate| (rate, false)))
    });
    let path = |rate, is_down| {
        let of = match (is_down, several) {
            (false, false) => "",
            (true, false) => " down",
            (false, true) => ", the fastest,",
            (true, true) => " down, the fastest,",
        };
        Path::of(facts, requirements, rate, of)
    };
    let paths = Paths {
        up: path(up, false),
        down: down.max().and_then(|(rate, is_down)| path(Some(rate), is_down)),
        all_up: sites.iter().all(|site| site.shaped.is_some()),
    };
    let wanted = sysctls::wanted(
        facts,
        requirements,
        cc.as_deref(),
        &paths,
        sites.iter().any(|site| !site.traffic.is_apart()),
    );
    Ok(Decision { sites, cc, wanted })
}

/// What is said of one interface among several.
fn about(name: &str, message: String) -> String {
    let is_named = message
        .split(|c: char| !(c.is_ascii_alphanumeric() || "_.:@-".contains(c)))
        .any(|word| word.trim_end_matches(['.', ':']) == name);
    if is_named { message } else { format!("{name}: {message}") }
}

impl<'a> Site<'a> {
    fn decide(
        facts: &'a Facts,
        requirements: Requirements,
        interface: &'a Interface,
        cc: Option<&str>,
        evidence: &[&Evidence],
        ifbs: &[&str],
    ) -> Result<Self, PlanError> {
        if requirements.rate.is_some_and(|rate| rate.as_bits_per_second() == 0) {
            return Err(PlanError::Requirement(
                "--rate is zero: give what the bottleneck lets through, such as 48mbit".to_owned(),
            ));
        }
        let traffic = Traffic::of(facts, &requirements, interface, cc);
        let pick = |arriving| found(evidence, &interface.name, arriving).map(Evidence::chosen);
        let (mut queue, choices) =
            queue::choose(facts, &requirements, interface, cc, &traffic, pick(false))?;
        let down = ingress::choose(facts, &requirements, interface, &traffic, pick(true), ifbs)?;
        let (offloads, notes) =
            offload::choose(facts, &requirements, interface, queue.line.as_ref(), down.as_ref());
        queue.notes.extend(notes);
        let shaped = requirements
            .rate
            .or_else(|| queue.line.as_ref().and_then(|line| queue::shaper_rate(line.spec())));
        // An interface's speed says little of the path behind it.
        let rate = shaped.or_else(|| queue::speed(interface));
        Ok(Self { requirements, interface, queue, choices, down, offloads, traffic, rate, shaped })
    }

    /// Leaves what there is where the evidence says that nothing better is to be had, and takes what is to be known of the rest. Gives what is
    /// worse than now.
    pub(super) fn settle(&mut self, evidence: &[&Evidence]) -> (Vec<String>, String) {
        let name = &self.interface.name;
        let (leaving, arriving) = (found(evidence, name, false), found(evidence, name, true));
        let left = leaving.and_then(Evidence::better_left);
        if let Some((p99_then, p99_now)) = left
            && let Some(line) = self.queue.line.take()
        {
            self.offloads.clear();
            self.queue.notes = vec![format!(
                "the queue discipline of {name} stays: this kernel has none that manages a queue, and with {line} ssh's p99 would be {p99_then:.1} ms above \
                 the base in the simulation, now {p99_now:.1} ms; --qdisc asks for it all the same"
            )];
        }
        if let Some((p99_then, p99_now)) = arriving.and_then(Evidence::better_left)
            && let Some(Down { line, .. }) = self.down.take()
        {
            self.offloads.clear();
            self.queue.notes.push(format!(
                "what arrives at {name} stays as it is: this kernel has nothing that manages a queue, and with {line} ssh's p99 would be {p99_then:.1} \
                 ms above the base in the simulation, now {p99_now:.1} ms"
            ));
        }
        let mut notes = std::mem::take(&mut self.queue.notes);
        notes.extend(self.down.iter_mut().flat_map(|down| std::mem::take(&mut down.notes)));
        if let Some((dearer, share)) = arriving.and_then(Evidence::dearer) {
            notes.push(format!(
                "what arrives: in the simulation {} keeps ssh's p99 at {:.1} ms in the worst case, for {:.0} % of the throughput; it is not chosen \
                 for that, --down-qdisc asks for it",
                dearer.queue,
                dearer.worst.1.p99_ms,
                100.0 * (1.0 - share)
            ));
        }
        if let Some(better) = leaving.and_then(Evidence::better) {
            let why = match self.traffic.is_apart() {
                true => "its flows share one queue, and the next sender may not listen",
                false if better.queue.ends_with("leaf fq") => {
                    "to it all is one flow, for which it only keeps a FIFO of 100 packets"
                }
                false => "it is made to tell flows apart, or is less sure to keep one queue short",
            };
            notes.push(format!(
                "in the simulation {} is better, with a p99 of {:.1} ms; it is not chosen, for {why}: --qdisc asks for it",
                better.queue, better.worst.1.p99_ms
            ));
        }
        let warning = leaving.filter(|_| left.is_none()).and_then(Evidence::warning);
        let warning_down = arriving.filter(|_| self.down.is_some()).and_then(Evidence::warning);
        let warning_down = warning_down.map(|warning| format!("for what arrives, {warning}"));
        let warnings = warning.into_iter().chain(warning_down);
        (notes, warnings.map(|warning| format!("{warning}: ")).collect())
    }

    /// What it is for, in some words.
    pub(super) fn words(&self) -> String {
        let rate = self.requirements.rate;
        let rate = rate.map_or(String::new(), |rate| format!(" at {}", queue::rate_words(rate)));
        let down = self.down.as_ref().map_or(String::new(), |down| {
            let joint = if rate.is_empty() { " at" } else { "," };
            format!("{joint} {} down", queue::rate_words(down.rate))
        });
        let class = self.queue.parent;
        let class = class.map_or(String::new(), |class| format!(" below class {class}"));
        format!("{}{class}{rate}{down}", self.interface.name)
    }
}

/// What is to be known of all of them: what is said of each is said once.
pub(super) fn of_all(sites: &[Site<'_>], notes: &[Vec<String>]) -> Vec<String> {
    if let [one] = notes {
        return one.clone();
    }
    let is_common = |note: &String| notes.iter().all(|other| other.contains(note));
    let mut all = Vec::new();
    for (site, own) in sites.iter().zip(notes) {
        for note in own {
            let note = match is_common(note) {
                true => note.clone(),
                false => about(&site.interface.name, note.clone()),
            };
            if !all.contains(&note) {
                all.push(note);
            }
        }
    }
    for site in sites {
        let Interface { name, lower, master, .. } = site.interface;
        for on in lower.iter().chain(master) {
            if sites.iter().any(|other| other.interface.name == *on) {
                all.push(format!(
                    "{name} is on {on}, and the plan is for both: what leaves by {name} passes both queues, and waits in the slower one"
                ));
            }
        }
    }
    all
}
