//! `dualq mtu`: from a host's name to what its path carries.

mod plan;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use dualq_mtu::MtuError;
use dualq_mtu::probe::{self, Local, Options, Stage, Survey};
use dualq_netlink::{Netlink, NetlinkError};
use dualq_units::{plain, tc_time};

use crate::cli::mtu::MtuArgs;
use crate::cli::{self, Failure, note};
use crate::output::print;
use crate::progress::Spinner;
use crate::report;

/// Times outside of this would only be mistakes.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(60);

pub(crate) fn run(args: &MtuArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let state = crate::plan::state(args.state.as_deref())?;
    let addresses = resolve(args)?;
    let mut spinner = Spinner::new(!args.no_progress);
    let mut surveys: Vec<Survey> = Vec::new();
    let mut failures: Vec<String> = Vec::new();
    for address in addresses {
        let surveyed = local(address).and_then(|local| {
            let host = address.ip();
            let mut tick = |stage| spinner.show(|| format!("{host}: {}", describe(stage)));
            probe::survey(address, local, &options, &mut tick)
                .map_err(|error: MtuError| error.to_string())
        });
        match surveyed {
            Ok(survey) => surveys.push(survey),
            Err(failure) => failures.push(failure),
        }
    }
    spinner.clear();
    if surveys.is_empty() {
        return Err(Failure::Run(failures.join("; ")));
    }
    // A name often has an address of IPv6 where the machine that asks has none.
    for failure in failures {
        note(&failure);
    }
    let on_stdout = args.plan.as_deref() == Some(Path::new("-"));
    // What was found out is told even if no plan can be made or written.
    let is_nothing_to_do = surveys.iter().all(|survey| !survey.verdict.is_black_hole());
    if !on_stdout || is_nothing_to_do {
        let text = if args.json {
            report::mtu::json(&args.host, &surveys)
        } else {
            report::mtu::text(&surveys)
        };
        // Whoever wants a plan there takes nothing else for one.
        if on_stdout && !args.json {
            print(&mut io::stderr(), &text)?;
        } else {
            print(&mut io::stdout(), &text)?;
        }
    }
    if let Some(path) = &args.plan {
        match plan::make(&surveys, args.cure, state.as_deref())? {
            Some(plan) if on_stdout => print(&mut io::stdout(), &plan.write())?,
            Some(plan) => {
                crate::plan::write(path, &plan)?;
                // A document stays one document.
                if !args.json {
                    print(&mut io::stdout(), &report::plan::written(path))?;
                }
            }
            None => note("no large packets vanish, so there is nothing to plan"),
        }
    }
    verdict(&surveys)
}

fn verdict(surveys: &[Survey]) -> Result<(), Failure> {
    if surveys.iter().all(|survey| survey.verdict.is_fine()) {
        Ok(())
    } else {
        // The report has said why.
        Err(Failure::Command(1))
    }
}

fn options(args: &MtuArgs) -> Result<Options, Failure> {
    if args.json && args.plan.as_deref() == Some(Path::new("-")) {
        let both = "--json and -o - both take standard output: give the plan a file";
        return Err(Failure::Usage(both.to_owned()));
    }
    let timeout = tc_time::parse(&args.timeout)
        .map_err(|error| Failure::Usage(format!("--timeout: {error}")))?;
    if !TIMEOUTS.contains(&timeout) {
        let given = &args.timeout;
        return Err(Failure::Usage(format!("--timeout {given}: give 10ms to 60s, such as 1s")));
    }
    Ok(Options {
        timeout,
        attempts: args.attempts,
        port: args.port.map(Into::into),
        udp_port: args.udp_port.map(Into::into),
        tcp_send: args.tcp_send,
    })
}

/// The first address of each family that is wanted.
fn resolve(args: &MtuArgs) -> Result<Vec<SocketAddr>, Failure> {
    let bare = cli::host(&args.host)?;
    let addresses: Vec<SocketAddr> = (bare, 0)
        .to_socket_addrs()
        .map_err(|error| {
            let reason = plain(&error);
            let reason = reason.rsplit(": ").next().unwrap_or_default();
            Failure::Run(format!("cannot find the host {bare}: {reason}"))
        })?
        .collect();
    let is_scopeless = |address: &SocketAddr| matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0);
    if addresses.iter().any(is_scopeless) {
        return Err(Failure::Usage(format!(
            "HOST {bare}: every interface has addresses of this kind: say which, such as {bare}%eth0"
        )));
    }
    let first = |wanted: bool, v4: bool| {
        addresses.iter().find(|address| wanted && address.is_ipv4() == v4).copied()
    };
    let found: Vec<SocketAddr> =
        [first(!args.ipv6, true), first(!args.ipv4, false)].into_iter().flatten().collect();
    if found.is_empty() {
        let version = if args.ipv6 { 6 } else { 4 };
        return Err(Failure::Run(format!("the host {bare} has no address of IPv{version}")));
    }
    Ok(found)
}

/// What this machine knows of the way to an address.
fn local(to: SocketAddr) -> Result<Local, String> {
    let way = Netlink::open().and_then(|mut netlink| netlink.way_to_socket(to));
    let way = way.map_err(|error: NetlinkError| error.to_string())?;
    let cut = |mtu: u32| u16::try_from(mtu).unwrap_or(u16::MAX);
    Ok(Local {
        interface: way.link.name,
        mtu: cut(way.link.mtu),
        gateway: way.gateway,
        believed: way.mtu.map(cut),
        is_learned: way.mtu_expires,
    })
}

fn describe(stage: Stage) -> String {
    match stage {
        Stage::Echo(size) => format!("ICMP echo, {size} bytes"),
        Stage::Udp(size) => format!("UDP, {size} bytes"),
        Stage::Connecting => "TCP, connecting".to_owned(),
        Stage::Sending => "TCP, waiting for acknowledgements".to_owned(),
        Stage::Hop(hop) => format!("hop {hop}"),
    }
}
