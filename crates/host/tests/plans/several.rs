//! One plan for several interfaces.

use dualq_host::facts::Qdisc;
use dualq_host::plan::{Requirements, What, Wish};
use dualq_host::{Facts, Plan};
use dualq_units::Rate;

use crate::{applied, content, has_note, machine, refusal};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";

/// A machine with two ways out.
fn two() -> Facts {
    let mut facts = machine("arch");
    let mut second = facts.interfaces.iter().find(|found| found.name == "eno1").unwrap().clone();
    second.name = "wwan0".to_owned();
    second.speed = None;
    facts.interfaces.push(second);
    facts
}

fn both(rates: [u64; 2], down: Option<[u64; 2]>) -> Requirements {
    let [first, second] = rates.map(|mbit| Some(Rate::from_mbit(mbit)));
    let down = |index: usize| down.map(|down| Rate::from_mbit(down[index]));
    Requirements {
        dev: Some("eno1".to_owned()),
        rate: first,
        down: down(0),
        others: vec![Wish {
            dev: "wwan0".to_owned(),
            rate: second,
            down: down(1),
            ..Wish::default()
        }],
        ..Requirements::default()
    }
}

#[test]
fn each_has_changes_of_its_own_and_all_are_in_one_rule() {
    let facts = two();
    let plan = Plan::make(&facts, &both([50, 10], Some([200, 30]))).unwrap();
    assert_eq!(
        plan.about,
        "low-latency on eno1 at 50mbit, 200mbit down and on wwan0 at 10mbit, 30mbit down, Arch Linux"
    );
    let places: Vec<(&str, &str, &str)> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.what {
            What::Qdisc { dev, after, .. } => Some((dev.as_str(), "", after.text())),
            What::Ingress { dev, ifb, after } => Some((dev.as_str(), ifb.as_str(), after.text())),
            _ => None,
        })
        .collect();
    assert_eq!(
        places,
        [
            ("eno1", "", "cake bandwidth 47500kbit"),
            ("eno1", "dualq-ifb0", "cake bandwidth 190mbit ingress"),
            ("wwan0", "", "cake bandwidth 9500kbit"),
            ("wwan0", "dualq-ifb1", "cake bandwidth 28500kbit ingress"),
        ]
    );
    let calls: Vec<&str> = content(&plan, RULES)
        .unwrap()
        .lines()
        .filter_map(|line| line.split("on-boot ").nth(1))
        .collect();
    assert_eq!(
        calls,
        [
            "eno1 'cake bandwidth 47500kbit'\"",
            "--down dualq-ifb0 eno1 'cake bandwidth 190mbit ingress'\"",
            "wwan0 'cake bandwidth 9500kbit'\"",
            "--down dualq-ifb1 wwan0 'cake bandwidth 28500kbit ingress'\"",
        ]
    );
    // A module is one for all of them.
    let modules = plan
        .changes
        .iter()
        .filter(|change| matches!(&change.what, What::Module { module } if module == "sch_cake"));
    assert_eq!(modules.count(), 1);
    // Followed, it leaves nothing to plan.
    let facts = applied(facts, &plan);
    let again = Plan::make(&facts, &both([50, 10], Some([200, 30]))).unwrap();
    assert!(again.changes.is_empty(), "{:#?}", again.changes);
    // Of one alone, the other's stays.
    let alone = Requirements { others: Vec::new(), ..both([50, 10], Some([100, 30])) };
    let plan = Plan::make(&facts, &alone).unwrap();
    let rules = content(&plan, RULES).unwrap();
    assert!(rules.contains("wwan0 'cake bandwidth 9500kbit'"), "{rules}");
    assert!(rules.contains("eno1 'cake bandwidth 95mbit ingress'"), "{rules}");
}

/// Socket buffers are the machine's: the fastest of the interfaces counts, and what arrives for what is received.
#[test]
fn buffers_follow_the_fastest_interface_in_each_direction() {
    let buffer = |requirements: &Requirements, key: &str| {
        let plan = Plan::make(&two(), requirements).unwrap();
        plan.changes.iter().find_map(|change| match &change.what {
            What::Sysctl { key: found, after, .. } if found == key => {
                let most = after.split(' ').nth(2).unwrap().parse::<u64>().unwrap();
                Some((most, change.why.clone()))
            }
            _ => None,
        })
    };
    let rtt = Some(std::time::Duration::from_millis(200));
    let with = |rates, down| Requirements { rtt, ..both(rates, down) };
    let (receive, send) = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem");
    // Four products, in steps of 64 KiB: 800 Mbit/s and 200 ms are 20 MB.
    let step = |bytes: u64| bytes.div_ceil(65536) * 65536;
    let (most, why) = buffer(&with([400, 300], Some([500, 800])), receive).unwrap();
    assert_eq!(most, step(80_000_000));
    assert!(why.starts_with("800mbit down, the fastest, x 200 ms (--rtt) = 20000 kB"), "{why}");
    let (most, why) = buffer(&with([400, 300], Some([500, 800])), send).unwrap();
    assert_eq!(most, step(40_000_000));
    assert!(why.starts_with("400mbit, the fastest, x 200 ms (--rtt) = 10000 kB"), "{why}");
    // Without a rate of what arrives, that of what leaves; alone, it says nothing of others.
    assert_eq!(buffer(&with([400, 300], None), receive).unwrap().0, step(40_000_000));
    let alone = Requirements { others: Vec::new(), ..with([400, 300], Some([800, 1])) };
    let (most, why) = buffer(&alone, receive).unwrap();
    assert_eq!(most, step(80_000_000));
    assert!(why.starts_with("800mbit down x 200 ms (--rtt) = 20000 kB"), "{why}");
    // What only arrives needs nothing to be sent.
    let only = Requirements { rate: None, ..alone };
    assert_eq!(buffer(&only, receive).unwrap().0, step(80_000_000));
    assert_eq!(buffer(&only, send), None);
    // A slower download makes the buffer smaller than the upload's would be.
    let slow = Requirements { others: Vec::new(), ..with([400, 1], Some([300, 1])) };
    assert_eq!(buffer(&slow, receive).unwrap().0, step(30_000_000));
}

#[test]
fn what_cannot_be_is_said_of_the_interface_that_cannot() {
    let facts = two();
    let wish = |wish: Wish| Requirements { others: vec![wish], ..both([50, 1], None) };
    let of = |dev: &str| Wish { dev: dev.to_owned(), ..Wish::default() };
    assert_eq!(refusal(&facts, &wish(of("eno1"))), "--dev: eno1 is given twice");
    let error = refusal(&facts, &wish(of("eth9")));
    assert!(error.starts_with("there is no interface eth9; there are "), "{error}");
    let zero = Wish { rate: Some(Rate::from_mbit(0)), ..of("wwan0") };
    assert_eq!(
        refusal(&facts, &wish(zero)),
        "wwan0: --rate is zero: give what the bottleneck lets through, such as 48mbit"
    );
    let wrong = Wish { qdisc: Some("fq_codel targt 5ms".to_owned()), ..of("wwan0") };
    let error = refusal(&facts, &wish(wrong));
    assert!(error.starts_with("wwan0: --qdisc: ") && error.contains("\"target\"?"), "{error}");
    let error = refusal(&facts, &both([2000, 1], None));
    assert!(error.starts_with("--rate 2Gbit is more than eno1 can"), "{error}");
    let many = (0..8).map(|number| of(&format!("e{number}"))).collect();
    let error = refusal(&facts, &Requirements { others: many, ..both([50, 1], None) });
    assert_eq!(error, "--dev: a plan is for at most 8 interfaces, not 9");
}

/// What is said of each is said once, and what is said of one has its name.
#[test]
fn notes_name_their_interface() {
    let mut facts = two();
    let plan = Plan::make(&facts, &both([50, 10], None)).unwrap();
    assert!(has_note(&plan, "eno1: --rate is the link's, 50Mbit"), "{:#?}", plan.notes);
    assert!(has_note(&plan, "wwan0: --rate is the link's, 10Mbit"), "{:#?}", plan.notes);
    assert!(!has_note(&plan, "wwan0: only what leaves by wwan0"), "{:#?}", plan.notes);
    let mut unique = plan.notes.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), plan.notes.len(), "{:#?}", plan.notes);
    // One is on the other.
    facts.interfaces.last_mut().unwrap().lower = Some("eno1".to_owned());
    let plan = Plan::make(&facts, &both([50, 10], None)).unwrap();
    assert!(has_note(&plan, "wwan0 is on eno1, and the plan is for both"), "{:#?}", plan.notes);
}

/// Where nothing is shaped, each transmit queue keeps its own lock; a shaper in their place says what it costs.
#[test]
fn each_transmit_queue_gets_one() {
    let mut facts = two();
    let eno1 = facts.interfaces.iter_mut().find(|found| found.name == "eno1").unwrap();
    eno1.tx_queues = 2;
    let fifo = |handle: &str, kind: &str, parent: &str, options: Option<&str>| Qdisc {
        kind: kind.to_owned(),
        handle: handle.to_owned(),
        parent: parent.to_owned(),
        options: options.map(str::to_owned),
        ..Qdisc::default()
    };
    eno1.qdiscs = vec![
        fifo("0:", "mq", "root", None),
        fifo("0:", "pfifo_fast", ":1", Some("bands 3")),
        fifo("0:", "pfifo_fast", ":2", Some("bands 3")),
    ];
    let asked = Requirements { dev: Some("eno1".to_owned()), ..Requirements::default() };
    let plan = Plan::make(&facts, &asked).unwrap();
    let put = |plan: &Plan| {
        plan.changes.iter().find_map(|change| match &change.what {
            What::Qdisc { after, each, .. } => Some((after.text().to_owned(), *each)),
            _ => None,
        })
    };
    assert_eq!(put(&plan), Some(("fq_codel".to_owned(), true)));
    assert!(content(&plan, RULES).unwrap().contains("on-boot --each eno1 'fq_codel'"));
    assert!(has_note(&plan, "eno1 has 2 transmit queues (mq): each gets"), "{:#?}", plan.notes);
    assert!(!plan.changes.iter().any(
        |change| matches!(&change.what, What::Sysctl { key, .. } if key == "net.core.default_qdisc")
    ));
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    let wrong = plan.write().replacen(
        "after = \"fq_codel\"",
        "after = \"htb rate 5mbit leaf fq_codel\"",
        1,
    );
    let error = Plan::read(&wrong).unwrap_err().to_string();
    assert!(error.contains("is not for each transmit queue"), "{error}");
    let there = applied(facts.clone(), &plan);
    let again = Plan::make(&there, &asked).unwrap();
    assert!(again.changes.is_empty(), "{:#?}", again.changes);
    // The rule for all of them takes the place of that for each.
    let shaped = Requirements { rate: Some(Rate::from_mbit(50)), ..asked };
    let plan = Plan::make(&there, &shaped).unwrap();
    assert_eq!(put(&plan), Some(("cake bandwidth 47500kbit".to_owned(), false)));
    let rules = content(&plan, RULES).unwrap();
    assert!(rules.contains("on-boot eno1 'cake") && !rules.contains("--each"), "{rules}");
    assert!(has_note(&plan, "get one queue in common"), "{:#?}", plan.notes);
    assert!(has_note(&plan, "`dualq rollback` brings mq back"), "{:#?}", plan.notes);
}

/// What others made of classes is named, and left alone.
#[test]
fn trees_of_classes_are_not_replaced() {
    let qdisc = |line: &str, handle: &str| {
        let (parent, kind) = line.split_once(' ').unwrap();
        let (parent, kind) = (parent.to_owned(), kind.to_owned());
        Qdisc { kind, handle: handle.to_owned(), parent, ..Qdisc::default() }
    };
    let with = |qdiscs: Vec<Qdisc>| {
        let mut facts = two();
        let eno1 = facts.interfaces.iter_mut().find(|found| found.name == "eno1").unwrap();
        eno1.qdiscs = qdiscs;
        facts
    };
    let mut many = vec![qdisc("root htb", "1:")];
    many.extend((1..=6).map(|class| qdisc(&format!("1:{class}0 fq_codel"), &format!("{class}0:"))));
    let facts = with(many);
    assert_eq!(
        refusal(&facts, &both([50, 10], None)),
        "eno1 has htb 1: with fq_codel of class 1:10, fq_codel of class 1:20, fq_codel of class 1:30, fq_codel of class 1:40 and 2 more, \
         which dualq did not make and could not put back exactly, so nothing is put in its place: `tc qdisc delete dev eno1 root` takes all \
         of it away, with what it is for; or leave it, and put a discipline below one of its classes: --parent 1:10"
    );
    // Who asks for the other interface only, or for nothing to be replaced, is not refused.
    let other =
        Requirements { dev: Some("wwan0".to_owned()), others: Vec::new(), ..both([10, 1], None) };
    assert!(Plan::make(&facts, &other).is_ok());
    let down = Requirements { rate: None, others: Vec::new(), ..both([1, 1], Some([50, 1])) };
    let plan = Plan::make(&facts, &down).unwrap();
    assert!(!plan.changes.iter().any(|change| matches!(&change.what, What::Qdisc { .. })));
    assert!(has_note(&plan, "eno1 has htb 1: with fq_codel of class 1:10"), "{:#?}", plan.notes);
    for kind in ["prio", "hfsc", "mqprio", "taprio", "ets"] {
        let error =
            refusal(&with(vec![qdisc(&format!("root {kind}"), "8001:")]), &both([50, 10], None));
        let begin = format!("eno1 has {kind} 8001:, which dualq did not make");
        assert!(error.starts_with(&begin), "{error}");
    }
    // What is there by default, or comes back as it was, is replaced.
    for qdiscs in [
        vec![qdisc("root prio", "0:")],
        vec![qdisc("root htb", "1:"), qdisc("1:1 fq_codel", "10:")],
        vec![qdisc("root cake", "8001:")],
    ] {
        assert!(Plan::make(&with(qdiscs), &both([50, 10], None)).is_ok());
    }
}

/// What a socket may hold back is the machine's: by the slowest of the known it would starve the one whose rate nobody said.
#[test]
fn nothing_is_limited_by_a_rate_beside_one_that_is_not_known() {
    let limited = |requirements: &Requirements| {
        let plan = Plan::make(&two(), requirements).unwrap();
        let is_it = |what: &What| matches!(what, What::Sysctl { key, .. } if key.ends_with("notsent_lowat"));
        plan.changes.iter().any(|change| is_it(&change.what))
    };
    let known = both([1, 2], None);
    assert!(limited(&known));
    let mut unknown = known;
    unknown.others[0].rate = None;
    assert!(!limited(&unknown));
}
