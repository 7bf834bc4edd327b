//! TCP's buffers and features, and tables that fill up.

use std::time::Duration;

use super::case::{Case, in_flight, shown};
use super::{Finding, Harm};
use crate::facts::Os;
use crate::knowledge;

/// The longest round-trip time that buffers are made for, where no connection tells of a longer one: around the world.
const FAR: Duration = Duration::from_millis(300);
/// How many times what is on the way a buffer may hold. TCP counts the memory of packets, which is up to twice their bytes.
const ENOUGH: u64 = 8;
/// The kernel's own limits of tcp_rmem and tcp_wmem.
const USUAL: u64 = 6_291_456;
/// What most who set it take: 128 KB.
const LOWAT: u64 = 131_072;
const UNLIMITED: u64 = u32::MAX as u64;

pub(super) fn oversize(case: &Case<'_>) -> Option<Finding> {
    let rate = case.rate?;
    let time = case.facts.min_rtt().unwrap_or(FAR).max(FAR);
    let needed = in_flight(rate, time);
    let large = ["net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"].into_iter().find_map(|key| {
        let size = case.number(key)?;
        (size > USUAL && size > needed.saturating_mul(ENOUGH)).then_some((key, size))
    });
    let (key, size) = large?;
    Some(Finding {
        id: "oversize-buffers",
        harm: Harm::Low,
        seen: format!("{key} allows {size} bytes; at {rate} and {}, {needed} bytes are on the way.", shown(time)),
        why: "More than that cannot be in flight. What an application has written waits in the socket instead, old by the time it is \
              sent; a flow that overfills the bottleneck has room to do so; and every connection may take the memory."
            .to_owned(),
        cure: format!("Remove the line that sets it: the kernel's default, {USUAL} at most, is enough here."),
        source: "Documentation/networking/ip-sysctl.rst: tcp_rmem, tcp_wmem",
    })
}

pub(super) fn notsent_lowat(case: &Case<'_>) -> Option<Finding> {
    (case.number("net.ipv4.tcp_notsent_lowat")? >= UNLIMITED).then(|| Finding {
        id: "notsent-lowat-unset",
        harm: Harm::Low,
        seen: "net.ipv4.tcp_notsent_lowat is unset.".to_owned(),
        why: "An application may write megabytes that TCP cannot send yet. A proxy or an HTTP/2 server that then has something urgent \
              queues behind its own data, and no AQM sees that queue."
            .to_owned(),
        cure: format!("`sysctl -w net.ipv4.tcp_notsent_lowat={LOWAT}`, and a line for it in /etc/sysctl.d."),
        source: "Documentation/networking/ip-sysctl.rst: tcp_notsent_lowat",
    })
}

pub(super) fn mtu_probing(case: &Case<'_>) -> Option<Finding> {
    if case.sysctl("net.ipv4.tcp_mtu_probing")? != "0" {
        return None;
    }
    let tunnel = case.tunnels().next()?;
    Some(Finding {
        id: "mtu-probing-off",
        harm: Harm::Medium,
        seen: format!(
            "net.ipv4.tcp_mtu_probing is 0, and there is a tunnel: {} ({}, MTU {}).",
            tunnel.name,
            tunnel.driver.as_deref().unwrap_or_default(),
            tunnel.mtu
        ),
        why: "A tunnel makes the path's MTU smaller than that of the link. Where a firewall drops the ICMP messages that tell so, \
              connections open and then hang with the first large packet."
            .to_owned(),
        cure: "`sysctl -w net.ipv4.tcp_mtu_probing=1`: TCP tries smaller packets after it was stuck; and clamp the MSS of what is \
               forwarded."
            .to_owned(),
        source: "RFC 4821; Documentation/networking/ip-sysctl.rst: tcp_mtu_probing",
    })
}

pub(super) fn tcp_feature_off(case: &Case<'_>) -> Option<Finding> {
    // Each system has its own.
    let features = [
        "net.inet.tcp.sack.enable",
        "net.inet.tcp.rfc1323",
        "net.inet.tcp.recvbuf_auto",
        "net.inet.tcp.sendbuf_auto",
        "net.ipv4.tcp_sack",
        "net.ipv4.tcp_window_scaling",
        "net.ipv4.tcp_timestamps",
        "net.ipv4.tcp_recovery",
        "net.ipv4.tcp_moderate_rcvbuf",
    ];
    let os = case.facts.os;
    let off: Vec<(&str, &str, &'static str)> = features
        .into_iter()
        .filter(|key| case.sysctl(key) == Some("0"))
        .filter_map(|key| {
            let known = knowledge::of(os, key)?;
            Some((key, known.harm("0")?, known.source))
        })
        .collect();
    let keys: Vec<&str> = off.iter().map(|(key, ..)| *key).collect();
    let sets = keys.iter().map(|key| format!("{key}=1")).collect::<Vec<_>>().join(" ");
    let (seen, why, line, source) = match off.as_slice() {
        [] => return None,
        [(key, what, source)] => (
            format!("{key} is 0."),
            format!("It is on by default, for good reason: {what}."),
            "the line that switches it off",
            *source,
        ),
        _ => {
            let reasons: Vec<String> =
                off.iter().map(|(key, what, _)| format!("without {key}, {what}")).collect();
            (
                format!("{} are 0.", keys.join(", ")),
                format!("They are on by default, for good reason: {}.", reasons.join("; ")),
                "the lines that switch them off",
                match os {
                    Os::Linux => "Linux Documentation/networking/ip-sysctl.rst",
                    Os::FreeBsd => "FreeBSD tcp(4)",
                },
            )
        }
    };
    Some(Finding {
        id: "tcp-feature-off",
        harm: Harm::Medium,
        seen,
        why,
        cure: match os {
            Os::Linux => format!("`sysctl -w {sets}`, and remove {line}."),
            Os::FreeBsd => format!("`sysctl {sets}`, and remove {line} from /etc/sysctl.conf."),
        },
        source,
    })
}

pub(super) fn conntrack_full(case: &Case<'_>) -> Option<Finding> {
    let table = case.facts.conntrack?;
    (table.max > 0 && table.count >= table.max / 10 * 8).then(|| Finding {
        id: "conntrack-nearly-full",
        harm: Harm::High,
        seen: format!("{} of {} entries of connection tracking are taken.", table.count, table.max),
        why: "Once it is full, packets of new connections are dropped, whatever the queues do.".to_owned(),
        cure: "Raise net.netfilter.nf_conntrack_max (and nf_conntrack_buckets with it), or do not track what needs no NAT \
               (`ct` `notrack`)."
            .to_owned(),
        source: "Documentation/networking/nf_conntrack-sysctl.rst",
    })
}
