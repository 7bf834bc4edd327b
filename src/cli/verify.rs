//! The arguments of `dualq verify`, and of what `dualq apply` has of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dualq_units::{Bytes, tc_time};

use super::apply::StateArgs;
use super::measure::Way;
use super::plan::AimName;

pub(crate) const EXAMPLES: &str = "\
Examples:
  Does the plan help, on the path to a machine where `dualq serve` runs?
    sudo dualq verify plan.toml --host vpn.example.org --token-file token

  Does another queue discipline, in tc's words?
    sudo dualq verify 'htb rate 48mbit leaf fq_codel' --dev eth0 \\
      --host 192.0.2.7 --token-file token

  For the throughput of two flows, and no longer than two minutes:
    sudo dualq verify plan.toml --aim throughput --streams 2 --max-time 120s \\
      --host 192.0.2.7 --token-file token

  What arrives: a plan of `dualq plan --down` is loaded by downloads without being told:
    sudo dualq verify down.toml --direction download \\
      --host 192.0.2.7 --token-file token

  Apply it, and keep it unless it hurts:
    sudo dualq apply plan.toml --verify 192.0.2.7 --token-file token

The plan is applied and taken back again and again, each time as `dualq apply` and `dualq rollback` do it; afterwards all is as it was. Before and after are measured in rounds, in random order, until it is sure which is better.";

/// How it is measured; nothing of it makes sense without the host, which is `verify` to all of them.
#[derive(Args)]
pub(crate) struct HowArgs {
    /// The host's port, of TCP and UDP
    #[arg(long, requires = "verify", value_name = "N", default_value_t = dualq_measure::protocol::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,

    /// The file with the token of `dualq serve` on the host
    #[arg(long, requires = "verify", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// What is to be better [default: what the plan was made for, else latency]
    #[arg(long, requires = "verify", value_enum)]
    pub(crate) aim: Option<AimName>,

    /// What is loaded [default: upload, download or both, by what the plan shapes]
    #[arg(long, requires = "verify", value_name = "WAY", value_enum)]
    pub(crate) direction: Option<Way>,

    /// How many flows load it
    #[arg(long, requires = "verify", value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) streams: u32,

    /// How long one measurement may take, 2s to 60s, a part of it without load
    #[arg(long, requires = "verify", value_name = "TIME", default_value = "8s", value_parser = each)]
    pub(crate) each: Duration,

    /// How long all may take, up to 1h
    #[arg(long, requires = "verify", value_name = "TIME", default_value = "600s", value_parser = all)]
    pub(crate) max_time: Duration,

    /// How much all measurements may carry, in tc's words
    #[arg(long, requires = "verify", value_name = "BYTES", default_value = "4gb", value_parser = bytes)]
    pub(crate) max_bytes: Bytes,

    /// Show no progress
    #[arg(long, requires = "verify")]
    pub(crate) no_progress: bool,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// A plan, as `dualq plan` made it; or a queue discipline in tc's words
    #[arg(value_name = "PLAN|QDISC", required = true)]
    pub(crate) what: Vec<String>,

    /// The host where `dualq serve` runs: a name or an address
    #[arg(id = "verify", long = "host", value_name = "HOST")]
    pub(crate) host: String,

    /// The interface of the queue discipline [default: that of the default route]
    #[arg(long, value_name = "DEV")]
    pub(crate) dev: Option<String>,

    #[command(flatten)]
    pub(crate) how: HowArgs,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

fn time(text: &str, least: u64, most: u64) -> Result<Duration, String> {
    let range = Duration::from_secs(least)..=Duration::from_secs(most);
    match tc_time::parse_span(text) {
        Ok(time) if range.contains(&time) => Ok(time),
        Ok(_) => Err(format!("it is {least}s to {most}s")),
        Err(error) => Err(error.to_string()),
    }
}

fn each(text: &str) -> Result<Duration, String> {
    time(text, 2, 60)
}

fn all(text: &str) -> Result<Duration, String> {
    time(text, 4, 3600)
}

fn bytes(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(Bytes(0..1_000_000)) => Err("it is 1mb or more, such as 500mb".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(format!("{error}")),
    }
}
