//! What a report is written as, of results as they come and of a document that was read back.

use std::ops::ControlFlow;

use dualq_report::{Report, Style, csv, json, text};
use dualq_scenario::{Outcome, Plan, Scenario};
use dualq_worlds::{Model, Observer, Results, Seeds, World, WorldError};
use serde_json::Value;

/// The model as if it were real Linux.
struct Twin;

impl World for Twin {
    fn name(&self) -> &'static str {
        "twin"
    }

    fn kernel_version(&self) -> Option<&str> {
        Some("7.3")
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        Model.refuses(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        Model.run(scenario, seed, observer)
    }
}

fn results(plan: &str, worlds: &[&dyn World], seeds: u64) -> Results {
    let plan = Plan::parse(&format!("duration = '3s'\nwarmup = '1s'\n{plan}")).unwrap();
    let seeds = Seeds::new(1, seeds).unwrap();
    Results::play(&plan, worlds, seeds, &|_| ControlFlow::Continue(())).unwrap()
}

const QUEUES: &str = "[link]\nrate = '5mbit'\nqdisc = ['pfifo limit 100', 'dualpi2']\n[[flow]]\ncc = 'cubic'\n[[probe]]\nkind = 'ping'";

#[test]
fn all_formats_are_the_same_of_a_document_that_was_read_back() {
    for (worlds, seeds) in [(&[&Model as &dyn World][..], 1), (&[&Model, &Twin], 2)] {
        let results = results(QUEUES, worlds, seeds);
        let report = Report::of(&results);
        let document = json::write(&report);
        let read: Results = serde_json::from_str(&document).unwrap();
        let again = Report::of(&read);
        assert_eq!(json::write(&again), document);
        assert_eq!(csv::write(&again), csv::write(&report));
        let style = Style { width: Some(60), colour: true, graphs: true };
        assert_eq!(text::write(&again, &style), text::write(&report, &style));
    }
}

/// The document's summary, the table and the lines for spreadsheets have the same numbers.
#[test]
fn formats_agree() {
    let results = results(QUEUES, &[&Model], 1);
    let report = Report::of(&results);
    let document: Value = serde_json::from_str(&json::write(&report)).unwrap();
    let figures = document["summary"][1]["figures"].as_array().unwrap();
    let drops = figures.iter().find(|figure| figure["name"] == "drops").unwrap();
    assert_eq!((&drops["group"], &drops["unit"]), (&"queue".into(), &"count".into()));
    let drops = drops["mean"].as_f64().unwrap();
    assert_eq!(document["runs"][1]["outcome"]["queue"]["drops"].as_f64(), Some(drops));

    let lines = csv::write(&report);
    let mut lines = lines.lines();
    assert!(lines.next().unwrap().ends_with(",queue drops"));
    assert!(lines.nth(1).unwrap().ends_with(&format!(",{drops:.0}")));

    let page = text::write(&report, &Style::default());
    let row = page.lines().find(|line| line.starts_with("dualpi2 ")).unwrap();
    assert!(row.ends_with(&format!(" {drops:.0}")), "{row}");
}

#[test]
fn the_best_is_in_bold_only_where_colours_are_wanted() {
    let results = results(QUEUES, &[&Model], 1);
    let report = Report::of(&results);
    let plain = text::write(&report, &Style::default());
    assert!(!plain.contains('\x1b'));
    let coloured = text::write(&report, &Style { width: None, colour: true });
    let bold: Vec<&str> = coloured.lines().filter(|line| line.contains("\x1b[1m")).collect();
    assert_eq!(bold.len(), 1, "{coloured}");
    assert!(bold[0].starts_with("\x1b[1mdualpi2 "), "{coloured}");
    assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), plain);
}

/// Nothing in a document can steer a terminal.
#[test]
fn a_name_is_text() {
    let results = results(&format!("name = \"a\\u001b[2Jb\"\n{QUEUES}"), &[&Model], 1);
    let page = text::write(&Report::of(&results), &Style { width: None, colour: true });
    assert!(page.starts_with("a\\u001b[2Jb\n"), "{page}");
}
