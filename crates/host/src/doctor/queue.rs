//! Where the queue is, and who manages it.

use std::time::Duration;

use dualq_units::Rate;

use super::case::{
    APART, Case, FIFOS, better, drain, has_shaper, leaf_kind, leaves, manages, root, shaped, shown,
    speed,
};
use super::{Finding, Harm};
use crate::facts::{Interface, Qdisc, Sight};
use crate::margin::below;

/// Disciplines that pace or share, but are no cure for a queue elsewhere either.
const SHARING: [&str; 2] = ["fq", "sfq"];
/// The length of a full aggregate of segments.
const AGGREGATE: u32 = 65_536;

pub(super) fn no_local_rate(case: &Case<'_>) -> Option<Finding> {
    let (uplink, _) = case.root()?;
    let kind = leaf_kind(uplink)?;
    let name = &uplink.name;
    let cures = manages(kind) || SHARING.contains(&kind);
    if has_shaper(uplink) || !(cures || FIFOS.contains(&kind)) {
        return None;
    }
    let (harm, seen, cure) = match (case.rate, speed(uplink)) {
        // The link itself is the bottleneck: its driver's queue fills, and the discipline's above it.
        (Some(rate), Some(speed)) if speed <= rate => return None,
        (Some(rate), _) => {
            let inside = if cures { Some(kind) } else { better(case, &["fq_codel", "fq", "dualpi2", "pie"]) };
            let shaped = below(rate);
            let cake = better(case, &["cake"]).map(|_| format!("cake at {shaped}"));
            let htb = inside.map(|kind| format!("htb at {shaped} with {kind} inside"));
            let by_hand: Vec<String> = cake.into_iter().chain(htb).collect();
            let cure = if by_hand.is_empty() {
                format!(
                    "Below the bottleneck a shaper would bring the queue here, but this kernel has nothing that manages one: with cake, fq_codel or dualpi2, \
                     `dualq plan --rate {rate}` puts a shaper of {shaped} there."
                )
            } else {
                format!(
                    "Shape below the bottleneck: `dualq plan --rate {rate}` puts a shaper of {shaped} there; by hand, {}.",
                    by_hand.join(", or ")
                )
            };
            (
                Harm::High,
                format!("{name} has {kind} and no rate of its own, and the bottleneck is {rate}."),
                cure,
            )
        }
        // A FIFO is told of by itself.
        (None, _) if !cures => return None,
        (None, _) => (
            Harm::Medium,
            format!("{name} has {kind} and no rate of its own."),
            "Find out the rate of the bottleneck, then `dualq doctor --rate RATE`. If it is that of the link itself, all is well."
                .to_owned(),
        ),
    };
    let idle = nothing_done(uplink)
        .map(|packets| format!(" Of {packets} packets it has dropped or marked none."));
    Some(Finding {
        id: "no-local-rate",
        harm,
        seen: seen + &idle.unwrap_or_default(),
        why: format!(
            "A queue discipline manages the queue only where the queue is. If a provider's shaper or a router further on is slower \
             than this interface, the queue is there, and {kind} here never sees more than a few packets."
        ),
        cure,
        source: "RFC 7567 section 4.1; RFC 9332 section 1",
    })
}

/// Parents that keep lists of their classes by the lengths of the queues in them. htb and prio look into the queue instead.
const COUNTING: [&str; 4] = ["qfq", "drr", "ets", "hfsc"];

pub(super) fn dualpi2_below_classful(case: &Case<'_>) -> Option<Finding> {
    let major = |handle: &str| handle.split(':').next().map(str::to_owned);
    let (interface, parent) = case.facts.interfaces.iter().find_map(|interface| {
        let all = &interface.qdiscs;
        let below = |parent: &&Qdisc| {
            let is_inside = |leaf: &Qdisc| {
                leaf.kind == "dualpi2" && major(&leaf.parent) == major(&parent.handle)
            };
            COUNTING.contains(&parent.kind.as_str()) && all.iter().any(is_inside)
        };
        Some((interface, all.iter().find(below)?))
    })?;
    Some(Finding {
        id: "dualpi2-below-classful",
        harm: Harm::High,
        seen: format!("{} has dualpi2 in a class of {}.", interface.name, parent.kind),
        why: format!(
            "Early versions of sch_dualpi2 told their parent of one packet too many for each aggregate that they split. {} then believes \
             that packets wait where none do, and with qfq the kernel crashes; any user who may have a user namespace can bring that \
             about. Which kernels have the fix, their version does not tell.",
            parent.kind
        ),
        cure: "A kernel whose log has the fix of commit 8f9516daedd6 (net/sched/sch_dualpi2.c, the queue's length when aggregates are \
               split); until then dualpi2 at the root or in htb, or with `no_split_gso`."
            .to_owned(),
        source: "Linux commit 8f9516daedd6, and what says that it fixes it; b1n.io",
    })
}

/// How many packets went through without any drop or mark, if these are enough to tell something.
fn nothing_done(interface: &Interface) -> Option<u64> {
    let count = |key: &str| -> u64 {
        leaves(interface).filter_map(|qdisc| qdisc.statistics.get(key)).sum()
    };
    let done = ["drops", "ecn_mark", "ecn-mark", "ecn_marks"].map(count).iter().sum::<u64>();
    let packets = count("packets");
    (done == 0 && packets >= 10_000).then_some(packets)
}

pub(super) fn shaper_not_below(case: &Case<'_>) -> Option<Finding> {
    let (rate, uplink) = (case.rate?, case.uplink()?);
    let shaped = shaped(uplink).filter(|shaped| *shaped >= rate)?;
    Some(Finding {
        id: "shaper-not-below",
        harm: Harm::High,
        seen: format!("{} is shaped to {shaped}, and the bottleneck is {rate}.", uplink.name),
        why: "The slower of two queues fills. A local shaper that is as fast as the bottleneck leaves the queue there, where nobody \
              here can manage it."
            .to_owned(),
        cure: format!("Set the local rate a twentieth below, {}: `dualq plan --rate {rate}` does.", below(rate)),
        source: "RFC 7567 section 4.1",
    })
}

pub(super) fn default_not_applied(case: &Case<'_>) -> Option<Finding> {
    let default = case.sysctl("net.core.default_qdisc")?;
    // What somebody put there by hand is what they want.
    let by_itself = |interface: &&Interface| {
        interface.up
            && root(interface).is_some_and(|root| root.handle == "0:" && root.kind != "noqueue")
    };
    let differs = |interface: &&Interface| leaves(interface).any(|leaf| leaf.kind != default);
    let interface = case.facts.interfaces.iter().filter(by_itself).find(differs)?;
    // A plan of dualq's said that it is for the next start.
    let planned = case.settings("net.core.default_qdisc").last();
    let planned = planned.is_some_and(|setting| setting.file.ends_with("-dualq.conf"));
    let name = &interface.name;
    let has = leaf_kind(interface).unwrap_or("others");
    Some(Finding {
        id: "default-qdisc-not-applied",
        harm: if planned { Harm::Low } else { Harm::Medium },
        seen: format!("net.core.default_qdisc is {default}, but {name} has {has}."),
        why: "The default is taken when an interface gets its first queue discipline. Those that are up keep what they have."
            .to_owned(),
        // A new mq takes the default for each of its queues.
        cure: match interface.tx_queues {
            0 | 1 => format!("`tc qdisc replace dev {name} root {default}`, or restart the machine."),
            _ => format!("`tc qdisc replace dev {name} root mq` makes its queues anew, or restart the machine."),
        },
        source: "Documentation/admin-guide/sysctl/net.rst: default_qdisc",
    })
}

pub(super) fn drops(case: &Case<'_>) -> Option<Finding> {
    let (uplink, _) = case.root()?;
    let worst = leaves(uplink).filter_map(|leaf| {
        let count = |key| leaf.statistics.get(key).copied().unwrap_or(0);
        let (drops, packets) = (count("drops"), count("packets"));
        // One in a hundred: more than any AQM needs for flows that listen.
        (packets >= 10_000 && drops > packets / 100).then_some((drops, packets, leaf))
    });
    let (drops, packets, leaf) = worst.max_by_key(|(drops, ..)| *drops)?;
    let share = 100.0 * drops as f64 / (drops + packets) as f64;
    let kind = &leaf.kind;
    Some(Finding {
        id: "drops",
        harm: Harm::Medium,
        seen: format!("{kind} on {} has dropped {drops} packets, {share:.1} %.", uplink.name),
        why: if manages(kind) {
            "Flows that answer to drops or marks need far fewer. Either some flows do not listen, as BBR version 1, or there are very \
             many of them for the rate."
        } else {
            "The queue was full: whoever sends in bursts loses, and the others have waited for all of it."
        }
        .to_owned(),
        cure: "Look who sends: `ss -ti`. Use cubic for bulk flows, and ECN (tcp_ecn) so that marks can replace drops.".to_owned(),
        source: "tc(8): tc -s qdisc show",
    })
}

pub(super) fn aggregates(case: &Case<'_>) -> Option<Finding> {
    let uplink = case.uplink()?;
    let rate = shaped(uplink)?;
    // Whatever tso and gso are: TCP makes aggregates all the same, and the kernel takes them apart behind the queue.
    let aggregating = uplink.gso_max_segs.is_none_or(|segs| segs > 1);
    // cake and tbf take them apart; dualpi2 unless it was told not to.
    let splits = uplink.qdiscs.iter().any(|qdisc| {
        let options = qdisc.options.as_deref().unwrap_or_default();
        match qdisc.kind.as_str() {
            "tbf" => true,
            "cake" => !options.contains("no-split-gso"),
            "dualpi2" => !options.contains("no_split_gso"),
            _ => false,
        }
    });
    let time = drain(rate, 1, AGGREGATE);
    if !aggregating || splits || time < Duration::from_millis(1) {
        return None;
    }
    Some(Finding {
        id: "aggregates-behind-shaper",
        harm: Harm::Low,
        seen: format!(
            "{} is shaped to {rate}, and packets reach its queue in aggregates.",
            uplink.name
        ),
        why: format!(
            "An aggregate of segments (TSO, GSO, GRO) of 64 KB holds the line for {}, and the packets of others wait for it. `ethtool -K {} \
             tso off gso off` changes nothing of that: since Linux 4.17 TCP makes aggregates all the same.",
            shown(time),
            uplink.name
        ),
        cure: format!(
            "A discipline that splits them: dualpi2, cake. Else `dualq plan --rate RATE --offloads`, or by hand `ip link set dev {} \
             gso_max_segs 1`, which costs CPU; of what is forwarded, `ethtool -K DEV gro off` where it arrives.",
            uplink.name
        ),
        source: "tc-cake(8): split-gso; net/core/sock.c: sk_setup_caps; ip-link(8)",
    })
}

pub(super) fn replaces_queues(case: &Case<'_>) -> Option<Finding> {
    let (uplink, root) = case.root()?;
    if uplink.tx_queues < 2 || matches!(root.kind.as_str(), "mq" | "mqprio" | "noqueue") {
        return None;
    }
    let fast =
        speed(uplink).is_some_and(|speed| speed > Rate::from_mbit(2500)) && !has_shaper(uplink);
    Some(Finding {
        id: "one-queue-for-all",
        harm: if fast { Harm::Low } else { Harm::Note },
        seen: format!(
            "{} has {} transmit queues, and one {} at its root in place of mq.",
            uplink.name, uplink.tx_queues, root.kind
        ),
        why: "A discipline at the root serves all hardware queues under one lock. That is right where one rate is shared, and costs \
              throughput on links of many Gbit/s."
            .to_owned(),
        cure: "Nothing below a few Gbit/s. Above: mq at the root, and a discipline for each queue.".to_owned(),
        source: "net/sched/sch_mq.c",
    })
}

pub(super) fn default_target(case: &Case<'_>) -> Option<Finding> {
    let (uplink, _) = case.root()?;
    let dualpi2 = leaves(uplink).find(|leaf| leaf.kind == "dualpi2")?;
    dualpi2.options.as_deref()?.contains("target 15ms").then(|| Finding {
        id: "dualpi2-default-target",
        harm: Harm::Note,
        seen: format!("dualpi2 on {} has a target of 15ms.", uplink.name),
        why: "That is the default, not the 5 ms of CoDel. And where max_rtt or typical_rtt was given, they override a target beside \
              them."
            .to_owned(),
        cure: "Nothing, unless a lower delay of the classic queue is worth some throughput: `target 5ms`.".to_owned(),
        source: "net/sched/sch_dualpi2.c: dualpi2_reset_default; tc-dualpi2(8)",
    })
}

pub(super) fn no_queue(case: &Case<'_>) -> Option<Finding> {
    let (uplink, root) = case.root()?;
    (root.kind == "noqueue").then(|| Finding {
        id: "no-queue",
        harm: if case.rate.is_some() { Harm::High } else { Harm::Note },
        seen: match case.facts.layer(uplink) {
            None => format!("The default route leaves by {}, which has no queue (noqueue).", uplink.name),
            Some(layer) => format!(
                "The default route leaves by {}, {}, which has no queue of its own (noqueue).",
                uplink.name,
                layer.words()
            ),
        },
        why: "A virtual device hands its packets on at once; they queue where they are sent at last. Nothing here manages that queue."
            .to_owned(),
        cure: match case.rate {
            Some(rate) => format!("A shaper gives it one: `dualq plan --rate {rate}`, or by hand cake or htb at {}.", below(rate)),
            None => "If the bottleneck is further on, a shaper gives it a queue: cake or htb, below the bottleneck's rate.".to_owned(),
        },
        source: "net/sched/sch_generic.c: noqueue_qdisc_ops",
    })
}

pub(super) fn tunnel_is_one_flow(case: &Case<'_>) -> Option<Finding> {
    let uplink = case.uplink()?;
    // The default route is by the tunnel itself: its packets leave by another device, with flows or one flow.
    let all = case.hidden();
    let one = |tunnel: &crate::facts::Tunnel<'_>| tunnel.sight == Sight::OneFlow;
    let tunnel = all.or_else(|| case.facts.tunnels().find(one))?;
    let below = case.facts.interfaces.iter().filter(|interface| {
        interface.up
            && interface.name != tunnel.interface.name
            && case.facts.tunnel(interface).is_none()
    });
    let apart =
        |interface: &&Interface| leaf_kind(interface).is_some_and(|kind| APART.contains(&kind));
    let below = if all.is_some() {
        below.clone().find(apart)?
    } else {
        Some(uplink).filter(|it| apart(it))?
    };
    let (name, kind) = (&tunnel.interface.name, leaf_kind(below)?);
    let dev = &below.name;
    Some(Finding {
        id: "tunnel-is-one-flow",
        harm: if all.is_some() { Harm::Medium } else { Harm::Note },
        seen: format!("{name} is a tunnel ({}), and {dev} has {kind}.", tunnel.kind),
        why: format!(
            "All that is inside the tunnel is one flow to the queue of {dev}: {kind} keeps nothing in it apart, and one transfer makes all \
             others wait."
        ),
        cure: format!(
            "If most traffic is inside: a shaper on {name} itself, whose queue sees the flows (`dualq plan --dev {name} --rate RATE`), or \
             one queue that stays short (`dualq plan --dev {dev} --rate RATE --tunnel`)."
        ),
        source: "RFC 8290 section 6.2; tc-cake(8)",
    })
}
