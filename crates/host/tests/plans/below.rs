//! Below a class of a tree that somebody else made.

use dualq_host::facts::{Class, Qdisc};
use dualq_host::plan::{PlanError, Profile, Question, Requirements, What, Wish};
use dualq_host::{Facts, Plan};
use dualq_units::Rate;

use crate::{applied, content, has_note, line, machine, refusal};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";

fn class(id: &str, parent: &str, rate: &str) -> Class {
    Class {
        kind: "htb".to_owned(),
        id: id.to_owned(),
        parent: parent.to_owned(),
        rate: Some(rate.to_owned()),
    }
}

fn qdisc(kind: &str, handle: &str, parent: &str) -> Qdisc {
    Qdisc {
        kind: kind.to_owned(),
        handle: handle.to_owned(),
        parent: parent.to_owned(),
        ..Qdisc::default()
    }
}

/// A gateway whose owner shares 20 Mbit/s among two classes, one of them with a discipline of its own, and a third that shares
/// further. As a document, for that is what facts are.
fn tree() -> Facts {
    let mut facts = machine("debian-13");
    let ens3 = facts.interfaces.iter_mut().find(|found| found.name == "ens3").unwrap();
    ens3.qdiscs = vec![
        qdisc("htb", "1:", "root"),
        qdisc("sfq", "20:", "1:20"),
        qdisc("prio", "30:", "1:30"),
        qdisc("fq_codel", "31:", "30:1"),
    ];
    ens3.classes = vec![
        class("1:1", "root", "20Mbit"),
        class("1:10", "1:1", "2Mbit"),
        class("1:20", "1:1", "10Mbit"),
        class("1:30", "1:1", "8Mbit"),
        Class { kind: "prio".to_owned(), rate: None, ..class("30:1", "root", "") },
        Class { kind: "prio".to_owned(), rate: None, ..class("30:2", "root", "") },
    ];
    let text = serde_json::to_string(&facts).unwrap();
    Facts::parse("tree.json", &text).unwrap()
}

fn below(id: &str) -> Requirements {
    Requirements {
        dev: Some("ens3".to_owned()),
        profile: Profile::Gateway,
        parent: Some(id.parse().unwrap()),
        ..Requirements::default()
    }
}

#[test]
fn only_what_is_in_the_class_is_changed() {
    let facts = tree();
    let plan = Plan::make(&facts, &below("1:10")).unwrap();
    assert_eq!(plan.about, "gateway on ens3 below class 1:10, Debian GNU/Linux 13 (trixie)");
    let found = plan.changes.iter().find_map(|change| match &change.what {
        What::Qdisc { dev, parent, before, after, each } => {
            Some((dev.as_str(), parent.unwrap().to_string(), before.len(), after.text(), *each))
        }
        _ => None,
    });
    // The class lets through 2 Mbit/s, of which a packet takes 6 ms: the target is longer than the default.
    let (dev, parent, before, after, each) = found.unwrap();
    assert_eq!((dev, parent.as_str(), before, each), ("ens3", "1:10", 0, false));
    assert!(after.starts_with("fq_codel target 10ms"), "{after}");
    // Nothing is shaped: that is up to the class.
    assert_eq!(plan.shapes(), (false, false));
    let rules = content(&plan, RULES).unwrap();
    let call = format!("on-boot --parent 1:10 ens3 '{after}'\"\n");
    assert!(rules.ends_with(&call), "{rules}");
    assert!(
        has_note(&plan, "the tree of ens3 stays as somebody else made it"),
        "{:#?}",
        plan.notes
    );
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);

    // Followed, it leaves nothing to plan, and the rule goes on; another discipline has that rule too.
    let facts = applied(facts, &plan);
    let again = Plan::make(&facts, &below("1:10")).unwrap();
    assert!(again.changes.is_empty(), "{:#?}", again.changes);
    let other = Requirements { qdisc: Some("pfifo limit 20".to_owned()), ..below("1:10") };
    let plan = Plan::make(&facts, &other).unwrap();
    let rules = content(&plan, RULES).unwrap();
    assert_eq!(rules.matches("on-boot").count(), 1, "{rules}");
    assert!(rules.ends_with("on-boot --parent 1:10 ens3 'pfifo limit 20'\"\n"), "{rules}");

    // A class of what is inside a class is one too, and two of them have a rule each.
    let facts = applied(facts, &plan);
    let plan = Plan::make(&facts, &below("30:2")).unwrap();
    assert_eq!(line(&plan), Some("fq_codel"));
    assert!(has_note(&plan, "the classes of prio limit nothing"), "{:#?}", plan.notes);
    let rules = content(&plan, RULES).unwrap();
    assert!(rules.contains("--parent 1:10 ens3 'pfifo limit 20'"), "{rules}");
    assert!(rules.contains("--parent 30:2 ens3 'fq_codel'"), "{rules}");
}

/// What the class has of its owner is shown, and comes again with the tree: no file contends with that.
#[test]
fn what_its_owner_put_there_is_recorded() {
    let mut facts = tree();
    let ens3 = facts.interfaces.iter_mut().find(|found| found.name == "ens3").unwrap();
    ens3.qdiscs[1] = qdisc("pfifo", "20:", "1:20");
    let plan = Plan::make(&facts, &below("1:20")).unwrap();
    let before = plan.changes.iter().find_map(|change| match &change.what {
        What::Qdisc { before, .. } => Some(before.clone()),
        _ => None,
    });
    assert_eq!(before, Some(vec!["1:20 pfifo".to_owned()]));
    assert_eq!(content(&plan, RULES), None);
    assert!(has_note(&plan, "given this class a discipline of its own"), "{:#?}", plan.notes);
    // One that keeps flows apart stays, unless somebody asks.
    let plan = Plan::make(&facts, &below("30:1")).unwrap();
    assert_eq!(line(&plan), None);
    assert!(has_note(&plan, "class 30:1 of ens3 has fq_codel"), "{:#?}", plan.notes);
    let asked = Requirements { qdisc: Some("fq_codel limit 50".to_owned()), ..below("30:1") };
    assert_eq!(line(&Plan::make(&facts, &asked).unwrap()), Some("fq_codel limit 50"));
}

#[test]
fn refusals_say_what_there_is_instead() {
    let mut facts = tree();
    let refused = |facts: &Facts, id: &str| refusal(facts, &below(id));
    assert_eq!(
        refused(&facts, "1:11"),
        "--parent 1:11: ens3 has no class 1:11; its leaves are 1:10, 1:20, 1:30, 30:1 and 1 more"
    );
    assert_eq!(
        refused(&facts, "1:1"),
        "--parent 1:1: class 1:1 of ens3 is not a leaf, packets go to the classes in it: name one of 1:10, 1:20, 1:30"
    );
    assert_eq!(
        refused(&facts, "1:20"),
        "--parent 1:20: class 1:20 of ens3 has sfq 20:, which dualq did not make and could not put back exactly"
    );
    assert_eq!(
        refused(&facts, "1:30"),
        "--parent 1:30: class 1:30 of ens3 has prio 30:, which dualq did not make and could not put back exactly; what waits in it is in its \
         classes: --parent 30:1, 30:2"
    );
    let other = Requirements { dev: Some("wg0".to_owned()), ..below("1:10") };
    assert_eq!(
        refusal(&facts, &other),
        "--parent 1:10: wg0 has no class 1:10, ens3 has one: --dev ens3"
    );
    let other = Requirements { dev: Some("wg0".to_owned()), ..below("7:1") };
    assert_eq!(
        refusal(&facts, &other),
        "--parent 7:1: wg0 has no classes below which something could be put: at its root is noqueue, in whose place a plan without --parent \
         puts something"
    );
    // What leaves by it is not simulated, for nobody knows what the class gets.
    let rate = Some(Rate::from_mbit(2));
    let asked = Requirements { rate, ..below("1:10") };
    assert_eq!(Question::each(&facts, &asked, false), Ok(Vec::new()));
    let PlanError::Requirement(message) = Question::each(&facts, &asked, true).unwrap_err() else {
        panic!("it is simulated")
    };
    assert!(message.starts_with("--predict: what class 1:10 of ens3 gets"), "{message}");
    let plan = Plan::make(&facts, &asked).unwrap();
    assert!(has_note(&plan, "with --parent nothing is shaped"), "{:#?}", plan.notes);

    // The whole tree is not replaced, and the refusal names what to do.
    let whole = Requirements { parent: None, ..asked };
    assert!(refusal(&facts, &whole).ends_with("below one of its classes: --parent 1:10"));
    let ens3 = facts.interfaces.iter_mut().find(|found| found.name == "ens3").unwrap();
    ens3.qdiscs.truncate(1);
    let begin = "ens3 has htb 1: with the classes 1:1, 1:10, 1:20, 1:30 and 2 more, which dualq did not make";
    assert!(refusal(&facts, &whole).starts_with(begin), "{}", refusal(&facts, &whole));
    // Facts of before dualq looked have no classes.
    facts.interfaces.iter_mut().for_each(|interface| interface.classes.clear());
    assert!(refused(&facts, "1:10").contains("at its root is htb"));
}

#[test]
fn one_of_several_interfaces_may_have_a_class() {
    let wish = Wish {
        dev: "ens3".to_owned(),
        parent: Some("1:10".parse().unwrap()),
        qdisc: Some("pfifo limit 9".to_owned()),
        ..Wish::default()
    };
    let both = Requirements {
        dev: Some("wg0".to_owned()),
        profile: Profile::Gateway,
        qdisc: Some("pfifo limit 8".to_owned()),
        others: vec![wish],
        ..Requirements::default()
    };
    let plan = Plan::make(&tree(), &both).unwrap();
    let rules = content(&plan, RULES).unwrap();
    assert!(rules.contains("on-boot --parent 1:10 ens3 'pfifo limit 9'"), "{rules}");
    assert!(rules.contains("on-boot wg0 'pfifo limit 8'"), "{rules}");
}
