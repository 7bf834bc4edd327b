//! What came of it: tables for people, JSON and CSV for programs.

pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod kernel;
pub(crate) mod measure;
pub(crate) mod module;
pub(crate) mod mtu;
pub(crate) mod plan;
pub(crate) mod recipe;
pub(crate) mod replay;
pub(crate) mod status;
pub(crate) mod verify;

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use dualq_units::Rate;

/// The table as text: columns two spaces apart, those from `first_number` on aligned to the right.
pub(crate) fn render(mut table: Table, first_number: usize) -> String {
    table.load_style(presets::NOTHING);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index >= first_number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// A paragraph behind `first`, broken between words and indented below it; what is to be typed or compared is not for this.
/// A line for each name and what is said of it, which is wrapped beside the name.
pub(crate) fn list_of<'a>(
    rows: impl IntoIterator<Item = (&'a str, &'a str)>,
    width: usize,
) -> String {
    let rows: Vec<(&str, &str)> = rows.into_iter().collect();
    let longest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, what) in rows {
        wrapped(&mut text, &format!("  {name:longest$}  "), what, width);
    }
    text
}

fn wrapped(text: &mut String, first: &str, paragraph: &str, width: usize) {
    let indent = " ".repeat(first.len());
    let mut line = first.to_owned();
    for word in paragraph.split(' ') {
        let begun = line.len() > indent.len();
        if begun && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(text, "{line}");
            line.clone_from(&indent);
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// As much after the point as can be of interest.
pub(super) fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    let digits = if milliseconds < 10.0 { 3 } else { 1 };
    format!("{milliseconds:.digits$}")
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// As iperf3 writes rates.
pub(super) fn megabits(rate: Rate) -> String {
    let megabits = rate.as_bits_per_second() as f64 / 1e6;
    let digits = if megabits < 10.0 { 2 } else { 1 };
    format!("{megabits:.digits$} Mbits/sec")
}
