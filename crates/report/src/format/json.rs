//! One document: the results as they are, and the figures of the table over all seeds. [`Results`] reads it back, from which the rest
//! follows.

use dualq_worlds::{Results, Settings};
use serde::Serialize;

use crate::figures::Figure;
use crate::report::Report;

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    results: &'a Results,
    summary: Vec<Summary<'a>>,
}

/// A scenario in one world.
#[derive(Serialize)]
struct Summary<'a> {
    settings: &'a Settings,
    world: &'a str,
    figures: Vec<Figure>,
}

/// The document, indented.
///
/// # Panics
/// Never: memory takes all, and all keys are strings.
#[must_use]
pub fn write(report: &Report<'_>) -> String {
    let columns = &report.figures.columns;
    let summary = report.figures.rows.iter().map(|row| Summary {
        settings: &row.settings,
        world: &row.world,
        figures: row.figures(columns),
    });
    let document = Document { results: report.results, summary: summary.collect() };
    let text = serde_json::to_string_pretty(&document).expect("memory takes all");
    text + "\n"
}
