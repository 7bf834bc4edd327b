//! The model beside recorded runs of real Linux: of all with `DUALQ_RECORDINGS=all`, which take a processor some minutes, and else of
//! those that soon are repeated.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::dualq;

/// A recording is soon repeated if it carried fewer packets.
const SOON: f64 = 100_000.0;

/// So many scenarios there are, of which so many agree at least: of all, and of those that are soon repeated.
struct Bar {
    all: (usize, usize),
    soon: (usize, usize),
}

const fn bar(all: (usize, usize), soon: (usize, usize)) -> Bar {
    Bar { all, soon }
}

/// The agreement with real Linux that was reached. Whoever betters the model raises the bar; where packets prove a change right, and by chance
/// fewer recordings agree, the bar is what was measured with it (`docs/agreement.md`).
#[test]
fn the_model_agrees_with_linux() {
    // Five seeds are some two scenarios more or less.
    agreement(
        "linux-7.3",
        &["narrow", "ten-flows", "coexistence", "loss", "lossy-lan"],
        &bar((96, 95), (29, 29)),
    );
}

/// The same in scenarios with other parameters.
#[test]
fn the_model_agrees_with_linux_elsewhere() {
    agreement(
        "world-kernel",
        &["single", "several", "beside", "loss", "lan"],
        &bar((169, 160), (67, 64)),
    );
}

/// And far from all of these, drawn at random. What differs is in `docs/agreement.md`.
#[test]
fn the_model_agrees_with_linux_far_away() {
    // The same ones twice, the second time recorded without what distorted the first recording; others, drawn later; and others again, in a guest
    // whose clock is fine.
    let runs = agreements(
        "wild",
        &["wild", "again", "later", "fine"],
        &[
            bar((160, 130), (84, 72)),
            bar((160, 136), (84, 76)),
            bar((200, 179), (110, 99)),
            bar((100, 97), (51, 49)),
        ],
    );
    // Four flows through two packets' room, timeout after timeout, are the same packet by packet, and so is a flow with a probe beside it whose
    // question waits 21.9 s for its answer, one at 2.5 Gbit/s through some 200 packets' room, whose window grows a hundred times, one at
    // 1.5 Mbit/s whose small queues hold back what its program is woken for, one that is read in more than one call, and four at 2.2 Gbit/s without
    // GSO whose programs pause between reads.
    for name in [
        "wild-501-74",
        "wild-777-35",
        "wild-424243-17",
        "wild-424243-76",
        "wild-424243-8",
        "wild-424243-33",
    ] {
        let Some(same) = runs.iter().find(|run| run["name"] == name) else {
            assert!(!all_recordings(), "{name}");
            continue;
        };
        for quantity in same["quantities"].as_array().unwrap() {
            let what = quantity["what"].as_str().unwrap();
            let of = |world: &str| quantity[world].as_f64().unwrap();
            // But for the last digit of a mean, and microseconds that the guest's system calls take.
            let most = if what.contains("RTT") { 0.01 } else { 1e-6 };
            let (model, kernel) = (of("model"), of("kernel"));
            assert!((model - kernel).abs() < most, "{name}: {what}: {model} and {kernel}");
        }
    }
}

/// And of BBR version 3, which no stock kernel has: alone and beside CUBIC (tests/data/bbr3).
#[test]
fn the_model_agrees_with_bbr3() {
    agreement("bbr3", &["bbr3"], &bar((26, 25), (8, 8)));
}

/// And with paths of other forms, by class: `dualq draw CLASS --count 20 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_paths() {
    // What differs is in `docs/agreement.md`.
    agreement("paths", &["two-way"], &bar((20, 16), (10, 8)));
    agreement("paths", &["steps"], &bar((20, 19), (17, 17)));
    agreement("paths", &["hops"], &bar((20, 19), (12, 12)));
    agreement("paths", &["udp"], &bar((20, 17), (17, 14)));
    agreement("paths", &["transfers"], &bar((20, 19), (12, 11)));
    agreement("paths", &["receivers"], &bar((20, 20), (12, 12)));
    agreement("paths", &["requests"], &bar((20, 15), (17, 13)));
}

/// And with other queue disciplines: `dualq draw queues --count 40 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_queues() {
    agreement("queues", &["queues"], &bar((40, 35), (29, 26)));
}

/// And with Accurate ECN: `dualq draw accurate --count 40 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_accurate_ecn() {
    agreement("accurate", &["accurate"], &bar((40, 40), (23, 23)));
}

/// And with shapers, paths and bands: `dualq draw shapers --count 30 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_shapers() {
    agreement("shapers", &["shapers"], &bar((30, 25), (16, 13)));
}

/// With the L4S team's Prague, which no stock kernel has.
#[test]
fn the_model_agrees_with_prague() {
    let runs = agreement("prague", &["prague"], &bar((43, 43), (12, 12)));
    // Beside another flow, each gets its share: the ratio is within a quarter, but where so few runs are by chance further apart
    // (three of real Linux's at 400 Mbit/s and 10 ms have 1.14, 1.31 and 1.68).
    let (mut beside, mut near) = (0, 0);
    for run in &runs {
        let goodputs: Vec<&Value> = run["quantities"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|quantity| quantity["what"].as_str().unwrap().ends_with(" goodput (Mbit/s)"))
            .skip(1)
            .collect();
        let [other, prague] = goodputs[..] else { continue };
        let ratio = |world: &str| prague[world].as_f64().unwrap() / other[world].as_f64().unwrap();
        beside += 1;
        near += u32::from((0.8..=1.25).contains(&(ratio("model") / ratio("kernel"))));
    }
    let expected = if all_recordings() { (26, 24) } else { (7, 7) };
    assert!(beside == expected.0 && near >= expected.1, "{near} of {beside}");
}

fn all_recordings() -> bool {
    std::env::var_os("DUALQ_RECORDINGS").is_some_and(|which| which == "all")
}

/// The recordings of a file that are soon repeated, a line each.
fn soon_repeated(path: &str) -> String {
    let mut soon = String::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let recording: Value = serde_json::from_str(line).unwrap();
        let (scenario, first) = (&recording["scenario"], &recording["runs"][0]);
        let duration = scenario["duration"].as_str().unwrap().trim_end_matches('s');
        let bits = first["goodput_mbit"].as_f64().unwrap() * 1e6 * duration.parse::<f64>().unwrap();
        if bits / 8.0 / scenario["link"]["mtu"].as_f64().unwrap() < SOON {
            writeln!(soon, "{line}").unwrap();
        }
    }
    soon
}

/// Checks the recorded runs in a folder, of which none is far off. Returns all.
fn agreement(folder: &str, files: &[&str], bar: &Bar) -> Vec<Value> {
    agreements(folder, files, std::slice::from_ref(bar))
}

/// The same of several parts, one after the other.
fn agreements(folder: &str, files: &[&str], parts: &[Bar]) -> Vec<Value> {
    let parts_folder = tempfile::tempdir().unwrap();
    let files = files.iter().map(|name| {
        let path = format!("tests/data/{folder}/{name}.jsonl");
        if all_recordings() {
            return path;
        }
        let part = parts_folder.path().join(name).with_extension("jsonl");
        fs::write(&part, soon_repeated(&path)).unwrap();
        part.into_os_string().into_string().unwrap()
    });
    // There is none in some.
    let files: Vec<String> =
        files.filter(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // Its status tells that not all agree.
    let output = dualq(&[&["check", "--json"], &files[..]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = document["runs"].as_array().unwrap();
    let mut rest = &runs[..];
    for bar in parts {
        let (scenarios, least) = if all_recordings() { bar.all } else { bar.soon };
        let (part, others) = rest.split_at(scenarios);
        let agree = part.iter().filter(|run| run["agrees"] == true).count();
        println!("{agree} of {scenarios} scenarios agree");
        assert!(agree >= least, "{agree} of {scenarios} scenarios agree");
        rest = others;
    }
    assert!(rest.is_empty(), "{} more", rest.len());
    for run in runs {
        let goodput = &run["quantities"][0];
        assert_eq!(goodput["what"], "total goodput (Mbit/s)");
        let (model, kernel) =
            (goodput["model"].as_f64().unwrap(), goodput["kernel"].as_f64().unwrap());
        // Where real Linux itself goes from 297 to 836 Mbit/s with the seed (wild-2-102), means say little: there the spread counts.
        let near = model <= 2.0 * kernel && kernel <= 2.0 * model;
        // Two BBR flows and a program that reads every 10 ms, and when PIE first drops at 1 Gbit/s: open, see `docs/agreement.md`.
        let open = (folder == "wild" && run["name"] == "wild-2-102")
            || (folder == "paths" && run["name"] == "requests-6");
        assert!(near || open || goodput["agrees"] == true, "{}: {model} and {kernel}", run["name"]);
    }
    runs.clone()
}
