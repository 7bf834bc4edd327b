//! `dualq doctor --recipe`: a recipe from somewhere else, checked against a machine.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use dualq_host::Facts;
use dualq_host::recipe::{Link, Recipe, check};
use dualq_units::bounded::BYTE_ORDER_MARK;
use dualq_units::{Rate, plain, tc_time};

use crate::cli::Failure;
use crate::cli::recipe::RecipeArgs;
use crate::output::{print, text_width};
use crate::report;

/// More than any text that people write.
const MOST: u64 = 4 << 20;

/// Reads the recipe in `path`, and says what its settings do where these facts hold.
pub(crate) fn run(
    path: &Path,
    args: &RecipeArgs,
    facts: &Facts,
    rate: Option<Rate>,
    json: bool,
) -> Result<(), Failure> {
    let link = link(args, facts, rate)?;
    let recipe = Recipe::read(&path.display().to_string(), &read(path)?);
    let findings = check(&recipe, facts, link);
    let text = if json {
        report::recipe::json(&recipe, &findings, facts)
    } else {
        report::recipe::text(&recipe, &findings, facts, args.verbose, text_width())
    };
    print(&mut io::stdout(), &text)
}

fn read(path: &Path) -> Result<String, Failure> {
    let named = path.display();
    let cannot = |error: &io::Error| Failure::Run(format!("cannot read {named}: {}", plain(error)));
    let mut bytes = Vec::new();
    let taken = if path == Path::new("-") {
        io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
    };
    if taken.map_err(|error| cannot(&error))? as u64 > MOST {
        return Err(Failure::Run(format!("{named} is larger than 4 MiB: that is no recipe")));
    }
    // It would be part of the first setting's name.
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The path that the options give, its round-trip time the machine's own if they do not.
fn link(args: &RecipeArgs, facts: &Facts, rate: Option<Rate>) -> Result<Option<Link>, Failure> {
    let given = args.rtt.as_deref().map(tc_time::parse).transpose();
    let given = given.map_err(|error| Failure::Usage(format!("--rtt: {error}")))?;
    if given == Some(Duration::ZERO) {
        return Err(Failure::Usage("--rtt: a path has a round-trip time above 0".to_owned()));
    }
    Ok(rate.zip(given.or(facts.min_rtt())).map(|(rate, rtt)| Link { rate, rtt }))
}
