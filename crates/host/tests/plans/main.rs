//! What holds of every plan: for many machines, any requirements, and whatever somebody wrote into a file.

mod arriving;
mod below;
mod choice;
mod evidence;
mod files;
mod hostile;
mod offloads;
mod properties;
mod routes;
mod several;

use std::fs;
use std::path::PathBuf;

use dualq_host::facts::{Arriving, Availability, File, Interface, Qdisc, Setting};
use dualq_host::plan::{Offload, PlanError, Requirements, What};
use dualq_host::{Facts, Plan};
use dualq_qdisc::{Device, QdiscLine};
use dualq_units::Rate;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/facts"))
}

/// Each saved machine with its name.
pub(crate) fn machines() -> Vec<(String, Facts)> {
    let mut machines = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        if path.extension().is_some_and(|extension| extension != "md") {
            machines.push((name.clone(), Facts::parse(&name, &text).unwrap()));
        }
    }
    machines.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(machines.len() >= 15, "{machines:?}");
    machines
}

pub(crate) fn machine(name: &str) -> Facts {
    let machines = machines();
    machines.into_iter().find(|(file, _)| file.starts_with(name)).unwrap().1
}

/// The machine after the plan, as its facts would then say.
pub(crate) fn applied(mut facts: Facts, plan: &Plan) -> Facts {
    for change in &plan.changes {
        match change.what.clone() {
            What::Module { module } => {
                let (kind, name) = module.split_once('_').unwrap();
                let list = match kind {
                    "sch" => &mut facts.qdiscs,
                    "act" | "cls" => &mut facts.redirection,
                    _ => &mut facts.congestion_controls,
                };
                list.insert(name.to_owned(), Availability::Ready);
            }
            What::Sysctl { key, before, after } => {
                assert_eq!(facts.sysctls.insert(key, after), Some(before));
            }
            What::Qdisc { dev, parent: Some(class), before, after, .. } => {
                let class = class.to_string();
                let interface =
                    facts.interfaces.iter_mut().find(|interface| interface.name == dev).unwrap();
                assert_eq!(interface.lines_in(&class), before);
                let [one] = &qdiscs(&after, interface)[..] else { panic!("{after:?}") };
                let made = Qdisc { handle: "d0:".to_owned(), parent: class, ..one.clone() };
                interface.qdiscs.retain(|qdisc| qdisc.parent != made.parent);
                interface.qdiscs.push(made);
            }
            What::Qdisc { dev, parent: None, before, after, each } => {
                let interface =
                    facts.interfaces.iter_mut().find(|interface| interface.name == dev).unwrap();
                assert_eq!(interface.qdisc_lines(), before);
                let mut made = qdiscs(&after, interface);
                if each {
                    let [one] = &made[..] else { panic!("{made:?}") };
                    let below = (1..=interface.tx_queues).map(|queue| Qdisc {
                        handle: format!("{queue:x}00:"),
                        parent: format!("d0:{queue:x}"),
                        ..one.clone()
                    });
                    let root = Qdisc {
                        kind: "mq".to_owned(),
                        handle: "d0:".to_owned(),
                        parent: "root".to_owned(),
                        ..Qdisc::default()
                    };
                    made = std::iter::once(root).chain(below).collect();
                }
                interface.qdiscs.retain(|qdisc| qdisc.parent == "ffff:fff1");
                interface.qdiscs.extend(made);
            }
            What::Ingress { dev, ifb, after } => {
                let found = facts.interfaces.iter_mut().find(|found| found.name == dev).unwrap();
                assert_eq!(found.arriving, None);
                found.arriving = Some(Arriving::Redirected(ifb.clone()));
                found.qdiscs.push(Qdisc {
                    kind: "ingress".to_owned(),
                    handle: "ffff:".to_owned(),
                    parent: "ffff:fff1".to_owned(),
                    ..Qdisc::default()
                });
                let mut made = Interface { name: ifb, mtu: 1500, up: true, ..Interface::default() };
                made.tx_queue_len = Some(32);
                made.qdiscs = qdiscs(&after, &made);
                facts.interfaces.push(made);
            }
            What::Offload { dev, key, before, after } => {
                let found = facts.interfaces.iter_mut().find(|found| found.name == dev).unwrap();
                let was = if key == Offload::GsoMaxSegs {
                    found.gso_max_segs.replace(after.parse().unwrap()).map(|segs| segs.to_string())
                } else {
                    let was = found.offloads.insert(key.to_string(), after == "on");
                    was.map(|on| if on { "on" } else { "off" }.to_owned())
                };
                assert_eq!(was, Some(before));
            }
            What::File { path, before, after, mode } => {
                if path.contains("sysctl.d") {
                    facts.settings.retain(|setting| setting.file != path);
                    let entries =
                        after.lines().enumerate().filter(|(_, line)| line.contains(" = "));
                    let entries = entries.filter(|(_, line)| !line.starts_with('#'));
                    for (number, line) in entries {
                        let (key, value) = line.split_once(" = ").unwrap();
                        facts.settings.push(Setting {
                            file: path.clone(),
                            line: number as u32 + 1,
                            key: key.to_owned(),
                            value: value.to_owned(),
                        });
                    }
                }
                let file =
                    facts.files.insert(path, File { mode: mode.to_string(), content: after });
                assert_eq!(file.map(|file| file.content), before);
            }
            What::Lines { path, after } => {
                let new = File { mode: "0644".to_owned(), content: String::new() };
                let file = facts.files.entry(path).or_insert(new);
                file.content.push_str(&(after.join("\n") + "\n"));
            }
            // Of routes facts have the default ones only.
            What::Route { .. } => {}
        }
    }
    facts
}

/// What a line becomes at the root of an interface.
fn qdiscs(line: &QdiscLine, interface: &Interface) -> Vec<Qdisc> {
    let device = Device::ethernet(interface.mtu);
    let mut parent = "root".to_owned();
    let levels = (1..).zip(line.levels());
    let found = levels.map(|(number, outer)| Qdisc {
        kind: outer.kind().to_owned(),
        handle: format!("{number}:"),
        parent: std::mem::replace(&mut parent, format!("{number}:1")),
        options: Some(outer.configure(&device).to_string().trim().to_owned()),
        ..Qdisc::default()
    });
    found.collect()
}

pub(crate) fn plan(name: &str, change: impl FnOnce(&mut Requirements)) -> Result<Plan, PlanError> {
    let mut requirements =
        Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
    change(&mut requirements);
    Plan::make(&machine(name), &requirements)
}

/// Why no plan can be made of what is asked.
pub(crate) fn refusal(facts: &Facts, requirements: &Requirements) -> String {
    match Plan::make(facts, requirements).unwrap_err() {
        PlanError::Requirement(message) => message,
        other => panic!("{other}"),
    }
}

pub(crate) fn line(plan: &Plan) -> Option<&str> {
    plan.changes.iter().find_map(|change| match &change.what {
        What::Qdisc { after, .. } => Some(after.text()),
        _ => None,
    })
}

pub(crate) fn content<'a>(plan: &'a Plan, wanted: &str) -> Option<&'a str> {
    plan.changes.iter().find_map(|change| match &change.what {
        What::File { path, after, .. } if path == wanted => Some(after.as_str()),
        _ => None,
    })
}

pub(crate) fn has_note(plan: &Plan, part: &str) -> bool {
    plan.notes.iter().any(|note| note.contains(part))
}
