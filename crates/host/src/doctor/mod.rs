//! What is wrong with a machine's queues and its TCP, why that matters, and what to do.
//!
//! One function looks for one thing. A finding claims nothing that the facts do not hold: where nothing
//! tells, nothing is found.

mod arriving;
mod buffers;
mod case;
mod congestion;
mod fifo;
mod freebsd;
mod kernel;
mod queue;
mod settings;

use dualq_units::Rate;
use serde::Serialize;

use crate::facts::{Facts, Os};
use case::Case;
pub(crate) use fifo::{LONG, late};

/// How much harm is done. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Harm {
    /// What was wanted does not happen, or connections fail, or others are harmed.
    High,
    /// Latency or throughput suffers.
    Medium,
    /// It may at times, or somebody will wonder.
    Low,
    /// No harm: something that is often taken wrongly.
    Note,
}

impl Harm {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Note => "note",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A name that stays: `no-local-rate`.
    pub id: &'static str,
    /// How much harm it does.
    pub harm: Harm,
    /// What is seen.
    pub seen: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub cure: String,
    /// Who says so: an RFC and its section, a page of the manual, a file of the kernel's.
    pub source: &'static str,
}

type Check = fn(&Case<'_>) -> Option<Finding>;

/// All that is looked for. Of what is equally harmful, the first here comes first.
const CHECKS: &[Check] = &[
    queue::no_local_rate,
    queue::shaper_not_below,
    congestion::several_bbr,
    congestion::dctcp_on_the_internet,
    queue::dualpi2_below_classful,
    congestion::bbr3_ignores_marks,
    settings::names_what_is_absent,
    buffers::conntrack_full,
    fifo::long_fifo,
    queue::default_not_applied,
    congestion::dctcp_in_classic_queue,
    kernel::no_dualpi2,
    kernel::tc_without_dualpi2,
    kernel::blocked,
    settings::ignored,
    settings::not_running,
    buffers::mtu_probing,
    buffers::tcp_feature_off,
    queue::drops,
    queue::aggregates,
    queue::replaces_queues,
    congestion::ecn_off,
    congestion::prague_needs_receivers,
    settings::overridden,
    settings::lost_at_restart,
    settings::removed,
    buffers::oversize,
    buffers::notsent_lowat,
    congestion::bbr_without_fq,
    congestion::ecn_is_classic,
    queue::tunnel_is_one_flow,
    queue::default_target,
    queue::no_queue,
    arriving::taken,
    arriving::cannot_be_queued,
];

/// What is found in `facts`, the worst first. `rate` is that of the bottleneck, if somebody knows it. Of FreeBSD only
/// what `sysctl -a` tells is known.
#[must_use]
pub fn findings(facts: &Facts, rate: Option<Rate>) -> Vec<Finding> {
    let case = Case { facts, rate };
    let checks = match facts.os {
        Os::Linux => CHECKS,
        Os::FreeBsd => freebsd::CHECKS,
    };
    let mut findings: Vec<_> = checks.iter().filter_map(|check| check(&case)).collect();
    findings.sort_by_key(|finding| finding.harm);
    findings
}
