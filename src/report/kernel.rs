//! The kernels there are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comfy_table::Table;
use dualq_kernel::{Damaged, Kernel, KernelError};
use indicatif::HumanDuration;
use serde_json::{Value, json};

use super::render;

/// How many columns are words; the others are aligned as numbers are.
const COLUMNS: usize = 7;

fn has_dualpi2(kernel: &Kernel) -> bool {
    kernel.qdiscs().iter().any(|name| name == "dualpi2")
}

/// A line a kernel, the default first, as the store has them; and one for each that is damaged.
pub(crate) fn text(kernels: &[Kernel], damaged: Vec<Damaged>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut table = Table::new();
    table.set_header(["kernel", "", "options", "dualpi2", "built", "size", "executable"]);
    for (number, kernel) in kernels.iter().enumerate() {
        let age = now.saturating_sub(Duration::from_secs(kernel.facts.built_s));
        // Where a version does not tell which is meant, the name does, which options take too.
        let same = kernels.iter().filter(|other| other.version == kernel.version).count();
        table.add_row([
            if same > 1 { kernel.name() } else { &kernel.version }.to_owned(),
            if number == 0 { "default" } else { "" }.to_owned(),
            if kernel.is_current() { "current" } else { "outdated" }.to_owned(),
            if has_dualpi2(kernel) { "yes" } else { "no" }.to_owned(),
            format!("{} ago", HumanDuration(Duration::from_secs(age.as_secs()))),
            format!("{:.1} MB", kernel.size() as f64 / 1e6),
            kernel.executable.display().to_string(),
        ]);
    }
    let mut text = String::new();
    if !kernels.is_empty() {
        text = render(table, COLUMNS) + "\n";
    }
    for damaged in damaged {
        text += &format!("{}\n", KernelError::from(damaged));
    }
    text
}

/// The same and more as one document.
pub(crate) fn json(kernels: &[Kernel], damaged: &[Damaged]) -> String {
    let listed: Vec<Value> = kernels
        .iter()
        .enumerate()
        .map(|(number, kernel)| {
            json!({
                "version": kernel.version,
                "name": kernel.name(),
                "default": number == 0,
                "current": kernel.is_current(),
                "dualpi2": has_dualpi2(kernel),
                "built_s": kernel.facts.built_s,
                "size_bytes": kernel.size(),
                "executable": kernel.executable,
                "origin": kernel.facts.origin,
                "compiler": kernel.facts.compiler,
                "lacking": kernel.facts.lacking,
                "qdiscs": kernel.qdiscs(),
                "congestion_controls": kernel.congestion_controls(),
            })
        })
        .collect();
    let damaged: Vec<Value> = damaged
        .iter()
        .map(|damaged| json!({ "name": damaged.name, "fault": damaged.fault }))
        .collect();
    let document =
        json!({ "version": 1, "command": "kernel list", "kernels": listed, "damaged": damaged });
    format!("{document:#}\n")
}
