//! The kernel's own dualpi2 beside ours: CUBIC beside DCTCP, so that both queues, the coupling and the marks are at work.

use std::fs;

use serde_json::Value;

use crate::{json, kernel};

/// Without GSO: of an aggregate that the queue splits, the kernel's delays are those of its first segment.
const SCENARIO: &str = r#"
duration = "20s"
warmup = "5s"
interval = "100ms"

[link]
rate = "40mbit"
rtt = "20ms"
qdisc = "dualpi2 any_ect"

[sender]
gso = false

[[flow]]
cc = "cubic"

[[flow]]
cc = "dctcp"
ecn = true
"#;

const SEEDS: u64 = 18;
/// The kernel says how long packets waited, and when it changes its mind, in steps that come from the link: a packet takes
/// 0.3 ms. A tenth of that is where a difference begins.
const RESOLUTION_MS: f64 = 0.03;

/// A figure of one run, with what it has to differ by at least to count.
struct Figure {
    name: String,
    value: f64,
    resolution: f64,
}

/// All figures of a run that come from the queue discipline.
fn figures(run: &Value) -> Vec<Figure> {
    let outcome = &run["outcome"];
    let number =
        |at: &str| outcome.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("{at}"));
    let mut figures = Vec::new();
    let mut add = |name: String, value: f64, resolution: f64| {
        figures.push(Figure { name, value, resolution });
    };
    for counter in ["marks", "drops", "tc/step-mark", "tc/pkts-in-c", "tc/pkts-in-l"] {
        add(counter.to_owned(), number(&format!("/queue/{counter}")), 0.0);
    }
    for (queue, name) in [("delay_not_ect", "C"), ("delay_ect", "L")] {
        for key in ["mean_ms", "p50_ms", "p95_ms", "p99_ms"] {
            let value = number(&format!("/queue/{queue}/{key}"));
            add(format!("delay in {name}, {key}"), value, RESOLUTION_MS);
        }
    }
    let probability: Vec<f64> = outcome["series"]["probability"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    // The start, in which CUBIC leaves its slow start, and three stretches after it.
    for (number, part) in probability.chunks(probability.len() / 4).enumerate() {
        let seconds = 5 * number;
        let mean = mean(part);
        let square = part.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / part.len() as f64;
        add(format!("probability from {seconds} s on, mean"), mean, 0.0);
        add(format!("probability from {seconds} s on, deviation"), square.sqrt(), 0.0);
    }
    figures
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The figures in a world, each with its value for each seed.
fn runs(scenario: &str, world: &str, qdisc: &str) -> Vec<(Figure, Vec<f64>)> {
    let mut all: Vec<(Figure, Vec<f64>)> = Vec::new();
    for seed in 1..=SEEDS {
        let seed = seed.to_string();
        let args = [
            "run",
            scenario,
            "--world",
            world,
            "--qdisc",
            qdisc,
            "--seed",
            &seed,
            "--json",
            "--no-progress",
        ];
        let document = json(&args);
        for (number, figure) in figures(&document["runs"][0]).into_iter().enumerate() {
            let value = figure.value;
            match all.get_mut(number) {
                Some((_, values)) => values.push(value),
                None => all.push((figure, vec![value])),
            }
        }
    }
    all
}

/// So many standard errors are more than chance explains, with some twenty figures from eighteen runs each.
const ERRORS: f64 = 3.5;

/// The figures of which the two worlds' means are further apart than chance explains, as the runs of both vary.
fn apart(kernel: &[(Figure, Vec<f64>)], model: &[(Figure, Vec<f64>)]) -> Vec<String> {
    let mut apart = Vec::new();
    for ((figure, kernel), (_, model)) in kernel.iter().zip(model) {
        let (ours, theirs) = (mean(model), mean(kernel));
        let error = (squared_error(model) + squared_error(kernel)).sqrt();
        let tolerance = (ERRORS * error).max(figure.resolution);
        let line = format!(
            "{:<38} kernel {theirs:>10.4}  ours {ours:>10.4}  tolerance {tolerance:>8.4}",
            figure.name
        );
        println!("{line}");
        if (ours - theirs).abs() > tolerance {
            apart.push(line);
        }
    }
    apart
}

/// The square of the standard error of the values' mean.
fn squared_error(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let count = values.len() as f64;
    squares / (count - 1.0) / count
}

#[test]
fn the_kernels_dualpi2_and_ours_do_the_same() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("beside.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let scenario = scenario.to_str().unwrap();
    let kernel = runs(scenario, "kernel", "dualpi2 any_ect");
    let differing = apart(&kernel, &runs(scenario, "model", "dualpi2 any_ect"));
    assert!(differing.is_empty(), "{differing:#?}");
    // The comparison is worth something only if it tells a discipline from one that is set a little differently.
    for other in [
        "dualpi2 any_ect target 12ms",
        "dualpi2 any_ect coupling_factor 4",
        "dualpi2 any_ect step_thresh 700us",
    ] {
        println!("{other}:");
        let differing = apart(&kernel, &runs(scenario, "model", other));
        assert!(!differing.is_empty(), "{other} is not told from the default");
    }
}
