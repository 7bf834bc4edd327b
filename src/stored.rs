//! `dualq report`: stored documents, and a page of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dualq_report::svg::Picture;
use dualq_report::{Report, agreement, html, replayed};
use dualq_sweep::{Folder, FolderError};
use dualq_units::plain;
use dualq_worlds::Results;

use crate::cli::report::ReportArgs;
use crate::cli::{Failure, note};
use crate::input::{LONGEST_RESULT, text_or_stdin};
use crate::output::{Named, keep_apart};
use crate::pictures::{self, Pictures};
use crate::run::{PROGRAM, apart, name_by_settings};
use crate::tables::Tables;

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let paths = given(&args.results)?;
    let read_from: Vec<_> = paths.iter().map(|path| ("a result", path.as_path())).collect();
    let written = [("--output", args.output.as_ref()), ("--parquet", args.parquet.as_ref())];
    keep_apart(&read_from, &written)?;
    let again = |at: &usize| paths[..*at].contains(&paths[*at]);
    if let Some(twice) = (1..paths.len()).find(again) {
        let path = paths[twice].display();
        return Err(Failure::Usage(format!("{path} is given twice; give each result once")));
    }
    let stored: Vec<Stored> = paths.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    for (one, path) in stored.iter().zip(&paths) {
        let Stored::Text { named, text } = one else { continue };
        let Some(other) = other(named, text)? else { continue };
        if stored.len() > 1 {
            let message = format!(
                "{named} is of check or replay, whose documents are shown one by one: give it alone"
            );
            return Err(Failure::Usage(message));
        }
        return show_other(args, &stem(path), other);
    }
    let mut results: Vec<Results> =
        stored.into_iter().map(Stored::results).collect::<Result<_, _>>()?;
    // Before and after are mostly of one scenario: only their files tell them apart.
    let names: Vec<String> = results.iter().map(|results| results.name.clone()).collect();
    for (results, path) in results.iter_mut().zip(&paths) {
        if names.iter().filter(|name| **name == results.name).count() > 1 {
            results.name = format!("{} ({})", results.name, path.display());
        }
    }
    let reports: Vec<Report<'_>> = results.iter().map(Report::of).collect();
    let engine = args.interactive.engine(args.output.as_ref())?;
    let page = args.output.as_deref().map(Named::open).transpose()?;
    let pictures = Pictures::open(&args.pictures)?;
    let stems = apart(paths.iter().map(|path| stem(path)).collect());
    Tables::open(args.parquet.as_deref(), stems.len())?.write(stems.iter().zip(&reports))?;
    if pictures.is_any() {
        pictures
            .write(stems.iter().zip(&reports).map(|(stem, report)| pictures::of(stem, report)))?;
    }
    page.map_or(Ok(()), |page| {
        page.write(html::write(&reports, PROGRAM, engine.as_ref()).as_bytes())
    })
}

/// What is to be read. A folder that is none of a sweep stands for its documents, as `dualq run --save` writes them.
fn given(results: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for path in results {
        match path.is_dir().then(|| Folder::read(path)) {
            Some(Err(error @ FolderError::NoFolder(_))) => {
                let documents = documents(path).map_err(|error| {
                    Failure::Run(format!("cannot read {}: {}", path.display(), plain(&error)))
                })?;
                if documents.is_empty() {
                    return Err(Failure::Run(format!(
                        "{error}; and no JSON document, as `dualq run SCENARIO --save DIR` writes them"
                    )));
                }
                paths.extend(documents);
            }
            _ => paths.push(path.clone()),
        }
    }
    Ok(paths)
}

/// The JSON documents in a folder, by their names.
fn documents(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    Ok(paths)
}

/// What files of a document are called.
pub(crate) fn stem(path: &Path) -> String {
    let stem = path.file_stem().filter(|stem| *stem != "-");
    stem.map_or_else(|| "report".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// What is stored: a document's text with what it is called, or the folder of a sweep.
enum Stored {
    Text { named: String, text: String },
    Folder(Folder),
}

fn read(path: &Path) -> Result<Stored, Failure> {
    if path.is_dir() {
        return Ok(Stored::Folder(Folder::read(path)?));
    }
    let named = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let text = text_or_stdin(path, LONGEST_RESULT)
        .map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
    if text.trim().is_empty() {
        return Err(Failure::Run(format!(
            "{named} is empty; `dualq run SCENARIO --save DIR` writes results that can be shown"
        )));
    }
    Ok(Stored::Text { named, text })
}

impl Stored {
    /// What came of `dualq run`, or of the last sweep in the folder.
    fn results(self) -> Result<Results, Failure> {
        match self {
            Self::Folder(folder) => {
                let plans = folder.plans()?;
                let gathered = folder.results(&plans[0])?;
                if gathered.missing > 0 {
                    let (missing, all) = (gathered.missing, plans[0].scenarios.len());
                    let path = folder.path().display();
                    note(&format!("{path}: {missing} of {all} scenarios have no runs yet"));
                }
                let mut results = gathered.results;
                name_by_settings(&mut results, &stem(folder.path()));
                Ok(results)
            }
            // As bytes: scenarios and outcomes of bytes are read in dualq-worlds too, and are compiled once.
            Self::Text { named, text } => {
                serde_json::from_slice(text.as_bytes()).map_err(|error| {
                    Failure::Run(format!("{named}: not a result of dualq run --json: {error}"))
                })
            }
        }
    }
}

/// The page and the pictures of a document of another command.
struct Other {
    page: String,
    pictures: Vec<Picture>,
}

/// What is to be shown of a document of `dualq check` or `dualq replay`; none of any other.
fn other(named: &str, text: &str) -> Result<Option<Other>, Failure> {
    #[derive(serde::Deserialize)]
    struct Head {
        command: String,
    }
    let command = serde_json::from_str::<Head>(text).map(|head| head.command);
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Run(format!("{named}: not a result of dualq that can be shown: {error}"))
    };
    Ok(match command.as_deref() {
        Ok("check") => {
            let document = agreement::Document::read(text).map_err(|error| failed(&error))?;
            Some(Other { page: document.page(PROGRAM), pictures: document.pictures() })
        }
        Ok("replay") => {
            let document = replayed::Document::read(text).map_err(|error| failed(&error))?;
            Some(Other { page: document.page(PROGRAM), pictures: document.pictures() })
        }
        _ => None,
    })
}

fn show_other(args: &ReportArgs, stem: &str, other: Other) -> Result<(), Failure> {
    let refused = match (&args.parquet, &args.interactive.interactive) {
        (Some(_), _) => Some("--parquet: tables are of documents of dualq run"),
        (None, Some(_)) => {
            Some("--interactive: what can be simulated anew are documents of dualq run")
        }
        (None, None) => None,
    };
    if let Some(message) = refused {
        return Err(Failure::Usage(message.to_owned()));
    }
    let page = args.output.as_deref().map(Named::open).transpose()?;
    Pictures::open(&args.pictures)?.write(std::iter::once((stem, other.pictures)))?;
    page.map_or(Ok(()), |page| page.write(other.page.as_bytes()))
}
