//! The argument for pages that can simulate.

use std::env;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use dualq_report::html::Engine;
use dualq_units::plain;

use super::Failure;
use crate::input::{self, LONGEST};
use crate::run::PROGRAM;

/// What the engine's file is called.
const FILE: &str = "dualq.wasm";

/// Pages that can simulate.
#[derive(Args)]
pub(crate) struct InteractiveArgs {
    /// Put the model into the page, with which its reader turns the knobs of the scenario: the dualq.wasm of dualq's packages, or ENGINE
    #[arg(long, value_name = "ENGINE", num_args = 0..=1, require_equals = true)]
    pub(crate) interactive: Option<Option<PathBuf>>,
}

impl InteractiveArgs {
    /// The engine, if a page is to have one; `page` is where that goes.
    pub(crate) fn engine(&self, page: Option<&PathBuf>) -> Result<Option<Engine>, Failure> {
        let Some(given) = &self.interactive else { return Ok(None) };
        if page.is_none() {
            let message = "--interactive: the engine goes into a page, and none is written";
            return Err(Failure::Usage(message.to_owned()));
        }
        let path = given.clone().map_or_else(installed, Ok)?;
        let wrong =
            |why: &dyn Display| Failure::Usage(format!("--interactive={}: {why}", path.display()));
        let module = input::bytes(&path, LONGEST).map_err(|error| wrong(&plain(&error)))?;
        Engine::read(&module, PROGRAM).map(Some).map_err(|error| wrong(&error))
    }
}

/// The engine that was installed with the program.
fn installed() -> Result<PathBuf, Failure> {
    let program = env::current_exe()
        .map_err(|error| Failure::Run(format!("where this program is: {}", plain(&error))))?;
    let places = places(&program);
    if let Some(there) = places.iter().find(|place| place.is_file()) {
        return Ok(there.clone());
    }
    let [beside, share] = places.each_ref().map(|place| place.display());
    Err(Failure::Usage(format!(
        "--interactive: neither {beside} nor {share} is there: dualq's archive and Debian package have it, or give --interactive=FILE, the {FILE} that `cargo run --manifest-path playground/Cargo.toml` builds"
    )))
}

/// Where it is looked for: beside the program, as an archive is unpacked, and where packages put it.
fn places(program: &Path) -> [PathBuf; 2] {
    let folder = program.parent().unwrap_or(Path::new(""));
    let prefix = folder.parent().unwrap_or(folder);
    [folder.join(FILE), prefix.join("share/dualq").join(FILE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_beside_the_program_or_in_the_share_of_its_prefix() {
        let found = places(Path::new("/usr/bin/dualq"));
        assert_eq!(
            found.map(|place| place.display().to_string()),
            ["/usr/bin/dualq.wasm", "/usr/share/dualq/dualq.wasm"]
        );
    }
}
