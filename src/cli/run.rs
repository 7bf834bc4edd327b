//! The arguments of `dualq run`.

use std::path::PathBuf;

use clap::Args;
use dualq_tcp::Algorithm;

use super::WorldName;
use super::interactive::InteractiveArgs;
use super::report::PictureArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  A shipped scenario:
    dualq run narrow-vps

  The same on a slower link, with other queue disciplines:
    dualq run narrow-vps --rate 20mbit --qdisc fq_codel \\
      --qdisc 'dualpi2 target 5ms'

  No file at all:
    dualq run --rate 50mbit --rtt 48ms --qdisc pie --cc cubic

  How much of that is chance: five seeds, their means and standard deviations:
    dualq run narrow-vps --seeds 5

  On the real Linux stack, in virtual time, beside the simulation (`dualq kernel build` first):
    dualq run narrow-vps --world model,kernel

  A report to look at, of one scenario or of several:
    dualq run narrow-vps --report narrow-vps.html
    dualq run narrow-vps coexistence --report all.html --save results

  For a spreadsheet:
    dualq run coexistence --csv > coexistence.csv

  What happened to each packet:
    dualq run --qdisc dualpi2 --cc dctcp --duration 5s --events events.csv

  The same for Wireshark and tcptrace, and its windows and round trips for qvis:
    dualq run --qdisc dualpi2 --cc dctcp --duration 5s \\
      --pcap run.pcapng --qlog run.sqlog";

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The scenario, a TOML file or the name of a shipped one; `-` for standard input; give several to run them all. Without one, what the
    /// options leave open has defaults
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

    /// Which of the kernels that were built, by its version or name [default: the newest]
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

    #[command(flatten)]
    pub(crate) interactive: InteractiveArgs,

    /// Write the JSON document of each SCENARIO into the folder DIR, and its figures and series as CSV
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pictures: PictureArgs,

    /// Write tables for data frames into the folder DIR, as Parquet: the figures of each run, and the series; into a FILE, whose name has an ending, the figures
    /// alone.
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
