//! What `dualq check` found as a page, and as a picture: of the document that it writes.

use dualq_worlds::Origin;
use serde::Deserialize;

use crate::html::still::Still;
use crate::svg::canvas::{Anchor, Canvas, WIDTH};
use crate::svg::plot::scatter;
use crate::svg::{Caption, Picture};
use crate::words::one_line;

/// The document of `dualq check --json`.
#[derive(Debug, Deserialize)]
pub struct Document {
    version: u32,
    command: String,
    twin: bool,
    world: String,
    kernel: Option<String>,
    #[serde(default)]
    origin: Option<Origin>,
    runs: Vec<Run>,
    not_modelled: Vec<NotModelled>,
}

#[derive(Debug, Deserialize)]
struct Run {
    name: String,
    agrees: bool,
    twin: bool,
    quantities: Vec<Quantity>,
    figures: Vec<Quantity>,
    lacking: Vec<String>,
    limits: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct NotModelled {
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Quantity {
    what: String,
    #[serde(alias = "here")]
    model: f64,
    kernel: f64,
    agrees: bool,
}

/// Why a document is none of these.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is not JSON, or not of this form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// It is of another program's version, or of another command.
    #[error("version {0} of the document of {1} is not known, 1 of check is")]
    Version(u32, String),
}

/// A page of thousands of scenarios is to open all the same: so many bytes has its table at most,
const MOST_OF_TABLE: usize = 2 << 20;

/// and so many what is behind the names of scenarios, but for the last of these.
const MOST_OF_DETAILS: usize = 4 << 20;

/// About what the markup of a cell has.
const TAGS: usize = 40;

/// More scenarios that were not compared are counted.
const MOST_NOT_COMPARED: usize = 50;

const KINDS: [&str; 3] = ["Mbit/s", "ms", ""];

impl Quantity {
    /// Its unit: what stands in brackets behind its name.
    fn unit(&self) -> &str {
        let unit = self.what.rsplit_once(" (").and_then(|(_, unit)| unit.strip_suffix(')'));
        unit.filter(|unit| KINDS.contains(unit)).unwrap_or("")
    }
}

impl Document {
    /// Reads it.
    ///
    /// # Errors
    /// If it is another document, or none.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let document: Self = serde_json::from_str(text)?;
        if document.version != 1 || document.command != "check" {
            return Err(DocumentError::Version(document.version, document.command));
        }
        Ok(document)
    }

    /// What stands beside the recorded figures: the model, or another kernel.
    fn here(&self) -> String {
        match &self.kernel {
            Some(version) => format!("{} (Linux {version})", self.world),
            None => self.world.clone(),
        }
    }

    fn reference(&self) -> &'static str {
        if self.twin { "kernel" } else { "recorded" }
    }

    fn caption(&self) -> Caption {
        let name = format!("The world {} beside real Linux", self.here());
        // What it is of stands in the title.
        let mut source = Vec::new();
        let origin = self.origin.iter();
        source.extend(origin.flat_map(|origin| [origin.program.clone(), origin.command.clone()]));
        source.retain(|line| !line.is_empty());
        Caption { name: one_line(&name), source }
    }

    /// Each figure of the behaviour beside its reference.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        let all: Vec<&Quantity> = self.runs.iter().flat_map(|run| &run.quantities).collect();
        if all.is_empty() {
            return Vec::new();
        }
        let caption = self.caption();
        let mut canvas = Canvas::default();
        let title = "figures, each beside its reference";
        let top = caption.head(&mut canvas, title);
        let titles = ["Rates (Mbit/s)", "Times (ms)", "Counts"];
        let wide = (WIDTH - 24.0) / 3.0;
        let mut end = top;
        for (at, (title, kind)) in titles.into_iter().zip(KINDS).enumerate() {
            let of_kind = all.iter().filter(|quantity| quantity.unit() == kind);
            let points: Vec<(f64, f64, bool)> = of_kind
                .map(|quantity| (quantity.kernel, quantity.model, quantity.agrees))
                .collect();
            let left = 12.0 + at as f64 * wide;
            canvas.text((left + 40.0, top + 14.0), Anchor::Start, "b", title);
            end = scatter(&mut canvas, (left + 40.0, top + 22.0), wide - 52.0, &points);
        }
        let here = one_line(&self.here());
        let said = [
            format!("Across: {}; up: {here}. On the line they are the same.", self.reference()),
            "Dots are within the tolerances or the spread of real Linux, crosses are not. Both axes are logarithmic; what is below 0.1 stands there.".to_owned(),
        ];
        vec![caption.finish(canvas, "agreement", title, end + 6.0, &said)]
    }

    /// The page.
    #[must_use]
    pub fn page(&self, program: &str) -> String {
        let (here, reference) = (self.here(), self.reference());
        let mut page = Still::new(&format!("The world {here} beside real Linux"));
        let count = |of: fn(&Run) -> bool| self.runs.iter().filter(|run| of(run)).count();
        let (all, agree, twins) = (self.runs.len(), count(|run| run.agrees), count(|run| run.twin));
        page.headline(&format!(
            "{agree} of {all} scenarios agree: goodput, retransmissions and round trips are within the spread of real Linux or wide tolerances. \
             Of {all}, {twins} cannot be told apart by any figure, by narrow ones."
        ));
        if !self.not_modelled.is_empty() {
            let names = self.not_modelled.iter().map(|one| format!("{}: {}", one.name, one.reason));
            let names: Vec<String> = names.take(MOST_NOT_COMPARED).collect();
            let more = match self.not_modelled.len().saturating_sub(names.len()) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            page.paragraph(&format!("Not compared: {}{more}.", names.join("; ")));
        }
        page.begin();
        for picture in self.pictures() {
            page.picture(&picture, "Figures of the behaviour, each beside its reference");
        }
        page.section("Scenarios");
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_key(|run| (run.agrees, run.twin));
        let far = |run: &Run| {
            let apart = run.quantities.iter().filter(|quantity| !quantity.agrees);
            apart.map(said).collect::<Vec<_>>().join("; ")
        };
        let mut room = MOST_OF_TABLE;
        let rows: Vec<(bool, Vec<String>)> = runs
            .iter()
            .map_while(|run| {
                let verdict = if run.agrees { "agrees" } else { "≠ differs" };
                let twin = if run.twin { "no" } else { "yes" };
                let apart = run.figures.iter().filter(|figure| !figure.agrees).count();
                let apart = format!("{apart} of {}", run.figures.len());
                let row =
                    vec![run.name.clone(), verdict.to_owned(), twin.to_owned(), far(run), apart];
                room = room.checked_sub(row.iter().map(|cell| cell.len() + TAGS).sum())?;
                Some((!run.agrees, row))
            })
            .collect();
        let heads = ["scenario", "behaviour", "told apart", "what differs", "figures apart"];
        page.table("Scenarios", &heads, 4, &rows);
        if rows.len() < runs.len() {
            let (shown, all) = (rows.len(), runs.len());
            page.paragraph(&format!(
                "These are {shown} of {all}, those that differ first: the others are left out to keep this page small. The document of --json has all."
            ));
        }
        page.section("Figures");
        page.paragraph(
            "A figure of the behaviour differs if the means are further apart than real Linux's own runs, and than a wide tolerance. All other figures differ \
             if the means are further apart than three standard errors of their difference, which is more than chance, and than a narrow tolerance.",
        );
        let details = page.len();
        for (number, run) in runs.iter().enumerate() {
            if page.len() - details > MOST_OF_DETAILS {
                let (rest, all) = (runs.len() - number, runs.len());
                page.paragraph(&format!(
                    "The figures of {rest} of {all} scenarios are left out to keep this page small: those that differ come first. The document of --json has all."
                ));
                break;
            }
            let apart = run.figures.iter().filter(|figure| !figure.agrees).count();
            page.open(&format!(
                "{}: {} of {} figures told apart",
                run.name,
                apart,
                run.figures.len()
            ));
            let figure = |kind: &str, quantity: &Quantity| {
                let verdict = if quantity.agrees { "within" } else { "≠ differs" };
                let numbers = [quantity.model, quantity.kernel, quantity.model - quantity.kernel];
                let mut row = vec![quantity.what.clone(), kind.to_owned(), verdict.to_owned()];
                row.extend(numbers.map(|number| format!("{number:.3}")));
                (!quantity.agrees, row)
            };
            let behaviour = run.quantities.iter().map(|quantity| figure("behaviour", quantity));
            let rest = run.figures.iter().map(|quantity| figure("narrow", quantity));
            let rows: Vec<(bool, Vec<String>)> = behaviour.chain(rest).collect();
            let heads = ["figure", "tolerance", "verdict", &here, reference, "difference"];
            page.table(&run.name, &heads, 3, &rows);
            for limit in &run.limits {
                page.paragraph(&format!("limit: {limit}"));
            }
            if !run.lacking.is_empty() {
                page.paragraph(&format!("Not in the reference: {}.", run.lacking.join("; ")));
            }
            page.close();
        }
        if let Some(origin) = &self.origin {
            page.section("Make it again");
            page.paragraph(&origin.program);
            page.code(&origin.command);
        }
        page.page(program)
    }
}

fn said(quantity: &Quantity) -> String {
    format!("{}: {:.3}, recorded {:.3}", quantity.what, quantity.model, quantity.kernel)
}
