//! Congestion control and ECN.

use std::time::Duration;

use super::case::{APART, Case, leaf_kind, leaves, manages, shown};
use super::{Finding, Harm};
use crate::facts::Availability;

/// A path within a data centre is shorter.
const NEAR: Duration = Duration::from_millis(2);

/// Who is under a congestion control, if anybody.
pub(super) fn users(case: &Case<'_>, control: &str) -> Option<String> {
    match case.connections(control) {
        0 if case.congestion_control() == control => {
            Some(format!("New connections are under {control}"))
        }
        0 => None,
        1 => Some(format!("A connection is under {control}")),
        count => Some(format!("{count} connections are under {control}")),
    }
}

pub(super) fn several_bbr(case: &Case<'_>) -> Option<Finding> {
    let default = case.congestion_control() == "bbr";
    let users = users(case, "bbr").filter(|_| default || case.connections("bbr") > 1)?;
    let uplink = case.uplink()?;
    let kind = leaf_kind(uplink).filter(|kind| manages(kind))?;
    // These keep flows apart, so that those that do not listen harm nobody else: unless all are one flow to them.
    let apart = APART.contains(&kind) && case.hidden().is_none();
    Some(Finding {
        id: "several-bbr",
        harm: if apart { Harm::Note } else { Harm::High },
        seen: format!("{users}, and {} has {kind}.", uplink.name),
        why: if apart {
            format!(
                "BBR version 1, Linux's, answers neither to marks nor to single losses, by which an AQM asks flows to slow down. {kind} \
                 keeps flows apart, so that it harms nobody else: with 4 at 48 Mbit/s and 48 ms, an ssh-like probe waits less than 1 ms."
            )
        } else {
            "BBR version 1, Linux's, answers neither to marks nor to single losses, by which an AQM asks flows to slow down. Several of \
             them keep its queue full: with 4 at 50 Mbit/s and 48 ms, DualPI2 drops a tenth of all packets, and one in a hundred answers to \
             an ssh-like probe takes 342 ms or longer."
                .to_owned()
        },
        cure: if apart {
            "Nothing."
        } else {
            "fq_codel or cake, which keep flows apart; inside a tunnel, where nothing does, cubic, with ECN. `dualq plan` chooses; try \
             yours: `dualq run --cc bbr --cc cubic`."
        }
        .to_owned(),
        source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 3; Linux 7.3, measured",
    })
}

pub(super) fn bbr3_ignores_marks(case: &Case<'_>) -> Option<Finding> {
    let users = users(case, "bbr3")?;
    let ecn = case.sysctl("net.ipv4.tcp_ecn").filter(|ecn| matches!(*ecn, "1" | "3" | "4"))?;
    let dualpi2 = case.uplink().and_then(leaf_kind) == Some("dualpi2");
    Some(Finding {
        id: "bbr3-ignores-marks",
        harm: if dualpi2 { Harm::High } else { Harm::Medium },
        seen: format!("{users}, and net.ipv4.tcp_ecn is {ecn}."),
        why: "BBR version 3 answers marks only on a route with the feature ecn_low. Elsewhere its packets say with ECT(0) that it does, so \
              that queues mark them instead of dropping, and it heeds only loss: beside Prague in DualPI2 it takes most of the link."
            .to_owned(),
        cure: "Off where the path is longer than a data centre's: `sysctl -w net.ipv4.tcp_ecn=2`. Inside one, the route feature: \
               `ip route change ... features ecn_low`, with the iproute2 of that kernel. Try yours: `dualq run --cc bbr3 --cc prague`."
            .to_owned(),
        source: "google/bbr, branch v3, net/ipv4/tcp_bbr.c: bbr_can_use_ecn; net/sched/sch_dualpi2.c, its first comment",
    })
}

pub(super) fn bbr_without_fq(case: &Case<'_>) -> Option<Finding> {
    let users = users(case, "bbr")?;
    let uplink = case.uplink()?;
    let kind = leaf_kind(uplink).filter(|kind| *kind != "fq")?;
    let old = case.facts.kernel.version() < (4, 13);
    Some(Finding {
        id: "bbr-without-fq",
        harm: if old { Harm::Medium } else { Harm::Note },
        seen: format!("{users}, and {} has {kind}, not fq.", uplink.name),
        why: if old {
            "BBR must pace what it sends, and before Linux 4.13 only fq did that for it."
        } else {
            "Guides say that BBR needs fq. Since Linux 4.13 TCP paces by itself where there is no fq; fq does so with less work, and \
             shares among flows."
        }
        .to_owned(),
        cure: if old { "Use fq." } else { "Nothing." }.to_owned(),
        source: "net/ipv4/tcp_bbr.c; tc-fq(8)",
    })
}

pub(super) fn dctcp_on_the_internet(case: &Case<'_>) -> Option<Finding> {
    let users = users(case, "dctcp")?;
    // Nobody has dctcp by default whose packets all stay in one data centre and who has told dualq nothing else.
    let far = match case.facts.min_rtt() {
        Some(time) if time < NEAR => return None,
        Some(time) => format!("; the median of the shortest round-trip times is {}", shown(time)),
        None => String::new(),
    };
    case.facts.default_routes.first()?;
    Some(Finding {
        id: "dctcp-on-the-internet",
        harm: Harm::High,
        seen: format!("{users}, on a machine with a default route{far}."),
        why: "DCTCP halves its window by the share of marks, and takes a mark of a classic AQM for much less than that means: it pushes \
              other flows aside. It needs a receiver that echoes each mark in its way. Where nothing marks it is Reno."
            .to_owned(),
        cure: "Only inside a data centre. Elsewhere cubic: `sysctl -w net.ipv4.tcp_congestion_control=cubic`, and dctcp by route \
               (`ip route ... congctl dctcp`) for what is near."
            .to_owned(),
        source: "RFC 8257 sections 1 and 5",
    })
}

pub(super) fn dctcp_in_classic_queue(case: &Case<'_>) -> Option<Finding> {
    let users = users(case, "dctcp")?;
    let uplink = case.uplink()?;
    let dualpi2 = leaves(uplink).find(|leaf| leaf.kind == "dualpi2")?;
    let options = dualpi2.options.as_deref()?;
    options.contains("l4s_ect").then(|| Finding {
        id: "dctcp-in-classic-queue",
        harm: Harm::Medium,
        seen: format!("{users}, and dualpi2 on {} classifies by l4s_ect.", uplink.name),
        why: "Linux's DCTCP sends ECT(0), which l4s_ect takes for classic: its packets wait in the classic queue, and are marked as \
              rarely as that is."
            .to_owned(),
        cure: "`any_ect` sends ECT(0) to the low-latency queue, and with it every classic flow that has ECN. Right only where all \
               flows with ECN are DCTCP's."
            .to_owned(),
        source: "RFC 9331 section 4.1; tc-dualpi2(8)",
    })
}

pub(super) fn prague_needs_receivers(case: &Case<'_>) -> Option<Finding> {
    let users = users(case, "prague")?;
    let here = match case.sysctl("net.ipv4.tcp_ecn") {
        Some(value @ ("0" | "1" | "2")) => format!(
            " net.ipv4.tcp_ecn is {value} here: who connects to this machine with Prague gets Reno as well."
        ),
        _ => String::new(),
    };
    Some(Finding {
        id: "prague-needs-receivers",
        harm: if here.is_empty() { Harm::Note } else { Harm::Low },
        seen: format!("{users}.{here}"),
        why: "Prague asks for Accurate ECN by itself, but its receiver must grant it. With a receiver whose tcp_ecn is 0, 1 or 2, as \
              Linux has it by default, a connection under Prague is Reno without ECN, in the classic queue."
            .to_owned(),
        cure: "At the receivers, on Linux 6.18 or later: `sysctl -w net.ipv4.tcp_ecn=3`. What a connection has, `ss -tin` shows \
               behind its name: prague, or prague-reno."
            .to_owned(),
        source: "RFC 9331 section 4.3; RFC 9768 section 3.1; Documentation/networking/ip-sysctl.rst: tcp_ecn",
    })
}

pub(super) fn ecn_off(case: &Case<'_>) -> Option<Finding> {
    (case.sysctl("net.ipv4.tcp_ecn")? == "0").then(|| Finding {
        id: "ecn-off",
        harm: Harm::Low,
        seen: "net.ipv4.tcp_ecn is 0: TCP refuses ECN, also to those who ask for it.".to_owned(),
        why: "Without ECN an AQM has to drop packets where it could mark them, and each drop costs its flow a round trip.".to_owned(),
        cure: "2 (the kernel's default) grants it to those who ask, 1 asks for it.".to_owned(),
        source: "Documentation/networking/ip-sysctl.rst: tcp_ecn; RFC 8087",
    })
}

pub(super) fn ecn_is_classic(case: &Case<'_>) -> Option<Finding> {
    let ecn = case.sysctl("net.ipv4.tcp_ecn")?;
    let control = case.congestion_control();
    let asks = matches!(ecn, "1" | "3" | "4") && ["cubic", "bbr", "reno"].contains(&control);
    let dualpi2 = case.qdisc_available("dualpi2")?;
    let has = matches!(dualpi2, Availability::Ready | Availability::Module);
    (asks && has).then(|| Finding {
        id: "ecn-is-classic",
        harm: Harm::Note,
        seen: format!("net.ipv4.tcp_ecn is {ecn}, and the congestion control is {control}."),
        why: format!(
            "Packets of {control} with ECN carry ECT(0). DualPI2 puts them into the classic queue: marks replace drops there, but its \
             delay is that of the classic target. The low-latency queue is for ECT(1), which takes a scalable control, such as Prague."
        ),
        cure: "Nothing: this is how it should be.".to_owned(),
        source: "RFC 9331 section 4; RFC 9332 section 2.3",
    })
}
