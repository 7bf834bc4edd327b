//! Arguments in, one call into the right part, an exit status out.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::replay;

/// Why nothing came of a call.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong: exit status 2.
    Usage(String),
    /// What they asked for could not be done: exit status 1.
    Run(String),
    /// Nobody reads the output any more, as when it is piped into `head`: all is well.
    BrokenPipe,
}

impl Failure {
    /// Says what is wrong, in one line, and what the exit status is.
    pub(crate) fn report(self) -> ExitCode {
        let (message, status) = match self {
            Self::Usage(message) => (message, 2),
            Self::Run(message) => (message, 1),
            Self::BrokenPipe => return ExitCode::SUCCESS,
        };
        // If standard error is gone too, there is nobody left to tell.
        let _ = writeln!(io::stderr(), "error: {}", message.replace('\n', " "));
        ExitCode::from(status)
    }
}

/// Low latency under load, proven before you deploy it.
#[derive(Parser)]
#[command(name = "dualq", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What dualq does.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send recorded packet arrivals through a queue discipline and a link, and see what becomes of them
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  What would these packets have met on a 20 Mbit/s link?
    dualq replay examples/captures/two-hosts.pcap --rate 20mbit

  Two queue disciplines side by side, in tc's words:
    dualq replay capture.pcapng.zst --rate 50mbit --qdisc pfifo --qdisc 'dualpi2 target 5ms'

  From a running capture, for a program to read:
    tcpdump -i eth0 -w - -s 96 | dualq replay - --rate 100mbit --json

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

/// Reads the arguments. Prints help and version itself.
pub(crate) fn parse() -> Result<Command, Failure> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                let _ = error.print();
                std::process::exit(0)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let _ = error.print();
                std::process::exit(2)
            }
            _ => Err(Failure::Usage(one_line(&error.to_string()))),
        },
    }
}

/// The library explains itself over several lines, of which the first paragraph says what is wrong.
fn one_line(message: &str) -> String {
    let paragraph: Vec<&str> =
        message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let tip = message.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map_or(String::new(), |tip| format!("; {tip}"));
    format!("{text}{tip}; see dualq replay --help")
}

impl Command {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Replay(args) => replay::run(&args),
        }
    }
}
