//! `dualq tune`: what was tried, and the best of it in tc's words.

use std::io;
use std::ops::ControlFlow;

use dualq_report::sort_values;
use dualq_sweep::{Aim, Folder, PlanError, PlayError, Search, Step, Try, TuneError, Tuned, best};
use dualq_units::plain;
use dualq_worlds::Progress;
use serde::Serialize;

use super::{Input, use_cores, worlds};
use crate::cli::sweep::TuneArgs;
use crate::cli::{Failure, WorldName, note_qdiscs};
use crate::interrupt::{Leftover, StopsWork};
use crate::output::print;
use crate::progress::Spinner;
use crate::run::seeds;
use crate::world;

pub(crate) fn run(args: &TuneArgs) -> Result<(), Failure> {
    let input = Input::read(&args.space, &[])?;
    let names: [WorldName; 1] = [args.world];
    world::prepare(&names)?;
    use_cores(args.space.jobs)?;
    let worlds = worlds(&names, args.space.kernel.as_deref())?;
    // Without a folder of their own the runs go when it is over.
    let passing = match args.folder {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| {
            Failure::Run(format!("cannot make a folder for the runs: {}", plain(&error)))
        })?),
    };
    let _leftover = passing.as_ref().map(|passing| Leftover::of(passing.path()));
    let path = args.folder.as_deref().or(passing.as_ref().map(tempfile::TempDir::path));
    let folder = Folder::open(path.unwrap_or_else(|| std::path::Path::new(".")))?;
    let search = Search {
        space: &input.space,
        world: worlds[0].as_ref(),
        seeds: seeds(args.space.seed, args.seeds)?,
        aim: &args.aim,
        most: args.tries as usize,
        folder: &folder,
    };
    let tuned = searched(args, &search).map_err(|error| failed(&input, error))?;
    let found = &tuned.tries[tuned.best];
    if !found.score.has_goal() {
        return Err(Failure::Run(format!("no try is the best by {:?}: no run has that", args.aim)));
    }
    if !args.json {
        note_qdiscs([&found.scenario]);
    }
    if args.json {
        return print_json(&tuned);
    }
    print(&mut io::stdout(), &said(&tuned, search.seeds.count()))
}

/// Searches, and prints each try.
fn searched(args: &TuneArgs, search: &Search<'_>) -> Result<Tuned, TuneError> {
    let stops = StopsWork::begin();
    let watch = |step: Step| match (stops.came(), step) {
        (true, _) => ControlFlow::Break(()),
        (false, Step::More(..) | Step::Played(Progress::Time(_) | Progress::Run)) => {
            ControlFlow::Continue(())
        }
    };
    let mut spinner = Spinner::new(!args.space.no_progress && !args.json);
    let quiet = args.json;
    let mut printed = Ok(());
    let mut told = |aim: &Aim, number: usize, tried: &Try| {
        if !quiet && printed.is_ok() {
            printed =
                print(&mut io::stdout(), &format!("{:>4}  {}\n", number + 1, line(aim, tried)));
        }
        spinner.show(|| format!("{} tries", number + 1));
    };
    let found = search.run(&watch, &mut told);
    spinner.clear();
    found
}

/// A try in a line: its values, the aim's figures, and whether it keeps the limits.
fn line(aim: &Aim, tried: &Try) -> String {
    let settings: Vec<String> =
        tried.settings.0.iter().map(|(what, value)| format!("{what}={value}")).collect();
    let mut figures: Vec<String> =
        aim.measures().map(|measure| best::figure(measure, &tried.runs)).collect();
    figures.dedup();
    let misses = if tried.score.keeps() { "" } else { "  (misses a limit)" };
    format!("{}: {}{misses}", settings.join(" "), figures.join(", "))
}

/// The best, in tc's words, and how sure that is.
fn said(tuned: &Tuned, seeds: u64) -> String {
    let Tuned { aim, tries, best, settled } = tuned;
    let found = &tries[*best];
    let first = match found.score.keeps() {
        true => "The best",
        false => "None keeps all limits. The nearest",
    };
    let mut lines = vec![
        String::new(),
        format!("{first} of {} tries by {:?}:", tries.len(), aim.words()),
        format!("  {}", line(aim, found)),
        format!("  qdisc: {}", found.scenario.link.qdisc),
    ];
    if found.scenario.link.qdisc.levels().count() == 1 {
        lines.push(format!("  tc qdisc replace dev DEV root {}", found.scenario.link.qdisc));
    }
    let as_good = tuned.as_good();
    lines.push(match (seeds, as_good.len()) {
        (1, _) => "How sure that is takes more seeds than one (--seeds).".to_owned(),
        (_, 0) => format!("No other try is as good, as far as {seeds} seeds tell."),
        (_, others) => format!(
            "As good as far as {seeds} seeds tell, with {others} of the others: {}.",
            spans(tuned, &as_good).join(", ")
        ),
    });
    lines.push(match settled {
        true => {
            "The search came to an end by itself. There may be better ones far from what was tried."
                .to_owned()
        }
        false => "The search used up its tries (--tries); better ones may be near.".to_owned(),
    });
    lines.join("\n") + "\n"
}

/// From where to where values are that are as good, the best's among them.
fn spans(tuned: &Tuned, as_good: &[usize]) -> Vec<String> {
    let all = || as_good.iter().chain([&tuned.best]).map(|at| &tuned.tries[*at].settings.0);
    let names = tuned.tries[tuned.best].settings.0.iter().map(|(name, _)| name);
    let span = |(at, name): (usize, &String)| {
        let mut values: Vec<String> = all().map(|settings| settings[at].1.clone()).collect();
        sort_values(&mut values);
        format!("{name} {} to {}", values[0], values[values.len() - 1])
    };
    names.enumerate().map(span).collect()
}

fn failed(input: &Input<'_>, error: TuneError) -> Failure {
    if error.is_interrupt() {
        return Failure::Interrupted("interrupted; nothing was found yet".to_owned());
    }
    match error {
        TuneError::Plan(PlanError::Space(error)) => input.wrong(&error),
        TuneError::Plan(PlanError::World(error)) | TuneError::Play(PlayError::World(error)) => {
            error.into()
        }
        TuneError::Play(PlayError::Folder(error)) => error.into(),
        TuneError::Aim(error) => Failure::Usage(format!("--aim: {error}")),
        TuneError::Several(_) => Failure::Usage(format!("{}{error}", input.named)),
    }
}

/// All tries as a document.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    command: &'static str,
    aim: &'a str,
    /// The number of the best, from 0.
    best: usize,
    /// The numbers of those that may be as good.
    as_good: Vec<usize>,
    settled: bool,
    qdisc: String,
    tries: Vec<Tried<'a>>,
}

#[derive(Serialize)]
struct Tried<'a> {
    settings: &'a dualq_worlds::Settings,
    keeps: bool,
    figures: Vec<Figure<'a>>,
}

#[derive(Serialize)]
struct Figure<'a> {
    name: &'a str,
    /// Of each seed.
    values: Vec<Option<f64>>,
}

fn print_json(tuned: &Tuned) -> Result<(), Failure> {
    let figures = |tried: &Try| -> Vec<Figure<'_>> {
        let of = |measure: &dualq_report::Measure| {
            tried.runs.iter().map(|run| measure.of(run)).collect()
        };
        tuned
            .aim
            .measures()
            .map(|measure| Figure { name: measure.name(), values: of(measure) })
            .collect()
    };
    let tries = tuned.tries.iter().map(|tried| Tried {
        settings: &tried.settings,
        keeps: tried.score.keeps(),
        figures: figures(tried),
    });
    let document = Document {
        version: 1,
        command: "tune",
        aim: tuned.aim.words(),
        best: tuned.best,
        as_good: tuned.as_good(),
        settled: tuned.settled,
        qdisc: tuned.tries[tuned.best].scenario.link.qdisc.to_string(),
        tries: tries.collect(),
    };
    let text = serde_json::to_string_pretty(&document).expect("memory takes all");
    print(&mut io::stdout(), &(text + "\n"))
}
