//! What plans pick, beside all that the machine's kernel has, on real Linux; and one flow for all, as inside a tunnel.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::{dualq, error, json, kernel};

/// How much longer than with the best discipline an answer may take with the one that was picked.
const MOST: f64 = 1.3;
/// Below this, what a plan gives up for throughput is nothing that anybody notices: `cake` would answer in 0.4 ms in place of 0.8, for
/// 7 % of the goodput of one flow.
const UNNOTICED_MS: f64 = 1.0;

#[test]
fn what_plans_pick_is_near_the_best() {
    if kernel().is_none() {
        return;
    }
    let folder = fs::read_dir("tests/data/facts").unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = folder
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut args = vec!["regret", "--json", "--no-progress"];
    args.extend(files.iter().map(String::as_str));
    let document = json(&args);
    let rows = document["rows"].as_array().unwrap();
    // All but the container, of whose kernel nothing tells what it has.
    assert_eq!(rows.len(), 2 * (files.len() - 1), "{document:#}");
    assert_eq!(document["skipped"].as_array().unwrap().len(), 1, "{document:#}");
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap();
        let is_unnoticed = figure("p99_picked_ms") < UNNOTICED_MS;
        assert!(figure("regret") <= MOST || is_unnoticed, "{row:#}");
    }
}

const TUNNEL: [&str; 12] = [
    "--world",
    "model,kernel",
    "--rate",
    "20mbit",
    "--rtt",
    "20ms",
    "--cc",
    "cubic",
    "--duration",
    "12s",
    "--no-progress",
    "--json",
];

/// Inside a tunnel, the queues that tell flows apart elsewhere are one queue: in the model, and on Linux by a filter.
#[test]
fn inside_a_tunnel_all_is_one_flow() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("tunnel.toml");
    fs::write(&scenario, "[link]\ntunnel = [false, true]\n[[flow]]\ncc = \"cubic\"\ncount = 4\n")
        .unwrap();
    let scenario = scenario.to_str().unwrap();
    for qdisc in ["fq_codel", "htb rate 19mbit leaf fq_codel", "cake", "cake bandwidth 19mbit"] {
        let args = [&["run", scenario, "--qdisc", qdisc][..], &TUNNEL].concat();
        let document = json(&args);
        let mean = |world: &str, tunnel: &str| {
            let runs = document["runs"].as_array().unwrap();
            let run = runs
                .iter()
                .find(|run| run["world"] == world && run["settings"]["tunnel"] == tunnel)
                .unwrap_or_else(|| panic!("{world} {tunnel}: {document:#}"));
            run["outcome"]["probe"][0]["mean_ms"].as_f64().unwrap() - 20.0
        };
        for world in ["model", "kernel"] {
            let (apart, one) = (mean(world, "false"), mean(world, "true"));
            assert!(
                apart < 2.5 && one > apart + 2.0,
                "{qdisc}, {world}: {apart} ms apart, {one} ms as one flow"
            );
        }
    }
    let refused = dualq(&[&["run", scenario, "--qdisc", "fq"][..], &TUNNEL].concat());
    assert_eq!(refused.status.code(), Some(2));
    let line = error(&refused);
    assert!(line.contains("link.tunnel") && line.contains("fq"), "{line}");
}

/// Plans have the model run cake, though a kernel is there; asked for, the kernel does, and says about the same.
#[test]
fn plans_have_cake_run_by_the_model() {
    if kernel().is_none() {
        return;
    }
    let facts = "tests/data/facts/debian-13.json";
    let args = ["plan", "--facts", facts, "--rate", "20mbit", "--rtt", "20ms", "--json"];
    let cake = |output: Output| {
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let lines = document["plan"]["evidence"].as_array().unwrap().clone();
        let line = lines.iter().filter_map(Value::as_str).find(|line| line.contains("cake"));
        line.unwrap_or_else(|| panic!("{document:#}")).to_owned()
    };
    let p99 = |line: &str| {
        let number = line.split("p99 ").nth(1).and_then(|rest| rest.split(' ').next());
        number.unwrap_or_else(|| panic!("{line}")).parse::<f64>().unwrap()
    };
    let model = cake(dualq(&args));
    assert!(model.ends_with("(model)"), "{model}");
    let kernel = cake(dualq(&[&args[..], &["--world", "kernel"]].concat()));
    assert!(kernel.ends_with("(kernel)"), "{kernel}");
    assert!((p99(&model) - p99(&kernel)).abs() < 3.0, "{model}\n{kernel}");
}
