//! What `dualq run` writes into files: all of them opened before anything runs, and there whole or not at all.

use std::path::{Path, PathBuf};

use dualq_report::{Report, csv, flent, html, json};

use super::{PROGRAM, SERIES};
use crate::cli::Failure;
use crate::cli::run::RunArgs;
use crate::output::{Folder, Named, keep_apart};
use crate::pictures::{self, Pictures};
use crate::tables::Tables;

/// The files that are asked for.
pub(super) struct Files {
    report: Option<Named>,
    /// What the report can simulate with.
    engine: Option<html::Engine>,
    flent: Option<Named>,
    /// Of each scenario: its document, its figures, its series.
    saved: Vec<[Named; 3]>,
    pictures: Pictures,
    tables: Tables,
    /// What the files of each scenario are called.
    stems: Vec<String>,
}

/// Whether what is asked for shows more than figures.
pub(super) fn wants_pictures(args: &RunArgs) -> bool {
    let drawn = args.pictures.svg.is_some() || args.pictures.png.is_some();
    drawn
        || args.parquet.is_some()
        || args.report.is_some()
        || args.save.is_some()
        || args.flent.is_some()
}

/// Refuses what cannot be written: a flent file of several runs, two documents where one has room, or what is `read`.
pub(super) fn check(args: &RunArgs, runs: usize, read: &[(&str, &Path)]) -> Result<(), Failure> {
    if args.flent.is_some() && runs != 1 {
        return Err(Failure::Usage(format!(
            "--flent writes one run, and these are {runs}: give one value of each list, one --world and no --seeds"
        )));
    }
    let written = [
        ("--report", args.report.as_ref()),
        ("--flent", args.flent.as_ref()),
        ("--parquet", args.parquet.as_ref()),
        ("--events", args.events.as_ref()),
        ("--pcap", args.pcap.as_ref()),
        ("--qlog", args.qlog.as_ref()),
    ];
    keep_apart(read, &written)?;
    let folders = [&args.save, &args.pictures.svg, &args.pictures.png];
    let is_written = written.iter().any(|(_, path)| path.is_some())
        || folders.iter().any(|folder| folder.is_some());
    if args.quiet && !is_written {
        return Err(Failure::Usage(
            "--quiet: nothing would come of it; name a file for the results, --report FILE say"
                .to_owned(),
        ));
    }
    let stdout = Path::new("-");
    let whole = [&args.report, &args.flent, &args.parquet];
    if whole.into_iter().flatten().any(|path| path == stdout) && !args.quiet {
        return Err(Failure::Usage(
            "a report, flent or Parquet file on standard output leaves no room for the table: add --quiet, or give a file".to_owned(),
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
        let stems: Vec<String> = stems.map(str::to_owned).collect();
        let mut saved = Vec::new();
        if let Some(folder) = args.save.as_deref().map(Folder::open).transpose()? {
            for stem in &stems {
                let named = |end: &str| folder.named(&format!("{stem}{end}"));
                saved.push([named(".json")?, named(".csv")?, named(&format!("{SERIES}.csv"))?]);
            }
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(Named::open).transpose();
        let pictures = Pictures::open(&args.pictures)?;
        let tables = Tables::open(args.parquet.as_deref(), stems.len())?;
        Ok(Self {
            engine: args.interactive.engine(args.report.as_ref())?,
            report: open(&args.report)?,
            flent: open(&args.flent)?,
            saved,
            pictures,
            tables,
            stems,
        })
    }

    pub(super) fn is_any(&self) -> bool {
        let page = self.report.is_some() || self.flent.is_some();
        page || !self.saved.is_empty() || self.pictures.is_any() || self.tables.is_any()
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
        let named = self.stems.iter().zip(reports);
        if self.pictures.is_any() {
            self.pictures.write(named.map(|(stem, report)| pictures::of(stem, report)))?;
        }
        self.tables.write(self.stems.iter().zip(reports))?;
        match self.report {
            Some(file) => {
                file.write(html::write(reports, PROGRAM, self.engine.as_ref()).as_bytes())
            }
            None => Ok(()),
        }
    }
}
