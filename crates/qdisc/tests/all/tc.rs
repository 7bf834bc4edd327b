//! The real tc's and kernel's answers to 145 command lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dualpi2::SplitMix64;
use dualq_qdisc::grammar::{self, RefusedBy};
use dualq_qdisc::{Config, Device, Discipline, Qdisc, Spec, show};
use dualq_units::Instant;
use serde_json::Value;

use crate::Nothing;

const DEVICE: Device = Device::ethernet(1500);

fn build(spec: &Spec) -> Discipline<Nothing> {
    spec.build(&DEVICE, SplitMix64::new(1), Instant::ZERO)
}

fn answers() -> Vec<Value> {
    data("tc-dualpi2.jsonl")
}

fn data(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exit_status(refused_by: RefusedBy) -> u64 {
    match refused_by {
        RefusedBy::Tc => 1,
        RefusedBy::Kernel => 2,
        RefusedBy::TcIncomplete => 255,
        RefusedBy::Dualq => unreachable!("tc and the kernel take it"),
    }
}

/// Every line that is added: accepted or refused alike, the same text, the same JSON.
#[test]
fn added_lines() {
    let mut checked = BTreeMap::new();
    for answer in answers().iter().filter(|answer| answer.get("args").is_some()) {
        let args = answer["args"].as_str().unwrap();
        let status = answer["rc"].as_u64().unwrap();
        *checked.entry(status).or_insert(0) += 1;
        let line = format!("dualpi2 {args}");
        match grammar::parse(&line) {
            Err(error) => {
                assert_eq!(exit_status(error.refused_by()), status, "{error}");
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
            Ok(parsed) => {
                assert_eq!(status, 0, "tc refuses {line:?}: {}", answer["stderr"]);
                let discipline = build(&parsed.spec);
                let config = Qdisc::config(&discipline);
                assert_eq!(config, parsed.spec.configure(&DEVICE));
                assert_eq!(show::text(&config), answer["show"], "{line}");
                assert_eq!(Value::from(show::json(&config)), answer["json"][0], "{line}");
                let stats = discipline.stats(Instant::ZERO);
                if let Some(text) = answer.get("stats_text") {
                    *checked.entry(1000).or_insert(0) += 1;
                    assert_eq!(show::text_with_stats(&config, &stats), *text, "{line}");
                    let json = show::json_with_stats(&config, &stats);
                    assert_eq!(Value::from(json), answer["stats_json"][0], "{line}");
                }
                // tc's own notices are there too, if in other words; of zeros and bare numbers it says nothing, but we do.
                let stderr = answer["stderr"].as_str().unwrap();
                let ours = parsed.notices.iter().filter(|notice| {
                    notice.contains(" 0 counts") || notice.contains("in tc's words")
                });
                let others = parsed.notices.len() - ours.count();
                assert_eq!(stderr.lines().count(), others, "{line}: {:?}", parsed.notices);
                for word in stderr.split(['=', ' ', ']', ',']).filter(|word| word.contains('.')) {
                    assert!(parsed.notices.join(" ").contains(word), "{line}: {word} is not shown");
                }
            }
        }
    }
    // All of the file, and of every kind: accepted, refused by tc, by the kernel, incomplete, with statistics.
    let expected = BTreeMap::from([(0, 110), (1, 22), (2, 4), (255, 2), (1000, 3)]);
    assert_eq!(checked, expected);
}

/// Every change to a standing qdisc: what was not named stays.
#[test]
fn changed_lines() {
    let changes: Vec<Value> =
        answers().into_iter().filter(|answer| answer.get("change").is_some()).collect();
    assert_eq!(changes.len(), 7);
    let mut discipline = build(&grammar::parse("dualpi2 target 5ms any_ect").unwrap().spec);
    for answer in changes {
        let line = format!("dualpi2 {}", answer["change"].as_str().unwrap());
        let parsed = grammar::parse(&line).unwrap();
        let changed = discipline.change(&parsed.spec, &mut |_| ());
        assert_eq!(changed.is_ok(), answer["rc"] == 0, "{line}: {changed:?}");
        assert_eq!(show::text(&Qdisc::config(&discipline)), answer["show"], "{line}");
    }
}

#[test]
fn fifos() {
    let shown = |line: &str| show::text(&grammar::parse(line).unwrap().spec.configure(&DEVICE));
    assert_eq!(shown("pfifo"), "qdisc pfifo 1: root refcnt 2 limit 1000p");
    assert_eq!(shown("pfifo limit 10"), "qdisc pfifo 1: root refcnt 2 limit 10p");
    assert_eq!(shown("bfifo limit 100000"), "qdisc bfifo 1: root refcnt 2 limit 100000b");
    assert_eq!(shown("bfifo limit 10kb"), "qdisc bfifo 1: root refcnt 2 limit 10Kb");
    // txqueuelen times the largest frame.
    assert_eq!(shown("bfifo"), "qdisc bfifo 1: root refcnt 2 limit 1514000b");

    let spec = grammar::parse("pfifo").unwrap().spec;
    let (config, discipline) = (spec.configure(&DEVICE), build(&spec));
    let stats = discipline.stats(Instant::ZERO);
    assert_eq!(
        Value::from(show::json_with_stats(&config, &stats)).to_string(),
        r#"{"kind":"pfifo","handle":"1:","root":true,"refcnt":2,"options":{"limit":1000},"bytes":0,"packets":0,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}"#
    );
    assert_eq!(
        show::text_with_stats(&config, &stats),
        "qdisc pfifo 1: root refcnt 2 limit 1000p\n \
         Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
    );
}

/// cake: 98 lines as iproute2 6.1 answered them on Linux 7.3.
#[test]
fn lines_of_cake() {
    let (mut accepted, mut refused) = (0, 0);
    for answer in data("tc-cake.jsonl") {
        let line = answer["line"].as_str().unwrap();
        let spec = match grammar::parse(line) {
            Ok(parsed) => parsed.spec,
            Err(error) => {
                // tc makes something of these two that nobody means.
                let ours = ["rtt 0", "overhead 250 ethernet"].iter().any(|odd| line.ends_with(odd));
                assert_eq!(error.refused_by() == RefusedBy::Dualq, ours, "{error}");
                assert_eq!(answer["rc"] == 0, ours, "{error}");
                refused += 1;
                continue;
            }
        };
        assert_eq!(grammar::parse(&spec.to_string()).unwrap().spec, spec, "{line}");
        // The recorded kernel had no connection tracking, which nat needs and nonat too.
        if answer["rc"] != 2 {
            let config = spec.configure(&DEVICE);
            assert_eq!(show::text(&config), answer["show"], "{line}");
            assert_eq!(Value::from(show::json(&config)), answer["json"][0], "{line}");
        }
        accepted += 1;
    }
    assert_eq!((accepted, refused), (78, 20));
}

/// Each other kind, as the real tc shows it before the first packet.
#[test]
fn defaults_of_every_kind() {
    let defaults = data("tc-defaults.jsonl");
    for answer in defaults.iter().filter(|answer| {
        let kind = answer["json"][0]["kind"].as_str().unwrap();
        grammar::KINDS.contains(&kind)
    }) {
        let line = answer["line"].as_str().unwrap();
        let spec = grammar::parse(line).unwrap().spec;
        let config = spec.configure(&DEVICE);
        assert_eq!(show::text(&config), answer["show"].as_str().unwrap().trim_end(), "{line}");
        let stats = build(&spec).stats(Instant::ZERO);
        let json = Value::from(show::json_with_stats(&config, &stats));
        assert_eq!(json, answer["json"][0], "{line}");
        let text = show::text_with_stats(&config, &stats);
        assert_eq!(text.lines().next(), answer["show"].as_str(), "{line}");
    }
}

#[test]
fn refusals_say_where_and_what_would_be_right() {
    for (line, message) in [
        (
            "",
            r#"qdisc "", column 1: name a qdisc: dualpi2, fq, codel, fq_codel, pie, pfifo, bfifo, pfifo_fast, fq_pie, red, sfq, htb, tbf, netem, prio, cake"#,
        ),
        (
            "dualp2",
            r#"qdisc "dualp2", column 1: unknown qdisc "dualp2"; did you mean "dualpi2"? dualq has dualpi2, fq, codel, fq_codel, pie, pfifo, bfifo, pfifo_fast, fq_pie, red, sfq, htb, tbf, netem, prio, cake"#,
        ),
        (
            "dualpi2 target 5m",
            r#"qdisc "dualpi2 target 5m", column 16: "5m" is no target: give a time in s, ms or us, such as 15ms"#,
        ),
        (
            "dualpi2  limit 10 memlimit 1mb",
            r#"qdisc "dualpi2  limit 10 memlimit 1mb", column 28: "1mb" is no memlimit: give a number of bytes without a unit, such as 20000000"#,
        ),
        (
            "dualpi2 limit",
            r#"qdisc "dualpi2 limit", column 14: limit needs a value: give a number of packets, such as 1000"#,
        ),
        (
            "dualpi2 coupling_factor 0",
            r#"qdisc "dualpi2 coupling_factor 0", column 25: the kernel refuses this coupling_factor: give a whole number from 1 to 255"#,
        ),
        (
            "pfifo limt 5",
            r#"qdisc "pfifo limt 5", column 7: unknown option "limt"; did you mean "limit"? pfifo takes limit"#,
        ),
    ] {
        assert_eq!(grammar::parse(line).unwrap_err().to_string(), message);
    }
}

/// Lines of tc's odder habits, worked out from how it reads numbers.
#[test]
fn tcs_odd_habits() {
    let shown = |args: &str| {
        let spec = grammar::parse(&format!("dualpi2 {args}")).unwrap().spec;
        spec.configure(&DEVICE).to_string()
    };
    for (args, part) in [
        ("target 0x10ms", "target 16ms"),
        ("target 1e1ms", "target 10ms"),
        ("target 5MSEC", "target 5ms"),
        // In 32 bits of microseconds, 5000 s wrap around.
        ("target 5000s", "target 705s"),
        // The kernel keeps these two in 32 bits of nanoseconds.
        ("tupdate 5s", "tupdate 4.29s"),
        ("step_thresh 5s", "step_thresh 4.29s"),
        ("limit +7", "limit 7p"),
        ("coupling_factor 0x10", "coupling_factor 16"),
        ("coupling_factor 010", "coupling_factor 8"),
        ("classic_protection %", "classic_protection 0%"),
        ("classic_protection 2.5", "classic_protection 2%"),
        ("classic_protection 3.5%", "classic_protection 4%"),
        // The last of two counts, and what does not count need not be right.
        ("alpha 0 alpha 1", "alpha 0.996094"),
        ("alpha 0 max_rtt 100ms", "alpha 0.160156"),
        ("coupling_factor 0 coupling_factor 3", "coupling_factor 3"),
        ("limit 5 limit 0", "limit 10000p"),
        ("step_thresh 5p step_thresh 0", "step_thresh 1ms"),
    ] {
        assert!(shown(args).contains(part), "{args}: {}", shown(args));
    }
    let notices = |args: &str| grammar::parse(&format!("dualpi2 {args}")).unwrap().notices;
    assert_eq!(notices("limit 0"), ["limit 0 counts as not given, so the default holds"]);
    assert_eq!(
        notices("target 5000s"),
        ["target 5000s is beyond tc's 4294.967295s and wraps around to 705s"]
    );
    assert_eq!(
        notices("target 5"),
        ["target 5 is 5 microseconds, for a bare number is that in tc's words; 5ms?"]
    );
    assert_eq!(notices("target 5ms step_thresh 5p"), [""; 0]);
    for args in ["classic_protection 100.1", "alpha nan", "alpha 16777216", "limit 1.5", "help"] {
        assert!(grammar::parse(&format!("dualpi2 {args}")).is_err(), "{args}");
    }
    // The one line that tc refuses, rounding it out of range, and we do not: the kernel takes its value.
    let Config::Dualpi2(largest) =
        grammar::parse("dualpi2 alpha 8388607.99609375").unwrap().spec.configure(&DEVICE)
    else {
        panic!("not dualpi2")
    };
    assert_eq!(largest.alpha.as_256ths(), (1 << 31) - 2);
}
