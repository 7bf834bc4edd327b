//! A plan for Linux.

use dualq_qdisc::QdiscLine;

use super::decide::{Decision, Site, decide, interface, of_all};
use super::ingress::{self, Down};
use super::sysctls::Wanted;
use super::{
    Aim, Change, Evidence, FORMAT, Plan, PlanError, Requirements, What, boot, check, queue,
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
    evidence: &[&Evidence],
) -> Result<Plan, PlanError> {
    let Decision { mut sites, cc, wanted } = decide(facts, requirements, evidence)?;
    let settled = sites.iter_mut().map(|site| site.settle(evidence));
    let (notes, warnings): (Vec<Vec<String>>, Vec<String>) = settled.unzip();
    let mut draft = Draft::new(facts, requirements.state.as_deref())?;
    draft.notes = of_all(&sites, &notes);
    draft.modules(&sites, cc.as_deref(), &wanted);
    // Who asks for nothing but a queue has nothing against what was asked for before.
    draft.sysctls(&wanted, requirements.profile.sends());
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
    for site in &sites {
        draft.site(site);
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
        What::Qdisc { .. } | What::Ingress { .. } | What::Offload { .. } | What::Route { .. } => 2,
        What::File { path, .. } if boot::CALLING.contains(&path.as_str()) => 3,
        What::File { .. } | What::Lines { .. } => 4,
    });
    let distribution = [&facts.distribution.name, &facts.distribution.id];
    let machine = distribution.into_iter().find(|name| !name.is_empty());
    let machine = machine.map_or(String::new(), |name| format!(", {name}"));
    let places = sites.iter().map(Site::words).collect::<Vec<_>>().join(" and on ");
    let warnings = sites.iter().zip(warnings).map(|(site, warning)| match &sites[..] {
        [_] => warning,
        _ if warning.is_empty() => warning,
        _ => format!("{}: {warning}", site.interface.name),
    });
    let warning: String = warnings.collect();
    let about = format!("{warning}{} on {places}{machine}", requirements.profile.name());
    let evidence = evidence.iter().flat_map(|evidence| lines(evidence, sites.len() > 1)).collect();
    draft.plan(about, requirements.aim, evidence)
}

/// The table of the simulation, with the interface that it is of.
fn lines(evidence: &Evidence, is_one_of_several: bool) -> Vec<String> {
    let mut lines = evidence.lines();
    if let Some(first) = lines.first_mut().filter(|_| is_one_of_several) {
        *first = format!("{}: {first}", evidence.question().dev);
    }
    lines
}

pub(super) fn of_qdisc(
    facts: &Facts,
    dev: Option<&str>,
    after: QdiscLine,
) -> Result<Plan, PlanError> {
    let requirements = Requirements { dev: dev.map(str::to_owned), ..Requirements::default() };
    let interface = interface(facts, &requirements)?;
    let (dev, before) = (interface.name.clone(), interface.qdisc_lines());
    let about = format!("{} at the root of {dev}", after.text());
    let mut draft = Draft::new(facts, None)?;
    let what = What::Qdisc { dev, parent: None, before, after, each: false };
    draft.push(what, "it was asked for".to_owned(), "tc(8)");
    draft.plan(about, Aim::default(), Vec::new())
}

impl<'a> Draft<'a> {
    /// Nothing yet. `state` is the folder of records.
    pub(super) fn new(facts: &'a Facts, state: Option<&'a str>) -> Result<Self, PlanError> {
        let state = state.filter(|state| *state != boot::USUAL_STATE);
        if let Some(Err(message)) = state.map(boot::state) {
            return Err(PlanError::Requirement(format!("--state: {message}")));
        }
        Ok(Self { facts, changes: Vec::new(), notes: Vec::new(), state })
    }

    /// What has grown.
    pub(super) fn plan(
        self,
        about: String,
        aim: Aim,
        evidence: Vec<String>,
    ) -> Result<Plan, PlanError> {
        let plan = Plan {
            format: FORMAT,
            about,
            os: Os::Linux,
            kernel: self.facts.kernel.release.clone(),
            aim,
            evidence,
            notes: self.notes,
            changes: self.changes,
        };
        // Facts are files too, and names in them go into rules and scripts.
        plan.check()
            .map_err(|error| PlanError::Requirement(format!("this makes no safe plan: {error}")))?;
        Ok(plan)
    }
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

    /// What is to become of one interface.
    fn site(&mut self, Site { interface, queue, down, offloads, .. }: &Site<'_>) {
        let boot_file = self.qdisc(interface, queue);
        // Where the queue stays as it is, so does what put it there.
        if let Some(line) = &queue.line {
            let at = boot::At { dev: &interface.name, part: queue.part() };
            self.forget_qdisc(at, line.text(), boot_file.as_deref());
        }
        if let Some(down) = down {
            let boot_file = self.down(interface, down);
            let at =
                boot::At { dev: &interface.name, part: boot::Part::Arriving { ifb: &down.ifb } };
            self.forget_qdisc(at, down.line.text(), boot_file.as_deref());
        }
        self.offloads(interface, offloads);
    }

    fn modules(&mut self, sites: &[Site<'_>], cc: Option<&str>, wanted: &[Wanted<'_>]) {
        let facts = self.facts;
        let openwrt = facts.distribution.init == "procd";
        let path = if openwrt { boot::MODULES_OPENWRT } else { boot::MODULES };
        let listed = self.lines_of(path);
        let lines = sites.iter().flat_map(|site| {
            site.queue.line.iter().chain(site.down.as_ref().map(|down| &down.line))
        });
        let mut kinds: Vec<&str> = lines.flat_map(QdiscLine::kinds).collect();
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
        let is_redirected = sites.iter().any(|site| site.down.is_some());
        let redirecting = is_redirected.then(|| ingress::modules(facts)).into_iter().flatten();
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
        let at = boot::At { dev, part: queue.part() };
        let before = match queue.parent {
            Some(class) => interface.lines_in(&class.to_string()),
            None => interface.qdisc_lines(),
        };
        // What dualq put below a class is not what the class has of its owner.
        let is_owners =
            queue.parent.is_some() && !before.is_empty() && !boot::puts_back(self.facts, at);
        if !queue::is_there(interface, line.spec(), queue.part()) {
            if is_owners {
                self.notes.push(format!(
                    "whoever made the tree of {dev} has given this class a discipline of its own, and does so again where the tree is made anew, at boot \
                     too: no file is written that would contend with that"
                ));
            }
            let what = What::Qdisc {
                dev: dev.clone(),
                parent: queue.parent,
                before,
                after: line.clone(),
                each: queue.each,
            };
            self.push(what, queue.why.clone(), queue.source);
        } else if interface.leaving().all(|qdisc| qdisc.handle == "0:") {
            // The kernel put it there by itself, and will again.
            return None;
        }
        if is_owners {
            return None;
        }
        self.call_at_boot(at, line.text(), &sentence(&format!("on {dev}, {}", queue.why)))
    }

    /// What arrives; as above.
    fn down(&mut self, interface: &Interface, down: &Down<'_>) -> Option<String> {
        let (dev, ifb, line) = (&interface.name, &down.ifb, &down.line);
        let change = match down.there {
            None => Some(What::Ingress { dev: dev.clone(), ifb: ifb.clone(), after: line.clone() }),
            Some(there) if queue::is_there(there, line.spec(), boot::Part::Leaving) => None,
            Some(there) => Some(What::Qdisc {
                dev: ifb.clone(),
                parent: None,
                before: there.qdisc_lines(),
                after: line.clone(),
                each: false,
            }),
        };
        if let Some(what) = change {
            self.push(what, down.why.clone(), format!("{}, tc-mirred(8)", down.source));
        }
        let at = boot::At { dev, part: boot::Part::Arriving { ifb } };
        self.call_at_boot(
            at,
            line.text(),
            &sentence(&format!("for what arrives at {dev}, {}", down.why)),
        )
    }

    /// Gives the path of the file that puts it back, if there is one.
    pub(super) fn call_at_boot(
        &mut self,
        at: boot::At<'_>,
        line: &str,
        about: &str,
    ) -> Option<String> {
        let dev = at.dev;
        let program = self.facts.dualq.as_deref().unwrap_or(DEFAULT_PROGRAM);
        let caller = boot::Caller { program, state: self.state };
        let Some((path, source)) = boot::place(self.facts) else {
            self.notes.push(format!(
                "nothing here is known to act when {dev} appears: at boot, call {}",
                caller.command(at, line)
            ));
            return None;
        };
        if let Err(message) = boot::program(program) {
            self.notes.push(format!(
                "{message}: nothing puts {} back at boot; install dualq to {DEFAULT_PROGRAM}",
                at.part.name()
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
        let content = boot::content(self.content_so_far(path), path, about, caller, (at, line));
        let why = match at.part {
            boot::Part::Route { .. } => format!(
                "puts the route back whenever it went with {dev} and the way there is back, at boot too"
            ),
            boot::Part::Below { class } => format!(
                "puts the qdisc back whenever class {class} of {dev} is there and has none of its own, at boot too"
            ),
            _ => format!(
                "puts the qdisc back whenever {dev} appears, at boot too; most hosts' tc could not"
            ),
        };
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
