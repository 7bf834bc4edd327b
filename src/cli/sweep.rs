//! The arguments of `dualq sweep` and `dualq tune`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use dualq_sweep::{Axis, Shard};

use super::WorldName;

pub(crate) const EXAMPLES: &str = "\
Examples:
  All combinations, ten seeds each, on all cores; the same command goes on where it was interrupted:
    dualq sweep narrow-vps --vary link.rate=10mbit,50mbit,1gbit \\
      --vary flow.0.cc=cubic,bbr \\
      --seeds 10 --folder out

  200 samples of ranges, and as many seeds as it takes to know the delay:
    dualq sweep --vary 'link.rate=1mbit..1gbit:log' \\
      --vary 'link.qdisc=dualpi2 target {1ms..50ms}' --latin 200 \\
      --seeds 3 --until 'ci(probe.p99) < 5%' --folder out

  Rates that go with round trips, in step:
    dualq sweep --zip link.rate=10mbit,100mbit --zip link.rtt=80ms,20ms \\
      --vary link.qdisc=fq,fq_codel --folder out

  What there is, what is best, and pages and tables of it:
    dualq sweep --show --folder out --aim 'probe.p99 < 20ms, max goodput'
    dualq report out -o out.html --svg pictures

  One of sixteen parts, for a SLURM array, a CI matrix or GNU parallel:
    dualq sweep narrow-vps --vary link.rate=10mbit,50mbit --folder shared \\
      --shard $SLURM_ARRAY_TASK_ID/16

A KEY is one of the scenario file, with the number of a table from 0 where there are several: link.rate, flow.0.cc, probe.0.interval. What a FIGURE is called says dualq help figures.md.";

pub(crate) const TUNE_EXAMPLES: &str = "\
Examples:
  The target of dualpi2 for a link:
    dualq tune narrow-vps --vary 'link.qdisc=dualpi2 target {1ms..50ms:log}' \\
      --vary flow.0.cc=cubic --aim 'probe.p99 < 60ms, max goodput'

  A shaper below the provider's, and its queue's target:
    dualq tune --aim 'min probe.p99' \\
      --vary 'link.qdisc=htb rate {30mbit..50mbit} leaf pie target {1ms..9ms}'

It is a search by few runs, each candidate with the same seeds: the best that was tried, not a proof.";

/// What is to vary, and how.
#[derive(Args)]
pub(crate) struct SpaceArgs {
    /// The scenario, a TOML file or the name of a shipped one; `-` for standard input. Without one, what --vary leaves open has defaults
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<PathBuf>,

    /// Give a KEY of the scenario file these values: a list with commas or a range LEAST..MOST, with `:log` behind it by its
    /// logarithm; in braces a part of a value
    #[arg(long, value_name = "KEY=VALUES", value_parser = Axis::parse)]
    pub(crate) vary: Vec<Axis>,

    /// What all that is random follows from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Which of the kernels that were built, by its version or name [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<String>,

    /// Compute on so many cores at once, or on all, if there are fewer [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// Show no progress bar, even if it takes long
    #[arg(long)]
    pub(crate) no_progress: bool,
}

#[derive(Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) space: SpaceArgs,

    /// The folder that keeps the runs: what is in it already is not computed again
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// The same of keys that vary together: the first values of all of these, then the second ones; lists of one length
    #[arg(long, value_name = "KEY=VALUES", value_parser = Axis::parse)]
    pub(crate) zip: Vec<Axis>,

    /// Draw N samples as a Latin hypercube: each part of each range is there. Samples that are the same count once
    #[arg(long, value_name = "N", group = "sample")]
    pub(crate) latin: Option<NonZero<usize>>,

    /// Draw N samples, each value by itself
    #[arg(long, value_name = "N", group = "sample")]
    pub(crate) random: Option<NonZero<usize>>,

    /// What is drawn follows from it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sample")]
    pub(crate) draw: u64,

    /// Run everything so many times, with the seeds from --seed on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// Add as many seeds again, and again, to each scenario whose figure is not known so well: half of its 95 % interval is to be below
    /// a share of the mean, such as 5%, or an amount, such as 2ms
    #[arg(long, value_name = "ci(FIGURE) < BOUND")]
    pub(crate) until: Option<String>,

    /// No scenario gets more seeds than that
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1000), requires = "until")]
    pub(crate) most_seeds: u64,

    /// Where to run it: in several worlds, separated by commas, to compare these
    #[arg(long, value_name = "WORLD", value_enum, value_delimiter = ',', default_value = "model")]
    pub(crate) world: Vec<WorldName>,

    /// Compute only the I-th of N parts
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub(crate) shard: Shard,

    /// Compute nothing; show what the last sweep in the folder came to so far
    #[arg(long, conflicts_with_all = ["scenario", "vary", "zip", "seed", "seeds", "sample", "until", "world", "kernel", "jobs", "shard", "distributions", "quiet"])]
    pub(crate) show: bool,

    /// What is best: FIGURE < BOUND or > BOUND, any number of them, and at the end max FIGURE or min FIGURE, with commas
    #[arg(long, value_name = "AIM")]
    pub(crate) aim: Option<String>,

    /// Write a report to look at: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON document instead of words
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print comma-separated values instead of words
    #[arg(long)]
    pub(crate) csv: bool,

    /// Keep distributions of delays, for curves in reports; points are larger by them
    #[arg(long)]
    pub(crate) distributions: bool,

    /// Print nothing but errors, and no progress bar
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) quiet: bool,
}

#[derive(Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) space: SpaceArgs,

    /// What is best: FIGURE < BOUND or > BOUND, any number of them, and at the end max FIGURE or min FIGURE, with commas
    #[arg(long, value_name = "AIM")]
    pub(crate) aim: String,

    /// Try no more than N candidates
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) tries: u32,

    /// Run each candidate so many times, with the same seeds from --seed on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// Where to run it
    #[arg(long, value_name = "WORLD", value_enum, default_value_t)]
    pub(crate) world: WorldName,

    /// Keep the runs in this folder, as dualq sweep does
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Print one JSON document instead of words
    #[arg(long)]
    pub(crate) json: bool,
}
