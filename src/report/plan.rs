//! A plan as people read it: each change as a difference, with its reason below.

use std::fmt::Write as _;
use std::path::Path;

use dualq_host::Plan;
use dualq_host::plan::{Change, What};
use serde_json::{Value, json};
use similar::TextDiff;

use super::run;
use crate::predict::Prediction;

/// The version of the JSON document's form.
const JSON_VERSION: u32 = 1;
/// Reasons are broken here; what is to be typed or compared is not.
const WIDTH: usize = 96;

/// The changes in their order, and what is to be known.
pub(crate) fn text(plan: &Plan) -> String {
    let mut text = format!("{}\n", plan.about);
    if plan.changes.is_empty() {
        text.push_str("\nNothing is to be changed: all of it is so already.\n");
    }
    for change in &plan.changes {
        text.push('\n');
        text.push_str(&difference(change));
        wrapped(&mut text, "    ", &change.why);
        wrapped(&mut text, "    ", &format!("({})", change.source));
    }
    if !plan.notes.is_empty() {
        text.push_str("\nTo know:\n");
        for note in &plan.notes {
            wrapped(&mut text, "  - ", note);
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
        What::Qdisc { dev, before, after } => {
            let mut text = format!("queue discipline of {dev}:\n");
            for line in before {
                let _ = writeln!(text, "-{line}");
            }
            let _ = writeln!(text, "+root {after}");
            text
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

/// A paragraph behind `first`, broken between words and indented below it.
fn wrapped(text: &mut String, first: &str, paragraph: &str) {
    let indent = " ".repeat(first.len());
    let mut line = first.to_owned();
    for word in paragraph.split(' ') {
        let begun = line.len() > indent.len();
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line.clone_from(&indent);
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

/// What the model says, as `dualq run` shows it.
pub(crate) fn prediction(prediction: &Prediction) -> String {
    let mut text = run::text(&prediction.comparison);
    for remark in &prediction.remarks {
        wrapped(&mut text, "", remark);
    }
    text
}

/// One document: the plan, and what the model says if it was asked.
pub(crate) fn json(plan: &Plan, prediction: Option<&Prediction>) -> String {
    let mut document = json!({ "version": JSON_VERSION, "command": "plan", "plan": plan });
    if let Some(prediction) = prediction {
        let runs: Value =
            serde_json::from_str(&run::json(&prediction.comparison)).unwrap_or_default();
        document["prediction"] = json!({ "runs": runs["runs"], "remarks": prediction.remarks });
    }
    format!("{document:#}\n")
}

/// What is to be said once a plan is in a file.
pub(crate) fn written(path: &Path) -> String {
    let path = path.display();
    format!("\nNothing is changed yet. The plan is in {path}: dualq apply {path}\n")
}
