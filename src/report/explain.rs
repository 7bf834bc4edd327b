//! What queue disciplines and congestion controls are.

use std::fmt::Write as _;

use dualq_qdisc::about::{Explained, Valued};
use dualq_qdisc::grammar::KINDS;
use dualq_tcp::Algorithm;
use dualq_tcp::cc::about::About;
use serde_json::{Value, json};

use super::wrapped;

const QUEUE: &str = "queue discipline";
const CONTROL: &str = "congestion control";
/// Where the values of parameters stand, and what they do.
const VALUES: usize = 26;
const MEANINGS: usize = 46;
/// With less room than this it is read below.
const LEAST_MEANING: usize = 30;

/// All there is: kind, name and title of each.
fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let queues = KINDS
        .iter()
        .filter_map(|kind| Explained::kind(kind))
        .map(|explained| (QUEUE, explained.kind, explained.about.title));
    let controls = Algorithm::ALL
        .iter()
        .filter_map(|control| control.about().map(|about| (CONTROL, control.name(), about.title)));
    queues.chain(controls)
}

pub(crate) fn list() -> String {
    let mut text = String::new();
    for of in [QUEUE, CONTROL] {
        let _ = writeln!(text, "{of}s");
        for (_, name, title) in all().filter(|(kind, ..)| *kind == of) {
            let _ = writeln!(text, "  {name:<12}{title}");
        }
    }
    text.push_str("\ndualq explain NAME says more of each, and what the options of a line do.\n");
    text
}

pub(crate) fn list_json() -> String {
    let one = |(kind, name, title)| json!({ "name": name, "kind": kind, "title": title });
    document(&Value::Array(all().map(one).collect()))
}

pub(crate) fn queue(levels: &[Explained], width: usize) -> String {
    let one = |explained: &Explained| {
        let about = explained.about;
        let mut text = format!("{}: {}\n", explained.kind, about.title);
        wrapped(&mut text, "  ", about.what, width);
        text.push('\n');
        for valued in &explained.parameters {
            parameter(&mut text, valued, width);
        }
        if !explained.parameters.is_empty() {
            text.push('\n');
        }
        paragraphs(&mut text, [("acts on", about.acts_on), ("source", about.source)], width);
        paragraphs(&mut text, [("not for", about.not_for)], width);
        text
    };
    levels.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn parameter(text: &mut String, valued: &Valued, width: usize) {
    let Valued { parameter, default, given } = valued;
    let value = match given {
        Some(given) if given == default => given.clone(),
        Some(given) => format!("{given} ({default})"),
        None => default.clone(),
    };
    // What tc shows by default says what a value looks like.
    let is_example = parameter.unset.is_empty() || parameter.value.is_empty();
    let does = if is_example {
        parameter.does.to_owned()
    } else {
        format!("{}; {}", parameter.does, parameter.expected())
    };
    row(text, &parameter.words.join("|"), &value, &does, width);
}

/// A name, a value and what it does, each in its column or, if what stands before is too long, below it. Where the last column would be
/// narrow it is below too.
fn row(text: &mut String, name: &str, value: &str, does: &str, width: usize) {
    if width < MEANINGS + LEAST_MEANING {
        let lead = format!("  {name:<space$} {value}", space = VALUES - 3);
        wrapped(text, "  ", lead.trim(), width);
        return wrapped(text, "      ", does, width);
    }
    let mut first = format!("  {name}");
    for (column, next) in [(VALUES, value), (MEANINGS, "")] {
        if first.chars().count() + 1 >= column {
            wrapped(text, "  ", first.trim_start(), width);
            first.clear();
        }
        let missing = column - first.chars().count();
        first.push_str(&" ".repeat(missing));
        first.push_str(next);
    }
    wrapped(text, &first, does, width);
}

fn paragraphs<const N: usize>(text: &mut String, of: [(&str, &str); N], width: usize) {
    for (name, paragraph) in of {
        wrapped(text, &format!("{name:<12}"), paragraph, width);
    }
}

pub(crate) fn queue_json(levels: &[Explained]) -> String {
    let mut inside = Value::Null;
    for explained in levels.iter().rev() {
        let about = explained.about;
        let parameter = |Valued { parameter, default, given }: &Valued| {
            json!({
                "words": parameter.words,
                "value": parameter.expected(),
                "does": parameter.does,
                "default": default,
                "given": given,
            })
        };
        let parameters: Vec<Value> = explained.parameters.iter().map(parameter).collect();
        let leaf = inside.take();
        inside = json!({
            "name": explained.kind,
            "kind": QUEUE,
            "title": about.title,
            "what": about.what,
            "parameters": parameters,
            "acts_on": about.acts_on,
            "source": about.source,
            "not_for": about.not_for,
        });
        if !leaf.is_null() {
            inside["leaf"] = leaf;
        }
    }
    document(&inside)
}

pub(crate) fn control(name: &str, about: &About, width: usize) -> String {
    let mut text = format!("{name}: {}\n", about.title);
    wrapped(&mut text, "  ", about.what, width);
    text.push('\n');
    for constant in about.constants {
        row(&mut text, constant.name, &(constant.value)(), constant.does, width);
    }
    if !about.constants.is_empty() {
        text.push('\n');
    }
    paragraphs(&mut text, [("reacts to", about.reacts_to), ("source", about.source)], width);
    paragraphs(&mut text, [("not for", about.not_for)], width);
    text
}

pub(crate) fn control_json(name: &str, about: &About) -> String {
    let constant = |constant: &dualq_tcp::cc::about::Constant| {
        let value = (constant.value)();
        json!({ "name": constant.name, "value": value, "does": constant.does })
    };
    let constants: Vec<Value> = about.constants.iter().map(constant).collect();
    document(&json!({
        "name": name,
        "kind": CONTROL,
        "title": about.title,
        "what": about.what,
        "constants": constants,
        "reacts_to": about.reacts_to,
        "source": about.source,
        "not_for": about.not_for,
    }))
}

fn document(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parameter_does_is_no_narrow_column() {
        let said = |width| {
            let mut text = String::new();
            row(&mut text, "limit", "10000p", "packets that both queues hold together", width);
            text
        };
        assert_eq!(
            said(60),
            "  limit                   10000p\n      packets that both queues hold together\n"
        );
        assert_eq!(said(100).lines().count(), 1);
    }
}
