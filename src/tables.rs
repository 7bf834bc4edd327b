//! `--parquet`: tables for data frames, in a file or a folder.

use std::path::Path;

use dualq_report::Report;

use crate::cli::Failure;
use crate::output::{Folder, Named};

/// Where tables go.
pub(crate) enum Tables {
    /// Nobody wants any.
    None,
    /// The figures of one scenario file go into this file.
    File(Named),
    /// Figures and series of each go into this folder.
    Folder(Folder),
}

/// Refuses what this dualq was built without.
fn is_built_in() -> Result<(), Failure> {
    if cfg!(feature = "parquet") {
        return Ok(());
    }
    let message = "--parquet: this dualq was built without it: cargo install --path . --features parquet, or take --csv or --save";
    Err(Failure::Usage(message.to_owned()))
}

/// Whether a file is meant: standard output, what is there and is no folder, and what is not there and has an ending. Any other folder is
/// made, as those of `--save` and `--svg` are.
fn is_file(path: &Path) -> bool {
    let is_named_as_one = path == Path::new("-") || path.extension().is_some();
    if path.exists() { !path.is_dir() } else { is_named_as_one }
}

#[cfg(feature = "parquet")]
fn summary(report: &Report<'_>) -> Result<Vec<u8>, Failure> {
    dualq_report::parquet::summary(report)
        .map_err(|error| Failure::Run(format!("--parquet: {error}")))
}

#[cfg(feature = "parquet")]
fn series(report: &Report<'_>) -> Result<Vec<u8>, Failure> {
    let written = dualq_report::parquet::series(report.results);
    written.map_err(|error| Failure::Run(format!("--parquet: {error}")))
}

#[cfg(not(feature = "parquet"))]
fn summary(_: &Report<'_>) -> Result<Vec<u8>, Failure> {
    is_built_in().map(|()| Vec::new())
}

#[cfg(not(feature = "parquet"))]
use summary as series;

impl Tables {
    /// Makes sure that they can be written before anything runs; `documents` is how many there are to be tables of.
    pub(crate) fn open(path: Option<&Path>, documents: usize) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::None) };
        is_built_in()?;
        if !is_file(path) {
            return Folder::open(path).map(Self::Folder);
        }
        if documents != 1 {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "--parquet {path}: a file takes the figures of one scenario file, and these are {documents}: give a folder"
            )));
        }
        Named::open(path).map(Self::File)
    }

    pub(crate) const fn is_any(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Writes the tables of documents, whose names begin with theirs.
    pub(crate) fn write<'a>(
        self,
        documents: impl Iterator<Item = (&'a String, &'a Report<'a>)>,
    ) -> Result<(), Failure> {
        let mut files = Vec::new();
        match self {
            Self::None => {}
            Self::File(mut file) => {
                for (_, report) in documents {
                    file.add(&summary(report)?)?;
                }
                files.push(file);
            }
            Self::Folder(folder) => {
                for (stem, report) in documents {
                    files.push(folder.file(&format!("{stem}.parquet"), &summary(report)?)?);
                    files.push(folder.file(
                        &format!("{stem}{}.parquet", crate::run::SERIES),
                        &series(report)?,
                    )?);
                }
            }
        }
        files.into_iter().try_for_each(Named::finish)
    }
}
