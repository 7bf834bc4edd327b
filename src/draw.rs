//! `dualq draw`: scenarios drawn at random from the whole language, and what real Linux does with them, as reference lines for `dualq check`.

use std::io::{self, Write as _};

use dualq_scenario::Scenario;
use dualq_scenario::draw::{Class, draw};
use dualq_worlds::{Job, play};
use serde_json::{Value, json};

use crate::cli::check::DrawArgs;
use crate::cli::{Failure, WorldName};
use crate::output::print;
use crate::progress::Steps;
use crate::world;

pub(crate) fn run(args: &DrawArgs) -> Result<(), Failure> {
    let classes = classes(&args.classes)?;
    let last = args.seed.checked_add(args.count).ok_or_else(|| {
        let (seed, count) = (args.seed, args.count);
        Failure::Usage(format!("--count {count}: there are not so many from --seed {seed} on"))
    })?;
    let seeds = args.seed..last;
    let scenarios: Vec<Scenario> =
        classes.iter().flat_map(|class| seeds.clone().map(|seed| draw(*class, seed))).collect();
    let runs = args.record.map_or(0, u64::from);
    let mut recorded: Vec<Vec<Value>> = vec![Vec::new(); scenarios.len()];
    if runs > 0 {
        let world = world::open(WorldName::Kernel, args.kernel.as_deref())?;
        let world = world.as_ref();
        let steps = Steps::of(scenarios.len() as u64 * runs, "runs", !args.no_progress);
        let job = |scenario, seed| Job { scenario, world, seed };
        let jobs: Vec<Job<'_>> = scenarios
            .iter()
            .flat_map(|scenario| (1..=runs).map(move |seed| job(scenario, seed)))
            .collect();
        let outcomes = play(&jobs, &|more| steps.watch(more));
        steps.clear();
        for (number, outcome) in outcomes?.iter().enumerate() {
            let mut outcome = serde_json::to_value(outcome).expect("an outcome is JSON");
            if let Some(fields) = outcome.as_object_mut() {
                // Nine tenths of a line, and nothing compares it.
                fields.remove("series");
            }
            recorded[number / runs as usize].push(outcome);
        }
    }
    let mut lines = Vec::new();
    for (scenario, runs) in scenarios.iter().zip(recorded) {
        // Writing into memory does not fail.
        let _ = writeln!(lines, "{}", json!({ "scenario": scenario, "runs": runs }));
    }
    print(&mut io::stdout(), &String::from_utf8_lossy(&lines))
}

/// The classes that are named, or all.
fn classes(names: &[String]) -> Result<Vec<Class>, Failure> {
    if names.is_empty() {
        return Ok(Class::ALL.to_vec());
    }
    let find = |name: &String| {
        Class::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
            let known = Class::ALL.map(Class::name).join(", ");
            Failure::Usage(format!("unknown class {name:?}; known are {known}"))
        })
    };
    let mut classes = Vec::new();
    for name in names {
        let class = find(name)?;
        // A class that is named twice would give each scenario, and each name, twice.
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    Ok(classes)
}
