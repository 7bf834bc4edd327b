//! `dualq doctor`: what is known of a machine, and what is wrong with it.

use std::io;
use std::path::Path;

use dualq_host::{Facts, doctor, facts};
use dualq_units::Rate;

use crate::cli::doctor::DoctorArgs;
use crate::cli::{Failure, note_units};
use crate::output::{print, text_width};
use crate::{plan, recipe, report};

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let rate = args.rate.as_deref().map_or(Ok(None), rate)?;
    note_units(&args.rate, []);
    if let (Some(rtt), None) = (&args.recipe.rtt, &args.recipe.recipe) {
        return Err(Failure::Usage(format!(
            "--rtt {rtt}: it is for --recipe; to choose by the round-trip time what to change, dualq plan takes it"
        )));
    }
    let stdin = Some(Path::new("-"));
    if args.facts.as_deref() == stdin && args.recipe.recipe.as_deref() == stdin {
        let message = "--facts and --recipe cannot both be read from standard input";
        return Err(Failure::Usage(message.to_owned()));
    }
    let facts = match &args.facts {
        Some(path) => saved(path)?,
        None => here()?,
    };
    if let Some(path) = &args.recipe.recipe {
        return recipe::run(path, &args.recipe, &facts, rate, args.json);
    }
    let findings = doctor::findings(&facts, rate);
    let text = if args.json {
        report::doctor::json(&facts, &findings)
    } else {
        report::doctor::text(&facts, &findings, text_width())
    };
    print(&mut io::stdout(), &text)
}

fn rate(word: &str) -> Result<Option<Rate>, Failure> {
    match plan::rate("--rate", Some(word))? {
        Some(rate) if rate.as_bits_per_second() == 0 => {
            Err(Failure::Usage("--rate: a bottleneck has a rate above 0".to_owned()))
        }
        rate => Ok(rate),
    }
}

/// Facts from a file, or from standard input if it is `-`.
pub(crate) fn saved(path: &Path) -> Result<Facts, Failure> {
    let facts = if path == Path::new("-") {
        Facts::read_from("standard input", io::stdin().lock())
    } else {
        Facts::read(path)
    };
    facts.map_err(|error| Failure::Run(error.to_string()))
}

/// This machine's facts.
pub(crate) fn here() -> Result<Facts, Failure> {
    let dualq = std::env::current_exe().ok();
    let facts = facts::here(dualq.as_deref());
    if facts.kernel.release.is_empty() {
        let why = facts.unread.first().map_or("", String::as_str);
        return Err(Failure::Run(format!("cannot read this machine's /proc ({why})")));
    }
    Ok(facts)
}
