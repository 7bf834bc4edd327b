//! The arguments of `dualq shell`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const EXAMPLES: &str = "\
Examples:
  A shell behind a link of 50 Mbit/s and 48 ms with dualpi2, each way; `exit` leaves:
    dualq shell --rate 50mbit --rtt 48ms

  A command behind it. The far end is called far; quoted, $FAR and $FAR6 are its addresses:
    dualq shell --rate 20mbit --qdisc fq_codel -- iperf3 -c far
    dualq shell --rtt 20ms -- curl -o /dev/null http://far/100M
    dualq shell --rtt 20ms -- ping -c 3 '$FAR6'

  An asymmetric line, and mobile ones from mahimahi's traces:
    dualq shell --down '100mbit dualpi2' --up '10mbit cake bandwidth 9mbit'
    dualq shell --down-trace lte.down --up-trace lte.up --rtt 40ms \\
      --up fq_codel
    dualq shell --scenario lte --qdisc codel

  A server of one's own at the far end:
    dualq shell --far 'python3 -m http.server 8000' -- curl http://far:8000/

  The outside, through the far end:
    dualq shell --rtt 80ms --gateway -- curl -O https://example.org/

  To look at it while it runs, from another terminal or from inside, and to change it:
    dualq shell watch
    dualq shell set --rate 10mbit --qdisc 'dualpi2 target 5ms'

At the far end there are an echo (port 7), a sink (9), a source (19), HTTP (80: GET /100M gives 100 MiB, POST takes all), \
and iperf3 (5201) if it is installed. Nothing outside can be reached without --gateway. The exit status is the command's.";

/// What `dualq shell iperf3 -c far` lacks: the library takes the command for an argument that does not exist. `word` is what it did not
/// expect, and `given` all that was.
pub(crate) fn without_dashes(word: &str, given: &[String]) -> Option<String> {
    let at = given.iter().position(|given| given == word)?;
    if given.get(1).is_none_or(|first| first != "shell") || word.starts_with('-') {
        return None;
    }
    Some(format!(
        "a command stands behind --: {} -- {}",
        given[..at].join(" ").replacen(&given[0], "dualq", 1),
        given[at..].join(" ")
    ))
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ShellArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ShellAction>,

    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

/// What is done with a shell that is there.
#[derive(Subcommand)]
pub(crate) enum ShellAction {
    /// Show what its link does: rate, queue delay, marks, drops; and change it by keys
    Watch(WatchArgs),

    /// Change its link while it runs
    Set(SetArgs),
}

#[derive(Args)]
pub(crate) struct OpenArgs {
    /// The link's rate in tc's words, each way; `unlimited` for none [default: 50mbit]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,

    /// The base round-trip time, half of it each way [default: 50ms]; what elements of a --scenario take comes on top
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) rtt: Option<String>,

    /// The queue discipline in tc's words, each way [default: dualpi2]
    #[arg(long, value_name = "QDISC")]
    pub(crate) qdisc: Option<String>,

    /// Only of the way from far to near: its rate, or its queue discipline, or the one and behind it the other
    #[arg(long, value_name = "RATE QDISC", allow_hyphen_values = true)]
    pub(crate) down: Option<String>,

    /// The same of the way from near to far
    #[arg(long, value_name = "RATE QDISC", allow_hyphen_values = true)]
    pub(crate) up: Option<String>,

    /// How many packets are lost at random behind the queues, each way
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub(crate) loss: Option<String>,

    /// The rates of a trace file of mahimahi's, each way; it begins again after its end
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    pub(crate) trace: Option<PathBuf>,

    /// Only of the way from far to near
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    pub(crate) down_trace: Option<PathBuf>,

    /// Only of the way from near to far
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    pub(crate) up_trace: Option<PathBuf>,

    /// The path of a scenario, a TOML file; its flows and probes are not played. What other options say of a way, or of each, comes before what it says
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,

    /// The largest IP packet, in bytes [default: 1500]
    #[arg(long, value_name = "BYTES")]
    pub(crate) mtu: Option<u32>,

    /// What all that is random on the path follows from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// A command of the shell's that runs at the far end meanwhile, such as a server; give several for more
    #[arg(long, value_name = "COMMAND")]
    pub(crate) far: Vec<String>,

    /// Let the command reach the outside too, through the far end; takes pasta, of the package passt
    #[arg(long)]
    pub(crate) gateway: bool,

    /// Show what the link does below what the command prints
    #[arg(long)]
    pub(crate) watch: bool,

    /// Write what happens to each packet to FILE, as `dualq run --events` does
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Write the headers of all packets to FILE, as pcapng for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write what the link saw to FILE at the end, as one JSON document
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Say nothing but errors: neither at the beginning nor at the end
    #[arg(long)]
    pub(crate) quiet: bool,

    /// The command and its arguments [default: your shell]
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// The process of the `dualq shell` [default: the one that this is in, or the only one there is]
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Print one JSON document of now, and end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SetArgs {
    /// The process of the `dualq shell` [default: the one that this is in, or the only one there is]
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,

    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// What is to be otherwise on a link; what is not said stays.
#[derive(Args, Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Changes {
    /// Another rate, each way
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,

    /// Another base round-trip time, in the proportions that the link's two delays have; of none, half of it each way
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) rtt: Option<String>,

    /// Another queue discipline, each way: changed as by `tc qdisc change`, or replaced if it is another kind
    #[arg(long, value_name = "QDISC")]
    pub(crate) qdisc: Option<String>,

    /// Another rate from far to near, or another queue discipline, or the one and behind it the other
    #[arg(long, value_name = "RATE QDISC", allow_hyphen_values = true)]
    pub(crate) down: Option<String>,

    /// The same from near to far
    #[arg(long, value_name = "RATE QDISC", allow_hyphen_values = true)]
    pub(crate) up: Option<String>,
}

/// A command that `dualq shell` starts: it keeps another one company.
#[derive(Args)]
pub(crate) struct KeepArgs {
    /// The process without which nothing is to stay; without one, this process becomes the command
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<u32>,

    /// A file that goes with it
    #[arg(long, value_name = "FILE")]
    pub(crate) forget: Option<PathBuf>,

    /// The command
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_dashes_is_known_for_one() {
        let told = |call: &str, word: &str| {
            let given: Vec<String> = call.split(' ').map(str::to_owned).collect();
            without_dashes(word, &given)
        };
        assert_eq!(
            told("/bin/dualq shell --rate 5mbit iperf3 -c far", "iperf3").unwrap(),
            "a command stands behind --: dualq shell --rate 5mbit -- iperf3 -c far"
        );
        assert_eq!(told("dualq run iperf3", "iperf3"), None);
        assert_eq!(told("dualq shell --fast", "--fast"), None);
    }
}
