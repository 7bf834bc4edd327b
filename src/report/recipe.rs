//! What the settings of a recipe do on a machine.

use std::fmt::Write as _;

use dualq_host::Facts;
use dualq_host::facts::Os;
use dualq_host::recipe::{Finding, Recipe, Verdict};
use serde_json::{Map, Value, json};

use super::wrapped;

/// What belongs to a setting is indented so far.
const INDENT: &str = "       ";

/// What a machine is, in a few words.
fn machine(facts: &Facts) -> String {
    let system = match facts.os {
        Os::Linux => "Linux",
        Os::FreeBsd => "FreeBSD",
    };
    let distribution = &facts.distribution;
    let name = if distribution.name.is_empty() { &distribution.id } else { &distribution.name };
    let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
    format!("{system} {}{name}", facts.kernel.release)
}

/// The settings grouped by what they do, the worst first, and a line that counts them.
pub(crate) fn text(
    recipe: &Recipe,
    findings: &[Finding<'_>],
    facts: &Facts,
    verbose: bool,
    width: usize,
) -> String {
    let mut text = format!("{} on {}\n", recipe.name, machine(facts));
    for verdict in Verdict::ALL {
        let mut of_this = findings.iter().filter(|finding| finding.verdict == verdict).peekable();
        if of_this.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "\n{verdict}");
        for finding in of_this {
            let _ = writeln!(text, "{:>5}  {}", finding.step.line, finding.step.text);
            let why = format!("{} [{}]", finding.why, finding.source);
            wrapped(&mut text, INDENT, &why, width);
        }
    }
    text.push('\n');
    for note in recipe.notes(facts) {
        let _ = writeln!(text, "Note: {note}");
    }
    text += &not_understood(recipe, verbose);
    let _ = writeln!(text, "{}", summary(findings));
    text
}

/// Lines that look like commands and are not judged.
fn not_understood(recipe: &Recipe, verbose: bool) -> String {
    let count = recipe.not_understood.len();
    if count == 0 {
        return String::new();
    }
    let lines = if count == 1 {
        "1 line that looks like a command"
    } else {
        &format!("{count} lines that look like commands")
    };
    if !verbose {
        return format!("Not understood: {lines} (--verbose lists them)\n");
    }
    let mut text = format!("Not understood: {lines}\n");
    for line in &recipe.not_understood {
        let _ = writeln!(text, "{:>5}  {}", line.line, line.text);
    }
    text
}

/// One sentence that counts the verdicts, the worst first.
fn summary(findings: &[Finding<'_>]) -> String {
    let parts: Vec<String> = Verdict::ALL
        .into_iter()
        .filter_map(|verdict| {
            let count = findings.iter().filter(|finding| finding.verdict == verdict).count();
            (count > 0).then(|| format!("{count} {}", predicate(verdict, count)))
        })
        .collect();
    match (findings.len(), parts.as_slice()) {
        (0, _) => "No settings that dualq knows of are in it.".to_owned(),
        (1, [only]) => format!("Its one setting {}.", only.trim_start_matches("1 ")),
        (_, [only]) => format!("Of {} settings, {only}.", findings.len()),
        (all, [first @ .., last]) => format!("Of {all} settings, {} and {last}.", first.join(", ")),
        (_, []) => String::new(),
    }
}

/// What so many settings of a verdict do.
fn predicate(verdict: Verdict, count: usize) -> &'static str {
    let one = count == 1;
    match verdict {
        Verdict::Harmful if one => "does harm",
        Verdict::Harmful => "do harm",
        Verdict::WrongHere if one => "is wrong here",
        Verdict::WrongHere => "are wrong here",
        Verdict::OtherSystem if one => "is of another system",
        Verdict::OtherSystem => "are of another system",
        Verdict::Obsolete if one => "is obsolete",
        Verdict::Obsolete => "are obsolete",
        Verdict::Unknown if one => "is not known",
        Verdict::Unknown => "are not known",
        Verdict::BearsOnLatency if one => "bears on latency",
        Verdict::BearsOnLatency => "bear on latency",
        Verdict::Harmless if one => "does nothing for latency",
        Verdict::Harmless => "do nothing for latency",
        Verdict::Applied if one => "is so already",
        Verdict::Applied => "are so already",
    }
}

/// The same as one document, the settings in the recipe's order.
pub(crate) fn json(recipe: &Recipe, findings: &[Finding<'_>], facts: &Facts) -> String {
    let counts: Map<String, Value> = Verdict::ALL
        .into_iter()
        .map(|verdict| {
            let count = findings.iter().filter(|finding| finding.verdict == verdict).count();
            (verdict.to_string().replace(' ', "-"), count.into())
        })
        .collect();
    let document = json!({
        "version": 1,
        "command": "doctor",
        "recipe": recipe.name,
        "os": facts.os,
        "kernel": facts.kernel.release,
        "counts": counts,
        "findings": findings,
        "notes": recipe.notes(facts),
        "not_understood": recipe.not_understood,
    });
    format!("{document:#}\n")
}
