//! `dualq check`: what a world makes of reference scenarios, beside what real Linux did with them.

mod figures;

use std::fs;
use std::io;

use dualq_scenario::{Limit, Outcome, Scenario};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::cli::{CheckArgs, Failure, WorldName};
use crate::output::{plain, print};
use crate::progress::Steps;
use crate::report;
use crate::world::{self, World};

/// A line of a reference file.
#[derive(Deserialize)]
struct Reference {
    scenario: Value,
    runs: Vec<Value>,
}

/// What came of one reference scenario.
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
}

pub(crate) enum Verdict {
    /// The figures, side by side.
    Compared(Comparison),
    /// Why this world cannot run it.
    NotPossible(String),
}

/// How a world does beside the reference.
pub(crate) struct Comparison {
    /// Goodput, retransmissions and round trips, with wide tolerances: whether it is the same behaviour.
    pub(crate) quantities: Vec<Quantity>,
    /// Every figure that both have, with narrow ones: whether the worlds can be told apart.
    pub(crate) figures: Vec<Quantity>,
    /// Figures that the reference does not have.
    pub(crate) lacking: Vec<String>,
    /// Limits of the machine that the runs met.
    pub(crate) limits: Vec<String>,
}

impl Comparison {
    /// Whether the behaviour is the same.
    pub(crate) fn agrees(&self) -> bool {
        self.quantities.iter().all(|quantity| quantity.agrees)
    }

    /// Whether nothing tells the worlds apart.
    pub(crate) fn is_twin(&self) -> bool {
        self.figures.iter().all(|quantity| quantity.agrees)
    }
}

/// A figure of which two means are compared.
pub(crate) struct Quantity {
    pub(crate) what: String,
    pub(crate) kernel: f64,
    pub(crate) here: f64,
    pub(crate) agrees: bool,
}

/// How far two means may be apart, beside the kernel's own spread.
#[derive(Clone, Copy)]
enum Tolerance {
    /// A share of the kernel's, or a difference.
    Share(f64, f64),
    /// A factor either way, or a difference.
    Factor(f64, f64),
}

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut references = Vec::new();
    for path in &args.files {
        let named = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
        for (line, number) in text.lines().zip(1..) {
            let reference: Reference = serde_json::from_str(line)
                .map_err(|error| Failure::Run(format!("{named}: line {number}: {error}")))?;
            references.push(reference);
        }
    }
    let world = World::open(args.world, args.kernel.as_deref())?;
    let beside = if args.twin {
        if matches!(world, World::Kernel(_)) {
            let hint = "--twin compares the model with the world kernel: leave --world out";
            return Err(Failure::Usage(hint.to_owned()));
        }
        Some(World::open(WorldName::Kernel, args.kernel.as_deref())?)
    } else {
        world::is_kernel_used(args.kernel.as_deref(), std::slice::from_ref(&world))?;
        None
    };
    let worlds = 1 + u64::from(args.twin);
    let total = references.len() as u64 * args.seeds * worlds;
    let steps = Steps::of(total, "runs", !args.no_progress);
    let checked: Result<Vec<Checked>, Failure> = references
        .par_iter()
        .map(|reference| check(reference, &world, beside.as_ref(), args.seeds, &steps))
        .collect();
    steps.clear();
    let checked = checked?;
    let text = if args.json {
        report::check::json(&checked, &world, args.twin)
    } else {
        report::check::text(&checked, &world, args.twin)
    };
    print(&mut io::stdout(), &text)?;
    let all_well = checked.iter().all(|checked| match &checked.verdict {
        Verdict::Compared(comparison) if args.twin => comparison.is_twin(),
        Verdict::Compared(comparison) => comparison.agrees(),
        Verdict::NotPossible(_) => false,
    });
    // What differs has been said.
    if all_well { Ok(()) } else { Err(Failure::Command(1)) }
}

/// What a world makes of a scenario. What it does not have is a finding; only a world that breaks is a failure.
fn check(
    reference: &Reference,
    world: &World,
    beside: Option<&World>,
    seeds: u64,
    steps: &Steps,
) -> Result<Checked, Failure> {
    let name = reference.scenario["name"].as_str().unwrap_or("unnamed").to_owned();
    let scenario = serde_json::from_value::<Scenario>(reference.scenario.clone());
    let scenario = match scenario.map_err(|error| error.to_string()) {
        Ok(scenario) => match world.refuses(&scenario) {
            None => Ok(scenario),
            Some(reason) => Err(reason),
        },
        Err(reason) => Err(reason),
    };
    let scenario = match scenario {
        Ok(scenario) => scenario,
        Err(reason) => return Ok(Checked { name, verdict: Verdict::NotPossible(reason) }),
    };
    let run = |world: &World| {
        (1..=seeds)
            .into_par_iter()
            .map(|seed| {
                let _done = steps.part(1);
                world.run(&scenario, seed, &mut |_| ())
            })
            .collect::<Result<Vec<Outcome>, Failure>>()
    };
    let verdict = match run(world).and_then(|here| Ok((here, beside.map(&run).transpose()?))) {
        Ok((here, None)) => Verdict::Compared(compare(&scenario, &reference.runs, &here, false)?),
        Ok((here, Some(kernel))) => {
            let mut comparison = compare(&scenario, &values(&kernel)?, &here, true)?;
            comparison.limits.extend(Limit::in_words(&kernel));
            Verdict::Compared(comparison)
        }
        Err(Failure::Usage(reason)) => Verdict::NotPossible(reason),
        Err(failure) => return Err(failure),
    };
    Ok(Checked { name, verdict })
}

/// Outcomes as reference files have them.
fn values(outcomes: &[Outcome]) -> Result<Vec<Value>, Failure> {
    let values: Result<Vec<Value>, _> = outcomes.iter().map(serde_json::to_value).collect();
    values.map_err(|error| Failure::Run(error.to_string()))
}

/// The figures of the reference runs and of the outcomes, side by side.
fn compare(
    scenario: &Scenario,
    runs: &[Value],
    outcomes: &[Outcome],
    both_worlds: bool,
) -> Result<Comparison, Failure> {
    let (figures, lacking) = figures::compare(scenario, both_worlds, runs, &values(outcomes)?);
    let quantities = behaviour(scenario, runs, outcomes);
    Ok(Comparison { quantities, figures, lacking, limits: Limit::in_words(outcomes) })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Quantity {
    fn new(what: String, kernel: &[f64], here: &[f64], tolerance: Tolerance) -> Self {
        let spread = kernel.iter().copied().fold(f64::MIN, f64::max)
            - kernel.iter().copied().fold(f64::MAX, f64::min);
        let (kernel, here) = (mean(kernel), mean(here));
        let difference = (kernel - here).abs();
        let agrees = difference <= spread
            || match tolerance {
                Tolerance::Share(share, most) => {
                    difference <= share * kernel.abs() || difference <= most
                }
                Tolerance::Factor(factor, most) => {
                    difference <= most || (here <= kernel * factor && kernel <= here * factor)
                }
            };
        Self { what, kernel, here, agrees }
    }
}

/// Goodput, retransmissions and round trips.
fn behaviour(scenario: &Scenario, runs: &[Value], outcomes: &[Outcome]) -> Vec<Quantity> {
    let mut quantities = Vec::new();
    let mut add = |what: String, at: &str, of: &dyn Fn(&Outcome) -> f64, tolerance| {
        let kernel: Vec<f64> =
            runs.iter().map(|run| run.pointer(at).and_then(Value::as_f64).unwrap_or(0.0)).collect();
        let here: Vec<f64> = outcomes.iter().map(of).collect();
        quantities.push(Quantity::new(what, &kernel, &here, tolerance));
    };
    add(
        "total goodput (Mbit/s)".to_owned(),
        "/goodput_mbit",
        &|outcome| outcome.goodput_mbit,
        Tolerance::Share(0.05, 0.3),
    );
    for (number, group) in scenario.flow.iter().enumerate() {
        add(
            format!("{} {} goodput (Mbit/s)", group.count, group.cc),
            &format!("/flow/{number}/total_mbit"),
            &|outcome| outcome.flow[number].total_mbit,
            Tolerance::Share(0.2, 0.0),
        );
        add(
            format!("{} {} retransmissions", group.count, group.cc),
            &format!("/flow/{number}/retransmits"),
            &|outcome| outcome.flow[number].retransmits as f64,
            Tolerance::Factor(2.0, 30.0),
        );
    }
    let base_ms = scenario.link.rtt.as_secs_f64() * 1e3;
    for (number, group) in scenario.probe.iter().enumerate() {
        let name = |figure: &str| format!("{} probe {figure} RTT above base (ms)", group.cc);
        let mut above = |figure: &str, key: &str, of: &dyn Fn(&Outcome) -> f64, tolerance| {
            let kernel: Vec<f64> = runs
                .iter()
                .map(|run| &run["probe"][number][key])
                .map(|value| value.as_f64().unwrap_or(0.0) - base_ms)
                .collect();
            let here: Vec<f64> = outcomes.iter().map(|outcome| of(outcome) - base_ms).collect();
            quantities.push(Quantity::new(name(figure), &kernel, &here, tolerance));
        };
        above(
            "median",
            "p50_ms",
            &|outcome| outcome.probe[number].p50_ms,
            Tolerance::Share(0.25, 1.5),
        );
        above("p95", "p95_ms", &|outcome| outcome.probe[number].p95_ms, Tolerance::Share(0.5, 5.0));
    }
    quantities
}
