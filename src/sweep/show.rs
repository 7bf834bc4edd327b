//! What a folder of runs came to, in words.

use std::fmt::Write as _;
use std::io;

use dualq_report::{Front, Report, Samples, Style, csv, html, json, text};
use dualq_scenario::Scenario;
use dualq_sweep::{Aim, Folder, Gathered, Record, best};
use dualq_worlds::ScenarioRuns;

use crate::cli::Failure;
use crate::cli::sweep::SweepArgs;
use crate::output::{self, Named, print, print_as_it_is, shell_word};
use crate::run::{PROGRAM, name_by_settings};
use crate::stored::stem;

/// A longer table is not read.
const MOST_ROWS: usize = 40;

/// A longer front is not, either.
const MOST_OF_FRONT: usize = 20;

/// The aim that was asked for.
pub(super) fn aim(args: &SweepArgs, scenarios: &[&Scenario]) -> Result<Option<Aim>, Failure> {
    let aim = args.aim.as_deref().map(|words| Aim::parse(words, scenarios)).transpose();
    aim.map_err(|error| Failure::Usage(format!("--aim: {error}")))
}

pub(super) fn show(args: &SweepArgs, folder: &Folder, record: &Record) -> Result<(), Failure> {
    let whole = args.json || args.report.is_some() && args.show;
    let Gathered { mut results, missing } = match whole {
        true => folder.results(record)?,
        false => folder.figures(record)?,
    };
    if !args.json && !args.csv {
        name_by_settings(&mut results, &stem(folder.path()));
    }
    let scenarios: Vec<ScenarioRuns<'_>> = results.scenarios().collect();
    let of: Vec<&Scenario> = scenarios.iter().map(ScenarioRuns::scenario).collect();
    let aim = aim(args, &of)?;
    let report = Report::of(&results);
    if let Some(page) = args.report.as_deref().filter(|_| args.show) {
        Named::open(page)?
            .write(html::write(std::slice::from_ref(&report), PROGRAM, None).as_bytes())?;
    }
    let mut stdout = io::stdout();
    if args.json {
        return print(&mut stdout, &json::write(&report));
    }
    if args.csv {
        return print(&mut stdout, &csv::write(&report));
    }
    let rows = report.figures.rows.len();
    if rows <= MOST_ROWS {
        let style = Style { width: output::width(), colour: output::colours(), graphs: false };
        print_as_it_is(&mut stdout, &text::write(&report, &style))?;
    } else {
        let folder = shell_word(&folder.path().to_string_lossy());
        print(
            &mut stdout,
            &format!(
                "{rows} rows are in `dualq sweep --show --folder {folder} --csv`, pictures in `dualq report {folder} -o FILE`.\n"
            ),
        )?;
    }
    let mut words = String::new();
    if missing > 0 {
        let all = record.scenarios.len();
        let _ = writeln!(words, "{missing} of {all} scenarios have no runs yet.");
    }
    front(&mut words, &scenarios);
    if let Some(aim) = aim {
        for line in best::of(&aim, &scenarios).lines() {
            let _ = writeln!(words, "{line}");
        }
    }
    print(&mut stdout, &words)
}

/// The scenarios of which no other has both less delay and more goodput.
fn front(words: &mut String, scenarios: &[ScenarioRuns<'_>]) {
    let Some(front) = Front::of(scenarios).filter(|front| front.points.len() > 1) else {
        return;
    };
    let (delay, goodput) = (front.delay.column().words(), front.goodput.column().words());
    let _ = writeln!(
        words,
        "\nNo other of {} has both less {delay} and more {goodput}:",
        scenarios.len()
    );
    for number in front.scenarios.iter().take(MOST_OF_FRONT) {
        let runs = &scenarios[*number];
        let shown = |measure: &dualq_report::Measure| {
            let samples = runs.first_world().iter().filter_map(|run| measure.of(run)).collect();
            measure.column().show(&Samples(samples))
        };
        let _ = writeln!(
            words,
            "  {:>9} {:>9}  {}",
            shown(&front.delay),
            shown(&front.goodput),
            best::named(runs)
        );
    }
    if let Some(more) = front.scenarios.len().checked_sub(MOST_OF_FRONT).filter(|more| *more > 0) {
        let _ = writeln!(words, "  and {more} more");
    }
}
