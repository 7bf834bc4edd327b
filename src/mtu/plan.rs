//! A cure as a plan that `dualq apply` takes.

use std::fs;
use std::io;

use dualq_host::Plan;
use dualq_host::facts::Os;
use dualq_host::plan::{Aim, Change, Destination, FORMAT, What};
use dualq_mtu::probe::Survey;

use crate::cli::Failure;
use crate::cli::mtu::CureName;
use crate::output::plain;

const KERNEL: &str = "/proc/sys/kernel/osrelease";
const PROBING: &str = "net.ipv4.tcp_mtu_probing";
const PROBING_FILE: &str = "/proc/sys/net/ipv4/tcp_mtu_probing";

/// What this machine can do against the black holes among `surveys`; `None` if there is none.
pub(super) fn make(surveys: &[Survey], cure: CureName) -> Result<Option<Plan>, Failure> {
    let holes = || surveys.iter().filter(|survey| survey.verdict.is_black_hole());
    if holes().next().is_none() {
        return Ok(None);
    }
    let hosts: Vec<String> = holes().map(|survey| survey.host.to_string()).collect();
    let hosts = hosts.join(" and ");
    let (about, changes, note) = match cure {
        CureName::Route => (
            format!("smaller packets to {hosts}, on whose path larger ones vanish"),
            holes().filter_map(route).collect(),
            "this helps what this machine sends to that host, and what TCP sends back, until the next restart",
        ),
        CureName::Probing => (
            format!("TCP that finds out by itself where larger packets vanish, as to {hosts}"),
            probing()?,
            "this helps what this machine's TCP sends; each connection through a black hole still hangs for some seconds first",
        ),
    };
    let plan = Plan {
        format: FORMAT,
        about,
        os: Os::Linux,
        kernel: read(KERNEL)?,
        aim: Aim::default(),
        evidence: Vec::new(),
        notes: vec![note.to_owned()],
        changes,
    };
    // No route can have a very small MTU.
    plan.check().map_err(|error| Failure::Run(format!("{error}; see --cure for another plan")))?;
    Ok(Some(plan))
}

fn route(survey: &Survey) -> Option<Change> {
    let (host, mtu) = (survey.host, survey.verdict.mtu(survey.local.mtu)?);
    Some(Change {
        why: format!("packets over {mtu} bytes to {host} vanish, and no ICMP says so"),
        source: "RFC 2923 §2.1; ip-route(8), mtu".to_owned(),
        what: What::Route { to: Destination::host(host), mtu: mtu.into() },
    })
}

fn probing() -> Result<Vec<Change>, Failure> {
    let before = read(PROBING_FILE)?;
    if before != "0" {
        return Ok(Vec::new());
    }
    Ok(vec![Change {
        why: "TCP sends smaller segments once several were lost in a row".to_owned(),
        source: "RFC 4821; Linux, Documentation/networking/ip-sysctl.rst, tcp_mtu_probing"
            .to_owned(),
        what: What::Sysctl { key: PROBING.to_owned(), before, after: "1".to_owned() },
    }])
}

fn read(path: &str) -> Result<String, Failure> {
    let cannot = |error: io::Error| Failure::Run(format!("cannot read {path}: {}", plain(&error)));
    Ok(fs::read_to_string(path).map_err(cannot)?.trim().to_owned())
}
