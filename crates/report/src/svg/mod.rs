//! Single pictures for papers and slides, as SVG: what the report shows, without a script. Text is in the first sans serif that the
//! viewer has, and what stands below says what a picture is of and what makes it again.

pub(crate) mod axis;
mod bars;
pub(crate) mod canvas;
mod completions;
pub(crate) mod distribution;
mod front;
pub(crate) mod lines;
pub(crate) mod plot;
#[cfg(feature = "png")]
mod png;
mod rows;
mod sweep;

use std::borrow::Cow;

use canvas::{Anchor, BOLD, Canvas, WIDTH, fitted, width, wrapped};

#[cfg(feature = "png")]
pub use png::{Painter, PngError};

use crate::report::Report;
use crate::words::one_line;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What it shows, as the end of a file's name: `comparison`, `time`.
    pub name: Cow<'static, str>,
    /// The document.
    pub svg: String,
}

/// All pictures that a report has something for.
#[must_use]
pub fn pictures(report: &Report<'_>) -> Vec<Picture> {
    let rows = rows::all(report);
    if rows.is_empty() {
        return Vec::new();
    }
    let caption = Caption::of(report);
    let mut pictures = vec![bars::comparison(report, &rows, &caption)];
    pictures.extend(bars::shares(report, &rows, &caption));
    pictures.extend(sweep::sweep(report, &caption));
    pictures.extend(front::front(report, &caption));
    pictures.extend(completions::completions(&rows, &caption));
    pictures.extend(completions::by_size(&rows, &caption));
    pictures.extend(lines::time(&rows, &caption));
    pictures.extend(lines::signals(&rows, &caption));
    pictures.extend(distribution::distributions(&rows, &caption));
    pictures
}

/// A title behind the name of what it is of, if that has one.
fn titled(name: &str, title: &str) -> String {
    if name.is_empty() { title.to_owned() } else { format!("{name}: {title}") }
}

/// What stands above and below each picture.
pub(crate) struct Caption {
    /// What it is of; nothing where that has no name but its command.
    pub(crate) name: String,
    /// Lines of where it is from.
    pub(crate) source: Vec<String>,
}

const MARGIN: f64 = 12.0;

impl Caption {
    fn of(report: &Report<'_>) -> Self {
        let results = report.results;
        let seeds = results.seeds();
        let seeds = match seeds.count() {
            1 => format!("seed {}", seeds.first()),
            _ => format!("seeds {} to {}", seeds.first(), seeds.last()),
        };
        let world = |(name, kernel): (&str, Option<&str>)| match kernel {
            Some(version) => format!("world {name} (Linux {version})"),
            None => format!("world {name}"),
        };
        let worlds: Vec<String> = results.worlds().map(world).collect();
        let origin = results.origin.as_ref();
        let mut name = one_line(&results.name);
        if origin.is_some_and(|origin| one_line(&origin.command) == name) {
            name.clear();
        }
        let mut source = vec![name.clone(), worlds.join(", "), seeds];
        source.retain(|words| !words.is_empty());
        source.extend(
            origin.map(|origin| origin.program.clone()).filter(|program| !program.is_empty()),
        );
        let mut source = vec![source.join(" · ")];
        source.extend(
            origin.map(|origin| origin.command.clone()).filter(|command| !command.is_empty()),
        );
        Self { name, source }
    }

    /// Writes the title, and says where it ends. A name that is too long is cut, not what the picture shows.
    pub(crate) fn head(&self, canvas: &mut Canvas, title: &str) -> f64 {
        let (size, room) = (14.0 * BOLD, WIDTH - 2.0 * MARGIN);
        let name = fitted(&self.name, size, room - width(&format!(": {title}"), size));
        canvas.text((MARGIN, 22.0), Anchor::Start, "h", &titled(&name, title));
        34.0
    }

    /// Writes what is to be said and where it is from below a picture that ends at `below`.
    pub(crate) fn finish(
        &self,
        mut canvas: Canvas,
        name: impl Into<Cow<'static, str>>,
        title: &str,
        below: f64,
        said: &[String],
    ) -> Picture {
        let mut y = below + 4.0;
        let what = said.join(" ");
        for text in std::iter::once(&what).chain(&self.source) {
            for line in wrapped(text, 11.0, WIDTH - 2.0 * MARGIN) {
                y += 14.0;
                canvas.text((MARGIN, y), Anchor::Start, "s", &line);
            }
        }
        let about = format!("{what} {}", self.source.join(": "));
        let svg = canvas.document(y + 10.0, &titled(&self.name, title), &about);
        Picture { name: name.into(), svg }
    }
}
