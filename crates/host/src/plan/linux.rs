//! A plan for Linux.

use dualq_qdisc::QdiscLine;
use dualq_units::Rate;

use super::ingress::{self, Down};
use super::options::{Choice, Traffic};
use super::sysctls::{self, Path, Wanted};
use super::{
    Aim, Change, Evidence, FORMAT, Plan, PlanError, Profile, Requirements, What, boot, check, queue,
};
use crate::Facts;
use crate::facts::{Availability, Interface, Os};
use crate::program::how_to_install;

pub(super) const ECN: &str = "net.ipv4.tcp_ecn";
pub(super) const CC: &str = "net.ipv4.tcp_congestion_control";

/// Whether a value of that sysctl asks for ECN, AccECN included.
pub(super) fn asks_for_ecn(value: Option<&String>) -> bool {
    value.is_some_and(|value| ["1", "3", "4"].contains(&value.trim()))
}

const DEFAULT_PROGRAM: &str = "/usr/local/bin/dualq";

fn interface<'a>(
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
        None => wish(format!("there is no interface {dev}; there are {}", names().join(", "))),
    }
}

/// The congestion control that will be: asked for, or the profile's, or what suits the queue, or the one that there is.
fn congestion_control(
    facts: &Facts,
    requirements: &Requirements,
    interface: &Interface,
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
                && !Traffic::of(facts, requirements, interface, None).is_apart() =>
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
    pub(super) interface: &'a Interface,
    pub(super) cc: Option<String>,
    pub(super) queue: queue::Queue,
    /// What the queue was chosen from, if there was a choice.
    pub(super) choices: Vec<Choice>,
    /// What is to become of what arrives, if that was asked for.
    pub(super) down: Option<Down<'a>>,
    pub(super) traffic: Traffic,
    pub(super) rate: Option<Rate>,
    pub(super) wanted: Vec<Wanted<'a>>,
}

/// Decides; each of `picks` is the line of a queue discipline, one of those that could be chosen, for what leaves and for what
/// arrives.
pub(super) fn decide<'a>(
    facts: &'a Facts,
    requirements: &Requirements,
    picks: [Option<&str>; 2],
) -> Result<Decision<'a>, PlanError> {
    if requirements.route.is_some() {
        let message = "--route, --via and --mtu are for FreeBSD".to_owned();
        return Err(PlanError::Requirement(message));
    }
    if requirements.rate.is_some_and(|rate| rate.as_bits_per_second() == 0) {
        return Err(PlanError::Requirement(
            "--rate is zero: give what the bottleneck lets through, such as 48mbit".to_owned(),
        ));
    }
    let interface = interface(facts, requirements)?;
    let cc = congestion_control(facts, requirements, interface)?;
    let traffic = Traffic::of(facts, requirements, interface, cc.as_deref());
    let [pick, pick_down] = picks;
    let (queue, choices) =
        queue::choose(facts, requirements, interface, cc.as_deref(), &traffic, pick)?;
    let down = ingress::choose(facts, requirements, interface, &traffic, pick_down)?;
    let speed = queue::speed(interface);
    let shaped = requirements
        .rate
        .or_else(|| queue.line.as_ref().and_then(|line| queue::shaper_rate(line.spec())));
    // An interface's speed says little of the path behind it.
    let path = Path::of(facts, requirements, shaped);
    let rate = shaped.or(speed);
    let wanted = sysctls::wanted(
        facts,
        requirements,
        cc.as_deref(),
        path.as_ref(),
        queue.default,
        !traffic.is_apart(),
    );
    Ok(Decision { interface, cc, queue, choices, down, traffic, rate, wanted })
}

/// A plan that grows.
pub(super) struct Draft<'a> {
    pub(super) facts: &'a Facts,
    pub(super) changes: Vec<Change>,
    pub(super) notes: Vec<String>,
    /// The folder of records, if it is not the usual one.
    state: Option<&'a str>,
}

pub(super) fn make(
    facts: &Facts,
    requirements: &Requirements,
    evidence: Option<&Evidence>,
    arriving: Option<&Evidence>,
) -> Result<Plan, PlanError> {
    let picks = [evidence, arriving].map(|evidence| evidence.map(Evidence::chosen));
    let Decision { interface, cc, mut queue, mut down, wanted, .. } =
        decide(facts, requirements, picks)?;
    let left = evidence.and_then(Evidence::better_left);
    if let Some((p99_then, p99_now)) = left
        && let Some(line) = queue.line.take()
    {
        queue.notes = vec![format!(
            "the queue discipline of {} stays: this kernel has none that manages a queue, and with {line} ssh's p99 would be {p99_then:.1} ms above \
             the base in the simulation, now {p99_now:.1} ms; --qdisc asks for it all the same",
            interface.name
        )];
    }
    if let Some((p99_then, p99_now)) = arriving.and_then(Evidence::better_left)
        && let Some(Down { line, .. }) = down.take()
    {
        queue.notes.push(format!(
            "what arrives at {} stays as it is: this kernel has nothing that manages a queue, and with {line} ssh's p99 would be {p99_then:.1} \
             ms above the base in the simulation, now {p99_now:.1} ms",
            interface.name
        ));
    }
    let mut notes = std::mem::take(&mut queue.notes);
    notes.extend(down.iter_mut().flat_map(|down| std::mem::take(&mut down.notes)));
    if let Some((dearer, share)) = arriving.and_then(Evidence::dearer) {
        notes.push(format!(
            "what arrives: in the simulation {} keeps ssh's p99 at {:.1} ms in the worst case, for {:.0} % of the throughput; it is not chosen \
             for that, --down-qdisc asks for it",
            dearer.queue,
            dearer.worst.1.p99_ms,
            100.0 * (1.0 - share)
        ));
    }
    if let Some(better) = evidence.and_then(Evidence::better) {
        notes.push(format!(
            "in the simulation {} is better, with a p99 of {:.1} ms; it is not chosen, for its flows share one queue, and the next \
             sender may not listen: --qdisc asks for it",
            better.queue, better.worst.1.p99_ms
        ));
    }
    let state = requirements.state.as_deref().filter(|state| *state != boot::USUAL_STATE);
    if let Some(Err(message)) = state.map(boot::state) {
        return Err(PlanError::Requirement(format!("--state: {message}")));
    }
    let mut draft = Draft { facts, changes: Vec::new(), notes, state };
    draft.modules(&queue, down.as_ref(), cc.as_deref(), &wanted);
    draft.sysctls(&wanted, requirements.profile);
    if let Some(cc) = &cc
        && facts.congestion_controls.get(cc) == Some(&Availability::Unknown)
    {
        draft.notes.push(format!("it is not known whether this kernel has {cc}"));
    }
    if cc.as_deref() == Some("bbr") && asks_for_ecn(facts.sysctls.get(ECN)) {
        draft.notes.push(format!(
            "{ECN} is on, and bbr does not answer marks: its packets are spared the drops that others get"
        ));
    }
    let others = facts.connections.as_ref().map_or(0, |known| {
        let of_others =
            known.by_congestion_control.iter().filter(|(name, _)| cc.as_ref() != Some(*name));
        of_others.map(|(_, count)| *count).sum()
    });
    if others > 0 && facts.sysctls.get(CC) != cc.as_ref() {
        draft.notes.push(format!(
            "the {others} connections that are there keep their congestion control until they end"
        ));
    }
    let boot_file = draft.qdisc(interface, &queue);
    // Where the queue stays as it is, so does what put it there.
    if let Some(line) = &queue.line {
        let at = boot::At { dev: &interface.name, ifb: None };
        draft.forget_qdisc(at, line.text(), boot_file.as_deref());
    }
    if let Some(down) = &down {
        let boot_file = draft.down(interface, down);
        let at = boot::At { dev: &interface.name, ifb: Some(&down.ifb) };
        draft.forget_qdisc(at, down.line.text(), boot_file.as_deref());
    }
    if let Some(virtualization) = ["docker", "podman", "lxc", "systemd-nspawn"]
        .into_iter()
        .find(|name| facts.kernel.virtualization.as_deref() == Some(name))
    {
        draft.notes.push(format!(
            "this is a container ({virtualization}): modules and some sysctls are the host's, and may be refused here"
        ));
    }
    // What is refused is refused first: modules and running values come before what lasts. Of the files, what calls dualq at boot is
    // the first to be written and the last to be taken away: if power fails between, that call takes the others back.
    draft.changes.sort_by_key(|change| match &change.what {
        What::Module { .. } => 0,
        What::Sysctl { .. } => 1,
        What::Qdisc { .. } | What::Ingress { .. } | What::Route { .. } => 2,
        What::File { path, .. } if boot::CALLING.contains(&path.as_str()) => 3,
        What::File { .. } | What::Lines { .. } => 4,
    });
    let distribution = [&facts.distribution.name, &facts.distribution.id];
    let machine = distribution.into_iter().find(|name| !name.is_empty());
    let machine = machine.map_or(String::new(), |name| format!(", {name}"));
    let rate =
        requirements.rate.map_or(String::new(), |rate| format!(" at {}", queue::rate_words(rate)));
    let down_rate = down.as_ref().map_or(String::new(), |down| {
        let joint = if rate.is_empty() { " at" } else { "," };
        format!("{joint} {} down", queue::rate_words(down.rate))
    });
    let warning = evidence.filter(|_| left.is_none()).and_then(Evidence::warning);
    let warning_down = arriving.filter(|_| down.is_some()).and_then(Evidence::warning);
    let warning_down = warning_down.map(|warning| format!("for what arrives, {warning}"));
    let warnings = warning.into_iter().chain(warning_down);
    let warning: String = warnings.map(|warning| format!("{warning}: ")).collect();
    let plan = Plan {
        format: FORMAT,
        about: format!(
            "{warning}{} on {}{rate}{down_rate}{machine}",
            requirements.profile.name(),
            interface.name
        ),
        os: Os::Linux,
        kernel: facts.kernel.release.clone(),
        aim: requirements.aim,
        evidence: evidence.into_iter().chain(arriving).flat_map(Evidence::lines).collect(),
        notes: draft.notes,
        changes: draft.changes,
    };
    // Facts are files too, and names in them go into rules and scripts.
    plan.check()
        .map_err(|error| PlanError::Requirement(format!("the facts make no safe plan: {error}")))?;
    Ok(plan)
}

pub(super) fn of_qdisc(
    facts: &Facts,
    dev: Option<&str>,
    after: QdiscLine,
) -> Result<Plan, PlanError> {
    let requirements = Requirements { dev: dev.map(str::to_owned), ..Requirements::default() };
    let interface = interface(facts, &requirements)?;
    let (dev, before) = (interface.name.clone(), interface.qdisc_lines());
    let plan = Plan {
        format: FORMAT,
        about: format!("{} at the root of {dev}", after.text()),
        os: Os::Linux,
        kernel: facts.kernel.release.clone(),
        aim: Aim::default(),
        evidence: Vec::new(),
        notes: Vec::new(),
        changes: vec![Change {
            why: "it was asked for".to_owned(),
            source: "tc(8)".to_owned(),
            what: What::Qdisc { dev, before, after },
        }],
    };
    plan.check()
        .map_err(|error| PlanError::Requirement(format!("this makes no safe plan: {error}")))?;
    Ok(plan)
}

impl Draft<'_> {
    pub(super) fn push(&mut self, what: What, why: String, source: impl Into<String>) {
        self.changes.push(Change { why, source: source.into(), what });
    }

    /// What is in a file once the changes so far are made.
    fn content_so_far(&self, path: &str) -> Option<&str> {
        let planned = self.changes.iter().find_map(|change| match &change.what {
            What::File { path: other, after, .. } if other == path => Some(after.as_str()),
            _ => None,
        });
        planned.or_else(|| self.facts.files.get(path).map(|file| file.content.as_str()))
    }

    /// Writes a file, unless it is there with this content. What was to be in it before has to be in `after`.
    pub(super) fn file(&mut self, path: &str, after: String, why: String, source: &str) {
        self.changes.retain(
            |change| !matches!(&change.what, What::File { path: other, .. } if other == path),
        );
        let there = self.facts.files.get(path);
        let mode = boot::mode(path);
        if there.is_some_and(|file| file.content == after && file.mode.parse() == Ok(mode)) {
            return;
        }
        let before = there.map(|file| file.content.clone());
        let path = path.to_owned();
        self.push(What::File { path, before, after, mode }, why, source);
    }

    /// The lines of a file of ours that do something, as it is now.
    pub(super) fn lines_of(&self, path: &str) -> Vec<String> {
        let file = self.facts.files.get(path);
        let lines = file.into_iter().flat_map(|file| boot::working_lines(&file.content));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    /// Empties what an earlier plan wrote to put a queue discipline there, and that would undo this one.
    fn forget_qdisc(&mut self, at: boot::At<'_>, line: &str, chosen: Option<&str>) {
        // Where nothing is known to act, what does the same after all may go on.
        let but = if chosen.is_none() { Some(line) } else { None };
        let why = "what an earlier plan put here would undo this one at boot".to_owned();
        for path in boot::CALLING {
            if chosen != Some(path)
                && let Some(content) = boot::without(self.content_so_far(path), path, at, but)
            {
                self.file(path, content, why.clone(), "udev(7), interfaces(5)");
            }
        }
    }

    fn modules(
        &mut self,
        queue: &queue::Queue,
        down: Option<&Down<'_>>,
        cc: Option<&str>,
        wanted: &[Wanted<'_>],
    ) {
        let facts = self.facts;
        let openwrt = facts.distribution.init == "procd";
        let path = if openwrt { boot::MODULES_OPENWRT } else { boot::MODULES };
        let listed = self.lines_of(path);
        let lines = queue.line.iter().chain(down.map(|down| &down.line));
        let mut kinds: Vec<&str> = lines.flat_map(QdiscLine::kinds).chain(queue.default).collect();
        let mut known = Vec::new();
        kinds.retain(|kind| {
            let new = !known.contains(kind);
            known.push(*kind);
            new
        });
        let sets_cc = wanted.iter().any(|wanted| wanted.key == "net.ipv4.tcp_congestion_control");
        let qdiscs = kinds.iter().map(|kind| (format!("sch_{kind}"), facts.qdiscs.get(*kind)));
        let ccs = cc.into_iter().filter(|_| sets_cc);
        let ccs = ccs.map(|cc| (format!("tcp_{cc}"), facts.congestion_controls.get(cc)));
        let redirecting = down.into_iter().flat_map(|_| ingress::modules(facts));
        let redirecting = redirecting.map(|(module, found)| (module.to_owned(), found));
        let mut names = Vec::new();
        let all = qdiscs.chain(ccs).map(|(module, found)| (module, found.copied()));
        for (module, availability) in all.chain(redirecting) {
            let load = availability == Some(Availability::Module);
            if load {
                let why = format!("{module} is a module that is not loaded");
                self.push(What::Module { module: module.clone() }, why, "modprobe(8)");
            }
            if load || listed.contains(&module) {
                names.push(module);
            }
        }
        // What is not ours to forget: another interface may need it.
        let kept = listed.into_iter().filter(|name| check::module(name).is_ok());
        names.extend(kept);
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return;
        }
        let why = "modules are there at boot before anything asks for them".to_owned();
        let content = format!("{}{}\n", boot::head(path, &sentence(&why)), names.join("\n"));
        let source =
            if openwrt { "OpenWrt's documentation of kmodloader" } else { "modules-load.d(5)" };
        self.file(path, content, why, source);
    }

    /// Gives the path of the file that puts it back, if there is one.
    fn qdisc(&mut self, interface: &Interface, queue: &queue::Queue) -> Option<String> {
        let line = queue.line.as_ref()?;
        let dev = &interface.name;
        if !queue::is_there(interface, line.spec()) {
            let what = What::Qdisc {
                dev: dev.clone(),
                before: interface.qdisc_lines(),
                after: line.clone(),
            };
            self.push(what, queue.why.clone(), queue.source);
        } else if interface.leaving().all(|qdisc| qdisc.handle == "0:") {
            // The kernel put it there by itself, and will again.
            return None;
        }
        let at = boot::At { dev, ifb: None };
        self.call_at_boot(at, line, &sentence(&format!("on {dev}, {}", queue.why)))
    }

    /// What arrives; as above.
    fn down(&mut self, interface: &Interface, down: &Down<'_>) -> Option<String> {
        let (dev, ifb, line) = (&interface.name, &down.ifb, &down.line);
        let change = match down.there {
            None => Some(What::Ingress { dev: dev.clone(), ifb: ifb.clone(), after: line.clone() }),
            Some(there) if queue::is_there(there, line.spec()) => None,
            Some(there) => Some(What::Qdisc {
                dev: ifb.clone(),
                before: there.qdisc_lines(),
                after: line.clone(),
            }),
        };
        if let Some(what) = change {
            self.push(what, down.why.clone(), format!("{}, tc-mirred(8)", down.source));
        }
        let at = boot::At { dev, ifb: Some(ifb) };
        self.call_at_boot(at, line, &sentence(&format!("for what arrives at {dev}, {}", down.why)))
    }

    /// Gives the path of the file that puts it back, if there is one.
    fn call_at_boot(&mut self, at: boot::At<'_>, line: &QdiscLine, about: &str) -> Option<String> {
        let dev = at.dev;
        let program = self.facts.dualq.as_deref().unwrap_or(DEFAULT_PROGRAM);
        let caller = boot::Caller { program, state: self.state };
        let Some((path, source)) = boot::place(self.facts) else {
            self.notes.push(format!(
                "nothing here is known to act when {dev} appears: at boot, call {}",
                caller.command(at, line.text())
            ));
            return None;
        };
        if let Err(message) = boot::program(program) {
            self.notes.push(format!(
                "{message}: nothing puts the qdisc back at boot; install dualq to {DEFAULT_PROGRAM}"
            ));
            return None;
        }
        if self.facts.dualq.is_none() {
            self.notes.push(format!(
                "this is no installed dualq, and root is to run no other at boot: first {}, and apply the plan by that",
                how_to_install("dualq", program)
            ));
        }
        let system = ["/usr/", "/opt/", "/bin/", "/sbin/"];
        if !system.iter().any(|folder| program.starts_with(folder)) {
            self.notes.push(format!(
                "{program} may not be there at boot, or not for {source}; install dualq to {DEFAULT_PROGRAM}"
            ));
        }
        let content =
            boot::content(self.content_so_far(path), path, about, caller, (at, line.text()));
        let why = format!(
            "puts the qdisc back whenever {dev} appears, at boot too; most hosts' tc could not"
        );
        self.file(path, content, why, source);
        Some(path.to_owned())
    }
}

/// With a capital and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}
