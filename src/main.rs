//! `dualq`: low latency under load, proven before you deploy it.
#![forbid(unsafe_code)]

mod apply;
mod check;
mod cli;
mod diff;
mod doctor;
mod draw;
mod examples;
mod explain;
mod help;
mod history;
mod input;
mod interrupt;
mod kernel;
mod live;
mod measure;
mod module;
mod mtu;
mod output;
mod pictures;
mod plan;
mod predict;
mod progress;
mod recipe;
mod regret;
mod replay;
mod report;
mod run;
mod screen;
mod serve;
mod shell;
mod signals;
mod stored;
mod sweep;
mod tables;
mod verify;
mod watch;
mod watched;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    if dualq_worlds::kernel::is_guest() {
        dualq_worlds::kernel::serve();
    }
    cli::complete();
    match cli::parse().and_then(cli::Command::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
