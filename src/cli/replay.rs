//! The arguments of `dualq replay`.

use std::path::PathBuf;

use clap::Args;

use super::report::PictureArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  What would these packets have met on a 20 Mbit/s link?
    dualq replay examples/captures/two-hosts.pcap --rate 20mbit

  Two queue disciplines side by side, in tc's words:
    dualq replay capture.pcapng.zst --rate 50mbit --qdisc pfifo \\
      --qdisc 'dualpi2 target 5ms'

  From a running capture, for a program to read:
    tcpdump -i eth0 -w - -s 96 | dualq replay - --rate 100mbit --json

  What a simulated queue was given, once more (`dualq run --pcap run.pcapng`):
    dualq replay run.pcapng --interface in --rate 50mbit

  What happened to each packet:
    dualq replay trace.csv.xz --rate 50mbit --seed 7 --events events.csv

A trace is CSV with the header t_ns,len,truesize,ecn,class,gso_size, or a pcap or pcapng capture of Ethernet, Linux cooked or raw IP; either may be compressed by gzip, xz or zstd.";

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
