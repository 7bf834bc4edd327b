//! `--svg` and `--png`: pictures in folders, all of them or none.

use std::path::PathBuf;

use dualq_report::svg::{self, Picture};

use crate::cli::Failure;
use crate::cli::report::PictureArgs;
use crate::output::{Folder, Named};

/// The folders that are asked for.
pub(crate) struct Pictures {
    svg: Option<Folder>,
    png: Option<(Folder, Painter)>,
}

#[cfg(feature = "png")]
use dualq_report::svg::Painter;

/// What would draw PNG.
#[cfg(not(feature = "png"))]
struct Painter;

#[cfg(feature = "png")]
fn painter() -> Result<Painter, Failure> {
    Painter::new().map_err(|error| Failure::Run(format!("--png: {error}")))
}

#[cfg(not(feature = "png"))]
fn painter() -> Result<Painter, Failure> {
    let message = "--png: this dualq was built without it: cargo install --path . --features png, or take --svg";
    Err(Failure::Usage(message.to_owned()))
}

#[cfg(feature = "png")]
fn paint(painter: &Painter, picture: &Picture) -> Result<Vec<u8>, Failure> {
    painter.paint(&picture.svg).map_err(|error| Failure::Run(format!("--png: {error}")))
}

#[cfg(not(feature = "png"))]
fn paint(Painter: &Painter, _: &Picture) -> Result<Vec<u8>, Failure> {
    painter().map(|_| Vec::new())
}

impl Pictures {
    /// Makes sure that they can be written before anything runs.
    pub(crate) fn open(args: &PictureArgs) -> Result<Self, Failure> {
        let folder = |path: &Option<PathBuf>| path.as_deref().map(Folder::open).transpose();
        let painter = args.png.is_some().then(painter).transpose()?;
        let (svg, png) = (folder(&args.svg)?, folder(&args.png)?);
        Ok(Self { svg, png: png.zip(painter) })
    }

    pub(crate) const fn is_any(&self) -> bool {
        self.svg.is_some() || self.png.is_some()
    }

    /// Writes the pictures of documents, whose names begin with theirs.
    pub(crate) fn write<'a>(
        &self,
        documents: impl Iterator<Item = (&'a str, Vec<Picture>)>,
    ) -> Result<(), Failure> {
        let mut files = Vec::new();
        for (stem, pictures) in documents {
            for picture in pictures {
                let named = |end: &str| format!("{stem}-{}.{end}", picture.name);
                if let Some(folder) = &self.svg {
                    files.push(folder.file(&named("svg"), picture.svg.as_bytes())?);
                }
                if let Some((folder, painter)) = &self.png {
                    files.push(folder.file(&named("png"), &paint(painter, &picture)?)?);
                }
            }
        }
        files.into_iter().try_for_each(Named::finish)
    }
}

/// The pictures of a report.
pub(crate) fn of<'a>(stem: &'a str, report: &dualq_report::Report<'_>) -> (&'a str, Vec<Picture>) {
    (stem, svg::pictures(report))
}
