//! What shells and `man` need to know of the command line: made of the same source as `--help`.

use std::io;
use std::path::PathBuf;

use clap::{Args, Command, ValueEnum};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{CompleteEnv, Shells};
use dualq_qdisc::grammar::KINDS;
use dualq_tcp::Algorithm;

use super::Failure;
use crate::examples;
use crate::output::{plain, print};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bash, in ~/.bashrc:      source <(dualq completions bash)
  zsh, in ~/.zshrc:        source <(dualq completions zsh)
  fish, once:              dualq completions fish > ~/.config/fish/completions/dualq.fish
  nushell, once:           dualq completions nushell | save -f dualq.nu; then in config.nu: source dualq.nu

The shell asks dualq itself what could come next, so that scenarios, queue disciplines and congestion
controls are those that it has; nushell gets a list of commands and options.";

pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  dualq man ~/.local/share/man/man1
  man dualq-run";

/// By this a shell says that it asks.
const ASKED_BY: &str = "DUALQ_COMPLETE";

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// The folder to write them into
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints what a shell is to be told once.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let name = match args.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Nushell => {
            let mut bytes = Vec::new();
            let nushell = clap_complete_nushell::Nushell;
            clap_complete::generate(nushell, &mut super::command(), "dualq", &mut bytes);
            return print(&mut io::stdout(), &String::from_utf8_lossy(&bytes));
        }
    };
    let mut bytes = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(name).expect("the library has it");
    let written = shell.write_registration(ASKED_BY, "dualq", "dualq", "dualq", &mut bytes);
    written.map_err(|error| Failure::Run(format!("completions: {}", plain(&error))))?;
    print(&mut io::stdout(), &String::from_utf8_lossy(&bytes))
}

/// Answers a shell that asks, and then ends.
pub(super) fn answer(command: impl Fn() -> Command) {
    CompleteEnv::with_factory(command).var(ASKED_BY).bin("dualq").complete();
}

/// Writes the pages of the manual.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let cannot = |error: io::Error| {
        Failure::Run(format!("cannot write into {}: {}", folder.display(), plain(&error)))
    };
    std::fs::create_dir_all(folder).map_err(cannot)?;
    // The template of the help is for terminals.
    let command = <super::Cli as clap::CommandFactory>::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(cannot)
}

/// Arguments whose values are known only here.
pub(super) fn with_values(command: Command) -> Command {
    let queues = || ArgValueCompleter::new(|word: &std::ffi::OsStr| words(word, kinds()));
    let senders = || ArgValueCompleter::new(|word: &std::ffi::OsStr| words(word, controls()));
    let scenarios = || {
        ArgValueCompleter::new(|word: &std::ffi::OsStr| {
            let mut found = words(word, examples::names());
            found.extend(PathCompleter::file().complete(word));
            found
        })
    };
    let shipped =
        || ArgValueCompleter::new(|word: &std::ffi::OsStr| words(word, examples::names()));
    let explained = || {
        ArgValueCompleter::new(|word: &std::ffi::OsStr| words(word, [kinds(), controls()].concat()))
    };
    command
        .mut_subcommand("run", |run| {
            run.mut_arg("scenario", |arg| arg.add(scenarios()))
                .mut_arg("qdisc", |arg| arg.add(queues()))
                .mut_arg("cc", |arg| arg.add(senders()))
        })
        .mut_subcommand("sweep", |sweep| sweep.mut_arg("scenario", |arg| arg.add(scenarios())))
        .mut_subcommand("tune", |tune| tune.mut_arg("scenario", |arg| arg.add(scenarios())))
        .mut_subcommand("shell", |shell| shell.mut_arg("qdisc", |arg| arg.add(queues())))
        .mut_subcommand("replay", |replay| replay.mut_arg("qdisc", |arg| arg.add(queues())))
        .mut_subcommand("plan", |plan| {
            plan.mut_arg("qdisc", |arg| arg.add(queues())).mut_arg("cc", |arg| arg.add(senders()))
        })
        .mut_subcommand("explain", |explain| explain.mut_arg("name", |arg| arg.add(explained())))
        .mut_subcommand("examples", |all| all.mut_arg("name", |arg| arg.add(shipped())))
}

fn kinds() -> Vec<&'static str> {
    KINDS.to_vec()
}

fn controls() -> Vec<&'static str> {
    Algorithm::ALL.iter().map(|control| control.name()).collect()
}

/// Those that begin as what is written so far.
fn words(begun: &std::ffi::OsStr, all: Vec<&'static str>) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let fitting = all.into_iter().filter(|word| word.starts_with(&*begun));
    fitting.map(CompletionCandidate::new).collect()
}
