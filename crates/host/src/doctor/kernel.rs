//! What the kernel and tc can do.

use super::case::{Case, better};
use super::congestion::users;
use super::{Finding, Harm};
use crate::building::Buildable;
use crate::facts::{Availability, Tunnel};
use crate::plan::{ECT1, ECT1_LACKS, SELECTOR_SINCE, WITHIN_A_FLOW};

/// Congestion controls that answer to how much is marked: those for which DualPI2 has its low-latency queue.
const SCALABLE: [&str; 2] = ["prague", "dctcp"];

/// Whether fq_codel could mark ECT(1) early here.
fn marks_ect1(case: &Case<'_>) -> bool {
    let has = |kind| better(case, &[kind]).is_some();
    has("fq_codel") && has("htb") && case.facts.kernel.version() >= SELECTOR_SINCE
}

/// How it does.
fn early() -> String {
    format!(
        "fq_codel with `ce_threshold 1ms {ECT1}` behind htb, which marks scalable senders (ECT(1)) from 1 ms on; it lacks {ECT1_LACKS}"
    )
}

/// What comes next where flows can be told apart, as `dualq plan --scalable` has it.
fn for_scalable(case: &Case<'_>, control: &str) -> Option<String> {
    let has = |kind| better(case, &[kind]).is_some();
    let mut next = Vec::new();
    let mut weighs = "`dualq plan --rate RATE --scalable` simulates them and takes the best.";
    if has("cake") {
        next.push(
            "cake, which keeps flows apart and marks no scalable sender earlier than others"
                .to_owned(),
        );
    }
    if control == "dctcp" && has("fq_codel") && has("htb") {
        next.push(format!(
            "fq_codel with ce_threshold behind htb, where all senders are DCTCP's: it marks all ECN early (`{ECT1}` would leave out DCTCP, which sends ECT(0))"
        ));
        weighs =
            "`dualq plan --profile datacenter` takes fq_codel so, `--scalable` weighs the others.";
    } else if marks_ect1(case) {
        next.push(early());
    }
    if has("fq_codel") {
        next.push("fq_codel alone".to_owned());
    }
    if next.is_empty() {
        return better(case, &["fq", "pie", "codel"]).map(|kind| format!("Without it {kind}."));
    }
    Some(format!("Without it {}. {weighs}", next.join("; else ")))
}

/// The same where all of it is one flow to the queue, as `dualq plan --tunnel` has it.
fn within_a_flow(case: &Case<'_>, tunnel: &Tunnel<'_>) -> Option<String> {
    let has = |kind: &&str| better(case, &[*kind]).is_some();
    let kinds: Vec<&str> = WITHIN_A_FLOW.into_iter().filter(has).collect();
    let (last, others) = kinds.split_last()?;
    let kinds = match others {
        [] => (*last).to_owned(),
        others => format!("{} or {last}", others.join(", ")),
    };
    let marks = if marks_ect1(case) {
        format!(" For scalable senders inside, `--scalable` beside it adds {}.", early())
    } else {
        String::new()
    };
    Some(format!(
        "Without it {kinds} for what is inside the tunnel {}: `dualq plan --dev DEV --rate RATE --tunnel` simulates them and takes the best.{marks}",
        tunnel.interface.name
    ))
}

pub(super) fn no_dualpi2(case: &Case<'_>) -> Option<Finding> {
    if case.qdisc_available("dualpi2")? != Availability::Absent {
        return None;
    }
    let release = &case.facts.kernel.release;
    let why = if case.facts.kernel.version() < (6, 17) {
        "dualpi2 is part of Linux since 6.17, and some distributions leave it out of later kernels too. \
         Here `tc qdisc replace ... dualpi2` fails."
    } else {
        "Linux has dualpi2 since 6.17, but this kernel was built without it (CONFIG_NET_SCH_DUALPI2), as Debian's are. \
         Here `tc qdisc replace ... dualpi2` fails."
    };
    let build = case.facts.buildable().unwrap_or(Buildable::Unknown).advice();
    let scalable = SCALABLE.into_iter().find(|control| users(case, control).is_some());
    let apart = better(case, &["cake", "fq_codel", "fq"]);
    let (harm, cure) = match (apart, scalable, case.hidden()) {
        (Some(kind), None, None) => (
            Harm::Note,
            format!(
                "Nothing: {kind}, which this kernel has, keeps flows apart, and is better wherever it can tell them apart. DualPI2 is for \
                 scalable senders (Prague, DCTCP) and for what is inside one tunnel. Whoever has such can {build}."
            ),
        ),
        (_, scalable, hidden) => {
            let next = match (hidden, scalable) {
                (Some(tunnel), _) => within_a_flow(case, &tunnel),
                (None, Some(control)) => for_scalable(case, control),
                (None, None) => {
                    let next = better(case, &["pie", "codel"]);
                    next.map(|kind| format!("Without it {kind}, which this kernel has."))
                }
            };
            let build = build.replacen('b', "B", 1);
            let next = next.map_or(String::new(), |next| format!(" {next}"));
            let other = "or start a kernel that has CONFIG_NET_SCH_DUALPI2";
            (Harm::Medium, format!("{build}; {other}.{next}"))
        }
    };
    Some(Finding {
        id: "no-dualpi2",
        harm,
        seen: format!("Linux {release} has no dualpi2."),
        why: why.to_owned(),
        cure,
        source: "net/sched/Kconfig: NET_SCH_DUALPI2",
    })
}

pub(super) fn tc_without_dualpi2(case: &Case<'_>) -> Option<Finding> {
    let tc = case.facts.tc.as_ref().filter(|tc| !tc.dualpi2)?;
    let available = case.qdisc_available("dualpi2")?;
    matches!(available, Availability::Ready | Availability::Module).then(|| Finding {
        id: "tc-without-dualpi2",
        harm: Harm::Medium,
        seen: format!("The kernel has dualpi2, but tc ({}) does not know it.", tc.version),
        why: "tc can configure dualpi2 since iproute2 6.17. An older one says \"Unknown qdisc\"."
            .to_owned(),
        cure: "Let dualq set it up, which does without tc; or install iproute2 6.17 or later."
            .to_owned(),
        source: "iproute2: tc/q_dualpi2.c",
    })
}

pub(super) fn blocked(case: &Case<'_>) -> Option<Finding> {
    let blocked = case.facts.kernel.blocked.iter().find(|blocked| blocked.entirely)?;
    Some(Finding {
        id: "module-blocked",
        harm: Harm::Medium,
        seen: format!("{} keeps the module {} from being loaded.", blocked.file, blocked.module),
        why: "modprobe runs what stands behind `install` instead. Whatever needs the module fails, though its file is there."
            .to_owned(),
        cure: format!("Remove the line, if nobody wants it: `modprobe {}` then works.", blocked.module),
        source: "modprobe.d(5)",
    })
}
