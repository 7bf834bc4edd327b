//! The argument for pages that can simulate.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use dualq_report::html::Engine;

use super::Failure;
use crate::output::plain;
use crate::run::PROGRAM;

/// Pages that can simulate.
#[derive(Args)]
pub(crate) struct InteractiveArgs {
    /// Put the model into the page, with which its reader turns the knobs of the scenario: ENGINE is the dualq.wasm of the playground
    #[arg(long, value_name = "ENGINE")]
    pub(crate) interactive: Option<PathBuf>,
}

impl InteractiveArgs {
    /// The engine, if a page is to have one; `page` is where that goes.
    pub(crate) fn engine(&self, page: Option<&PathBuf>) -> Result<Option<Engine>, Failure> {
        let Some(path) = &self.interactive else { return Ok(None) };
        if page.is_none() {
            let message = "--interactive: the engine goes into a page, and none is written";
            return Err(Failure::Usage(message.to_owned()));
        }
        let wrong =
            |why: &dyn Display| Failure::Usage(format!("--interactive {}: {why}", path.display()));
        let module = fs::read(path).map_err(|error| wrong(&plain(&error)))?;
        Engine::read(&module, PROGRAM).map(Some).map_err(|error| wrong(&error))
    }
}
