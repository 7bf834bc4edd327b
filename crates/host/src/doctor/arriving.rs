//! What arrives, and whether it could be queued here.

use super::case::Case;
use super::{Finding, Harm};
use crate::facts::Arriving;
use crate::plan::{arriving_there, lacking_for_arriving};

pub(super) fn taken(case: &Case<'_>) -> Option<Finding> {
    let uplink = case.uplink()?;
    let does = match uplink.arriving.as_ref()? {
        Arriving::Redirected(_) if arriving_there(case.facts, uplink).is_some() => return None,
        Arriving::Redirected(to) => {
            format!("What arrives at {} is redirected to {to}.", uplink.name)
        }
        Arriving::Sorted(by) => format!("{} has {by}.", uplink.name),
    };
    Some(Finding {
        id: "arriving-is-sorted",
        harm: Harm::Note,
        seen: does,
        why: "Only one can take what arrives through a queue. Such filters are somebody's: a firewall's, a container network's, another shaper's."
            .to_owned(),
        cure: "Nothing, unless downloads are to be shaped here: `dualq plan --down` refuses to share, and says what to take away."
            .to_owned(),
        source: "tc-mirred(8), tc(8): ingress, clsact",
    })
}

pub(super) fn cannot_be_queued(case: &Case<'_>) -> Option<Finding> {
    let lacking = lacking_for_arriving(case.facts);
    // Facts of before dualq looked tell nothing.
    if case.facts.redirection.is_empty() || lacking.is_empty() {
        return None;
    }
    let (names, options): (Vec<_>, Vec<_>) =
        lacking.iter().map(|(name, option)| (*name, format!("CONFIG_{option}"))).unzip();
    Some(Finding {
        id: "downloads-have-no-queue",
        harm: Harm::Note,
        seen: format!("This kernel has no {}.", names.join(", no ")),
        why: "What arrives can be queued here only behind an ifb, to which a matchall filter with the action mirred takes it."
            .to_owned(),
        cure: format!(
            "Nothing, unless downloads are to be shaped here (`dualq plan --down`). Then a kernel with {}, or its package of modules.",
            options.join(", ")
        ),
        source: "drivers/net/ifb.c, tc-mirred(8)",
    })
}
