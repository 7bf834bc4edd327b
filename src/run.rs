//! `dualq run`: from the arguments to the outcomes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use dualq_qdisc::{EcnMask, Spec};
use dualq_report::{Report, Style, csv, json, text};
use dualq_scenario::{EcnRequest, EcnStyle, FlowGroup, Overrides, Plan, Scenario, Variant};
use dualq_worlds::{Results, Seeds, World};

use crate::cli::{Failure, RunArgs, note, note_units};
use crate::output::{self, plain, print, print_as_it_is};
use crate::progress::Steps;
use crate::watched::{self, Watched};
use crate::world;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let plan = plan(args)?;
    let open = |name: &_| world::open(*name, args.kernel.as_deref());
    let worlds: Vec<Box<dyn World>> = args.world.iter().map(open).collect::<Result<_, _>>()?;
    let worlds: Vec<&dyn World> = worlds.iter().map(AsRef::as_ref).collect();
    world::is_kernel_used(args.kernel.as_deref(), &args.world)?;
    let variants = plan.variants();
    for variant in &variants {
        if let Some(reason) = worlds.iter().find_map(|world| world.refuses(&variant.scenario)) {
            return Err(Failure::Usage(reason));
        }
    }
    for told in surprises(&variants) {
        note(told);
    }
    let seeds = seeds(args)?;
    let each = worlds.len().saturating_mul(args.seeds as usize);
    let all = variants.len().saturating_mul(each);
    if all > MOST_RUNS {
        let message = format!(
            "{all} runs; at most {MOST_RUNS} at once: fewer combinations, or fewer --seeds"
        );
        return Err(Failure::Usage(message));
    }
    watched::check(args, all)?;
    let durations = variants.iter().map(|variant| variant.scenario.duration);
    let total = durations.fold(Duration::ZERO, Duration::saturating_add);
    let total = total.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX));
    let steps = Steps::of_time(total, !args.no_progress);
    let watched = Watched::open(args, worlds[0])?;
    let playing = watched.as_ref().map_or(worlds.clone(), |watched| vec![watched]);
    let results = Results::play(&plan, &playing, seeds, &|more| steps.watch(more));
    steps.clear();
    if let Some(watched) = watched {
        watched.finish(results.is_ok())?;
    }
    let mut results = results?;
    if !args.json && !args.csv && results.name == UNNAMED {
        results.name = own_words(env::args_os().skip(1));
    }
    let report = Report::of(&results);
    let mut stdout = io::stdout();
    if args.json {
        print(&mut stdout, &json::write(&report))
    } else if args.csv {
        print(&mut stdout, &csv::write(&report))
    } else {
        let elsewhere = watched::takes_stdout(args);
        let style = Style { width: output::width(), colour: output::colours() && !elsewhere };
        let table = text::write(&report, &style);
        if elsewhere {
            print_as_it_is(&mut io::stderr(), &table)
        } else {
            print_as_it_is(&mut stdout, &table)
        }
    }
}

/// The outcomes of all runs are in memory at once.
const MOST_RUNS: usize = 20_000;

/// The name that a plan has which was given none.
const UNNAMED: &str = "unnamed";

/// The call as its user typed it.
fn own_words(args: impl Iterator<Item = OsString>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=%+@".contains(c);
    let quoted = |word: String| match word.chars().all(plain) && !word.is_empty() {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = args.map(|arg| quoted(arg.to_string_lossy().into_owned())).collect();
    format!("dualq {}", words.join(" "))
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
    let reno = "prague needs Accurate ECN at its receiver (tcp_ecn = 3): with receiver.ecn as it is, it is Reno without ECN";
    let fifo = "a packet in a FIFO's limit may be an aggregate of up to 64 KB; sender.gso = false splits them";
    let ecn = "with any_ect, flows of classic congestion controls with ECN share the L queue, whose marks make them give way to DCTCP";
    let mut told = Vec::new();
    told.extend(any(counts_aggregates).then_some(fifo));
    told.extend(any(starves).then_some(ecn));
    told.extend(any(lacks).then_some(reno));
    told
}

/// `--seeds` of them, from `--seed` on.
fn seeds(args: &RunArgs) -> Result<Seeds, Failure> {
    Seeds::new(args.seed, args.seeds).map_err(|_| {
        let (seed, seeds) = (args.seed, args.seeds);
        Failure::Usage(format!("--seeds {seeds}: there are not so many from --seed {seed} on"))
    })
}

fn plan(args: &RunArgs) -> Result<Plan, Failure> {
    let (source, named) = match &args.scenario {
        None => (String::new(), String::new()),
        Some(path) => {
            let named = match path == Path::new("-") {
                true => "standard input".to_owned(),
                false => path.display().to_string(),
            };
            let read = match path == Path::new("-") {
                true => io::read_to_string(io::stdin()),
                false => fs::read_to_string(path),
            };
            let source = read
                .map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
            (source, format!("{named}: "))
        }
    };
    let overrides = Overrides {
        qdisc: args.qdisc.clone(),
        cc: args.cc.clone(),
        rate: args.rate.clone(),
        rtt: args.rtt.clone(),
        duration: args.duration.clone(),
        interval: args.interval.clone(),
    };
    for told in dualq_scenario::notes(&source) {
        note(&format!("{named}{told}"));
    }
    let times = args.rtt.iter().map(|rtt| ("--rtt", rtt));
    let times = times.chain(args.duration.iter().map(|duration| ("--duration", duration)));
    let times = times.chain(args.interval.iter().map(|interval| ("--interval", interval)));
    note_units(&args.rate, times);
    let folder = args.scenario.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    Plan::parse_in(folder, &source, &overrides).map_err(|error| {
        // An option stands in no file.
        let named = if error.option.is_some() { "" } else { &named };
        Failure::Usage(format!("{named}{error}"))
    })
}
