//! `dualq run`: from the arguments to the outcomes.

mod files;

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dualq_qdisc::{EcnMask, Spec};
use dualq_report::{Report, Style, csv, json, text};
use dualq_scenario::{
    Direction, EcnRequest, EcnStyle, Element, FlowGroup, Overrides, Scenario, Sweep, Variant,
};
use dualq_units::plain;
use dualq_worlds::{Origin, Results, Seeds, World, WorldError};

use crate::cli::run::RunArgs;
use crate::cli::{Failure, note, note_qdiscs, note_units};
use crate::examples;
use crate::input;
use crate::output::{self, print, print_as_it_is, shell_word};
use crate::progress::Steps;
use crate::watched::{self, Watched};
use crate::world;
use files::Files;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let inputs = inputs(args)?;
    world::prepare(&args.world)?;
    let open = |name: &_| world::open(*name, args.kernel.as_deref());
    let worlds: Vec<Box<dyn World>> = args.world.iter().map(open).collect::<Result<_, _>>()?;
    let worlds: Vec<&dyn World> = worlds.iter().map(AsRef::as_ref).collect();
    world::make_sense(args.kernel.as_deref(), &args.world)?;
    let seeds = seeds(args.seed, args.seeds)?;
    let total = check(args, &inputs, &worlds)?;
    // What cannot be written is said before anything runs.
    let files = Files::open(args, inputs.iter().map(|input| input.stem.as_str()))?;
    let steps = Steps::of_time(total, !args.no_progress && !args.quiet);
    let watched = Watched::open(args, worlds[0])?;
    let playing = watched.as_ref().map_or(worlds.clone(), |watched| vec![watched]);
    let mut all: Result<Vec<Results>, WorldError> = Ok(Vec::new());
    for input in &inputs {
        let played = Results::play(&input.sweep, &playing, seeds, &|more| steps.watch(more));
        all = all.and_then(|mut all| {
            all.push(played?);
            Ok(all)
        });
        if all.is_err() {
            break;
        }
    }
    steps.clear();
    if let Some(watched) = watched {
        watched.finish(all.is_ok())?;
    }
    let mut all = all?;
    let Origin { program, command, .. } = origin();
    for (results, input) in all.iter_mut().zip(&inputs) {
        if files.is_any() || args.distributions {
            let (program, command, plan) = (program.clone(), command.clone(), input.source.clone());
            let files = input.sweep.files.clone();
            results.origin = Some(Origin { program, command, plan, files });
        }
        if !args.json && !args.csv {
            name(results, &command);
        }
    }
    let reports: Vec<Report<'_>> = all.iter().map(Report::of).collect();
    files.write(&reports)?;
    show(args, &reports)
}

/// The program, as what it writes names it.
pub(crate) const PROGRAM: &str = concat!("dualq ", env!("CARGO_PKG_VERSION"));

/// Prints what the user wants to see of it.
fn show(args: &RunArgs, reports: &[Report<'_>]) -> Result<(), Failure> {
    if args.quiet {
        return Ok(());
    }
    let mut stdout = io::stdout();
    // There is one if either is asked for.
    for report in reports {
        if args.json {
            return print(&mut stdout, &json::write(report));
        } else if args.csv {
            return print(&mut stdout, &csv::write(report));
        }
    }
    let elsewhere = watched::takes_stdout(args);
    let (colour, width) = (output::has_colours(args.color) && !elsewhere, output::width());
    let style = Style { width, colour, graphs: output::draws() && !elsewhere };
    let tables: Vec<String> = reports.iter().map(|report| text::write(report, &style)).collect();
    let tables = tables.join("\n");
    if elsewhere {
        print_as_it_is(&mut io::stderr(), &tables)
    } else {
        print_as_it_is(&mut stdout, &tables)
    }
}

/// Makes sure that all can be run, and tells how much time that is in the scenarios.
fn check(args: &RunArgs, inputs: &[Input], worlds: &[&dyn World]) -> Result<Duration, Failure> {
    let each = worlds.len().saturating_mul(args.seeds as usize);
    let (mut all, mut total) = (0_usize, Duration::ZERO);
    let mut told = Vec::new();
    for Input { sweep, .. } in inputs {
        let variants = sweep.variants();
        for variant in &variants {
            let refused = worlds.iter().find_map(|world| world.refuses(&variant.scenario));
            if let Some(reason) = refused {
                return Err(Failure::Usage(reason));
            }
            total = total.saturating_add(variant.scenario.duration);
        }
        if !args.quiet {
            note_qdiscs(variants.iter().map(|variant| &variant.scenario));
        }
        for surprise in surprises(&variants) {
            if !told.contains(&surprise) {
                told.push(surprise);
            }
        }
        all = all.saturating_add(variants.len().saturating_mul(each));
    }
    for told in told {
        tell(args, told);
    }
    if all > MOST_RUNS {
        let message = format!(
            "{all} runs; at most {MOST_RUNS} at once: fewer combinations, or fewer --seeds"
        );
        return Err(Failure::Usage(message));
    }
    if inputs.len() > 1 && (args.json || args.csv) {
        let form = if args.json { "--json" } else { "--csv" };
        let message = format!(
            "{form} prints what came of one scenario, and these are {}: give one, or --save DIR for a file each",
            inputs.len()
        );
        return Err(Failure::Usage(message));
    }
    watched::check(args, all)?;
    let traces: Vec<PathBuf> = inputs.iter().flat_map(Input::traces).collect();
    let scenarios = args.scenario.iter().map(|path| ("the scenario", path.as_path()));
    let traces = traces.iter().map(|path| ("a trace of the scenario", path.as_path()));
    files::check(args, all, &scenarios.chain(traces).collect::<Vec<_>>())?;
    Ok(total.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX)))
}

/// The outcomes of all runs are in memory at once.
const MOST_RUNS: usize = 20_000;

/// What is behind a scenario's name in that of the file with its series.
pub(crate) const SERIES: &str = "-series";

/// The name that a sweep has which was given none.
const UNNAMED: &str = "unnamed";

/// Calls what has no name by the command that made it.
fn name(results: &mut Results, command: &str) {
    if results.name == UNNAMED && !command.is_empty() {
        command.clone_into(&mut results.name);
    }
}

/// Calls what has no name by the settings that vary, or by what is given if none does.
pub(crate) fn name_by_settings(results: &mut Results, otherwise: &str) {
    if results.name != UNNAMED {
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    for (what, _) in results.scenarios().flat_map(|runs| &runs.settings().0) {
        if !names.contains(&what.as_str()) {
            names.push(what);
        }
    }
    results.name = match names.split_last() {
        None => otherwise.to_owned(),
        Some((last, [])) => format!("sweep of {last}"),
        Some((last, others)) => format!("sweep of {} and {last}", others.join(", ")),
    };
}

/// What makes what this call writes: the program, and the call as its user typed it.
pub(crate) fn origin() -> Origin {
    let words = env::args_os().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    let words: Vec<String> = iter::once("dualq".to_owned()).chain(words).collect();
    Origin { program: PROGRAM.to_owned(), command: words.join(" "), ..Origin::default() }
}

/// A note is no error.
fn tell(args: &RunArgs, text: &str) {
    if !args.quiet {
        note(text);
    }
}

/// What a scenario asks for that its author may not have expected.
fn surprises(variants: &[Variant]) -> Vec<&'static str> {
    let any = |holds: fn(&Scenario) -> bool| variants.iter().any(|v| holds(&v.scenario));
    let counts_aggregates = |scenario: &Scenario| {
        let fifo = |spec: &Spec| matches!(spec, Spec::Pfifo(_) | Spec::PfifoFast(_));
        scenario.sender.gso && scenario.link.qdisc.levels().any(fifo)
    };
    let starves = |scenario: &Scenario| {
        let any_ect = scenario.link.qdisc.levels().any(
            |spec| matches!(spec, Spec::Dualpi2(change) if change.ecn_mask == Some(EcnMask::Any)),
        );
        let classic = |group: &FlowGroup| group.ecn.is_on() && !group.cc.needs_ecn();
        any_ect && scenario.flow.iter().any(classic)
    };
    let lacks = |scenario: &Scenario| {
        let needs = |group: &FlowGroup| group.cc.ecn_style() == EcnStyle::Accurate;
        scenario.granted_ecn() != EcnRequest::Accurate && scenario.flow.iter().any(needs)
    };
    let runs_free = |scenario: &Scenario| {
        let up = scenario.link.passage(Direction::Up);
        let limits = |element: &Element| {
            matches!(element, Element::Queue { .. } | Element::Slot { .. } | Element::Police { .. })
        };
        let is_free = up.bottleneck.is_none() && !up.before.iter().chain(&up.behind).any(limits);
        is_free && scenario.flow.iter().any(|group| group.direction == Direction::Up)
    };
    let free = "flows go up, where nothing limits the rate but their windows; link.up.rate does";
    let reno = "prague needs Accurate ECN at its receiver (tcp_ecn = 3): with receiver.ecn as it is, it is Reno without ECN";
    let fifo = "a packet in a FIFO's limit may be an aggregate of up to 64 KB; sender.gso = false splits them";
    let ecn = "with any_ect, flows of classic congestion controls with ECN share the L queue, whose marks make them give way to DCTCP";
    let mut told = Vec::new();
    told.extend(any(counts_aggregates).then_some(fifo));
    told.extend(any(starves).then_some(ecn));
    told.extend(any(lacks).then_some(reno));
    told.extend(any(runs_free).then_some(free));
    told
}

/// `--seeds` of them, from `--seed` on.
pub(crate) fn seeds(seed: u64, seeds: u64) -> Result<Seeds, Failure> {
    Seeds::new(seed, seeds).map_err(|_| {
        Failure::Usage(format!("--seeds {seeds}: there are not so many from --seed {seed} on"))
    })
}

/// A sweep, and where it is from.
struct Input {
    sweep: Sweep,
    source: String,
    /// Where the files that it names are.
    folder: PathBuf,
    /// What files of it are called.
    stem: String,
}

impl Input {
    fn traces(&self) -> impl Iterator<Item = PathBuf> {
        self.sweep.files.keys().map(|name| self.folder.join(name))
    }
}

/// All that is to be run; without a file what the options alone say.
fn inputs(args: &RunArgs) -> Result<Vec<Input>, Failure> {
    if !args.quiet {
        times_in_words(args);
    }
    if args.scenario.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        let message = "standard input can be read once, and - is given twice";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut inputs = match args.scenario.as_slice() {
        [] => vec![input(args, None)?],
        files => files.iter().map(|file| input(args, Some(file))).collect::<Result<_, _>>()?,
    };
    let stems = apart(inputs.iter().map(|input| input.stem.clone()).collect());
    inputs.iter_mut().zip(stems).for_each(|(input, stem)| input.stem = stem);
    Ok(inputs)
}

/// Names of files, with a number behind those of which a file was there before: files of one name come from several folders.
pub(crate) fn apart(stems: Vec<String>) -> Vec<String> {
    let mut taken = HashSet::new();
    let apart = |(at, stem): (usize, String)| {
        let numbered = (at + 1..).map(|number| format!("{stem}-{number}"));
        let mut names = iter::once(stem.clone()).chain(numbered);
        let is_free = |name: &String| {
            let files = [name.clone(), format!("{name}{SERIES}")];
            let is_free = files.iter().all(|file| !taken.contains(file));
            is_free.then(|| taken.extend(files)).is_some()
        };
        names.find(is_free).unwrap_or(stem)
    };
    stems.into_iter().enumerate().map(apart).collect()
}

fn times_in_words(args: &RunArgs) {
    let times = args.rtt.iter().map(|rtt| ("--rtt", rtt));
    let times = times.chain(args.duration.iter().map(|duration| ("--duration", duration)));
    let times = times.chain(args.interval.iter().map(|interval| ("--interval", interval)));
    note_units(&args.rate, times);
}

/// What to try instead of a file that is not there, if it has the name of a shipped scenario, or nearly.
fn unknown(path: &Path, error: &io::Error) -> String {
    let stem = path.file_stem().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    if error.kind() != io::ErrorKind::NotFound {
        return String::new();
    }
    if examples::find(stem).is_some() {
        return format!("; `dualq run {stem}` has the shipped one");
    }
    format!("; {}`dualq examples` lists the shipped scenarios", examples::near(stem))
}

/// A scenario file's text, and what belongs to it.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) text: String,
    /// What it is called in messages, with a colon behind it.
    pub(crate) named: String,
    /// Where the files that it names are.
    pub(crate) folder: PathBuf,
    /// Those of them that are inside the program, by their names.
    pub(crate) shipped: BTreeMap<String, String>,
}

/// Reads a scenario file; nothing of none.
pub(crate) fn read(path: Option<&Path>) -> Result<Source, Failure> {
    let Some(path) = path else { return Ok(Source::default()) };
    let named = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let read = input::text_or_stdin(path, input::LONGEST);
    let mut shipped = BTreeMap::new();
    // A file goes before what is shipped under its name.
    let text = match (read, path.to_str().and_then(examples::find)) {
        (Err(error), Some(found)) if error.kind() == io::ErrorKind::NotFound => {
            shipped = found.beside();
            found.source().to_owned()
        }
        (Err(error), _) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(Failure::Usage(format!("{named}: a scenario is text in UTF-8")));
        }
        (read, _) => read.map_err(|error| {
            let hint = unknown(path, &error);
            Failure::Run(format!("cannot read {named}: {}{hint}", plain(&error)))
        })?,
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Source { text, named: format!("{named}: "), folder, shipped })
}

/// How several values of an option are given, to whoever has put them into one.
fn one_by_one(args: &RunArgs, option: &str) -> String {
    let given = match option {
        "qdisc" => &args.qdisc,
        "cc" => &args.cc,
        "rate" => &args.rate,
        "rtt" => &args.rtt,
        _ => return String::new(),
    };
    let Some(list) = given.iter().find(|word| word.contains(',')) else { return String::new() };
    let each = list.split(',').map(|value| match value.trim() {
        value if value.contains(' ') => format!("--{option} '{value}'"),
        value => format!("--{option} {value}"),
    });
    format!("; several are given one by one: {}", each.collect::<Vec<_>>().join(" "))
}

fn input(args: &RunArgs, path: Option<&Path>) -> Result<Input, Failure> {
    let Source { text, named, folder, shipped } = read(path)?;
    let overrides = Overrides {
        qdisc: args.qdisc.clone(),
        cc: args.cc.clone(),
        rate: args.rate.clone(),
        rtt: args.rtt.clone(),
        duration: args.duration.clone(),
        interval: args.interval.clone(),
        set: Vec::new(),
        picture: args.distributions || files::wants_pictures(args),
    };
    for told in dualq_scenario::notes(&text) {
        tell(args, &format!("{named}{told}"));
    }
    let read = {
        let files = dualq_scenario::files(&shipped, &folder);
        Sweep::parse_beside(&files, &text, &overrides)
    };
    let sweep = read.map_err(|error| {
        // An option stands in no file.
        let named = if error.option.is_some() { "" } else { &named };
        let hint = error.option.map_or(String::new(), |option| one_by_one(args, option));
        // No table of TOML begins like that.
        if error.option.is_none() && text.trim_start().starts_with('{') {
            let message = "it is JSON, and a scenario is TOML; `dualq report` takes results";
            return Failure::Usage(format!("{named}{message}"));
        }
        Failure::Usage(format!("{named}{error}{hint}"))
    })?;
    let stem = path.and_then(Path::file_stem).filter(|stem| *stem != "-");
    let stem = stem.map_or_else(|| "run".to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(Input { sweep, source: text, folder, stem })
}
