//! What puts packets together.

use dualq_host::plan::{Requirements, What};
use dualq_host::{Facts, Plan};
use dualq_units::Rate;

use crate::{applied, content, has_note, machine};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";

/// A machine whose interface puts packets together, with what it takes for downloads.
fn joining() -> Facts {
    let mut facts = machine("arch");
    let eno1 = facts.interfaces.iter_mut().find(|found| found.name == "eno1").unwrap();
    eno1.gso_max_segs = Some(65535);
    for (name, on) in [("gro", true), ("lro", true), ("rx-gro-hw", false)] {
        eno1.offloads.insert(name.to_owned(), on);
    }
    for name in ["ifb", "matchall", "mirred"] {
        facts.redirection.insert(name.to_owned(), dualq_host::facts::Availability::Ready);
    }
    facts
}

fn asked(mbit: u64, qdisc: &str, down_qdisc: Option<&str>) -> Requirements {
    Requirements {
        rate: Some(Rate::from_mbit(mbit)),
        qdisc: Some(qdisc.to_owned()),
        down: down_qdisc.map(|_| Rate::from_mbit(mbit)),
        down_qdisc: down_qdisc.map(str::to_owned),
        offloads: true,
        ..Requirements::default()
    }
}

fn limited(plan: &Plan) -> Vec<String> {
    let each = plan.changes.iter().filter_map(|change| match &change.what {
        What::Offload { dev, key, before, after } => Some(format!("{dev} {key} {before} {after}")),
        _ => None,
    });
    each.collect()
}

#[test]
fn they_are_limited_only_where_others_wait_and_only_if_asked() {
    let facts = joining();
    let plan = |requirements: &Requirements| Plan::make(&facts, requirements).unwrap();
    // One packet takes more than a millisecond of 9.5 Mbit/s, three take one of 47.5 Mbit/s.
    let slow = plan(&asked(10, "fq_codel", Some("fq_codel")));
    assert_eq!(limited(&slow), ["eno1 gso_max_segs 65535 1", "eno1 gro on off", "eno1 lro on off"]);
    assert_eq!(limited(&plan(&asked(50, "fq_codel", None))), ["eno1 gso_max_segs 65535 3"]);
    // Nobody asked; a discipline that takes them apart; a link for which 64 KB are nothing.
    let not_asked = Requirements { offloads: false, ..asked(10, "fq_codel", Some("fq_codel")) };
    assert!(limited(&plan(&not_asked)).is_empty());
    let splits = plan(&asked(10, "cake", Some("cake ingress")));
    assert!(limited(&splits).is_empty());
    assert!(has_note(&splits, "--offloads changes nothing at eno1: cake takes aggregates apart"));
    let fast = plan(&asked(900, "fq_codel", None));
    assert!(limited(&fast).is_empty());
    assert!(has_note(&fast, "--offloads changes nothing at eno1: nothing that is put together"));
    let told = plan(&asked(10, "dualpi2 no_split_gso", None));
    assert_eq!(limited(&told), ["eno1 gso_max_segs 65535 1"]);
    assert!(has_note(&told, "gso_max_segs costs CPU time"));
    // What is not changed costs nothing.
    let mut untold = joining();
    for interface in &mut untold.interfaces {
        interface.gso_max_segs = None;
    }
    let stays = Plan::make(&untold, &asked(10, "fq_codel", None)).unwrap();
    assert!(has_note(&stays, "the facts do not tell gso_max_segs"));
    assert!(!has_note(&stays, "gso_max_segs costs CPU time"), "{:#?}", stays.notes);
}

/// What a device has put together cannot be forwarded as it was.
#[test]
fn lro_is_off_where_packets_are_forwarded() {
    let mut facts = joining();
    facts.sysctls.insert("net.ipv4.ip_forward".to_owned(), "1".to_owned());
    let plan = Plan::make(&facts, &asked(10, "cake", None)).unwrap();
    assert_eq!(limited(&plan), ["eno1 lro on off"]);
    let plan = Plan::make(&facts, &asked(10, "fq_codel", None)).unwrap();
    assert_eq!(limited(&plan), ["eno1 gso_max_segs 65535 1", "eno1 lro on off"]);
    assert!(!has_note(&plan, "what is forwarded to eno1"), "{:#?}", plan.notes);
    // Of what came in elsewhere nothing at this interface decides.
    let mut inside = facts.interfaces.iter().find(|found| found.name == "eno1").unwrap().clone();
    inside.name = "lan0".to_owned();
    facts.interfaces.push(inside);
    let plan = Plan::make(&facts, &asked(10, "fq_codel", None)).unwrap();
    assert!(has_note(&plan, "`ethtool -K DEV gro off` for lan0"), "{:#?}", plan.notes);
}

#[test]
fn they_come_back_with_the_interface_and_follow_another_rate() {
    let facts = joining();
    let first = asked(10, "fq_codel", Some("fq_codel"));
    let plan = Plan::make(&facts, &first).unwrap();
    let call = |plan: &Plan| {
        let rules = content(plan, RULES).unwrap();
        let line = rules.lines().find(|line| line.contains("--offloads")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{rules}")).split("on-boot ").nth(1).unwrap().to_owned()
    };
    assert_eq!(call(&plan), "--offloads eno1 'gso_max_segs 1 gro off lro off'\"");
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    let facts = applied(facts, &plan);
    let again = Plan::make(&facts, &first).unwrap();
    assert!(again.changes.is_empty(), "{:#?}", again.changes);
    // It follows the rate upwards too, and what the new plan does not speak of stays.
    let faster = Plan::make(&facts, &asked(50, "fq_codel", None)).unwrap();
    assert_eq!(limited(&faster), ["eno1 gso_max_segs 1 3"]);
    assert_eq!(call(&faster), "--offloads eno1 'gso_max_segs 3 gro off lro off'\"");
    // Who does not ask for it, leaves it.
    let silent = Requirements { offloads: false, ..asked(50, "fq_codel", None) };
    let silent = Plan::make(&facts, &silent).unwrap();
    assert!(limited(&silent).is_empty());
    assert_eq!(call(&silent), "--offloads eno1 'gso_max_segs 1 gro off lro off'\"");
    // What somebody else has set lower serves.
    let mut lower = joining();
    lower.interfaces.iter_mut().find(|found| found.name == "eno1").unwrap().gso_max_segs = Some(2);
    let plan = Plan::make(&lower, &asked(50, "fq_codel", None)).unwrap();
    assert!(limited(&plan).is_empty());
    assert!(!content(&plan, RULES).unwrap().contains("--offloads"));
}

/// A plan is a file: nothing else can be switched by it.
#[test]
fn nothing_else_is_switched() {
    let plan = Plan::make(&joining(), &asked(10, "fq_codel", Some("fq_codel"))).unwrap().write();
    for (from, to, says) in [
        ("key = \"gro\"", "key = \"rx-checksum\"", "is nothing that a plan limits"),
        ("key = \"gro\"", "key = \"tso\"", "is nothing that a plan limits"),
        ("after = \"off\"", "after = \"on\"", "plans switch nothing on"),
        ("after = \"off\"", "after = \"maybe\"", "\"maybe\" is no value of gro"),
        (
            "before = \"65535\"\nafter = \"1\"",
            "before = \"65535\"\nafter = \"0\"",
            "\"0\" is no value of gso_max_segs",
        ),
        (
            "before = \"65535\"\nafter = \"1\"",
            "before = \"65535\"\nafter = \"1; reboot\"",
            "is no value of gso_max_segs",
        ),
        ("'gso_max_segs 1 gro off", "'gso_max_segs 1 rx-all on", "is nothing that a plan limits"),
        ("'gso_max_segs 1 gro off", "'gso_max_segs 1 gro", "\"lro\" is no value of gro"),
    ] {
        let other = plan.replacen(from, to, 1);
        assert_ne!(other, plan, "{from}");
        let error = Plan::read(&other).unwrap_err().to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
}
