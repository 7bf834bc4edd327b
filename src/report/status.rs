//! What is applied on this machine.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use dualq_host::apply::{self, Phase, Standing, State, Status};

/// One JSON document.
pub(crate) fn json(status: &Status) -> String {
    let text = serde_json::to_string_pretty(status).expect("a status is plain data");
    format!("{text}\n")
}

/// For people.
pub(crate) fn text(status: &Status) -> String {
    let (Some(phase), Some(about)) = (status.phase, &status.about) else {
        return "no plan is applied here\n".to_owned();
    };
    let mut text = String::new();
    // Whether somebody still works on it cannot be told from here.
    let under_way = |what: &str| {
        format!(
            "is being {what}; if no other dualq is at that any more, `dualq rollback` takes it back"
        )
    };
    let standing = || match phase {
        Phase::Applying => under_way("applied"),
        Phase::Applied => format!(
            "applied {}; `dualq confirm` within {} s keeps it",
            ago(status.applied),
            status.seconds_left.unwrap_or(0)
        ),
        Phase::Confirming => under_way("confirmed"),
        Phase::Confirmed => format!("confirmed; applied {}", ago(status.applied)),
        Phase::RollingBack => format!("{}: {}", under_way("taken back"), why(status.why.as_ref())),
        Phase::RolledBack => format!(
            "no plan is applied here; the last was taken back {}: {}",
            ago(status.ended),
            why(status.why.as_ref())
        ),
    };
    let line = status.unfinished.as_ref().map_or_else(standing, |why| {
        format!("is to be taken back, `dualq rollback` does that: {why}")
    });
    let which = if matches!(phase, Phase::RolledBack) { "last plan" } else { "plan" };
    let _ = writeln!(text, "{which}: {about}\n{line}");
    if let Some(last) = &status.last {
        let (about, when, why) = (&last.about, ago(last.ended), why(last.why.as_ref()));
        let _ = writeln!(text, "after it: {about}, taken back {when}: {why}");
    }
    for left in status.left.iter().chain(status.last.iter().flat_map(|last| &last.left)) {
        let _ = writeln!(text, "left as it is: {left}");
    }
    for below in &status.below {
        let _ = writeln!(text, "below it: {below}");
    }
    if !status.changes.is_empty() {
        text.push('\n');
    }
    for change in &status.changes {
        let _ = writeln!(text, "{:<15}{}", word(change, phase), change.name);
    }
    for difference in status.changes.iter().filter_map(|change| change.difference.as_ref()) {
        let _ = write!(text, "\n{difference}");
    }
    for change in &status.changes {
        if let Some(remedy) = &change.remedy {
            let _ = writeln!(text, "\n{} is missing: {remedy}", change.name);
        }
    }
    for live in &status.interfaces {
        let _ = write!(text, "\n{}:\n{}", live.dev, live.text);
    }
    text
}

const fn word(change: &State, phase: Phase) -> &'static str {
    match change.standing {
        Standing::AsPlanned => "as planned",
        Standing::AsBefore if change.file && matches!(phase, Phase::Applied) => "to be written",
        Standing::AsBefore => "as before",
        Standing::Drifted => "drifted",
    }
}

fn why(why: Option<&String>) -> &str {
    why.map_or("nobody knows why", String::as_str)
}

/// How long ago that was, roughly.
fn ago(unix: Option<u64>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    apply::ago(unix, now)
}
