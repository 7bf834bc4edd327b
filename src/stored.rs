//! `dualq report`: stored documents, and a page of them.

use std::fs;
use std::io;
use std::path::Path;

use dualq_report::{Report, html};
use dualq_worlds::Results;

use crate::cli::{Failure, ReportArgs};
use crate::output::plain;
use crate::run::{Named, PROGRAM};

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let mut results: Vec<Results> =
        args.results.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    // Before and after are mostly of one scenario: only their files tell them apart.
    let names: Vec<String> = results.iter().map(|results| results.name.clone()).collect();
    for (results, path) in results.iter_mut().zip(&args.results) {
        if names.iter().filter(|name| **name == results.name).count() > 1 {
            results.name = format!("{} ({})", results.name, path.display());
        }
    }
    let reports: Vec<Report<'_>> = results.iter().map(Report::of).collect();
    Named::open(&args.output)?.write(html::write(&reports, PROGRAM).as_bytes())
}

/// A document of `dualq run`.
fn read(path: &Path) -> Result<Results, Failure> {
    let (read, named) = match path == Path::new("-") {
        true => (io::read_to_string(io::stdin()), "standard input".to_owned()),
        false => (fs::read_to_string(path), path.display().to_string()),
    };
    let text =
        read.map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Run(format!("{named}: not a result of dualq run --json: {error}"))
    })
}
