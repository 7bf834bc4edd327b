//! What a page holds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::front::Front;
use super::row::{Kept, Row};
use super::{apart, headline, thin, worlds};
use crate::figures::Column;
use crate::report::Report;
use crate::sweep::{self, Setting};
use crate::words::{one_line, printable};

/// Of so many rows at most the series and distributions are kept: the best of each report.
const MOST_DRAWN: usize = 60;

/// All that the page shows.
#[derive(Serialize)]
pub(super) struct Page {
    /// What wrote the page.
    pub(super) program: String,
    pub(super) title: String,
    pub(super) about: Vec<String>,
    /// What was asked, who does best and by how much, and what is uncertain.
    pub(super) headline: Vec<String>,
    pub(super) words: Vec<String>,
    /// What sets rows apart: the names of settings.
    pub(super) settings: Vec<String>,
    /// The axes of a sweep, where nothing but settings sets rows apart: one for lines, two for heat maps.
    pub(super) sweep: Vec<Setting>,
    /// Delay against goodput, of each report with enough scenarios for that.
    pub(super) fronts: Vec<Front>,
    pub(super) columns: Vec<Head>,
    pub(super) rows: Vec<Row>,
    pub(super) plans: Vec<Plan>,
    pub(super) worlds: Vec<worlds::Beside>,
    /// What was left out of the page, in a sentence each.
    pub(super) thinned: Vec<String>,
}

/// A column of the comparison.
#[derive(Clone, PartialEq, Serialize)]
pub(super) struct Head {
    pub(super) group: String,
    pub(super) name: String,
    /// Both with the unit, where it stands alone.
    pub(super) words: String,
    pub(super) unit: &'static str,
    pub(super) digits: usize,
    pub(super) aside: bool,
}

/// What was played, and what plays it again.
#[derive(Serialize)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) published: Vec<String>,
    pub(super) seeds: String,
    pub(super) worlds: Vec<String>,
    /// The program that played it; empty if that is not known.
    pub(super) program: String,
    /// The command; empty if it is not known.
    pub(super) command: String,
    /// The text of the plan; empty if it is not known.
    pub(super) text: String,
    /// The files that it names, for the engine of the page; none where it has no engine.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) files: BTreeMap<String, String>,
}

impl Head {
    fn of(column: &Column) -> Self {
        Self {
            group: one_line(&column.group),
            name: column.name.clone(),
            words: one_line(&column.words()),
            unit: column.unit.symbol().unwrap_or(""),
            digits: column.digits,
            aside: column.aside,
        }
    }
}

impl Page {
    /// `simulates` if the page has an engine.
    pub(super) fn of(reports: &[Report<'_>], program: &str, simulates: bool) -> Self {
        let mut columns: Vec<Head> = Vec::new();
        for column in reports.iter().flat_map(|report| &report.figures.columns) {
            let head = Head::of(column);
            let same = |other: &&mut Head| (&other.group, &other.name) == (&head.group, &head.name);
            if let Some(other) = columns.iter_mut().find(same) {
                // What one report has to say is shown of all.
                other.aside &= head.aside;
            } else {
                // Beside those that it stands with in its own report.
                let beside = columns.iter().rposition(|other| other.group == head.group);
                columns.insert(beside.map_or(columns.len(), |at| at + 1), head);
            }
        }
        let mut settings: Vec<String> = Vec::new();
        let figured = reports.iter().flat_map(|report| &report.figures.rows);
        for (what, _) in figured.flat_map(|row| &row.settings.0) {
            let what = one_line(what);
            if !settings.contains(&what) {
                settings.push(what);
            }
        }
        // Documents that differ in single keys are one comparison by these.
        let apart = apart::keys(reports);
        let is_sweep = apart.iter().any(|keys| !keys.is_empty());
        for (key, _) in apart.iter().flatten() {
            if !settings.contains(key) {
                settings.push(key.clone());
            }
        }
        let budget = thin::Budget::of(reports, MOST_DRAWN);
        let kept = Kept {
            columns: &columns,
            settings: &settings,
            budget: &budget,
            several: reports.len() > 1,
            apart: &apart,
        };
        let settings_of = |(plan, report): (usize, &Report<'_>)| -> Vec<Vec<String>> {
            report.figures.rows.iter().map(|row| kept.settings_of(row, plan)).collect()
        };
        let in_order: Vec<Vec<String>> = reports.iter().enumerate().flat_map(settings_of).collect();
        let sweep = match reports.len() == 1 || is_sweep {
            true => sweep::axes(&settings, &in_order),
            false => Vec::new(),
        };
        let mut rows = Vec::new();
        for (plan, report) in reports.iter().enumerate() {
            rows.extend(Row::all(report, plan, &kept));
        }
        Self {
            program: program.to_owned(),
            title: title(reports),
            about: about(reports),
            headline: reports
                .iter()
                .flat_map(|report| headline::of(report, reports.len() == 1))
                .collect(),
            words: reports.iter().flat_map(Report::words).collect(),
            plans: reports.iter().map(|report| Plan::of(report, simulates)).collect(),
            worlds: reports.iter().flat_map(worlds::beside).collect(),
            thinned: budget.words(),
            fronts: reports.iter().filter_map(Front::of).collect(),
            sweep,
            settings,
            columns,
            rows,
        }
    }
}

fn title(reports: &[Report<'_>]) -> String {
    let names: Vec<String> = reports.iter().map(|report| one_line(&report.results.name)).collect();
    match names.as_slice() {
        [] => "no results".to_owned(),
        [first, .., last] if names.len() > 3 => {
            format!("{first} to {last}: {} scenarios", names.len())
        }
        _ => names.join(", "),
    }
}

fn about(reports: &[Report<'_>]) -> Vec<String> {
    let about = reports.iter().map(|report| one_line(&report.results.about));
    about.filter(|about| !about.is_empty()).collect()
}

impl Plan {
    fn of(report: &Report<'_>, simulates: bool) -> Self {
        let results = report.results;
        let seeds = results.seeds();
        let origin = results.origin.clone().unwrap_or_default();
        let world = |(name, kernel): (&str, Option<&str>)| match kernel {
            Some(version) => format!("{name} (Linux {version})"),
            None => name.to_owned(),
        };
        Self {
            name: one_line(&results.name),
            about: one_line(&results.about),
            published: results.published.iter().map(|text| one_line(text)).collect(),
            seeds: match seeds.count() {
                1 => format!("seed {}", seeds.first()),
                _ => format!("seeds {} to {}", seeds.first(), seeds.last()),
            },
            worlds: results.worlds().map(world).map(|world| one_line(&world)).collect(),
            program: one_line(&origin.program),
            command: one_line(&origin.command),
            // Files from elsewhere may end their lines otherwise, which is nothing to be seen.
            files: if simulates { origin.files } else { BTreeMap::new() },
            text: printable(&origin.plan.replace("\r\n", "\n")).into_owned(),
        }
    }
}
