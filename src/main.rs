//! `dualq`: low latency under load, proven before you deploy it.
#![forbid(unsafe_code)]

mod apply;
mod check;
mod cli;
mod diff;
mod doctor;
mod draw;
mod interrupt;
mod kernel;
mod live;
mod mtu;
mod output;
mod plan;
mod predict;
mod progress;
mod recipe;
mod regret;
mod replay;
mod report;
mod run;
mod stored;
mod watched;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    if dualq_worlds::kernel::is_guest() {
        dualq_worlds::kernel::serve();
    }
    match cli::parse().and_then(cli::Command::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
