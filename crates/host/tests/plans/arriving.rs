//! What arrives.

use dualq_host::Plan;
use dualq_host::facts::{Arriving, Availability, Facts};
use dualq_host::plan::{Requirements, What};
use dualq_units::Rate;

use crate::{applied, content, has_note, machine};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";

fn down(mbit: u64) -> Requirements {
    Requirements {
        rate: Some(Rate::from_mbit(20)),
        down: Some(Rate::from_mbit(mbit)),
        ..Requirements::default()
    }
}

fn arch() -> Facts {
    let mut facts = machine("arch");
    for name in ["ifb", "matchall", "mirred"] {
        facts.redirection.insert(name.to_owned(), Availability::Module);
    }
    facts
}

fn refusal(facts: &Facts, requirements: &Requirements) -> String {
    Plan::make(facts, requirements).unwrap_err().to_string()
}

#[test]
fn it_is_taken_through_an_ifb_and_both_come_back_at_boot() {
    let facts = arch();
    let plan = Plan::make(&facts, &down(50)).unwrap();
    let ingress = plan.changes.iter().find_map(|change| match &change.what {
        What::Ingress { dev, ifb, after } => Some((dev.as_str(), ifb.as_str(), after.text())),
        _ => None,
    });
    assert_eq!(ingress, Some(("eno1", "dualq-ifb0", "cake bandwidth 47500kbit ingress")));
    assert_eq!(plan.about, "low-latency on eno1 at 20mbit, 50mbit down, Arch Linux");
    let modules: Vec<&str> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.what {
            What::Module { module } => Some(module.as_str()),
            _ => None,
        })
        .collect();
    // That of the ifb is loaded with it, and makes none of its own.
    assert_eq!(modules, ["sch_cake", "cls_matchall", "act_mirred"]);
    let calls: Vec<&str> = content(&plan, RULES)
        .unwrap()
        .lines()
        .filter_map(|line| line.split("RUN+=").nth(1))
        .collect();
    assert_eq!(
        calls,
        [
            "\"/usr/bin/dualq on-boot eno1 'cake bandwidth 19mbit'\"",
            "\"/usr/bin/dualq on-boot --down dualq-ifb0 eno1 'cake bandwidth 47500kbit ingress'\""
        ]
    );
    assert!(has_note(&plan, "waits at the other end of its link"), "{:?}", plan.notes);
    assert!(!has_note(&plan, "downloads stay unshaped"), "{:?}", plan.notes);
}

#[test]
fn another_rate_changes_the_queue_that_is_there() {
    let facts = arch();
    let facts = applied(facts.clone(), &Plan::make(&facts, &down(50)).unwrap());
    let plan = Plan::make(&facts, &down(100)).unwrap();
    let changed: Vec<(&str, &str)> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.what {
            What::Qdisc { dev, after, .. } => Some((dev.as_str(), after.text())),
            What::File { .. } => None,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(changed, [("dualq-ifb0", "cake bandwidth 95mbit ingress")]);
    let rules = content(&plan, RULES).unwrap();
    assert!(rules.contains("--down dualq-ifb0 eno1 'cake bandwidth 95mbit ingress'"), "{rules}");
    assert!(!rules.contains("47500kbit"), "{rules}");
    // Who asks for what leaves only, leaves the other as it is.
    let plan = Plan::make(&facts, &Requirements { down: None, ..down(50) }).unwrap();
    assert_eq!(plan.changes, []);
}

#[test]
fn each_interface_has_an_ifb_of_its_own() {
    let mut facts = arch();
    let mut second = facts.interfaces[0].clone();
    second.name = "eno2".to_owned();
    facts.interfaces.push(second);
    let first = Plan::make(&facts, &down(50)).unwrap();
    let facts = applied(facts, &first);
    let plan =
        Plan::make(&facts, &Requirements { dev: Some("eno2".to_owned()), ..down(30) }).unwrap();
    assert!(plan.changes.iter().any(|change| matches!(&change.what, What::Ingress { dev, ifb, .. } if dev == "eno2" && ifb == "dualq-ifb1")), "{plan:#?}");
    assert_eq!(content(&plan, RULES).unwrap().matches("RUN+=").count(), 4);
}

#[test]
fn what_is_somebody_elses_is_not_shared() {
    let mut facts = arch();
    facts.interfaces[0].arriving = Some(Arriving::Sorted("a clsact with filters (bpf)".to_owned()));
    assert_eq!(
        refusal(&facts, &down(50)),
        "--down: eno1 has a clsact with filters (bpf) already, by somebody else, and what arrives is not shared: take that away first \
         (`tc qdisc delete dev eno1 clsact`), with what it is for"
    );
    facts.interfaces[0].arriving = Some(Arriving::Redirected("ifb4eno1".to_owned()));
    assert!(
        refusal(&facts, &down(50))
            .starts_with("--down: what arrives at eno1 is redirected to ifb4eno1 already")
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let mut facts = arch();
    assert!(refusal(&facts, &down(0)).starts_with("--down: zero"));
    assert!(refusal(&facts, &down(100_000)).contains("is more than eno1 can"));
    let alone = Requirements { down_qdisc: Some("fq_codel".to_owned()), down: None, ..down(1) };
    assert!(refusal(&facts, &alone).starts_with("--down-qdisc: "));
    let twice = Requirements { down_qdisc: Some("cake bandwidth 1mbit".to_owned()), ..down(50) };
    assert!(refusal(&facts, &twice).starts_with("--down-qdisc has a rate of its own"));
    facts.redirection.insert("ifb".to_owned(), Availability::Absent);
    assert_eq!(
        refusal(&facts, &down(50)),
        "--down: what arrives cannot be queued here: this kernel has no ifb (CONFIG_IFB)"
    );
}

#[test]
fn aggregates_are_told_where_nothing_splits_them() {
    let facts = arch();
    let with = |line: &str| {
        let asked = Requirements { down_qdisc: Some(line.to_owned()), ..down(20) };
        Plan::make(&facts, &asked).unwrap()
    };
    let said = "merges what arrives (gro): an aggregate of up to 64 KB passes the shaper whole, and others wait 27.6 ms for it";
    assert!(has_note(&with("fq_codel"), said), "{:?}", with("fq_codel").notes);
    assert!(!has_note(&with("cake bandwidth 19mbit ingress"), "merges what arrives"));
}
