//! The model beside recorded runs of real Linux.

use serde_json::Value;

use super::dualq;

/// The agreement with real Linux that was reached. Whoever betters the model raises the bar; where packets prove a change right, and by chance
/// fewer recordings agree, the bar is what was measured with it (ARCHITECTURE tells of each).
#[test]
fn the_model_agrees_with_linux() {
    // Five seeds are some two scenarios more or less.
    agreement("linux-7.3", &["narrow", "ten-flows", "coexistence", "loss", "lossy-lan"], 96, 95);
}

/// The same in scenarios with other parameters.
#[test]
fn the_model_agrees_with_linux_elsewhere() {
    agreement("world-kernel", &["single", "several", "beside", "loss", "lan"], 169, 161);
}

/// And far from all of these, drawn at random. What differs is in ARCHITECTURE.
#[test]
fn the_model_agrees_with_linux_far_away() {
    // The same ones twice, the second time recorded without what distorted the first recording; others, drawn later; and others again, in a guest
    // whose clock is fine.
    let runs = agreements(
        "wild",
        &["wild", "again", "later", "fine"],
        &[(160, 133), (160, 137), (200, 175), (100, 87)],
    );
    // Four flows through two packets' room, timeout after timeout, are the same packet by packet, and so is a flow with a probe beside it whose
    // question waits 21.9 s for its answer, one at 2.5 Gbit/s through some 200 packets' room, whose window grows a hundred times, and one at
    // 1.5 Mbit/s whose small queues hold back what its program is woken for.
    for name in ["wild-501-74", "wild-777-35", "wild-424243-17", "wild-424243-76"] {
        let same = runs.iter().find(|run| run["name"] == name).unwrap();
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
    agreement("bbr3", &["bbr3"], 26, 26);
}

/// And with paths of other forms, by class: `dualq draw CLASS --count 20 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_paths() {
    // Which differ, and why, is in ARCHITECTURE.
    agreement("paths", &["two-way"], 20, 19);
    agreement("paths", &["steps"], 20, 18);
    agreement("paths", &["hops"], 20, 18);
    agreement("paths", &["udp"], 20, 16);
    agreement("paths", &["transfers"], 20, 19);
    agreement("paths", &["receivers"], 20, 19);
    agreement("paths", &["requests"], 20, 15);
}

/// And with other queue disciplines: `dualq draw queues --count 40 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_queues() {
    agreement("queues", &["queues"], 40, 37);
}

/// And with Accurate ECN: `dualq draw accurate --count 40 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_accurate_ecn() {
    agreement("accurate", &["accurate"], 40, 39);
}

/// And with shapers, paths and bands: `dualq draw shapers --count 30 --seed 1 --record 3`.
#[test]
fn the_model_agrees_with_linux_on_shapers() {
    agreement("shapers", &["shapers"], 30, 22);
}

/// With the L4S team's Prague, which no stock kernel has.
#[test]
fn the_model_agrees_with_prague() {
    let runs = agreement("prague", &["prague"], 43, 42);
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
    assert!(beside == 26 && near >= 24, "{near} of {beside}");
}

/// Checks the recorded runs in a folder: so many scenarios, of which so many agree at least, and none is far off. Returns all.
fn agreement(folder: &str, files: &[&str], scenarios: usize, least: usize) -> Vec<Value> {
    agreements(folder, files, &[(scenarios, least)])
}

/// The same of several parts, one after the other.
fn agreements(folder: &str, files: &[&str], parts: &[(usize, usize)]) -> Vec<Value> {
    let files = files.iter().map(|name| format!("tests/data/{folder}/{name}.jsonl"));
    let files: Vec<String> = files.collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // Its status tells that not all agree.
    let output = dualq(&[&["check", "--json"], &files[..]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = document["runs"].as_array().unwrap();
    let mut rest = &runs[..];
    for &(scenarios, least) in parts {
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
        // Two BBR flows and a program that reads every 10 ms, and when PIE first drops at 1 Gbit/s: open, see ARCHITECTURE.
        let open = (folder == "wild" && run["name"] == "wild-2-102")
            || (folder == "paths" && run["name"] == "requests-6");
        assert!(near || open || goodput["agrees"] == true, "{}: {model} and {kernel}", run["name"]);
    }
    runs.clone()
}
