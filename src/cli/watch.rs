//! The arguments of `dualq watch`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dualq_units::{surprise, tc_time};

/// Less would be most of a processor, more nobody watches.
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

pub(crate) const EXAMPLES: &str = "\
Examples:
  What happens now, on the terminal; q ends it:
    dualq watch
    dualq watch eth0 --interval 100ms

  Ten seconds of it for a program, a JSON document a line:
    dualq watch eth0 --for 10s --json

  For Prometheus, which asks at http://127.0.0.1:9798/metrics, or by the textfile collector of node_exporter:
    dualq watch --prometheus 127.0.0.1:9798
    dualq watch --interval 15s \\
      --prometheus /var/lib/prometheus/node-exporter/dualq.prom

Nothing is changed, and no privileges are needed.";

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// Only the queue disciplines of these devices [default: all that have any]
    #[arg(value_name = "DEV")]
    pub(crate) devices: Vec<String>,

    /// How often to look, 10ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,

    /// End after so many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// End after so long
    #[arg(long = "for", value_name = "TIME", conflicts_with = "count", value_parser = whole)]
    pub(crate) whole: Option<Duration>,

    /// Print a JSON document a line, one for each interval
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,

    /// Give metrics to Prometheus and show nothing: at an address such as 127.0.0.1:9798, or PORT alone for this machine only; or in a FILE, which
    /// ends in .prom or has a `/`, written anew at each interval
    #[arg(long, value_name = "ADDR:PORT|FILE", value_parser = target)]
    pub(crate) prometheus: Option<Target>,
}

/// Where metrics go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Address(SocketAddr),
    File(PathBuf),
}

fn interval(text: &str) -> Result<Duration, String> {
    within(text, INTERVAL, "it is 10ms to 1h")
}

fn whole(text: &str) -> Result<Duration, String> {
    within(text, *INTERVAL.start()..=LONGEST, "it is 10ms to 366 days")
}

fn within(
    text: &str,
    range: RangeInclusive<Duration>,
    right: &'static str,
) -> Result<Duration, String> {
    match tc_time::parse_span(text) {
        Ok(time) if range.contains(&time) => Ok(time),
        Ok(_) => Err(match surprise::duration(text) {
            Some(told) => format!("{right}; {told}"),
            None => right.to_owned(),
        }),
        Err(error) => Err(error.to_string()),
    }
}

fn target(text: &str) -> Result<Target, String> {
    if text.contains('/') || text.ends_with(".prom") {
        return Ok(Target::File(text.into()));
    }
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    let address = match port.parse() {
        Ok(port) => Ok(SocketAddr::new(here, port)),
        Err(_) => text.parse(),
    };
    address.map(Target::Address).map_err(|_| {
        "give an address and a port (127.0.0.1:9798, [::1]:9798), a port, or a file (./dualq.prom)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_files_are_told_apart() {
        let address = |text: &str| Ok(Target::Address(text.parse().unwrap()));
        for text in ["9798", ":9798", "localhost:9798", "127.0.0.1:9798"] {
            assert_eq!(target(text), address("127.0.0.1:9798"), "{text}");
        }
        assert_eq!(target("[::1]:9798"), address("[::1]:9798"));
        for file in ["a.prom", "./a", "/var/lib/a.prom"] {
            assert_eq!(target(file), Ok(Target::File(file.into())));
        }
        for wrong in ["", "99999", "::1:9798x", "example.org:9798", "127.0.0.1"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
