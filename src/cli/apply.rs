//! The arguments of what changes this machine, and takes it back.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dualq_host::plan::{ClassId, Destination};
use dualq_units::tc_time;

use super::verify::HowArgs;

/// Nobody types so fast, and nobody waits so long.
const WITHIN: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(5)..=Duration::from_secs(3600);

pub(crate) const APPLY_EXAMPLES: &str = "\
Examples:
  See what would be done, then do it, look around, and keep it:
    sudo dualq apply plan.toml --dry-run
    sudo dualq apply plan.toml
    sudo dualq confirm

Until it is confirmed nothing is written that outlasts a restart. If nobody confirms in time, or dualq is killed, or the machine restarts, all is as it was before.";

/// Where records are kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct StateArgs {
    /// The folder in which dualq records what it changes
    #[arg(long, value_name = "DIR", default_value = dualq_host::apply::Store::FOLDER)]
    pub(crate) state: PathBuf,
}

#[derive(Args)]
pub(crate) struct ApplyArgs {
    /// The plan, as `dualq plan` made it; `-` for standard input
    #[arg(value_name = "PLAN", default_value = "plan.toml")]
    pub(crate) plan: PathBuf,

    /// Take all back unless `dualq confirm` comes within that time, 5s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = within)]
    pub(crate) confirm_within: Duration,

    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Try it on the path to HOST, where `dualq serve` runs, as `dualq verify` does, and keep it, confirmed, unless it hurts
    #[arg(long, value_name = "HOST", conflicts_with_all = ["dry_run", "confirm_within"])]
    pub(crate) verify: Option<String>,

    #[command(flatten, next_help_heading = "How --verify measures")]
    pub(crate) how: HowArgs,

    #[command(flatten, next_help_heading = "Options")]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct ConfirmArgs {
    /// Only if the plan that is applied is this one; `-` for standard input [default: whichever it is]
    #[arg(value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,

    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct RollbackArgs {
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Take back also what somebody changed since
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// Look again every second, until it is interrupted
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print one JSON document instead of text
    #[arg(long, conflicts_with = "watch")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// For rules and scripts that run when an interface appears.
#[derive(Args)]
pub(crate) struct OnBootArgs {
    /// The interface
    #[arg(value_name = "DEV")]
    pub(crate) dev: String,

    /// The ifb at whose root it is to be, and through which what arrives at DEV is to go
    #[arg(long, value_name = "IFB")]
    pub(crate) down: Option<String>,

    /// Each transmit queue of DEV gets one, below an mq
    #[arg(long, conflicts_with = "down")]
    pub(crate) each: bool,

    /// It is put below this class of DEV's, and what is there is replaced; where a rule calls for it, it is waited for
    #[arg(long, value_name = "CLASS", conflicts_with_all = ["down", "each"])]
    pub(crate) parent: Option<ClassId>,

    /// What is limited is what puts packets together at DEV: the line is of words such as `gso_max_segs 1 gro off`
    #[arg(long, conflicts_with_all = ["down", "each", "parent"])]
    pub(crate) offloads: bool,

    /// It is a route by DEV to DEST, an address and its prefix length: the line is its MTU, such as `mtu 1400`
    #[arg(long, value_name = "DEST", conflicts_with_all = ["down", "each", "parent", "offloads"])]
    pub(crate) route: Option<Destination>,

    /// The queue discipline in tc's words
    #[arg(value_name = "LINE")]
    pub(crate) line: String,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// For `dualq apply`, which starts it.
#[derive(Args)]
pub(crate) struct WatchOverArgs {
    /// Which record
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,

    /// It is a unit of systemd, which ends it at shutdown and starts it again after anything else
    #[arg(long)]
    pub(crate) unit: bool,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// For `dualq confirm` and `dualq on-boot`, which start it.
#[derive(Args)]
pub(crate) struct PutBackArgs {
    /// It is a unit of systemd
    #[arg(long)]
    pub(crate) unit: bool,

    #[command(flatten)]
    pub(crate) state: StateArgs,
}

fn within(text: &str) -> Result<Duration, String> {
    match tc_time::parse_span(text) {
        Ok(time) if WITHIN.contains(&time) => Ok(time),
        Ok(_) => Err("it is 5s to 1h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
