//! `dualq examples`: the shipped scenarios, which are inside the program, so that they are there wherever it is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use dualq_qdisc::grammar::did_you_mean;
use dualq_units::plain;
use serde_json::json;

use crate::cli::Failure;
use crate::output::{Output, print, text_width};
use crate::report;

pub(crate) const EXAMPLES: &str = "\
Examples:
  dualq examples                            # what there is
  dualq run narrow-vps                      # runs one
  dualq examples narrow-vps > mine.toml     # to begin with
  dualq examples lte --copy .               # with the files that it needs";

#[derive(Args)]
pub(crate) struct ExamplesArgs {
    /// Print this one; all are listed without
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Write it, or all of them, into the folder DIR, with the files that they need
    #[arg(long, value_name = "DIR")]
    pub(crate) copy: Option<PathBuf>,

    /// Print the list as one JSON document
    #[arg(long, conflicts_with_all = ["name", "copy"])]
    pub(crate) json: bool,
}

/// A shipped scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shipped {
    name: &'static str,
    source: &'static str,
    /// A file that it needs beside it, and what is in that.
    beside: Option<(&'static str, &'static str)>,
}

impl Shipped {
    const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, beside: None }
    }

    /// What it is about, in a line.
    fn about(&self) -> &'static str {
        let about = self.source.lines().find_map(|line| line.strip_prefix("about = \""));
        about.unwrap_or_default().trim_end_matches('"')
    }

    /// Its text.
    pub(crate) const fn source(&self) -> &'static str {
        self.source
    }

    /// What is in the files that it needs, by their names.
    pub(crate) fn beside(&self) -> BTreeMap<String, String> {
        let beside = self.beside.into_iter();
        beside.map(|(name, content)| (name.to_owned(), content.to_owned())).collect()
    }

    /// The names and contents of its files.
    fn files(&self) -> impl Iterator<Item = (String, &'static str)> {
        let beside = self.beside.map(|(name, content)| (name.to_owned(), content));
        [(format!("{}.toml", self.name), self.source)].into_iter().chain(beside)
    }
}

macro_rules! shipped {
    ($name:literal) => {
        Shipped::new($name, include_str!(concat!("../scenarios/", $name, ".toml")))
    };
}

/// All of them, those first that answer what newcomers ask.
const SHIPPED: [Shipped; 17] = [
    shipped!("narrow-vps"),
    shipped!("coexistence"),
    shipped!("rrul"),
    shipped!("web"),
    shipped!("ten-flows"),
    shipped!("overload"),
    shipped!("l4s"),
    shipped!("prague-cubic"),
    shipped!("rtt-unfair"),
    shipped!("lossy-lan"),
    shipped!("gso-1g"),
    shipped!("gso-10g"),
    shipped!("incast"),
    shipped!("satellite"),
    Shipped {
        beside: Some(("lte.trace", include_str!("../scenarios/lte.trace"))),
        ..shipped!("lte")
    },
    shipped!("ipsec-mtu"),
    shipped!("recipe"),
];

/// The one of that name.
pub(crate) fn find(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|shipped| shipped.name == name)
}

/// The names of all.
pub(crate) fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|shipped| shipped.name).collect()
}

/// `did you mean "web"? ` of a name that may have been meant for one of them, or nothing; files have an end that they do not have.
pub(crate) fn near(name: &str) -> String {
    did_you_mean(name.strip_suffix(".toml").unwrap_or(name), &names())
}

pub(crate) fn run(args: &ExamplesArgs) -> Result<(), Failure> {
    let wanted = match &args.name {
        None => &SHIPPED[..],
        Some(name) => std::slice::from_ref(find(name).ok_or_else(|| {
            let hint = near(name);
            Failure::Usage(format!(
                "no shipped scenario is called {name:?}; {hint}`dualq examples` lists them"
            ))
        })?),
    };
    if let Some(folder) = &args.copy {
        return copy(wanted, folder);
    }
    let text = if args.json {
        let entry = |shipped: &Shipped| json!({ "name": shipped.name, "about": shipped.about() });
        format!("{}\n", json!(SHIPPED.iter().map(entry).collect::<Vec<_>>()))
    } else if let [one] = wanted {
        one.source.to_owned()
    } else {
        let rows = SHIPPED.iter().map(|shipped| (shipped.name, shipped.about()));
        let list = report::list_of(rows, text_width());
        format!("{list}\nRun one: dualq run {}. Print one: dualq examples {0}\n", SHIPPED[0].name)
    };
    print(&mut io::stdout(), &text)
}

/// Writes files, and leaves alone what is there and is something else.
fn copy(wanted: &[Shipped], folder: &Path) -> Result<(), Failure> {
    let cannot = |path: &Path, error: &io::Error| {
        Failure::Run(format!("cannot write {}: {}", path.display(), plain(error)))
    };
    let files = || {
        wanted.iter().flat_map(Shipped::files).map(|(name, content)| (folder.join(name), content))
    };
    for (path, content) in files() {
        match fs::read(&path) {
            Ok(there) if there != content.as_bytes() => {
                let message = format!(
                    "{} is there and is something else: it is left as it is",
                    path.display()
                );
                return Err(Failure::Run(message));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot(&path, &error)),
            _ => {}
        }
    }
    fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    for (path, content) in files() {
        let mut output = Output::create(&path)?;
        let written = output.write_all(content.as_bytes()).and_then(|()| output.finish());
        written.map_err(|error| cannot(&path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scenarios_of_the_repository_are_inside() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut found: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut inside: Vec<String> =
            SHIPPED.iter().flat_map(Shipped::files).map(|(name, _)| name).collect();
        found.sort();
        inside.sort();
        assert_eq!(found, inside);
        assert!(SHIPPED.iter().all(|shipped| shipped.about().len() > 20));
    }
}
