//! `dualq check`: what a world makes of reference scenarios, beside what real Linux did with them.

use std::io;
use std::path::Path;

use dualq_report::agreement::{Document, json, text};
use dualq_units::plain;
use dualq_worlds::agreement::{Reference, Verdict, compare, count_different};

use crate::cli::check::CheckArgs;
use crate::cli::{Failure, WorldName};
use crate::input::{self, LONGEST_RESULT};
use crate::output::{Named, keep_apart, print};
use crate::pictures::Pictures;
use crate::progress::Steps;
use crate::run::{PROGRAM, origin};
use crate::world;

/// What is said of a file that was meant for another command.
const NO_RUN: &str = "it is no recorded run, {\"scenario\": {...}, \"runs\": [{...}, ...]} in one line, as of tests/data/linux-7.3/narrow.jsonl";

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut references = Vec::new();
    for path in &args.files {
        let named = path.display();
        let text = input::text(path, LONGEST_RESULT)
            .map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() {
                continue;
            }
            let reference: Reference = serde_json::from_str(line).map_err(|error| {
                Failure::Run(format!("{named}: line {number}: {NO_RUN}: {error}"))
            })?;
            references.push(reference);
        }
        if text.trim().is_empty() {
            let message = format!(
                "{named} is empty: each of its lines is to be a scenario and what came of it"
            );
            return Err(Failure::Run(message));
        }
    }
    world::prepare(&[args.world])?;
    let world = world::open(args.world, args.kernel.as_deref())?;
    let beside = if args.twin {
        if args.world == WorldName::Kernel {
            let hint = "--twin compares the model with the world kernel: leave --world out";
            return Err(Failure::Usage(hint.to_owned()));
        }
        Some(world::open(WorldName::Kernel, args.kernel.as_deref())?)
    } else {
        world::make_sense(args.kernel.as_deref(), &[args.world])?;
        None
    };
    if args.report.as_deref() == Some(Path::new("-")) {
        let message = "a report on standard output leaves no room for the lines: give a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let read: Vec<_> = args.files.iter().map(|path| ("the reference", path.as_path())).collect();
    keep_apart(&read, &[("--report", args.report.as_ref())])?;
    // What cannot be written is said before anything runs.
    let report = args.report.as_deref().map(Named::open).transpose()?;
    let pictures = Pictures::open(&args.pictures)?;
    let worlds = 1 + u64::from(args.twin);
    let total = count_different(&references) as u64 * args.seeds * worlds;
    let steps = Steps::of(total, "runs", !args.no_progress);
    let (world, beside) = (world.as_ref(), beside.as_deref());
    let compared = compare(&references, world, beside, args.seeds, &|more| steps.watch(more));
    steps.clear();
    let compared = compared?;
    let document = || json(&compared, world, args.twin, &origin());
    if report.is_some() || pictures.is_any() {
        let document =
            Document::read(&document()).map_err(|error| Failure::Run(error.to_string()))?;
        pictures.write(std::iter::once(("check", document.pictures())))?;
        report.map_or(Ok(()), |file| file.write(document.page(PROGRAM).as_bytes()))?;
    }
    let shown = if args.json { document() } else { text(&compared, world, args.twin) };
    print(&mut io::stdout(), &shown)?;
    let all_well = compared.iter().all(|compared| match &compared.verdict {
        Verdict::Compared(comparison) if args.twin => comparison.is_twin(),
        Verdict::Compared(comparison) => comparison.agrees(),
        Verdict::NotPossible(_) => false,
    });
    // What differs has been said.
    if all_well { Ok(()) } else { Err(Failure::Command(1)) }
}
