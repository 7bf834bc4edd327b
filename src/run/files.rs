//! What `dualq run` writes into files: all of them opened before anything runs, and there whole or not at all.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use dualq_report::{Report, csv, flent, html, json};

use super::PROGRAM;
use crate::cli::{Failure, RunArgs};
use crate::output::{Output, plain};

/// The files that are asked for.
pub(super) struct Files {
    report: Option<Named>,
    flent: Option<Named>,
    /// Of each scenario: its document, its figures, its series.
    saved: Vec<[Named; 3]>,
}

/// A file, and what it is called in messages.
pub(crate) struct Named {
    path: PathBuf,
    output: Output,
}

/// Whether what is asked for shows more than figures.
pub(super) fn wants_pictures(args: &RunArgs) -> bool {
    args.report.is_some() || args.save.is_some() || args.flent.is_some()
}

/// Refuses what cannot be written: a flent file of several runs, or two documents where one has room.
pub(super) fn check(args: &RunArgs, runs: usize) -> Result<(), Failure> {
    if args.flent.is_some() && runs != 1 {
        return Err(Failure::Usage(format!(
            "--flent writes one run, and these are {runs}: give one value of each list, one --world and no --seeds"
        )));
    }
    if args.report.is_some() && args.report == args.flent {
        return Err(Failure::Usage("--report and --flent are to be two files".to_owned()));
    }
    let stdout = Path::new("-");
    if [&args.report, &args.flent].into_iter().flatten().any(|path| path == stdout) && !args.quiet {
        return Err(Failure::Usage(
            "a report or flent file on standard output leaves no room for the table: add --quiet, or give a file".to_owned(),
        ));
    }
    Ok(())
}

impl Files {
    /// `stems` are what the files of each scenario are called.
    pub(super) fn open<'s>(
        args: &RunArgs,
        stems: impl Iterator<Item = &'s str>,
    ) -> Result<Self, Failure> {
        let mut saved = Vec::new();
        if let Some(folder) = &args.save {
            for stem in stems {
                let named = |end: &str| Named::open(&folder.join(format!("{stem}{end}")));
                saved.push([named(".json")?, named(".csv")?, named("-series.csv")?]);
            }
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(Named::open).transpose();
        Ok(Self { report: open(&args.report)?, flent: open(&args.flent)?, saved })
    }

    pub(super) const fn is_any(&self) -> bool {
        self.report.is_some() || self.flent.is_some() || !self.saved.is_empty()
    }

    pub(super) fn write(self, reports: &[Report<'_>]) -> Result<(), Failure> {
        for ([document, figures, series], report) in self.saved.into_iter().zip(reports) {
            document.write(json::write(report).as_bytes())?;
            figures.write(csv::write(report).as_bytes())?;
            series.write(csv::series(report.results).as_bytes())?;
        }
        if let (Some(file), Some(run)) =
            (self.flent, reports.iter().flat_map(|report| report.results.runs()).next())
        {
            let bytes =
                flent::write(run).map_err(|refused| Failure::Run(format!("--flent: {refused}")))?;
            file.write(&bytes)?;
        }
        match self.report {
            Some(file) => file.write(html::write(reports, PROGRAM).as_bytes()),
            None => Ok(()),
        }
    }
}

impl Named {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), output: Output::create(path)? })
    }

    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.output.write_all(bytes).and_then(|()| self.output.finish());
        let path = self.path.display();
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Run(format!("cannot write {path}: {}", plain(&error))),
        })
    }
}
