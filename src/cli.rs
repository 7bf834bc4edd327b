//! Arguments in, one call into the right part, an exit status out.

pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
mod front;
pub(crate) mod interactive;
pub(crate) mod kernel;
pub(crate) mod manual;
pub(crate) mod measure;
mod misread;
pub(crate) mod module;
pub(crate) mod mtu;
pub(crate) mod plan;
pub(crate) mod recipe;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod sweep;
pub(crate) mod verify;
pub(crate) mod watch;

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use dualq_qdisc::QdiscLine;
use dualq_report::words::one_line;
use dualq_scenario::Scenario;
use dualq_units::surprise;

use crate::examples::ExamplesArgs;
use crate::explain::{self, ExplainArgs};
use crate::help::{self, HelpArgs};
use crate::interrupt::{self, EXIT_STATUS};
use crate::output::{cannot_print, print};
use apply::{
    ApplyArgs, ConfirmArgs, OnBootArgs, PutBackArgs, RollbackArgs, StatusArgs, WatchOverArgs,
};
use check::{CheckArgs, DiffArgs, DrawArgs};
use completions::CompletionsArgs;
use doctor::DoctorArgs;
use kernel::KernelCommand;
use manual::ManArgs;
use measure::{MeasureArgs, ServeArgs};
use module::ModuleCommand;
use mtu::MtuArgs;
use plan::{PlanArgs, RegretArgs};
use replay::ReplayArgs;
use report::ReportArgs;
use run::RunArgs;
use shell::{KeepArgs, ShellArgs};
use sweep::{SweepArgs, TuneArgs};
use verify::VerifyArgs;
use watch::WatchArgs;

/// Why nothing came of a call.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong: exit status 2.
    Usage(String),
    /// What they asked for could not be done: exit status 1.
    Run(String),
    /// The user pressed Ctrl-C, and what was begun has been cleaned up: exit status 130, as of a shell.
    Interrupted(String),
    /// A command that was run for somebody failed, and has said why itself: its own exit status.
    Command(u8),
    /// Nobody reads the output any more, as when it is piped into `head`: all is well.
    BrokenPipe,
}

impl Failure {
    /// Says what is wrong, in one line, and what the exit status is.
    pub(crate) fn report(self) -> ExitCode {
        // What fails because of an interrupt is nothing to report.
        interrupt::rest_if_interrupted();
        let (message, status) = match self {
            Self::Usage(message) => (message, 2),
            Self::Run(message) => (message, 1),
            Self::Interrupted(message) => (message, EXIT_STATUS),
            Self::Command(status) => return ExitCode::from(status),
            Self::BrokenPipe => return ExitCode::SUCCESS,
        };
        // If standard error is gone too, there is nobody left to tell.
        let _ = writeln!(io::stderr(), "error: {}", cut(&one_line(&message)));
        ExitCode::from(status)
    }
}

/// Low latency under load, proven before you deploy it.
#[derive(Parser)]
#[command(name = "dualq", version, about, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What dualq does.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send recorded packet arrivals through a queue discipline and a link, and see what becomes of them
    #[command(after_help = replay::EXAMPLES)]
    Replay(ReplayArgs),

    /// Run a scenario: TCP flows and probes across a path; lists of values are compared side by side
    #[command(after_help = run::EXAMPLES)]
    Run(RunArgs),

    /// Run many scenarios: all combinations of values, or samples of them, kept in a folder that is taken up again
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(SweepArgs),

    /// Find values of parameters that are best for an aim, with few runs
    #[command(after_help = sweep::TUNE_EXAMPLES)]
    Tune(TuneArgs),

    /// Open a shell, or run a command, behind a link of dualq's own, in real time; needs no root
    #[command(after_help = shell::EXAMPLES)]
    Shell(ShellArgs),

    #[command(hide = true, about = "Keep a command company, and end with it")]
    Keep(KeepArgs),

    /// Make a report to look at of stored results: one HTML file with charts, which needs no network
    #[command(after_help = report::EXAMPLES)]
    Report(ReportArgs),

    /// Run reference scenarios and compare what comes of them with what real Linux did
    #[command(after_help = check::EXAMPLES)]
    Check(CheckArgs),

    #[command(hide = true, about = "Say where two worlds part: the first packets that differ")]
    Diff(DiffArgs),

    /// Build, list and remove the Linux kernels that scenarios can run on
    #[command(subcommand)]
    Kernel(KernelCommand),

    /// List, print and copy the shipped scenarios, which are inside the program
    #[command(after_help = crate::examples::EXAMPLES)]
    Examples(ExamplesArgs),

    /// Build DualPI2 for a kernel that lacks it, of Linux's own source, as a module; install it, and take it away again
    #[command(subcommand)]
    Module(ModuleCommand),

    /// Say what a queue discipline or a congestion control is, what its parameters do, and when not to use it
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),

    /// Look at this machine's queues and TCP: what is wrong, why it matters, and what to do
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),

    /// Plan what to change on a machine, as a list of differences with reasons; nothing is changed
    #[command(after_help = plan::EXAMPLES)]
    Plan(PlanArgs),

    /// Change this machine as a plan says, and back again unless it is confirmed
    #[command(after_help = apply::APPLY_EXAMPLES)]
    Apply(ApplyArgs),

    /// Try a plan, or a queue discipline, on a real path, and say whether it helps: before and after in rounds, until it is sure
    #[command(after_help = verify::EXAMPLES)]
    Verify(VerifyArgs),

    /// Keep the plan that was applied: its files are written
    Confirm(ConfirmArgs),

    /// Take back the plan that was applied, today or a later day: all is as it was before
    Rollback(RollbackArgs),

    /// Say what is applied, whether it is still as planned, and what the queues count
    Status(StatusArgs),

    /// Show what this machine's queues and connections do now: delays, marks, drops, rates, round trips; for Prometheus too
    #[command(after_help = watch::EXAMPLES)]
    Watch(WatchArgs),

    #[command(hide = true, about = "Put a queue discipline on an interface that has just appeared")]
    OnBoot(OnBootArgs),

    /// Put back what others take away, whenever its place is there: routes, and what is below their classes (started by `dualq confirm` and `dualq on-boot`)
    #[command(hide = true)]
    PutBack(PutBackArgs),

    #[command(
        hide = true,
        about = "How far what a plan picks is from the best that the kernel has, on real Linux"
    )]
    Regret(RegretArgs),

    #[command(
        hide = true,
        about = "Draw scenarios at random, and record what real Linux does with them"
    )]
    Draw(DrawArgs),

    #[command(hide = true, about = "Take a plan back unless it is confirmed")]
    WatchOver(WatchOverArgs),

    /// Find the largest packet that gets to a host, and whether larger ones vanish without a word
    #[command(after_help = mtu::EXAMPLES)]
    Mtu(MtuArgs),

    /// Measure the path to a host where `dualq serve` runs: goodput, latency under load, RPM, and a grade
    #[command(after_help = measure::EXAMPLES)]
    Measure(MeasureArgs),

    /// Answer those who measure the path to this host and know its token
    #[command(after_help = measure::SERVE_EXAMPLES)]
    Serve(ServeArgs),

    /// Print what a shell needs to complete dualq's words by the Tab key: options, queue disciplines, scenarios
    #[command(after_help = completions::EXAMPLES)]
    Completions(CompletionsArgs),

    /// Write the pages of the manual of all commands
    #[command(after_help = manual::EXAMPLES)]
    Man(ManArgs),

    /// Print the help of a command, or what the documents inside the program say of a word
    #[command(after_help = help::EXAMPLES)]
    Help(HelpArgs),
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WorldName {
    /// The built-in simulation
    #[default]
    Model,
    /// Real Linux, in virtual time
    Kernel,
    /// This machine's Linux across dualq's own link, in real time
    Live,
}

/// Says what somebody may not have expected.
pub(crate) fn note(text: &str) {
    // Not worth failing for.
    let _ = writeln!(io::stderr(), "note: {}", cut(&one_line(text)));
}

/// A host's name or address as it was given, without the brackets that one of IPv6 may have.
pub(crate) fn host(given: &str) -> Result<&str, Failure> {
    let bare = given.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(given);
    let usual = |byte: char| byte.is_alphanumeric() || ".-_:%".contains(byte);
    if bare.is_empty() || bare.starts_with('-') || !bare.chars().all(usual) {
        return Err(Failure::Usage(format!(
            "HOST {given:?}: give a name or an address, such as vpn.example.org or 192.0.2.7"
        )));
    }
    Ok(bare)
}

/// Options that say how long something lasts, which nobody means in milliseconds.
const LASTING: [&str; 3] = ["--duration", "--max-time", "--max-duration"];

/// Says what tc's grammar makes of rates and times that may have been meant otherwise.
pub(crate) fn note_units<'a>(
    rates: impl IntoIterator<Item = &'a String>,
    times: impl IntoIterator<Item = (&'static str, &'a String)>,
) {
    for told in rates.into_iter().filter_map(|word| surprise::rate(word)) {
        note(&format!("--rate: {told}"));
    }
    for (option, word) in times {
        let surprise = if LASTING.contains(&option) { surprise::duration } else { surprise::time };
        if let Some(told) = surprise(word) {
            note(&format!("{option}: {told}"));
        }
    }
}

/// Says what queue disciplines have that Linux takes for something else than most people do.
pub(crate) fn note_qdiscs<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) {
    let mut lines: Vec<&QdiscLine> = Vec::new();
    for scenario in scenarios {
        let all = scenario.link.qdiscs().map(|(_, line)| line);
        for line in all.chain([&scenario.sender.qdisc]) {
            // Thousands differ in a value only, and those of a range are right.
            if lines.len() < NOTED && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    for line in lines {
        for notice in line.notices() {
            note(&format!("{line}: {notice}"));
        }
    }
}

/// So many queue disciplines are looked at.
const NOTED: usize = 50;

/// Nobody reads more of a message than this many characters from its beginning, and as many from its end.
const READ: usize = 600;

/// A message without its middle, if what it repeats is long: what is wrong stands at the end.
fn cut(message: &str) -> Cow<'_, str> {
    let length = message.chars().count();
    if length <= 2 * READ {
        return Cow::Borrowed(message);
    }
    let first: String = message.chars().take(READ).collect();
    let last: String = message.chars().skip(length - READ).collect();
    Cow::Owned(format!("{first} [{} more characters] {last}", length - 2 * READ))
}

/// The command line as it is read, and as it is helped with.
fn command() -> clap::Command {
    front::grouped(front::with_documents(completions::with_values(Cli::command())))
}

/// Answers a shell that asks what could come next, and then ends; does nothing otherwise.
pub(crate) fn complete() {
    completions::answer(command);
}

/// Reads the arguments. Prints help and version itself.
pub(crate) fn parse() -> Result<Command, Failure> {
    let parsed = command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    match parsed {
        Ok(Cli { command: Some(command) }) => Ok(command),
        Ok(Cli { command: None }) => {
            print(&mut io::stdout(), front::WELCOME)?;
            std::process::exit(0)
        }
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                let printed = error.print().and_then(|()| io::stdout().flush());
                printed.map_err(|error| cannot_print(&error))?;
                std::process::exit(0)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let _ = error.print();
                std::process::exit(2)
            }
            _ => Err(Failure::Usage(misread::line(&error, &command()))),
        },
    }
}

impl Command {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Replay(args) => crate::replay::run(&args),
            Self::Run(args) => crate::run::run(&args),
            Self::Sweep(args) => crate::sweep::run(&args),
            Self::Tune(args) => crate::sweep::tune::run(&args),
            Self::Report(args) => crate::stored::run(&args),
            Self::Check(args) => crate::check::run(&args),
            Self::Diff(args) => crate::diff::run(&args),
            Self::Kernel(command) => crate::kernel::run(&command),
            Self::Module(command) => crate::module::run(&command),
            Self::Explain(args) => explain::run(&args),
            Self::Doctor(args) => crate::doctor::run(&args),
            Self::Plan(args) => crate::plan::run(&args),
            Self::Regret(args) => crate::regret::run(&args),
            Self::Draw(args) => crate::draw::run(&args),
            Self::Apply(args) => crate::apply::apply(&args),
            Self::Verify(args) => crate::verify::run(&args),
            Self::Confirm(args) => crate::apply::confirm(&args),
            Self::Rollback(args) => crate::apply::rollback(&args),
            Self::Status(args) => crate::apply::status(&args),
            Self::Watch(args) => crate::watch::run(&args),
            Self::OnBoot(args) => crate::apply::on_boot(&args),
            Self::PutBack(args) => crate::apply::put_back(&args),
            Self::WatchOver(args) => crate::apply::watch_over(&args),
            Self::Shell(args) => crate::shell::run(&args),
            Self::Keep(args) => crate::shell::keeper::keep(&args),
            Self::Mtu(args) => crate::mtu::run(&args),
            Self::Measure(args) => crate::measure::run(&args),
            Self::Serve(args) => crate::serve::run(&args),
            Self::Examples(args) => crate::examples::run(&args),
            Self::Completions(args) => completions::run(&args),
            Self::Man(args) => manual::run(&args),
            Self::Help(args) => help::run(&args, command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands, with those inside others.
    fn commands(command: &clap::Command) -> Vec<clap::Command> {
        let below = command.get_subcommands().filter(|one| !one.is_hide_set());
        below.flat_map(|one| [vec![one.clone()], commands(one)].concat()).collect()
    }

    /// What the library wraps is not broken by hand too, and a command that is copied from the screen is whole.
    #[test]
    fn examples_fit_a_terminal() {
        let all = commands(&command());
        assert!(all.len() > 25);
        for one in all {
            let text = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let mut paragraph = false;
            for line in text.lines() {
                let is_caption = line.ends_with([':', '?']);
                let is_indented = line.starts_with(' ');
                assert!(
                    !is_indented || is_caption || line.len() <= 78,
                    "{}: {line}",
                    one.get_name()
                );
                assert!(!line.contains("docs/"), "{}: {line}", one.get_name());
                let goes_on = !is_indented && !line.is_empty() && line != "Examples:";
                assert!(!(paragraph && goes_on), "{}: {line}", one.get_name());
                paragraph = goes_on;
            }
        }
    }
}
