//! The arguments of `dualq measure` and `dualq serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const EXAMPLES: &str = "\
Examples:
  On the one machine, once, and then on it for as long as others are to measure:
    dualq serve --new token
    dualq serve --token-file token

  On the other, with a copy of that file:
    dualq measure vpn.example.org --token-file token

  With the flows of an upload that uses BBR, for a program to read:
    dualq measure 192.0.2.7 --token-file token --direction upload \\
      --streams 1 --cc bbr --json

  What a queue discipline would do about it, and a plan:
    dualq measure 192.0.2.7 --token-file token \\
      --scenario path.toml --json > path.json
    dualq run path.toml --qdisc fq_codel --qdisc dualpi2
    dualq plan --from path.json

  Where only an iperf3 server is to be had, or a web server with a large file:
    dualq measure 192.0.2.7 --iperf3
    dualq measure --http http://deb.debian.org/debian/ls-lR.gz

  Behind a link of dualq's own:
    dualq shell --rate 20mbit --rtt 30ms \\
      --far 'dualq serve --token-file token' \\
      -- sh -c 'dualq measure $FAR --token-file token'

Round trips without load come first, then a download, an upload, and both at once, each until its figures stand: the mean goodput is known to 3 %, the mean round trip to 10 % or 1 ms, with 95 % confidence, and without --streams until the flows, one more each second, have filled the path. Path and host are loaded fully meanwhile; --max-time and --max-bytes bound that.";

pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  Make a token, which clients need a copy of, and serve:
    dualq serve --new token

  Only for one network, not for long, and not too fast:
    dualq serve --token-file token --allow 192.0.2.0/24 \\
      --max-duration 30s --max-rate 200mbit

  As a service that systemd starts when somebody connects:
    dualq serve --unit service > /etc/systemd/system/dualq-serve.service
    dualq serve --unit socket > /etc/systemd/system/dualq-serve.socket

Nothing is sent but to those who know the token, which itself is never sent. The server writes no files, and gives up root, files and the starting of programs before its first connection, as far as the kernel lets it; it says what holds.";

#[derive(Args)]
pub(crate) struct MeasureArgs {
    /// The host where `dualq serve` runs: a name or an address
    #[arg(value_name = "HOST", required_unless_present = "http")]
    pub(crate) host: Option<String>,

    /// Its port [default: 9332, of TCP and UDP; with --iperf3 5201]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// The file with the server's token
    #[arg(long, value_name = "FILE", required_unless_present_any = ["iperf3", "http"])]
    pub(crate) token_file: Option<PathBuf>,

    /// What answers at HOST is a stock iperf3 server: it tells of round trips only by ICMP and the flows' own kernels, and nothing of ECN, RPM and loss
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) iperf3: bool,

    /// Download this file of a web server instead, such as <http://example.org/large.iso>: round trips by ICMP and by new connections, nothing of uploads, ECN and loss
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "port", "token_file", "iperf3", "direction", "cc", "rate", "scenario"])]
    pub(crate) http: Option<String>,

    /// Only over IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,

    /// Only over IPv6
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,

    /// What is loaded, in this order, separated by commas [default: download,upload,both]
    #[arg(long, value_name = "WAY", value_enum, value_delimiter = ',')]
    pub(crate) direction: Vec<Way>,

    /// How many flows load each direction [default: from 1 on one more each second, up to 16, until goodput and responsiveness are stable; 4 with --rate, --iperf3 and --http]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) streams: Option<u32>,

    /// Their congestion control, by the kernel's name, which both kernels must have [default: each kernel's own]
    #[arg(long, value_name = "NAME")]
    pub(crate) cc: Option<String>,

    /// The greatest rate of each direction, in tc's words [default: as fast as it goes]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,

    /// How long it may take altogether; it ends sooner once the figures stand
    #[arg(long, value_name = "TIME", default_value = "60s", allow_hyphen_values = true)]
    pub(crate) max_time: String,

    /// How much flows may carry altogether, in tc's words such as 500mb [default: no limit]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) max_bytes: Option<String>,

    /// Write the scenario that comes closest to the path to FILE, for `dualq run` to try cures on; it needs both ways measured
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,

    /// Write a report to look at: one HTML file with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write what was measured with both ways loaded, or else last, as a data file of flent
    #[arg(long, value_name = "FILE")]
    pub(crate) flent: Option<PathBuf>,

    /// Print one JSON document instead of text, with all round trips
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Which way is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// From the server here
    Download,
    /// From here to the server
    Upload,
    /// Both at once
    Both,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Where to listen, for TCP and UDP; give several for more [default: `0.0.0.0:9332` and `[::]:9332`, or the sockets that systemd gives]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Vec<SocketAddr>,

    /// The file with the token that clients have to know
    #[arg(long, value_name = "FILE", required_unless_present_any = ["new", "unit"])]
    pub(crate) token_file: Option<PathBuf>,

    /// Write a new token to FILE, which must not be there yet and which nobody else may read, and serve with it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token_file", "unit"])]
    pub(crate) new: Option<PathBuf>,

    /// How long a session may last
    #[arg(long, value_name = "TIME", default_value = "120s", allow_hyphen_values = true)]
    pub(crate) max_duration: String,

    /// How fast each direction of a session may be, in tc's words [default: no limit]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) max_rate: Option<String>,

    /// How many sessions there may be at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) max_sessions: u32,

    /// From where clients may come: a network such as 192.0.2.0/24; give several for more [default: from everywhere]
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow: Vec<String>,

    /// Print a unit file for systemd instead, hardened, and end
    #[arg(long, value_name = "KIND", value_enum, conflicts_with = "token_file")]
    pub(crate) unit: Option<Unit>,
}

/// A unit of systemd's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// The server
    Service,
    /// Its sockets
    Socket,
}
