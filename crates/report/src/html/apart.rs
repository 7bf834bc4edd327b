//! What sets several documents apart, where these are single keys of their scenarios: as if one file had varied them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::report::Report;
use crate::words::one_line;

/// More keys than this are no sweep.
const MOST_KEYS: usize = 2;

/// For each report the keys that only reports differ in, with its values, in one order for all; nothing if they are of different questions.
pub(super) fn keys(reports: &[Report<'_>]) -> Vec<Vec<(String, String)>> {
    let none = vec![Vec::new(); reports.len()];
    if reports.len() < 2 {
        return none;
    }
    let all: Vec<BTreeMap<String, String>> = reports.iter().map(constant).collect();
    // What varies within a report is a setting of its rows already.
    let everywhere = |key: &&String| all.iter().all(|keys| keys.contains_key(*key));
    let mut names: Vec<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let same_names = names.iter().all(everywhere);
    let differ: Vec<&String> = names
        .into_iter()
        .filter(|key| all.iter().any(|keys| keys.get(*key) != all[0].get(*key)))
        .collect();
    if !same_names || differ.is_empty() || differ.len() > MOST_KEYS {
        return none;
    }
    let value =
        |keys: &BTreeMap<String, String>, key: &String| keys.get(key).cloned().unwrap_or_default();
    all.iter()
        .map(|keys| differ.iter().map(|key| ((*key).clone(), value(keys, key))).collect())
        .collect()
}

/// The keys of a report's scenarios, written with dots, that have one value in all of them.
fn constant(report: &Report<'_>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (number, runs) in report.scenarios.iter().enumerate() {
        // A scenario was read from such a value.
        let value = serde_json::to_value(runs.scenario()).unwrap_or_default();
        let mut leaves = Vec::new();
        flatten("", &value, &mut leaves);
        for (key, value) in leaves {
            let there = found.entry(key).or_insert_with(|| (number == 0).then(|| value.clone()));
            if there.as_ref() != Some(&value) {
                *there = None;
            }
        }
    }
    // What it is called and how it is drawn is no part of the question.
    for key in ["name", "distributions"] {
        found.remove(key);
    }
    found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn flatten(path: &str, value: &Value, leaves: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(keys) => {
            keys.iter().for_each(|(key, value)| flatten(&below(key), value, leaves));
        }
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(at, value)| flatten(&below(&at.to_string()), value, leaves));
        }
        Value::String(text) => leaves.push((one_line(path), one_line(text))),
        other => leaves.push((one_line(path), other.to_string())),
    }
}
