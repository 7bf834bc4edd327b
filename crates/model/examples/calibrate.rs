//! Compares the model with what real Linux did: `calibrate [--seeds N] [--only TEXT] [--brief] FILE.jsonl…`.
//!
//! Each line of a file is `{"scenario": {…}, "runs": [{…}…]}`. Per scenario: model beside kernel, and whether the means
//! agree: if they differ by no more than the kernel's own runs do, or by no more than the tolerance of the quantity.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dualq_model::{Outcome, Scenario, simulate};
use serde_json::Value;

/// How far two means may be apart, beside the kernel's own spread.
#[derive(Clone, Copy)]
enum Tolerance {
    /// A share of the kernel's value, or a difference.
    ShareOr(f64, f64),
    /// A factor, or a difference.
    FactorOr(f64, f64),
}

struct Quantity {
    what: String,
    kernel: Vec<f64>,
    model: Vec<f64>,
    tolerance: Tolerance,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Quantity {
    fn agrees(&self) -> bool {
        let (kernel, model) = (mean(&self.kernel), mean(&self.model));
        let difference = (kernel - model).abs();
        let most = self.kernel.iter().copied().fold(f64::MIN, f64::max);
        let least = self.kernel.iter().copied().fold(f64::MAX, f64::min);
        difference <= most - least
            || match self.tolerance {
                Tolerance::ShareOr(share, slack) => {
                    difference <= share * kernel.abs() || difference <= slack
                }
                Tolerance::FactorOr(factor, slack) => {
                    difference <= slack || (model <= kernel * factor && kernel <= model * factor)
                }
            }
    }
}

/// The quantities to compare, from the reference runs and the model's outcomes.
fn quantities(scenario: &Scenario, runs: &[Value], outcomes: &[Outcome]) -> Vec<Quantity> {
    let base_ms = scenario.link.rtt.as_secs_f64() * 1e3;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let mut list = vec![Quantity {
        what: "goodput".to_owned(),
        kernel: runs.iter().map(|run| number(&run["goodput_mbit"])).collect(),
        model: outcomes.iter().map(|outcome| outcome.goodput_mbit).collect(),
        tolerance: Tolerance::ShareOr(0.05, 0.3),
    }];
    for (index, group) in scenario.flow.iter().enumerate() {
        if scenario.flow.len() > 1 {
            list.push(Quantity {
                what: format!("{}[{index}] goodput", group.cc),
                kernel: runs.iter().map(|run| number(&run["flow"][index]["total_mbit"])).collect(),
                model: outcomes.iter().map(|outcome| outcome.flow[index].total_mbit).collect(),
                tolerance: Tolerance::ShareOr(0.2, 0.0),
            });
        }
        list.push(Quantity {
            what: format!("{}[{index}] retransmits", group.cc),
            kernel: runs.iter().map(|run| number(&run["flow"][index]["retransmits"])).collect(),
            model: outcomes.iter().map(|outcome| outcome.flow[index].retransmits as f64).collect(),
            tolerance: Tolerance::FactorOr(2.0, 30.0),
        });
    }
    for index in 0..scenario.probe.len() {
        let above = |value: f64| value - base_ms;
        list.push(Quantity {
            what: format!("probe[{index}] p50 above base"),
            kernel: runs.iter().map(|run| above(number(&run["probe"][index]["p50_ms"]))).collect(),
            model: outcomes.iter().map(|outcome| above(outcome.probe[index].p50_ms)).collect(),
            tolerance: Tolerance::ShareOr(0.25, 1.5),
        });
        list.push(Quantity {
            what: format!("probe[{index}] p95 above base"),
            kernel: runs.iter().map(|run| above(number(&run["probe"][index]["p95_ms"]))).collect(),
            model: outcomes.iter().map(|outcome| above(outcome.probe[index].p95_ms)).collect(),
            tolerance: Tolerance::ShareOr(0.5, 5.0),
        });
    }
    list
}

/// What came of one scenario.
enum Verdict {
    Agrees,
    Differs,
    NotModelled,
}

fn compare(line: &Value, seeds: u64, brief: bool) -> (Verdict, String) {
    let name = line["scenario"]["name"].as_str().unwrap_or("?");
    let scenario: Scenario = match serde_json::from_value(line["scenario"].clone()) {
        Ok(scenario) => scenario,
        Err(error) => return (Verdict::NotModelled, format!("{name}: {error}\n")),
    };
    let outcomes: Result<Vec<_>, _> = (1..=seeds).map(|seed| simulate(&scenario, seed)).collect();
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(error) => return (Verdict::NotModelled, format!("{name}: not modelled: {error}\n")),
    };
    let runs = line["runs"].as_array().cloned().unwrap_or_default();
    let list = quantities(&scenario, &runs, &outcomes);
    let agrees = list.iter().all(Quantity::agrees);
    let flows: Vec<_> = scenario
        .flow
        .iter()
        .map(|group| format!("{}x{}{}", group.count, group.cc, if group.ecn { "+ecn" } else { "" }))
        .collect();
    let mut text = format!(
        "{} {name}: {} {:?} loss {}% {} {}",
        if agrees { "agree " } else { "DIFFER" },
        scenario.link.rate,
        scenario.link.rtt,
        scenario.link.loss.percent(),
        scenario.link.qdisc,
        flows.join(" "),
    );
    if brief {
        for quantity in list.iter().filter(|quantity| !quantity.agrees()) {
            let _ = write!(
                text,
                " | {}: {:.3} kernel {:.3}",
                quantity.what,
                mean(&quantity.model),
                mean(&quantity.kernel)
            );
        }
        text.push('\n');
    } else {
        text.push('\n');
        for quantity in &list {
            let _ = writeln!(
                text,
                "    {} {:<28} model {:>10.3} kernel {:>10.3}  {:?} / {:?}",
                if quantity.agrees() { " " } else { "*" },
                quantity.what,
                mean(&quantity.model),
                mean(&quantity.kernel),
                quantity.model,
                quantity.kernel,
            );
        }
    }
    (if agrees { Verdict::Agrees } else { Verdict::Differs }, text)
}

fn main() -> ExitCode {
    let mut seeds = 3;
    let mut only = String::new();
    let mut brief = false;
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => seeds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(seeds),
            "--only" => only = arguments.next().unwrap_or_default(),
            "--brief" => brief = true,
            _ => files.push(argument),
        }
    }
    let mut lines = Vec::new();
    for file in &files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        };
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(value) => lines.push(value),
                Err(error) => {
                    eprintln!("{file}: {error}");
                    return ExitCode::from(2);
                }
            }
        }
    }
    let matches = |line: &Value| {
        only.is_empty() || only.split(',').any(|name| line["scenario"]["name"] == name)
    };
    lines.retain(matches);

    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(index) else { break };
                    let result = compare(line, seeds, brief);
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    let (mut agree, mut count) = (0, 0);
    for (_, (verdict, text)) in &results {
        print!("{text}");
        count += u32::from(!matches!(verdict, Verdict::NotModelled));
        agree += u32::from(matches!(verdict, Verdict::Agrees));
    }
    println!("{agree} of {count} agree");
    ExitCode::SUCCESS
}
