//! Every figure of an outcome, for the strict question: can the two worlds be told apart?

use std::collections::BTreeMap;

use dualq_scenario::Scenario;
use serde_json::Value;

use super::{Quantity, labelled, mean};
use crate::Unit;

/// Two means may be so many standard errors of their difference apart.
const ERRORS: f64 = 3.0;

/// How far two means may be apart where the errors do not allow more: a share of the reference's, or a difference.
const fn tolerance(unit: Unit) -> (f64, f64) {
    match unit {
        Unit::Megabits => (0.02, 0.05),
        Unit::Millis => (0.10, 0.1),
        Unit::Count => (0.15, 5.0),
        Unit::Ratio => (0.03, 0.0),
    }
}

/// The figures of one run, by name, in an order that is always the same.
type Figures = BTreeMap<String, (Unit, f64)>;

/// The figures of a run. What the queue counts is of the whole run, as references have it, or of the window of all other figures.
fn figures(scenario: &Scenario, run: &Value, windowed: bool) -> Figures {
    let mut figures = Figures::new();
    let mut add = |what: String, unit: Unit, value: Option<f64>| {
        if let Some(value) = value {
            figures.insert(what, (unit, value));
        }
    };
    for (queue, name) in [("queue", "queue delay"), ("up_queue", "up queue delay")] {
        for figure in ["mean", "p50", "p95", "p99"] {
            let value = run[queue][format!("delay_{figure}_ms")].as_f64();
            add(format!("{name}, {figure}"), Unit::Millis, value);
        }
    }
    for (number, other) in scenario.link.other_bottlenecks().enumerate() {
        let queue = &run["other_queues"][number]["queue"];
        for figure in ["mean", "p50", "p95", "p99"] {
            let value = queue[format!("delay_{figure}_ms")].as_f64();
            add(format!("queue {}: delay, {figure}", other.at), Unit::Millis, value);
        }
        for (key, name) in [("drops", "drops"), ("marks", "CE marks")] {
            add(format!("queue {}: {name}", other.at), Unit::Count, queue[key].as_f64());
        }
    }
    for (number, group) in scenario.udp.iter().enumerate() {
        let udp = &run["udp"][number];
        let name = |what: &str| format!("UDP {number}, {}: {what}", group.kind);
        for what in ["received", "lost", "reordered"] {
            add(name(what), Unit::Count, udp[what].as_f64());
        }
        for figure in ["mean", "p50", "p95", "p99"] {
            let value = udp["delay"][format!("{figure}_ms")].as_f64();
            add(name(&format!("delay, {figure}")), Unit::Millis, value);
        }
    }
    let queue = &run["queue"];
    // Not every discipline has tc's figure where dualpi2 has it: cake's is of each tin, and that of a shaper in its leaf.
    let count = |keys: &[&str], recorded: &str| {
        let tc = queue.get("tc").filter(|_| !windowed);
        let told = tc.and_then(|tc| keys.iter().find_map(|key| tc.get(*key)));
        told.or_else(|| queue.get(recorded)).and_then(Value::as_f64)
    };
    add("drops".to_owned(), Unit::Count, count(&["drops"], "drops"));
    add("CE marks".to_owned(), Unit::Count, count(&["ecn_mark", "ecn-mark"], "marks"));
    add("total goodput".to_owned(), Unit::Megabits, run["goodput_mbit"].as_f64());
    for (number, group) in scenario.flow.iter().enumerate() {
        let flow = &run["flow"][number];
        let name = |what: &str| format!("flows {number}, {} {}: {what}", group.count, group.cc);
        add(name("goodput"), Unit::Megabits, flow["total_mbit"].as_f64());
        add(name("retransmissions"), Unit::Count, flow["retransmits"].as_f64());
        add(name("CE marks"), Unit::Count, flow["ce_marks"].as_f64());
        add(name("smoothed RTT, mean"), Unit::Millis, flow["srtt_ms_mean"].as_f64());
        let each: Vec<f64> = flow["goodput_mbit"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        let (sum, squares) = (each.iter().sum::<f64>(), each.iter().map(|x| x * x).sum::<f64>());
        let fairness =
            (each.len() > 1 && squares > 0.0).then(|| sum * sum / each.len() as f64 / squares);
        add(name("fairness"), Unit::Ratio, fairness);
        for class in flow["completions"].as_array().into_iter().flatten() {
            let from = class["from_bytes"].as_u64().unwrap_or_default();
            let what = |figure: &str| name(&format!("completion from {from} bytes, {figure}"));
            for figure in ["mean", "p50", "p95"] {
                let seconds = class[format!("{figure}_s")].as_f64();
                add(what(figure), Unit::Millis, seconds.map(|seconds| seconds * 1e3));
            }
        }
    }
    for (number, group) in scenario.probe.iter().enumerate() {
        let probe = &run["probe"][number];
        for figure in ["mean", "p50", "p95", "p99"] {
            let what = format!("probe {number}, {}: {figure}", group.kind);
            // Of no round trip at all there is none.
            let measured = probe["n"].as_u64() != Some(0);
            let value = probe[format!("{figure}_ms")].as_f64().filter(|_| measured);
            add(what, Unit::Millis, value);
        }
    }
    figures
}

/// Compares every figure that both have: of outcomes of both worlds, or of an outcome and a recorded `reference`. Returns with it
/// what the reference lacks.
pub(super) fn compare(
    scenario: &Scenario,
    both_worlds: bool,
    reference: &[Value],
    here: &[Value],
) -> (Vec<Quantity>, Vec<String>) {
    let theirs: Vec<Figures> =
        reference.iter().map(|run| figures(scenario, run, both_worlds)).collect();
    let ours: Vec<Figures> = here.iter().map(|run| figures(scenario, run, both_worlds)).collect();
    let mut units: BTreeMap<&String, Unit> = BTreeMap::new();
    for (what, (unit, _)) in ours.iter().chain(&theirs).flatten() {
        units.insert(what, *unit);
    }
    let (mut quantities, mut lacking) = (Vec::new(), Vec::new());
    for (what, unit) in units {
        let values = |runs: &[Figures]| -> Vec<f64> {
            runs.iter().filter_map(|run| run.get(what)).map(|(_, value)| *value).collect()
        };
        let (kernel, here) = (values(&theirs), values(&ours));
        if kernel.is_empty() {
            lacking.push(labelled(what, unit));
        } else if !here.is_empty() {
            quantities.push(Quantity {
                what: what.clone(),
                unit,
                kernel: mean(&kernel),
                here: mean(&here),
                agrees: cannot_be_told_apart(unit, &kernel, &here),
            });
        }
    }
    (quantities, lacking)
}

/// The square of the standard error of the mean; none is known of a single value.
fn squared_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    variance / count
}

/// Whether the means of two worlds' seeds are no further apart than 3 standard errors of their difference, or than the narrow tolerance
/// of their unit; neither list is empty.
#[must_use]
pub fn cannot_be_told_apart(unit: Unit, kernel: &[f64], here: &[f64]) -> bool {
    let difference = (mean(kernel) - mean(here)).abs();
    let error = (squared_error(kernel) + squared_error(here)).sqrt();
    let (share, most) = tolerance(unit);
    difference <= (ERRORS * error).max(share * mean(kernel).abs()).max(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_chance_cannot_be_told_apart() {
        // Standard errors of 1 and 1: up to 4.2 apart.
        let (kernel, near, far) = ([9.0, 10.0, 11.0, 10.0], [12.0, 14.0, 13.0], [19.0, 20.0, 21.0]);
        assert!(!cannot_be_told_apart(Unit::Millis, &kernel, &far));
        assert!(!cannot_be_told_apart(Unit::Millis, &kernel, &near));
        assert!(cannot_be_told_apart(Unit::Millis, &[8.0, 10.0, 12.0], &[11.0, 14.0, 12.0]));
        // Of single runs the tolerance decides.
        assert!(cannot_be_told_apart(Unit::Megabits, &[100.0], &[101.9]));
        assert!(!cannot_be_told_apart(Unit::Megabits, &[100.0], &[102.1]));
        assert!(cannot_be_told_apart(Unit::Count, &[0.0], &[5.0]));
        assert!(!cannot_be_told_apart(Unit::Count, &[0.0], &[6.0]));
    }
}
