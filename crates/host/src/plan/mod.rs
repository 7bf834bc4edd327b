//! A plan: an exact list of changes, reviewable, applicable later.
//!
//! [`Plan::make`] makes one from facts and [`Requirements`]; [`Plan::read`] and [`Plan::write`] are its form as a file. What is read
//! is checked: a plan can ask for nothing but what dualq itself would write.

mod below;
mod boot;
pub(crate) mod check;
mod decide;
mod document;
mod error;
mod evidence;
mod freebsd;
mod ingress;
mod linux;
mod mtu;
mod offload;
mod options;
mod queue;
mod requirements;
mod sysctl_file;
mod sysctls;
mod values;

pub use boot::{At, Kept, PLANNED, Part, state as check_state};
#[cfg(target_os = "linux")]
pub(crate) use boot::{CALLING, Caller, USUAL_STATE, callers, calls, kept, mtu as mtu_of_line};
pub use error::PlanError;
pub use evidence::{Back, EQUAL, Evidence, FELT_MS, FLOWS, Figures, Question, Row, Sender, Trial};
pub(crate) use ingress::{ifb, lacking as lacking_for_arriving, sorter, there as arriving_there};
pub use mtu::SmallPath;
pub use offload::Offload;
pub(crate) use offload::line as offload_line;
pub use options::disciplines;
pub(crate) use options::{ECT1, ECT1_LACKS, SELECTOR_SINCE, WITHIN_A_FLOW};
#[cfg(target_os = "linux")]
pub(crate) use queue::{MQ, can_come_back, some_of};
pub use requirements::{Aim, LinkKind, Profile, Requirements, StaticRoute, Wish};
pub use values::{ClassId, Destination, Mode};

use dualq_qdisc::QdiscLine;
use serde::{Deserialize, Serialize};

use crate::Facts;
use crate::facts::Os;
use values::as_text;

/// The version of the document. It grows when a reader of an older one could take something wrongly.
pub const FORMAT: u32 = 1;

/// What to change on a machine, in this order. As a file it is TOML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: u32,
    /// What it is for, in one line.
    pub about: String,
    /// What it was made for. dualq itself applies plans for Linux only.
    pub os: Os,
    /// The kernel that it was made for, `uname -r`: what another can do may differ.
    pub kernel: String,
    /// What the queue discipline was chosen for, by which it is to be judged.
    #[serde(default, skip_serializing_if = "Aim::is_usual")]
    pub aim: Aim,
    /// What a simulation said of what is there and of what could be, a line each: the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What is given up or to be known: a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The changes.
    #[serde(default, rename = "change", skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// A change, why it is made, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Why, in a line.
    pub why: String,
    /// Who says so: an RFC and its section, a page of the manual, a file of the kernel's documentation.
    pub source: String,
    /// What is changed.
    #[serde(flatten)]
    pub what: What,
}

/// What is changed. Each holds what was there when the plan was made; a plan is refused where something else is there now,
/// unless that is what the plan asks for already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// Load a kernel module, if it is not there.
    Module {
        /// Its name: `sch_dualpi2`.
        module: String,
    },
    /// Set a running sysctl.
    Sysctl {
        /// `net.ipv4.tcp_ecn`.
        key: String,
        /// What it was.
        before: String,
        /// What it is to be.
        after: String,
    },
    /// Put a queue discipline at the root of an interface, or below a class of a tree that somebody else made.
    Qdisc {
        /// The interface.
        dev: String,
        /// The class, if it is not to be at the root: a leaf, which stays as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ClassId>,
        /// What was there, a line for each discipline: [`crate::facts::Interface::qdisc_lines`], or
        /// [`crate::facts::Interface::lines_in`] a class.
        before: Vec<String>,
        /// What is to be there, leaves included: `htb rate 48mbit leaf dualpi2`.
        #[serde(with = "as_text")]
        after: QdiscLine,
        /// Whether each transmit queue gets one of its own, below an `mq` at the root.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        each: bool,
    },
    /// Take all that arrives at an interface through an intermediate functional block (ifb), which has a queue, before anybody here
    /// sees it. Before, nobody else may have filters there.
    Ingress {
        /// The interface.
        dev: String,
        /// The ifb that is made for it: `dualq-ifb0` and on.
        ifb: String,
        /// What is to be at the root of that, leaves included: `cake bandwidth 48mbit ingress`.
        #[serde(with = "as_text")]
        after: QdiscLine,
    },
    /// Limit what puts packets together at an interface.
    Offload {
        /// The interface.
        dev: String,
        /// What is limited.
        #[serde(with = "as_text")]
        key: Offload,
        /// What it was.
        before: String,
        /// What it is to be.
        after: String,
    },
    /// Give packets to a destination a route with a smaller MTU: one more route, that copies the one in use but for that.
    Route {
        /// The destination.
        #[serde(with = "as_text")]
        to: Destination,
        /// In bytes.
        mtu: u32,
    },
    /// Write a file. On Linux that happens when the plan is confirmed: until then, nothing outlasts a restart.
    File {
        /// Its absolute path.
        path: String,
        /// What was in it; `None` if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
        /// What is to be in it.
        after: String,
        /// Its permissions.
        #[serde(with = "as_text")]
        mode: Mode,
    },
    /// Lines that a file is to have at its end, whatever else is in it: where it may not be known what that is. Only plans for
    /// FreeBSD have them.
    Lines {
        /// Its absolute path.
        path: String,
        /// The lines.
        after: Vec<String>,
    },
}

impl What {
    /// The interface at which the change is made, if it is made at one.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Qdisc { dev, .. } | Self::Ingress { dev, .. } | Self::Offload { dev, .. } => {
                Some(dev)
            }
            Self::Module { .. }
            | Self::Sysctl { .. }
            | Self::Route { .. }
            | Self::File { .. }
            | Self::Lines { .. } => None,
        }
    }
}

impl Plan {
    /// Chooses what to change on a machine by what its traffic calls for, without a simulation.
    ///
    /// # Errors
    /// [`PlanError::Requirement`] if the machine cannot do what is asked for.
    pub fn make(facts: &Facts, requirements: &Requirements) -> Result<Self, PlanError> {
        Self::make_by(facts, requirements, &[])
    }

    /// As [`make`](Self::make), but among the queue disciplines that the traffic calls for, `evidence` decides: of each interface that
    /// of its name, for what leaves and for what arrives.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub fn make_by(
        facts: &Facts,
        requirements: &Requirements,
        evidence: &[&Evidence],
    ) -> Result<Self, PlanError> {
        match facts.os {
            Os::Linux => linux::make(facts, requirements, evidence),
            Os::FreeBsd => freebsd::make(facts, requirements),
        }
    }

    /// Whether it shapes what leaves, and whether what arrives.
    #[must_use]
    pub fn shapes(&self) -> (bool, bool) {
        let (mut leaving, mut arriving) = (false, false);
        for change in &self.changes {
            match &change.what {
                What::Qdisc { dev, after, .. } if ifb(dev).is_err() => {
                    leaving |= queue::shaper_rate(after.spec()).is_some();
                }
                What::Qdisc { .. } | What::Ingress { .. } => arriving = true,
                _ => {}
            }
        }
        (leaving, arriving)
    }

    /// A plan that puts a queue discipline at the root of an interface of a machine with Linux, and does nothing else. Without `dev` it is the
    /// interface of the default route.
    ///
    /// # Errors
    /// [`PlanError::Requirement`] if there is no such interface.
    pub fn of_qdisc(facts: &Facts, dev: Option<&str>, after: QdiscLine) -> Result<Self, PlanError> {
        linux::of_qdisc(facts, dev, after)
    }
}
