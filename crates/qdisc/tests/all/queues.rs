//! The real tc's and kernel's answers to lines of pie, red, sfq, fq_pie, cake, fq_codel's selector, netem and prio: iproute2 6.1 on
//! Linux 7.3.4.

use std::fs;
use std::path::Path;

use dualpi2::SplitMix64;
use dualq_qdisc::grammar::{self, RefusedBy};
use dualq_qdisc::{Config, Device, Discipline, Qdisc, show};
use dualq_units::Instant;
use dualq_units::number::format_g;
use serde_json::Value;

use crate::Nothing;

const DEVICE: Device = Device::ethernet(1500);

fn answers() -> Vec<Value> {
    answers_in("tc-queues.jsonl")
}

fn answers_in(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(file);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What tc takes and dualq does not have.
const NOT_HERE: [&str; 3] = ["redflowlimit", "qevent", "fq_pie dq_rate_estimator"];

#[test]
fn each_line_is_taken_or_refused_as_tc_does() {
    let (mut accepted, mut refused) = (0, 0);
    for answer in answers() {
        let line = answer["line"].as_str().unwrap();
        match grammar::parse(line) {
            Ok(parsed) => {
                assert_eq!(answer["rc"], 0, "{line}: {}", parsed.spec);
                let again = grammar::parse(&parsed.spec.to_string());
                assert_eq!(again.unwrap().spec, parsed.spec, "{line}");
                accepted += 1;
            }
            Err(error) => {
                let status = match error.refused_by() {
                    RefusedBy::Tc => 1,
                    RefusedBy::Kernel => 2,
                    RefusedBy::TcIncomplete => 255,
                    // Of RED's words in sfq tc takes some.
                    RefusedBy::Dualq => {
                        let not_here = NOT_HERE.iter().any(|words| line.contains(words));
                        assert!(not_here || line.starts_with("sfq"), "{error}");
                        continue;
                    }
                };
                assert_eq!(answer["rc"], status, "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!((accepted, refused), (ACCEPTED, REFUSED));
}

const ACCEPTED: usize = 180;
const REFUSED: usize = 104;

/// The parameters, and the counters before the first packet: as text, and as JSON with the same keys in the same order.
#[test]
fn each_line_reads_as_tc_shows_it() {
    for answer in answers().iter().filter(|answer| answer["rc"] == 0) {
        let line = answer["line"].as_str().unwrap();
        let Ok(parsed) = grammar::parse(line) else { continue };
        let config = parsed.spec.configure(&DEVICE);
        // This iproute2 wrote gigabytes as megabytes; newer ones do not.
        if line.ends_with(" 1gb") {
            continue;
        }
        assert_eq!(show::text(&config), answer["show"], "{line}");
        let discipline: Discipline<Nothing> =
            parsed.spec.build(&DEVICE, SplitMix64::new(1), Instant::ZERO);
        assert_eq!(discipline.config(), config);
        let stats = discipline.stats(Instant::ZERO);
        let text = show::text_with_stats(&config, &stats);
        assert_eq!(text.trim_end(), answer["stats"].as_str().unwrap().trim_end(), "{line}");
        let json = Value::from(show::json_with_stats(&config, &stats));
        assert_eq!(json.to_string(), answer["json"].to_string(), "{line}");
    }
}

/// What tc computes of red's options, which `tc -d` shows.
#[test]
fn the_weight_the_probability_and_the_cell_of_red() {
    let mut seen = 0;
    for answer in answers().iter().filter(|answer| answer.get("detail").is_some()) {
        let line = answer["line"].as_str().unwrap();
        let Ok(parsed) = grammar::parse(line) else { continue };
        let Config::Red(config) = parsed.spec.configure(&DEVICE) else { panic!("{line}") };
        let probability = f64::from(config.max_probability) / 2_f64.powi(32);
        let told = format!(
            "ewma {} probability {} Scell_log {}",
            config.wlog,
            format_g(probability, 6),
            config.cell_log
        );
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.ends_with(&told), "{line}: {told}, not {detail}");
        seen += 1;
    }
    assert_eq!(seen, 52);
}

/// As iproute2 6.1 reads them: a bare number is of microseconds behind `delay`, and of nanoseconds behind `slot`.
#[test]
fn bare_numbers_of_netem_have_two_units() {
    for (line, shown) in [
        ("netem delay 1000", "delay 1ms"),
        ("netem slot 1000 2000", "slot 1us 2us"),
        ("netem slot 1us 0x7d0", "slot 1us 2us"),
        (
            "netem delay 10ms slot distribution normal 5000000 7",
            "delay 10ms slot distribution 5ms 7ns",
        ),
    ] {
        let text = show::text(&grammar::parse(line).unwrap().spec.configure(&DEVICE));
        assert_eq!(text, format!("qdisc netem 1: root refcnt 2 limit 1000 {shown}"), "{line}");
    }
    let refused = grammar::parse("netem slot 1us 16").unwrap_err();
    assert_eq!(refused.refused_by(), RefusedBy::Tc);
}

/// What newer ones of iproute2 take, or read to the nanosecond.
const NEWER: [&str; 3] = ["seed", "5ns", "100us 10us"];

#[test]
fn netem_and_prio_as_tc_has_them() {
    let (mut accepted, mut refused) = (0, 0);
    for answer in answers_in("tc-netem.jsonl") {
        let line = answer["line"].as_str().unwrap();
        if NEWER.iter().any(|word| line.contains(word)) {
            continue;
        }
        match grammar::parse(line) {
            Ok(parsed) => {
                assert_eq!(answer["rc"], 0, "{line}: {}", parsed.spec);
                let again = grammar::parse(&parsed.spec.to_string()).unwrap().spec;
                let config = parsed.spec.configure(&DEVICE);
                assert_eq!(again.configure(&DEVICE), config, "{line}: {again}");
                assert_eq!(show::text(&config), answer["show"], "{line}");
                let json = Value::from(show::json(&config));
                assert_eq!(json["options"].to_string(), answer["json"]["options"].to_string());
                let discipline: Discipline<Nothing> =
                    parsed.spec.build(&DEVICE, SplitMix64::new(1), Instant::ZERO);
                assert_eq!(discipline.config(), config);
                accepted += 1;
            }
            Err(error) => {
                let status = match error.refused_by() {
                    RefusedBy::Tc => 1,
                    RefusedBy::Kernel => 2,
                    RefusedBy::TcIncomplete => 255,
                    RefusedBy::Dualq => {
                        assert!(line.ends_with("distribution experimental"), "{error}");
                        continue;
                    }
                };
                assert_eq!(answer["rc"], status, "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!((accepted, refused), (NETEM_ACCEPTED, NETEM_REFUSED));
}

const NETEM_ACCEPTED: usize = 108;
const NETEM_REFUSED: usize = 73;
