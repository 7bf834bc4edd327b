//! A plan as people read it: each change as a difference, with its reason below.

use std::fmt::Write as _;
use std::path::Path;

use dualq_host::Plan;
use dualq_host::plan::{Change, FLOWS, Trial, What};
use dualq_report::{Grid, Group};
use serde_json::{Value, json};
use similar::TextDiff;

use super::wrapped;
use crate::output::shell_word;
use crate::predict::Prediction;

/// The version of the JSON document's form.
const JSON_VERSION: u32 = 2;

/// The changes in their order, and what is to be known; what was simulated too, unless a table comes after it.
pub(crate) fn text(plan: &Plan, has_table: bool, width: usize) -> String {
    let mut text = format!("{}\n", plan.about);
    if plan.changes.is_empty() {
        text.push_str("\nNothing is to be changed: all of it is so already.\n");
    }
    for change in &plan.changes {
        text.push('\n');
        text.push_str(&difference(change));
        wrapped(&mut text, "    ", &change.why, width);
        wrapped(&mut text, "    ", &format!("({})", change.source), width);
    }
    if !plan.evidence.is_empty() && !has_table {
        text.push_str("\nSimulated:\n");
        for line in &plan.evidence {
            wrapped(&mut text, "  - ", line, width);
        }
    }
    if !plan.notes.is_empty() {
        text.push_str("\nTo know:\n");
        for note in &plan.notes {
            wrapped(&mut text, "  - ", note, width);
        }
    }
    text
}

fn difference(change: &Change) -> String {
    match &change.what {
        What::Module { module } => format!("load the module {module}\n"),
        What::Sysctl { key, before, after } => {
            format!(
                "{key}: {} -> {after}\n",
                before.split_whitespace().collect::<Vec<_>>().join(" ")
            )
        }
        What::Qdisc { dev, parent, before, after, each } => {
            let mut text = match parent {
                Some(class) => format!("queue discipline of {dev}, below class {class}:\n"),
                None => format!("queue discipline of {dev}:\n"),
            };
            for line in before {
                let _ = writeln!(text, "-{line}");
            }
            let place = match parent {
                Some(class) => class.to_string(),
                None if *each => "each transmit queue".to_owned(),
                None => "root".to_owned(),
            };
            let _ = writeln!(text, "+{place} {after}");
            text
        }
        What::Ingress { dev, ifb, after } => {
            format!("what arrives at {dev}, taken through {ifb}:\n+root {after}\n")
        }
        What::Offload { dev, key, before, after } => {
            format!("{key} of {dev}: {before} -> {after}\n")
        }
        What::Route { to, mtu } => format!("route to {to} with an MTU of {mtu}\n"),
        What::File { path, before, after, mode } => {
            let before_name = if before.is_some() { path.as_str() } else { "/dev/null" };
            let before = printable(before.as_deref().unwrap_or_default());
            let diff = TextDiff::from_lines(before.as_str(), after)
                .unified_diff()
                .header(before_name, path)
                .to_string();
            if diff.is_empty() { format!("{path}: mode {mode}\n") } else { diff }
        }
        What::Lines { path, after } => {
            let mut text = format!("at the end of {path}:\n");
            for line in after {
                let _ = writeln!(text, "+{line}");
            }
            text
        }
    }
}

/// What was in a file may have been anything.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// What was simulated, the worst first: a row for each queue with each sender.
/// The table has `room` for so many columns, if that is bounded.
pub(crate) fn prediction(prediction: &Prediction, width: usize, room: Option<usize>) -> String {
    let evidence = &prediction.evidence;
    let question = evidence.question();
    let mut text = String::new();
    let rows = evidence.rows();
    if !rows.is_empty() {
        let rtt = question.rtt.as_secs_f64() * 1e3;
        let what = if question.arriving { "what arrives, simulated" } else { "simulated" };
        let title = format!(
            "{}, {what} at {} and {rtt} ms ({}), the worst first: large transfers, short ones and ssh beside them. The p99 of ssh's \
             round trips is above the base, in ms; goodput and fairness are the least of the three.",
            question.dev, question.rate, question.rtt_from,
        );
        wrapped(&mut text, "", &title, width);
        let group = |title: &str, names: &[String]| Group {
            title: title.to_owned(),
            names: names.to_vec(),
        };
        let alone = |name: &str| group("", &[name.to_owned()]);
        let flows = FLOWS
            .map(|flows| if flows == 1 { "1 flow".to_owned() } else { format!("{flows} flows") });
        let mut table = Grid {
            heads: ["", "queue", "sender"].map(str::to_owned).to_vec(),
            groups: vec![
                group("ssh p99 (ms)", &flows),
                group("goodput", &["Mbit/s".to_owned()]),
                alone("fairness"),
                alone("world"),
            ],
            rows: Vec::new(),
        };
        for row in rows {
            let mark = if row.queue == question.now {
                "now"
            } else if evidence.taken() == Some(row.queue) {
                "chosen"
            } else {
                ""
            };
            let ecn = if row.sender.ecn { ", ECN" } else { "" };
            let mut cells =
                vec![mark.to_owned(), row.queue.to_owned(), format!("{}{ecn}", row.sender.cc)];
            cells.extend(FLOWS.map(|flows| {
                let figures = evidence.of(row.queue, row.sender, flows);
                figures.map_or("-".to_owned(), |figures| format!("{:.1}", figures.p99_ms))
            }));
            let figures = row.worst.1;
            cells.push(format!("{:.2}", row.least.0));
            cells.push(format!("{:.3}", row.least.1));
            cells.push(figures.world.clone());
            table.rows.push(cells);
        }
        let _ = writeln!(text, "\n{}", table.lines(room).join("\n"));
    }
    if !question.now_known {
        let remark = format!(
            "Now, the queue is taken to be in the provider's shaper, a FIFO of 1000 full packets (`{}`): what it really is cannot be \
             seen from here.",
            question.now
        );
        wrapped(&mut text, "", &remark, width);
    }
    for remark in &prediction.remarks {
        wrapped(&mut text, "", remark, width);
    }
    text
}

/// One document: the plan, and what was simulated if that was asked for.
pub(crate) fn json(plan: &Plan, predictions: &[Prediction]) -> String {
    let mut document = json!({ "version": JSON_VERSION, "command": "plan", "plan": plan });
    let mut all: Vec<Value> = Vec::new();
    for prediction in predictions {
        let evidence = &prediction.evidence;
        let runs = prediction.runs.iter().map(|run| {
            let Trial { queue, sender, flows } = &run.trial;
            let figures = evidence.of(queue, sender, *flows);
            json!({
                "queue": queue,
                "is_now": *queue == evidence.question().now,
                "is_chosen": evidence.taken() == Some(queue.as_str()),
                "cc": sender.cc,
                "ecn": sender.ecn,
                "flows": flows,
                "p99_above_base_ms": figures.map(|figures| figures.p99_ms),
                "goodput_mbit": figures.map(|figures| figures.goodput_mbit),
                "fairness": figures.map(|figures| figures.fairness),
                "world": run.world,
                "scenario": run.scenario,
                "outcome": run.outcome,
            })
        });
        let question = evidence.question();
        all.push(json!({
            "dev": question.dev,
            "direction": if question.arriving { "download" } else { "upload" },
            "chosen": evidence.taken(),
            "runs": runs.collect::<Vec<_>>(),
            "remarks": prediction.remarks,
        }));
    }
    if !all.is_empty() {
        document["predictions"] = all.into();
    }
    format!("{document:#}\n")
}

/// What is to be said once a plan is in a file.
pub(crate) fn written(path: &Path) -> String {
    let (path, word) = (path.display(), shell_word(&path.to_string_lossy()));
    format!("\nNothing is changed yet. The plan is in {path}: sudo dualq apply {word}\n")
}
