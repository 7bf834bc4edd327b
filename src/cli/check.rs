//! The arguments of `dualq check`, and of what developers compare worlds with.

use std::path::PathBuf;

use clap::Args;

use super::WorldName;
use super::report::PictureArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  dualq check tests/data/linux-7.3/*.jsonl
  dualq check tests/data/linux-7.3/narrow.jsonl --world kernel
  dualq check tests/data/linux-7.3/narrow.jsonl --twin

Each line of a FILE is {\"scenario\": {...}, \"runs\": [{...}, ...]}: a scenario, and what repeated runs of real Linux did with it. Two means agree if they differ by no more than the kernel's own runs do, or by no more than: total goodput 5 % or 0.3 Mbit/s; each group's goodput 20 %; median probe RTT above the base 25 % or 1.5 ms, its p95 50 % or 5 ms; retransmissions a factor of 2 or 30.

Beside that every figure that both have is compared, so drops, marks, queue delays, smoothed RTTs and fairness too: worlds cannot be told apart by it if the means differ by no more than 3 standard errors of their difference, or by no more than: rates 2 % or 0.05 Mbit/s; times 10 % or 0.1 ms; counts 15 % or 5; fairness 3 %. What a reference lacks is listed, and limits of the machine that a run met. The exit status is 1 if a scenario does not agree or cannot run; with --twin, if one can be told apart.";

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Reference files, JSON lines
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Where to run the scenarios
    #[arg(long, value_enum, default_value_t)]
    pub(crate) world: WorldName,

    /// Which of the kernels that were built, by its version or name [default: the newest]
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

/// A command for developers.
#[derive(Debug, Args)]
pub(crate) struct DrawArgs {
    /// The classes of scenarios to draw: dumbbell, two-way, steps, hops, udp, transfers, receivers, queues, shapers, requests, accurate, exact; all if none is named
    #[arg(value_name = "CLASS")]
    pub(crate) classes: Vec<String>,

    /// How many of each class
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
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
    /// A scenario (TOML), or a file of references (JSON lines): one of them by --name, or all, a line each
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
