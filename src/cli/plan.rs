//! The arguments of `dualq plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dualq_host::facts::Os;
use dualq_host::plan::{Aim, LinkKind, Profile};

use super::WorldName;

pub(super) const EXAMPLES: &str = "\
Examples:
  A host behind a provider's 50 Mbit/s limit, as a file to look at and to apply:
    dualq plan --rate 50mbit -o plan.toml

  Downloads too: what arrives is taken through a queue of this host, a little below the link's rate:
    dualq plan --rate 20mbit --down 50mbit -o plan.toml

  Two ways out, each with its own rate:
    dualq plan --dev eth0 --dev wwan0 \\
      --rate eth0=50mbit --rate wwan0=10mbit -o plan.toml

  Below a class of a tree that somebody else made, and keeps:
    dualq plan --dev eth0 --parent 1:10 --qdisc fq_codel -o plan.toml

  What would it bring, beside all else that this kernel has?
    dualq plan --rate 50mbit --rtt 48ms --predict

  By what was measured of the path instead of what the provider says:
    dualq measure HOST --token-file token --json > path.json
    dualq plan --from path.json -o plan.toml

  A relay whose traffic is inside one tunnel:
    dualq plan --rate 50mbit --tunnel

  For another machine:
    ssh vps dualq doctor --json > vps.json
    dualq plan --facts vps.json --rate 50mbit --cc bbr

  For FreeBSD, from what `sysctl -a` says there; dualq does not apply that:
    dualq plan --facts freebsd.txt --os freebsd --cc dctcp --rate 50mbit

Nothing is changed. The exit status is 0 also if there is nothing to change.";

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// What the machine is mostly for [default: gateway if it forwards for others, else low-latency]
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileName>,

    /// What the queue discipline is chosen for
    #[arg(long, value_enum, default_value_t)]
    pub(crate) aim: AimName,

    /// The bottleneck's rate in tc's words, as the provider says it: the shaper that is put before it is a twentieth slower. With DEV= of that
    /// interface alone, else of each that has none of its own
    #[arg(long, value_name = "[DEV=]RATE", allow_hyphen_values = true)]
    pub(crate) rate: Vec<String>,

    /// The bottleneck's rate of what arrives, as the provider says it: what comes faster than a twentieth below it is queued here, behind an ifb
    #[arg(long, value_name = "[DEV=]RATE", allow_hyphen_values = true)]
    pub(crate) down: Vec<String>,

    /// Take the rate and the round-trip time of what FILE says of this machine's upload, where no option says otherwise: `dualq measure --json`
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// The interface, or several: one plan, one record, one rollback [default: that of the default route]
    #[arg(long, value_name = "DEV")]
    pub(crate) dev: Vec<String>,

    /// Put the queue discipline below this class of a tree that somebody else made, a leaf, as tc numbers it: the tree stays. With DEV= of that interface
    #[arg(long, value_name = "[DEV=]CLASS")]
    pub(crate) parent: Vec<String>,

    /// The congestion control [default: the one there is; dctcp for datacenter]
    #[arg(long, value_name = "CC")]
    pub(crate) cc: Option<String>,

    /// A queue discipline in tc's words [default: the best of those that the kernel has, by a simulation]
    #[arg(long, value_name = "[DEV=]QDISC")]
    pub(crate) qdisc: Vec<String>,

    /// The same for what arrives, with --down
    #[arg(long, value_name = "[DEV=]QDISC")]
    pub(crate) down_qdisc: Vec<String>,

    /// The round-trip time of the paths that matter [default: what existing connections have seen, or 100ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) rtt: Option<String>,

    /// Plan for the machine whose facts are in FILE: `dualq doctor --json`, or FreeBSD's `sysctl -a`; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,

    /// The system that the facts must be of [default: the one they are of]
    #[arg(long, value_enum)]
    pub(crate) os: Option<OsName>,

    /// Write the plan to FILE, `-` for standard output; what is there is replaced only if it is a plan
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The folder in which dualq is to record what it changes, if that is not /var/lib/dualq: what runs at boot must know it
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// All that matters travels inside one tunnel: a queue sees one flow
    #[arg(long)]
    pub(crate) tunnel: bool,

    /// The senders are scalable: Prague, or DCTCP in a network of your own
    #[arg(long)]
    pub(crate) scalable: bool,

    /// What the bottleneck's link adds to each packet
    #[arg(long, value_enum)]
    pub(crate) link: Option<LinkName>,

    /// Limit, where others wait for it, what puts packets together: gso_max_segs of what leaves, gro and lro of what arrives
    #[arg(long)]
    pub(crate) offloads: bool,

    /// Show what is simulated: 1, 4 and 20 large transfers with short ones and ssh beside them, now and with all that the kernel has
    #[arg(long)]
    pub(crate) predict: bool,

    /// Where to simulate [default: the model, and a kernel, if one is built, for what the model does not have]
    #[arg(long, value_name = "WORLD", value_enum)]
    pub(crate) world: Option<WorldName>,

    /// On FreeBSD: a destination to which packets are to be smaller, such as 10.4.0.0/16
    #[arg(long, value_name = "NET", requires_all = ["via", "mtu"])]
    pub(crate) route: Option<String>,

    /// On FreeBSD: the router to that destination
    #[arg(long, value_name = "ADDRESS", requires = "route")]
    pub(crate) via: Option<String>,

    /// On FreeBSD: the largest packets to that destination, in bytes
    #[arg(long, value_name = "BYTES", requires = "route")]
    pub(crate) mtu: Option<u32>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RegretArgs {
    /// Saved facts: `dualq doctor --json`
    #[arg(value_name = "FACTS", required = true)]
    pub(crate) facts: Vec<PathBuf>,

    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// What a machine is mostly for.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ProfileName {
    /// Short answers while large transfers run beside them
    LowLatency,
    /// Large transfers
    Bulk,
    /// DCTCP and marking, only for a network that is all your own
    Datacenter,
    /// Forwarding for others: only the queue matters
    Gateway,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::LowLatency => Self::LowLatency,
            ProfileName::Bulk => Self::Bulk,
            ProfileName::Datacenter => Self::Datacenter,
            ProfileName::Gateway => Self::Gateway,
        }
    }
}

/// What the queue discipline is chosen for.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum AimName {
    /// The shortest answers under load, for at most a twentieth of the throughput
    #[default]
    Latency,
    /// The most throughput
    Throughput,
    /// Equal shares
    Fair,
}

impl From<AimName> for Aim {
    fn from(name: AimName) -> Self {
        match name {
            AimName::Latency => Self::Latency,
            AimName::Throughput => Self::Throughput,
            AimName::Fair => Self::Fair,
        }
    }
}

/// The kind of link that the bottleneck is.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LinkName {
    /// VDSL2 with PPPoE
    Dsl,
    /// Cable
    Docsis,
    /// Ethernet
    Ethernet,
}

impl From<LinkName> for LinkKind {
    fn from(name: LinkName) -> Self {
        match name {
            LinkName::Dsl => Self::Dsl,
            LinkName::Docsis => Self::Docsis,
            LinkName::Ethernet => Self::Ethernet,
        }
    }
}

/// An operating system.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OsName {
    /// Linux
    Linux,
    /// FreeBSD
    Freebsd,
}

impl From<OsName> for Os {
    fn from(name: OsName) -> Self {
        match name {
            OsName::Linux => Self::Linux,
            OsName::Freebsd => Self::FreeBsd,
        }
    }
}
