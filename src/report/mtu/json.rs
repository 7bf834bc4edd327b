//! The same as the text says, and more, as one document.

use dualq_mtu::Verdict;
use dualq_mtu::cure::{Cure, Remedy};
use dualq_mtu::overhead::explain;
use dualq_mtu::probe::{Connection, Hop, Method, Survey, Tcp, Trace};
use dualq_mtu::search::Limit;
use serde_json::{Value, json};

use super::{answer, explained, remedies};

/// The document about all addresses of a host.
pub(crate) fn json(host: &str, surveys: &[Survey]) -> String {
    let addresses: Vec<Value> = surveys.iter().map(address).collect();
    let document = json!({
        "version": 1,
        "command": "mtu",
        "host": host,
        "fine": surveys.iter().all(|survey| survey.verdict.is_fine()),
        "addresses": addresses,
    });
    format!("{document:#}\n")
}

fn address(survey: &Survey) -> Value {
    let Survey { host, local, verdict, .. } = survey;
    let verdict_name = match verdict {
        Verdict::Whole => "whole",
        Verdict::Signalled { .. } => "signalled",
        Verdict::BlackHole { .. } => "black-hole",
        Verdict::TcpHangs { .. } => "tcp-hangs",
        Verdict::Lossy { .. } => "lossy",
        Verdict::TcpWorks { .. } => "tcp-works",
        Verdict::NoAnswer => "no-answer",
    };
    let candidates: Vec<Value> = explained(survey)
        .map(explain)
        .unwrap_or_default()
        .iter()
        .map(|candidate| {
            json!({
                "encapsulation": candidate.encapsulation.to_string(),
                "link_mtu": candidate.link,
                "leaves": candidate.leaves,
            })
        })
        .collect();
    let vanish =
        survey.trace.as_ref().filter(|_| verdict.is_black_hole()).and_then(Trace::vanishing);
    json!({
        "address": host,
        "interface": local.interface,
        "interface_mtu": local.mtu,
        "gateway": local.gateway,
        "route_mtu": local.believed.filter(|_| !local.is_learned),
        "learned_mtu": local.believed.filter(|_| local.is_learned),
        "verdict": verdict_name,
        "path_mtu": verdict.mtu(local.mtu),
        "answer": answer(survey),
        "vanish_after": vanish.and_then(|(last, _)| last).map(|hop| hop_json(&hop)),
        "vanish_before": vanish.map(|(_, next)| hop_json(&next)),
        "echo": method_json(&survey.echo),
        "udp": method_json(&survey.udp),
        "tcp": tcp_json(&survey.tcp),
        "large_bytes": survey.trace.as_ref().map(|trace| trace.large),
        "hops": survey.trace.as_ref().map(|trace| trace.hops.iter().map(hop_json).collect::<Vec<_>>()),
        "explanations": candidates,
        "cures": remedies(survey).iter().map(cure_json).collect::<Vec<_>>(),
    })
}

fn hop_json(hop: &Hop) -> Value {
    json!({
        "hop": hop.number,
        "address": hop.by,
        "host": hop.is_host,
        "large_arrives": hop.large_arrives,
        "refuses": hop.refuses,
    })
}

fn method_json(method: &Method) -> Value {
    let (found, rejected_by) = match method {
        Method::Unable(why) => return json!({ "not_tried": why }),
        Method::Used { found, rejected_by } => (found, rejected_by),
    };
    let limit = match found.limit {
        Limit::Nothing => "none",
        Limit::Refused => "refused",
        Limit::Silence(_) => "silence",
        Limit::Unclear => "unclear",
        Limit::NoAnswer => "no-answer",
    };
    let refusals: Vec<Value> = found
        .refusals
        .iter()
        .map(|refusal| json!({ "bytes": refusal.size, "mtu": refusal.mtu, "by": refusal.by }))
        .collect();
    json!({
        "largest": found.largest,
        "limit": limit,
        "lost_beyond": match found.limit { Limit::Silence(lost) => Some(lost), _ => None },
        "packets_sent": found.sent,
        "fitting_sent": found.fitting.0,
        "fitting_lost": found.fitting.1,
        "too_big": refusals,
        "rejected_by": rejected_by,
    })
}

fn tcp_json(tcp: &Tcp) -> Value {
    match tcp {
        Tcp::Closed(ports) => json!({ "connected": false, "ports": ports }),
        Tcp::Connected(Connection { port, mss, packet, believed, bulk }) => json!({
            "connected": true,
            "port": port,
            "segment_bytes": mss,
            "packet_bytes": packet,
            "path_mtu_believed": believed,
            "segments": bulk.as_ref().map(|bulk| bulk.iter().map(|segment| json!({
                "packet_bytes": segment.packet,
                "arrived": segment.arrived,
                "sent_again": segment.sent_again,
            })).collect::<Vec<_>>()),
        }),
    }
}

fn cure_json(cure: &Cure) -> Value {
    let kind = match cure.remedy {
        Remedy::RouteMtu => "route-mtu",
        Remedy::MssClamp => "mss-clamp",
        Remedy::MtuProbing => "tcp-mtu-probing",
        Remedy::LetIcmpThrough => "let-icmp-through",
    };
    json!({
        "kind": kind,
        "does": cure.does,
        "when": cure.when,
        "linux": cure.linux,
        "freebsd": cure.freebsd,
    })
}
