//! `dualq run`: from the arguments to the outcomes.

use std::fs;
use std::io;

use dualq_scenario::{Outcome, Overrides, Plan, Variant};
use rayon::prelude::*;

use crate::cli::{Failure, RunArgs};
use crate::output::{plain, print};
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

/// One of its scenarios, and what came of it in each world, in the order of the worlds.
pub(crate) struct Run {
    pub(crate) variant: Variant,
    pub(crate) outcomes: Vec<Outcome>,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let plan = plan(args)?;
    let open = |name: &_| World::open(*name, args.kernel.as_deref());
    let worlds: Vec<World> = args.world.iter().map(open).collect::<Result<_, _>>()?;
    world::is_kernel_used(args.kernel.as_deref(), &worlds)?;
    let variants = plan.variants();
    for variant in &variants {
        if let Some(reason) = worlds.iter().find_map(|world| world.refuses(&variant.scenario)) {
            return Err(Failure::Usage(reason));
        }
    }
    let seconds = |variant: &Variant| variant.scenario.duration.as_secs().max(1);
    let total = worlds.len() as u64 * variants.iter().map(seconds).sum::<u64>();
    let steps = Steps::of(total, "s", !args.no_progress);
    // Each scenario is a world of its own: how many run at once changes nothing.
    let jobs: Vec<(&Variant, &World)> = variants
        .iter()
        .flat_map(|variant| worlds.iter().map(move |world| (variant, world)))
        .collect();
    let outcomes: Result<Vec<Outcome>, Failure> = jobs
        .into_par_iter()
        .map(|(variant, world)| {
            let mut step = steps.part(seconds(variant));
            world.run(&variant.scenario, args.seed, &mut |second| step.reach(second))
        })
        .collect();
    steps.clear();
    let mut outcomes = outcomes?.into_iter();
    let runs = variants
        .into_iter()
        .map(|variant| {
            let outcomes = outcomes.by_ref().take(worlds.len()).collect();
            Run { variant, outcomes }
        })
        .collect();
    let comparison = Comparison { plan, seed: args.seed, worlds, runs };
    let text = if args.json {
        report::run::json(&comparison)
    } else if args.csv {
        report::run::csv(&comparison)
    } else {
        report::run::text(&comparison)
    };
    print(&mut io::stdout(), &text)
}

fn plan(args: &RunArgs) -> Result<Plan, Failure> {
    let (source, named) = match &args.scenario {
        None => (String::new(), String::new()),
        Some(path) => {
            let named = path.display().to_string();
            let source = fs::read_to_string(path)
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
    Plan::parse_with(&source, &overrides).map_err(|error| {
        // An option stands in no file.
        let named = if error.option.is_some() { "" } else { &named };
        Failure::Usage(format!("{named}{error}"))
    })
}
