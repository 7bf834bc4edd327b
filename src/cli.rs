//! Arguments in, one call into the right part, an exit status out.

pub(crate) mod apply;
pub(crate) mod completions;
pub(crate) mod doctor;
mod front;
pub(crate) mod kernel;
pub(crate) mod measure;
pub(crate) mod module;
pub(crate) mod mtu;
pub(crate) mod plan;
pub(crate) mod recipe;
pub(crate) mod shell;
pub(crate) mod sweep;
pub(crate) mod verify;
pub(crate) mod watch;

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use dualq_report::words::one_line;
use dualq_tcp::Algorithm;
use dualq_units::surprise;

use crate::examples::ExamplesArgs;
use crate::explain::{self, ExplainArgs};
use crate::interrupt::{self, EXIT_STATUS};
use crate::output::{cannot_print, print};
use crate::{check, replay, run};
use apply::{ApplyArgs, ConfirmArgs, OnBootArgs, RollbackArgs, StatusArgs, WatchOverArgs};
use completions::{CompletionsArgs, ManArgs};
use doctor::DoctorArgs;
use kernel::KernelCommand;
use measure::{MeasureArgs, ServeArgs};
use module::ModuleCommand;
use mtu::MtuArgs;
use plan::{PlanArgs, RegretArgs};
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
#[command(name = "dualq", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What dualq does.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send recorded packet arrivals through a queue discipline and a link, and see what becomes of them
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),

    /// Run a scenario: TCP flows and probes across one bottleneck; lists of values are compared side by side
    #[command(after_help = RUN_EXAMPLES)]
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
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),

    /// Run reference scenarios and compare what comes of them with what real Linux did
    #[command(after_help = CHECK_EXAMPLES)]
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
    #[command(after_help = completions::MAN_EXAMPLES)]
    Man(ManArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  A shipped scenario:
    dualq run scenarios/narrow-vps.toml

  The same on a slower link, with other queue disciplines:
    dualq run scenarios/narrow-vps.toml --rate 20mbit --qdisc fq_codel --qdisc 'dualpi2 target 5ms'

  No file at all:
    dualq run --rate 50mbit --rtt 48ms --qdisc pie --cc cubic

  How much of that is chance: five seeds, their means and standard deviations:
    dualq run scenarios/narrow-vps.toml --seeds 5

  On the real Linux stack, in virtual time, beside the simulation (`dualq kernel build` first):
    dualq run scenarios/narrow-vps.toml --world model,kernel

  A report to look at, of one scenario or of several:
    dualq run scenarios/narrow-vps.toml --report narrow-vps.html
    dualq run scenarios/*.toml --report all.html --save results

  For a spreadsheet:
    dualq run scenarios/coexistence.toml --csv > coexistence.csv

  What happened to each packet:
    dualq run --qdisc dualpi2 --cc dctcp --duration 5s --events events.csv

  The same for Wireshark and tcptrace, and its windows and round trips for qvis:
    dualq run --qdisc dualpi2 --cc dctcp --duration 5s --pcap run.pcapng --qlog run.sqlog";

const REPORT_EXAMPLES: &str = "\
Examples:
  dualq run scenarios/rrul.toml --json --distributions > rrul.json
  dualq report rrul.json -o rrul.html

  Several results in one comparison:
    dualq report before.json after.json -o both.html

Without --distributions a document has no curves of distributions; all else is the same.";

const CHECK_EXAMPLES: &str = "\
Examples:
  dualq check tests/data/linux-7.3/*.jsonl
  dualq check tests/data/linux-7.3/narrow.jsonl --world kernel
  dualq check tests/data/linux-7.3/narrow.jsonl --twin

Each line of a FILE is {\"scenario\": {...}, \"runs\": [{...}, ...]}: a scenario, and what repeated
runs of real Linux did with it. Two means agree if they differ by no more than the kernel's own
runs do, or by no more than: total goodput 5 % or 0.3 Mbit/s; each group's goodput 20 %; median
probe RTT above the base 25 % or 1.5 ms, its p95 50 % or 5 ms; retransmissions a factor of 2 or 30.

Beside that every figure that both have is compared, so drops, marks, queue delays, smoothed RTTs and
fairness too: worlds cannot be told apart by it if the means differ by no more than 3 standard errors
of their difference, or by no more than: rates 2 % or 0.05 Mbit/s; times 10 % or 0.1 ms; counts 15 %
or 5; fairness 3 %. What a reference lacks is listed, and limits of the machine that a run met. The exit status is 1 if a scenario does not
agree or cannot run; with --twin, if one can be told apart.";

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The scenario, a TOML file, or `-` for standard input; give several to run them all. Without one, what the options leave open has defaults
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Vec<PathBuf>,

    /// The bottleneck's queue discipline in tc's words; give several to compare them; `dualq explain` lists and explains them
    #[arg(long, value_name = "QDISC")]
    pub(crate) qdisc: Vec<String>,

    #[arg(long, value_name = "CC", help = controls())]
    pub(crate) cc: Vec<String>,

    /// The bottleneck's rate in tc's words; give several to compare them
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) rate: Vec<String>,

    /// The base round-trip time; give several to compare them
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) rtt: Vec<String>,

    /// How long it runs, in simulated time; a warm-up that does not fit becomes a quarter of it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<String>,

    /// The interval of the time series in the JSON document [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) interval: Option<String>,

    /// What all that is random follows from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Run everything so many times, with the seeds from --seed on, for means and how far they spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// Where to run it: in several worlds, separated by commas, to compare these
    #[arg(long, value_name = "WORLD", value_enum, value_delimiter = ',', default_value = "model")]
    pub(crate) world: Vec<WorldName>,

    /// Which of the kernels that were built, by its version [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<String>,

    /// Write what happens to each packet of a single run to FILE, as CSV; `-` for standard output, the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,

    /// Write the headers of all packets of a single run to FILE, as pcapng for Wireshark; `-` as above
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write what each TCP connection of a single run does to FILE, as qlog for qvis, which wants it to end in .sqlog; `-` as above
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,

    /// Print one JSON document instead of a table
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print comma-separated values instead of a table
    #[arg(long)]
    pub(crate) csv: bool,

    /// Write a report to look at: one HTML file with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write the JSON document of each SCENARIO into the folder DIR, and its figures and series as CSV
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pictures: PictureArgs,

    /// Write tables for data frames into the folder DIR, as Parquet: the figures of each run, and the series; into a FILE the figures alone.
    /// Needs a dualq that was built with `--features parquet`
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) parquet: Option<PathBuf>,

    /// Write what came of a single run as a data file of flent
    #[arg(long, value_name = "FILE")]
    pub(crate) flent: Option<PathBuf>,

    /// Keep in the JSON document how delays are distributed and what made it, for `dualq report`
    #[arg(long)]
    pub(crate) distributions: bool,

    /// Print nothing but errors where results go into files, and no progress bar
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) quiet: bool,

    /// Whether the table has colours; also NO_COLOR
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: Colour,

    /// Show no progress bar, even if it takes long
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// When a table has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal that has them
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The help of `--cc`.
fn controls() -> String {
    let names: Vec<&str> = Algorithm::ALL.iter().map(|control| control.name()).collect();
    let names = names.join(", ");
    format!(
        "The flows' congestion control: {names}; give several to compare them; `dualq explain` explains them"
    )
}

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// JSON documents of `dualq run --distributions --json`, or of `--save`, of `check --json`, or of `replay --distributions --json`; `-` for standard input; folders of `dualq sweep`
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) results: Vec<PathBuf>,

    /// The HTML file to write; `-` for standard output
    #[arg(long, short, value_name = "FILE", required_unless_present_any = ["svg", "png", "parquet"])]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pictures: PictureArgs,

    /// Write tables for data frames into the folder DIR, as Parquet: the figures of each run, and the series; into a FILE the figures alone.
    /// Needs a dualq that was built with `--features parquet`
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) parquet: Option<PathBuf>,
}

/// Single pictures, for papers and slides.
#[derive(Args)]
pub(crate) struct PictureArgs {
    /// Write single pictures into the folder DIR, as SVG: the comparison, lines over time, distributions of delays, shares
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the same as PNG; needs a dualq that was built with `--features png`
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Reference files, JSON lines
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Where to run the scenarios
    #[arg(long, value_enum, default_value_t)]
    pub(crate) world: WorldName,

    /// Which of the kernels that were built, by its version [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<String>,

    /// Run the scenarios in the world kernel too, with as many seeds, and compare every figure with narrow tolerances
    #[arg(long)]
    pub(crate) twin: bool,

    /// Write a report to look at: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pictures: PictureArgs,

    /// How often each scenario is run, each time with another seed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// Print one JSON document instead of lines
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress bar, even if it takes long
    #[arg(long)]
    pub(crate) no_progress: bool,
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

const REPLAY_EXAMPLES: &str = "\
Examples:
  What would these packets have met on a 20 Mbit/s link?
    dualq replay examples/captures/two-hosts.pcap --rate 20mbit

  Two queue disciplines side by side, in tc's words:
    dualq replay capture.pcapng.zst --rate 50mbit --qdisc pfifo --qdisc 'dualpi2 target 5ms'

  From a running capture, for a program to read:
    tcpdump -i eth0 -w - -s 96 | dualq replay - --rate 100mbit --json

  What a simulated queue was given, once more (`dualq run --pcap run.pcapng`):
    dualq replay run.pcapng --interface in --rate 50mbit

  What happened to each packet:
    dualq replay trace.csv.xz --rate 50mbit --seed 7 --events events.csv

A trace is CSV with the header t_ns,len,truesize,ecn,class,gso_size, or a pcap or pcapng capture of
Ethernet, Linux cooked or raw IP; either may be compressed by gzip, xz or zstd.";

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// The trace or capture; `-` for standard input
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    /// The link's rate in tc's words: 50mbit, 1.5gbit, 800kbit
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: String,

    /// A queue discipline in tc's words; give several to compare them
    #[arg(long, value_name = "QDISC", default_value = "dualpi2")]
    pub(crate) qdisc: Vec<String>,

    /// The seed of the random numbers, 1 or more
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<String>,

    /// The device's MTU in bytes, without the 14 of the Ethernet header
    #[arg(long, value_name = "BYTES", default_value = "1500")]
    pub(crate) mtu: String,

    /// Take only the packets of the interface with this name, of a pcapng with several
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,

    /// Write a report to look at: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pictures: PictureArgs,

    /// Keep in the JSON document what happened over time and how delays are distributed, for `dualq report`
    #[arg(long)]
    pub(crate) distributions: bool,

    /// Write what happens to each packet to FILE; `-` for standard output, the summary then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,

    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress bar, even if it takes long
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// A command for developers.
#[derive(Debug, Args)]
pub(crate) struct DrawArgs {
    /// The classes of scenarios to draw: dumbbell, two-way, steps, hops, udp, transfers, receivers, queues, shapers, requests; all if none is named
    #[arg(value_name = "CLASS")]
    pub(crate) classes: Vec<String>,

    /// How many of each class
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) count: u64,

    /// The seed of the first; the others follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Run each so many times in the world kernel, and write down what comes of it
    #[arg(long, value_name = "N")]
    pub(crate) record: Option<u32>,

    /// The version of Linux to record on
    #[arg(long, value_name = "VERSION", requires = "record")]
    pub(crate) kernel: Option<String>,

    /// Show no progress
    #[arg(long)]
    pub(crate) no_progress: bool,
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// A scenario (TOML), or a file of references (JSON lines) with --name
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The scenario in a file of references
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// The seed of both worlds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Only this flow, counted from 0; probes follow the flows
    #[arg(long, value_name = "N")]
    pub(crate) flow: Option<u32>,

    /// Not before so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) from: u64,

    /// Times that differ by no more are the same, in microseconds
    #[arg(long, value_name = "US", default_value_t = 100)]
    pub(crate) slack: u64,

    /// So many packets of either world are shown around the first that differs
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(crate) context: usize,

    /// Write all events of both worlds into FOLDER, as JSON lines
    #[arg(long, value_name = "FOLDER")]
    pub(crate) events: Option<PathBuf>,

    /// The version of the kernel
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<String>,
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

/// Says what tc's grammar makes of rates and times that may have been meant otherwise.
pub(crate) fn note_units<'a>(
    rates: impl IntoIterator<Item = &'a String>,
    times: impl IntoIterator<Item = (&'static str, &'a String)>,
) {
    for told in rates.into_iter().filter_map(|word| surprise::rate(word)) {
        note(&format!("--rate: {told}"));
    }
    for (option, word) in times {
        if let Some(told) = surprise::time(word) {
            note(&format!("{option}: {told}"));
        }
    }
}

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
    front::grouped(completions::with_values(Cli::command()))
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
            _ => Err(Failure::Usage(
                front::not_a_command(&error)
                    .or_else(|| negative(&error))
                    .or_else(|| no_number(&error))
                    .unwrap_or_else(|| first_paragraph(&error.to_string())),
            )),
        },
    }
}

/// The library takes `-5s` for an option. None begins with a digit, so that a value is meant, and no value is negative.
fn negative(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    // It names the first letter only: of `-5s` that is `-5`.
    let digits = word.strip_prefix('-')?;
    if error.kind() != ErrorKind::UnknownArgument
        || !digits.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let given: Vec<String> =
        std::env::args_os().map(|given| given.to_string_lossy().into_owned()).collect();
    let at = given.iter().position(|given| given.starts_with(word.as_str()))?;
    // What it is the value of stands before it.
    let option = given[at.checked_sub(1)?].as_str();
    let option = if option.starts_with('-') { format!("{option}: ") } else { String::new() };
    Some(format!("{option}{} is negative: give a value of 0 or more", given[at]))
}

/// Of what is no number, or too large, the library says what Rust's own readers say.
fn no_number(error: &clap::Error) -> Option<String> {
    let fault = std::error::Error::source(error)?.downcast_ref::<ParseIntError>()?;
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let option = word(ContextKind::InvalidArg)?.split(" <").next()?;
    let value = word(ContextKind::InvalidValue)?;
    let right = match fault.kind() {
        IntErrorKind::PosOverflow => "the number is too large",
        IntErrorKind::Zero => "give a whole number of 1 or more",
        _ => "give a whole number of 0 or more",
    };
    Some(format!("{option}: {value:?}: {right}"))
}

/// The library explains itself over several lines, of which the first paragraph says what is wrong.
fn first_paragraph(message: &str) -> String {
    let paragraph: Vec<&str> =
        message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let tip = message.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map_or(String::new(), |tip| format!("; {tip}"));
    format!("{text}{tip}; see --help")
}

impl Command {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Replay(args) => replay::run(&args),
            Self::Run(args) => run::run(&args),
            Self::Sweep(args) => crate::sweep::run(&args),
            Self::Tune(args) => crate::sweep::tune::run(&args),
            Self::Report(args) => crate::stored::run(&args),
            Self::Check(args) => check::run(&args),
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
            Self::WatchOver(args) => crate::apply::watch_over(&args),
            Self::Shell(args) => crate::shell::run(&args),
            Self::Keep(args) => crate::shell::keeper::keep(&args),
            Self::Mtu(args) => crate::mtu::run(&args),
            Self::Measure(args) => crate::measure::run(&args),
            Self::Serve(args) => crate::serve::run(&args),
            Self::Examples(args) => crate::examples::run(&args),
            Self::Completions(args) => completions::run(&args),
            Self::Man(args) => completions::man(&args),
        }
    }
}
