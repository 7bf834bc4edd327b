//! What the output of `sysctl -a` tells of a FreeBSD machine: its TCP. Interfaces, dummynet and routes are not in it.

use std::time::Duration;

use super::case::{Case, in_flight};
use super::{Check, Finding, Harm, buffers};

/// As the checks for Linux.
pub(super) const CHECKS: &[Check] =
    &[buffers::tcp_feature_off, buffers_too_small, limited, ecn_off, dctcp, no_dualpi2];

/// Paths around half of the world: what a server's buffers have to be enough for.
const USUAL: Duration = Duration::from_millis(100);
const LARGEST: [&str; 2] = ["net.inet.tcp.sendbuf_max", "net.inet.tcp.recvbuf_max"];
const MAX_SOCKBUF: &str = "kern.ipc.maxsockbuf";

fn buffers_too_small(case: &Case<'_>) -> Option<Finding> {
    let rate = case.rate.filter(|rate| rate.as_bits_per_second() > 0)?;
    let needed = in_flight(rate, USUAL);
    let small = LARGEST.into_iter().find_map(|key| {
        let size = case.number(key)?;
        (size < needed).then_some((key, size))
    });
    let (key, size) = small?;
    let longest = size as f64 * 8e3 / rate.as_bits_per_second() as f64;
    Some(Finding {
        id: "buffers-too-small",
        harm: Harm::Medium,
        seen: format!("{key} is {size}; at {rate} and 100 ms, {needed} bytes are on the way."),
        why: format!(
            "No connection can have more in flight than its buffers hold: over paths longer than {longest:.0} ms one alone does not fill the link."
        ),
        cure:
            "`dualq plan --facts FILE --rate RATE --rtt TIME` gives the lines for /etc/sysctl.conf."
                .to_owned(),
        source: "FreeBSD tcp(4), tuning(7)",
    })
}

fn limited(case: &Case<'_>) -> Option<Finding> {
    let most = case.number(MAX_SOCKBUF)?;
    let (key, size) = LARGEST
        .into_iter()
        .filter_map(|key| Some((key, case.number(key)?)))
        .find(|(_, size)| *size > most)?;
    Some(Finding {
        id: "buffers-bounded-by-maxsockbuf",
        harm: Harm::Low,
        seen: format!("{key} is {size}, and {MAX_SOCKBUF} only {most}."),
        why: "A socket's buffers are bounded by the smaller of both, so the larger has no effect."
            .to_owned(),
        cure: format!(
            "`sysctl {MAX_SOCKBUF}={size}` or more, and a line for it in /etc/sysctl.conf."
        ),
        source: "FreeBSD tuning(7)",
    })
}

fn ecn_off(case: &Case<'_>) -> Option<Finding> {
    (case.sysctl("net.inet.tcp.ecn.enable")? == "0").then(|| Finding {
        id: "ecn-off",
        harm: Harm::Low,
        seen: "net.inet.tcp.ecn.enable is 0.".to_owned(),
        why: "ECN is refused even where the other side asks for it, so that queues can only drop.".to_owned(),
        cure: "`sysctl net.inet.tcp.ecn.enable=2` (the default: it is granted), or 1 to ask for it too; and a line for it in /etc/sysctl.conf."
            .to_owned(),
        source: "FreeBSD tcp(4), RFC 3168",
    })
}

fn dctcp(case: &Case<'_>) -> Option<Finding> {
    (case.sysctl("net.inet.tcp.cc.algorithm")? == "dctcp").then(|| Finding {
        id: "dctcp-for-all",
        harm: Harm::Medium,
        seen: "net.inet.tcp.cc.algorithm is dctcp, for every connection.".to_owned(),
        why: "DCTCP answers marks mildly and is for a network whose every queue marks it early. Beside others in a classic queue it takes \
              their share; whether this machine talks to the Internet is not in these facts."
            .to_owned(),
        cure: "Outside such a network: `sysctl net.inet.tcp.cc.algorithm=cubic`. Within: nothing.".to_owned(),
        source: "FreeBSD cc_dctcp(4), RFC 8257 section 5",
    })
}

fn no_dualpi2(case: &Case<'_>) -> Option<Finding> {
    case.sysctl("net.inet.tcp.cc.algorithm")?;
    Some(Finding {
        id: "no-dualpi2",
        harm: Harm::Note,
        seen: "FreeBSD has no dualpi2; whether dummynet or ALTQ shapes here is not in these facts.".to_owned(),
        why: "Queues are managed by dummynet's fq_codel, codel, pie or fq_pie behind a pipe below the bottleneck's rate.".to_owned(),
        cure: "`dualq plan --facts FILE --rate RATE` says how; it is put there by hand.".to_owned(),
        source: "FreeBSD ipfw(8), dummynet(4)",
    })
}
