//! The arguments of `dualq mtu`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const EXAMPLES: &str = "\
Examples:
  Small requests work, bulk transfers hang. Does the path eat large packets?
    dualq mtu vpn.example.org

  Only over IPv6, and with the TCP port of the service that hangs:
    dualq mtu -6 vpn.example.org --port 6379

  Direct evidence: is a full TCP segment of empty lines acknowledged?
    dualq mtu 192.0.2.7 --port 6379 --tcp-send

  A plan against it, to look at and to apply: a route with the right MTU, or TCP that probes:
    dualq mtu 192.0.2.7 -o plan.toml
    dualq mtu 192.0.2.7 -o plan.toml --cure probing

  For a program to read:
    dualq mtu 192.0.2.7 --json

It takes some seconds. UDP and TCP need no privileges; ICMP echo needs the user's group to be within net.ipv4.ping_group_range, or root. Some dozens of packets are sent with the DF bit set, UDP to ports 33434 to 33523 as traceroute does; nothing is changed. The exit status is 0 if nothing is wrong, 1 if large packets vanish or nothing can be told, 2 for a wrong call.";

#[derive(Args)]
pub(crate) struct MtuArgs {
    /// The host: a name or an address
    #[arg(value_name = "HOST")]
    pub(crate) host: String,

    /// The TCP port whose segment size is looked at [default: 443, 80 or 22, whichever answers]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<NonZero<u16>>,

    /// The UDP port to send to; nobody should listen there [default: 33434 to 33523 in turn]
    #[arg(long, value_name = "N")]
    pub(crate) udp_port: Option<NonZero<u16>>,

    /// Only over IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,

    /// Only over IPv6
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,

    /// Send a full segment of empty lines to the TCP port, and smaller ones if it does not arrive. The service sees them: do this
    /// to your own
    #[arg(long)]
    pub(crate) tcp_send: bool,

    /// The longest wait for an answer; less once it is known how fast the host is
    #[arg(long, value_name = "TIME", default_value = "1s", allow_hyphen_values = true)]
    pub(crate) timeout: String,

    /// How often a packet of one size is sent at most before the path is called too lossy to tell
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(10..=1000))]
    pub(crate) attempts: u32,

    /// Write what this machine can do about it as a plan to FILE, to look at and to apply; `-` for standard output in place of the
    /// report. Nothing is written if there is nothing to do
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Which cure the plan is of
    #[arg(long, value_enum, default_value_t, requires = "plan")]
    pub(crate) cure: CureName,

    /// The folder in which dualq is to record what the plan changes, if that is not /var/lib/dualq: what runs at boot must know it
    #[arg(long, value_name = "DIR", requires = "plan")]
    pub(crate) state: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress, even if it takes long
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// What a machine can do by itself.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum CureName {
    /// A route to the host, with the MTU that gets through
    #[default]
    Route,
    /// The sysctl net.ipv4.tcp_mtu_probing, for all of TCP
    Probing,
}
