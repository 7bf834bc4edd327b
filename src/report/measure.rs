//! What `dualq measure` says: a table for people, a document for programs.

use std::fmt::Write as _;

use dualq_measure::Measurement;
use dualq_report::measured::{self, Table, flows, rates, round_trips, sentences};

use super::{render, wrapped};

pub(crate) fn json(measurement: &Measurement) -> String {
    let mut text = serde_json::to_string(measurement).expect("it has only what JSON has");
    text.push('\n');
    text
}

pub(crate) fn text(measurement: &Measurement, width: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} ({}), {}, {:.1} MB in all\n",
        measurement.host,
        measurement.address,
        flows(measurement),
        measurement.bytes as f64 / 1e6
    );
    for table in [rates(measurement), round_trips(measurement)] {
        let _ = writeln!(text, "{}\n", columns(table));
    }
    for (of, what) in sentences(measurement) {
        wrapped(&mut text, &format!("{of}: "), &what, width);
    }
    text
}

fn columns(table: Table) -> String {
    let measured::Table { heads, words, rows } = table;
    let mut columns = comfy_table::Table::new();
    columns.set_header(heads);
    columns.add_rows(rows);
    render(columns, words)
}
