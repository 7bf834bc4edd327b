//! `dualq run`: from the arguments to the outcomes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use dualq_qdisc::{EcnMask, Spec};
use dualq_scenario::{FlowGroup, Outcome, Overrides, Plan, Scenario, Variant};
use rayon::prelude::*;

use crate::cli::{Failure, RunArgs, note, note_units};
use crate::output::{self, plain, print, print_marked};
use crate::progress::Steps;
use crate::report;
use crate::world::{self, World};

/// A plan that has been run.
pub(crate) struct Comparison {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
    pub(crate) worlds: Vec<World>,
    pub(crate) runs: Vec<Run>,
}

/// One of its scenarios, and what came of it: in the order of the worlds, and in each for one seed after the other.
pub(crate) struct Run {
    pub(crate) variant: Variant,
    pub(crate) outcomes: Vec<Outcome>,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut plan = plan(args)?;
    let open = |name: &_| World::open(*name, args.kernel.as_deref());
    let worlds: Vec<World> = args.world.iter().map(open).collect::<Result<_, _>>()?;
    world::is_kernel_used(args.kernel.as_deref(), &worlds)?;
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
    let all = variants.len().saturating_mul(worlds.len()).saturating_mul(args.seeds as usize);
    if all > MOST_RUNS {
        let message = format!(
            "{all} runs; at most {MOST_RUNS} at once: fewer combinations, or fewer --seeds"
        );
        return Err(Failure::Usage(message));
    }
    // Each scenario is a world of its own: how many run at once changes nothing.
    let jobs: Vec<(&Variant, &World, u64)> = variants
        .iter()
        .flat_map(|variant| worlds.iter().map(move |world| (variant, world)))
        .flat_map(|(variant, world)| seeds.clone().map(move |seed| (variant, world, seed)))
        .collect();
    let total = jobs.iter().fold(Duration::ZERO, |total, (variant, ..)| {
        total.saturating_add(variant.scenario.duration)
    });
    let steps = Steps::of_time(total, !args.no_progress);
    let outcomes: Result<Vec<Outcome>, Failure> = jobs
        .into_par_iter()
        .map(|(variant, world, seed)| {
            let mut part = steps.part_of_time(variant.scenario.duration);
            world.run(&variant.scenario, seed, &mut |time| part.reach_time(time))
        })
        .collect();
    steps.clear();
    let mut outcomes = outcomes?.into_iter();
    let each = worlds.len() * args.seeds as usize;
    let runs = variants
        .into_iter()
        .map(|variant| Run { variant, outcomes: outcomes.by_ref().take(each).collect() })
        .collect();
    let print_text = |text: &str| print(&mut io::stdout(), text);
    if args.json || args.csv {
        let comparison = Comparison { plan, seed: args.seed, worlds, runs };
        return print_text(&if args.json {
            report::run::json(&comparison)
        } else {
            report::run::csv(&comparison)
        });
    }
    if plan.name == UNNAMED {
        plan.name = own_words(env::args_os().skip(1));
    }
    let comparison = Comparison { plan, seed: args.seed, worlds, runs };
    let page = report::run::page(&comparison, output::width());
    print_marked(&mut io::stdout(), &page.text, &page.best)
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
        let classic = |group: &FlowGroup| group.ecn && !group.cc.needs_ecn();
        any_ect && scenario.flow.iter().any(classic)
    };
    let fifo = "a packet in a FIFO's limit may be an aggregate of up to 64 KB; sender.gso = false splits them";
    let ecn = "with any_ect, flows of classic congestion controls with ECN share the L queue, whose marks make them give way to DCTCP";
    let mut told = Vec::new();
    told.extend(any(counts_aggregates).then_some(fifo));
    told.extend(any(starves).then_some(ecn));
    told
}

/// `--seeds` of them, from `--seed` on.
fn seeds(args: &RunArgs) -> Result<RangeInclusive<u64>, Failure> {
    let last = args.seed.checked_add(args.seeds - 1);
    let last = last.ok_or_else(|| {
        let (seed, seeds) = (args.seed, args.seeds);
        Failure::Usage(format!("--seeds {seeds}: there are not so many from --seed {seed} on"))
    })?;
    Ok(args.seed..=last)
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
