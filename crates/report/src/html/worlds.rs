//! Worlds beside each other: what differs, and whether that is more than chance.

use dualq_worlds::agreement::cannot_be_told_apart;
use serde::Serialize;

use crate::rank;
use crate::report::Report;
use crate::words::one_line;

/// A scenario in two worlds.
#[derive(Serialize)]
pub(super) struct Beside {
    scenario: String,
    worlds: (String, String),
    seeds: u64,
    figures: Vec<Compared>,
}

#[derive(Serialize)]
struct Compared {
    group: String,
    name: String,
    unit: &'static str,
    means: (f64, f64),
    deviations: (Option<f64>, Option<f64>),
    /// Whether they are further apart than chance and narrow tolerances allow.
    differs: bool,
}

/// Each further world beside the first one, in each scenario.
pub(super) fn beside(report: &Report<'_>) -> Vec<Beside> {
    let worlds = report.results.worlds().len();
    let mut all = Vec::new();
    for (number, runs) in report.scenarios.iter().enumerate() {
        let rows = &report.figures.rows[number * worlds..(number + 1) * worlds];
        for other in &rows[1..] {
            let compared = report.figures.columns.iter().enumerate().filter_map(|(at, column)| {
                let (here, there) = (&rows[0].values[at], &other.values[at]);
                Some(Compared {
                    group: one_line(&column.group),
                    name: column.name.clone(),
                    unit: column.unit.symbol().unwrap_or(""),
                    means: (here.mean()?, there.mean()?),
                    deviations: (here.deviation(), there.deviation()),
                    differs: !cannot_be_told_apart(column.unit, &there.0, &here.0),
                })
            });
            all.push(Beside {
                scenario: one_line(&rank::label(runs)),
                worlds: (one_line(&rows[0].world), one_line(&other.world)),
                seeds: report.results.seeds().count(),
                figures: compared.collect(),
            });
        }
    }
    all
}

/// How well the worlds agree, if there are several.
pub(super) fn sentence(report: &Report<'_>) -> Option<String> {
    let all = beside(report);
    let figures = || all.iter().flat_map(|beside| &beside.figures);
    let differ = figures().filter(|figure| figure.differs).count();
    (!all.is_empty()).then(|| {
        format!(
            "The worlds differ by more than chance and small tolerances in {differ} of {} figures.",
            figures().count()
        )
    })
}
