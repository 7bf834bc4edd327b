//! `dualq`: low latency under load, proven before you deploy it.
#![forbid(unsafe_code)]

mod check;
mod cli;
mod kernel;
mod output;
mod progress;
mod replay;
mod report;
mod run;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse().and_then(cli::Command::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
