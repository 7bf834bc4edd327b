//! `dualq run`: from the arguments to the outcomes.

use std::fs;
use std::io;

use dualq_scenario::{Outcome, Overrides, Plan, Variant};
use rayon::prelude::*;

use crate::cli::{Failure, RunArgs};
use crate::output::{plain, print};
use crate::progress::Steps;
use crate::report;

/// A plan that has been run.
pub(crate) struct Comparison {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
    pub(crate) runs: Vec<Run>,
}

/// One of its scenarios, and what came of it.
pub(crate) struct Run {
    pub(crate) variant: Variant,
    pub(crate) outcome: Outcome,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let plan = plan(args)?;
    let variants = plan.variants();
    let steps = Steps::of(variants.len() as u64, !args.no_progress);
    // Each scenario is a world of its own: how many run at once changes nothing.
    let runs: Result<Vec<Run>, Failure> = variants
        .into_par_iter()
        .map(|variant| {
            let outcome = dualq_model::simulate(&variant.scenario, args.seed)
                .map_err(|error| Failure::Usage(error.to_string()))?;
            steps.done();
            Ok(Run { variant, outcome })
        })
        .collect();
    steps.clear();
    let comparison = Comparison { plan, seed: args.seed, runs: runs? };
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
    let mut plan =
        Plan::parse(&source).map_err(|error| Failure::Usage(format!("{named}{error}")))?;
    let overrides = Overrides {
        qdisc: args.qdisc.clone(),
        cc: args.cc.clone(),
        rate: args.rate.clone(),
        rtt: args.rtt.clone(),
        duration: args.duration.clone(),
        interval: args.interval.clone(),
    };
    plan.apply(&overrides).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(plan)
}
