//! What is applied on this machine.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use dualq_host::apply::{Phase, Standing, State, Status};

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
    let line = match phase {
        Phase::Applying => "is being applied".to_owned(),
        Phase::Applied => format!(
            "applied {}; `dualq confirm` within {} s keeps it",
            ago(status),
            status.seconds_left.unwrap_or(0)
        ),
        Phase::Confirming => "is being confirmed".to_owned(),
        Phase::Confirmed => format!("confirmed; applied {}", ago(status)),
        Phase::RollingBack => format!("is being taken back: {}", why(status)),
        Phase::RolledBack => {
            format!("no plan is applied here; the last was taken back: {}", why(status))
        }
    };
    let _ = writeln!(text, "plan: {about}\n{line}");
    for left in &status.left {
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

fn why(status: &Status) -> &str {
    status.why.as_deref().unwrap_or("nobody knows why")
}

/// How long ago it was applied, roughly.
fn ago(status: &Status) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = now.saturating_sub(status.applied.unwrap_or(now));
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
