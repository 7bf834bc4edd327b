//! What the kernel and tc can do.

use super::case::{Case, better};
use super::{Finding, Harm};
use crate::building::Buildable;
use crate::facts::Availability;

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
    let apart = better(case, &["cake", "fq_codel", "fq"]);
    let (harm, cure) = match (apart, case.hidden()) {
        (Some(kind), None) => (
            Harm::Note,
            format!(
                "Nothing: {kind}, which this kernel has, keeps flows apart, and is better wherever it can tell them apart. DualPI2 is for \
                 scalable senders (Prague, DCTCP) and for what is inside one tunnel. Whoever has such can {build}."
            ),
        ),
        (_, hidden) => {
            let why = hidden.map_or(String::new(), |tunnel| {
                format!(" for what is inside the tunnel {}", tunnel.interface.name)
            });
            let instead = better(case, &["pie", "codel", "fq_codel"]);
            let build = format!("{build}; or start a kernel that has CONFIG_NET_SCH_DUALPI2.");
            let cure = match instead {
                Some(kind) => format!("Use {kind}{why}, which this kernel has; or {build}"),
                None => build.replacen('b', "B", 1),
            };
            (Harm::Medium, cure)
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
