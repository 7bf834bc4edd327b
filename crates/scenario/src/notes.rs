//! What a sweep says that its author may have meant otherwise.

use dualq_units::surprise;
use toml::de::{DeTable, DeValue};

use crate::reader::{line_of, parse};

/// Those whose values say how long something lasts.
const LASTING: [&str; 2] = ["duration", "warmup"];

/// All others whose values are times.
const TIMES: [&str; 13] = [
    "at",
    "delay",
    "every",
    "extra_rtt",
    "forward",
    "interval",
    "jitter",
    "read_interval",
    "reverse",
    "rtt",
    "spacing",
    "start",
    "stop",
];

/// Rates and times in a sweep that tc's grammar takes for something else than most people do, with their lines. None if it is no sweep.
#[must_use]
pub fn notes(source: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if let Ok(document) = parse(source) {
        look(source, document.get_ref(), &mut notes);
    }
    notes.sort();
    notes.into_iter().map(|(line, note)| format!("line {line}: {note}")).collect()
}

fn look(source: &str, table: &DeTable<'_>, notes: &mut Vec<(usize, String)>) {
    for (key, value) in table {
        let key = key.get_ref().as_ref();
        let values = match value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![value],
        };
        for value in values {
            let note = match value.get_ref() {
                DeValue::Table(table) => {
                    look(source, table, notes);
                    None
                }
                DeValue::String(word) if key == "rate" || key == "police" => surprise::rate(word),
                DeValue::String(word) if LASTING.contains(&key) => surprise::duration(word),
                DeValue::String(word) if TIMES.contains(&key) => surprise::time(word),
                _ => None,
            };
            notes.extend(
                note.map(|note| (line_of(source, value.span().start), format!("{key}: {note}"))),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tc_takes_for_something_else_is_told_with_its_line() {
        let sweep = "duration = '20s'\n[link]\nrate = ['50mbit', '50mbps']\nrtt = '50'\n[[probe]]\ninterval = '20'\n";
        let told = notes(sweep);
        let starts = [
            "line 3: rate: 50mbps is 400Mbit/s,",
            "line 4: rtt: 50 is 50 micro",
            "line 6: interval: 20 is",
        ];
        assert_eq!(told.len(), starts.len(), "{told:?}");
        for (note, start) in told.iter().zip(starts) {
            assert!(note.starts_with(start), "{note}");
        }
        assert_eq!(notes("[link]\nrate = '50mbit'\nrtt = '50ms'\n"), [""; 0]);
        assert_eq!(notes("[link"), [""; 0]);
    }
}
