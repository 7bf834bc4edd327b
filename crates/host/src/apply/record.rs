//! What is known of a plan that was applied: enough to take it back, also after a restart.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::file::Saved;
use super::change::qdisc::Node;
use super::change::route::Made;
use super::{Moment, bounds};
use crate::Plan;
use crate::plan::What;
use crate::plan::check::{interface, only, sysctl_value};

/// The version of the document.
pub(super) const FORMAT: u32 = 1;

/// How far a plan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Run-time changes are being made.
    Applying,
    /// They are made, and will be taken back if nobody confirms.
    Applied,
    /// Files are being written.
    Confirming,
    /// It is there to stay.
    Confirmed,
    /// What was changed is being restored.
    RollingBack,
    /// All is as it was before.
    RolledBack,
}

/// A plan and the machine before it. As a file it is JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the document.
    pub format: u32,
    /// The first plan of a machine is 1.
    pub number: u64,
    /// How far it has come.
    pub phase: Phase,
    /// The plan.
    pub plan: Plan,
    /// When its run-time changes were begun, and then when they were done; the start of the machine, though, is the one in which it
    /// was last worked on.
    pub applied: Moment,
    /// How long after that it may be confirmed.
    pub within: Duration,
    /// For each change of the plan what was there before, and how far it is.
    pub entries: Vec<Entry>,
    /// `net.core.default_qdisc` is another for a moment, and has to become this again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<String>,
    /// When it was taken back, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Why it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether what somebody changed meanwhile is taken back too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// What was left as it is, because somebody changed it meanwhile or because it could not be put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What was there.
    pub before: Before,
    /// How far the change is.
    pub progress: Progress,
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// It was made before there was the plan, and is none of its.
    Kept,
    /// Not made, or taken back.
    Untouched,
    /// Begun: there may be what was before, what will be, or something between.
    Underway,
    /// Made.
    Made,
}

/// What was there before a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Before {
    /// Of a module.
    Module {
        /// Whether it was there.
        loaded: bool,
    },
    /// Of a sysctl.
    Sysctl {
        /// Its value, as it was read.
        value: String,
    },
    /// Of the root of an interface.
    Qdisc {
        /// The interface's number, which it keeps when it gets another name; not known after a restart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<u32>,
        /// Its queue disciplines, byte for byte.
        tree: Vec<Node>,
        /// What the kernel made of the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made: Option<Vec<Node>>,
    },
    /// Of what arrives at an interface: there was nothing.
    Ingress {
        /// The interface's number, as above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<u32>,
        /// What the kernel made of the queue disciplines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made: Option<Vec<Node>>,
    },
    /// Of what puts packets together.
    Offload {
        /// The interface's number, as above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<u32>,
        /// Its value.
        value: String,
    },
    /// Of a route.
    Route {
        /// The route that is added; there was none to that destination, unless it was this one.
        route: Made,
    },
    /// Of a file.
    File {
        /// The file, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<Saved>,
        /// How many of the folders above it were missing.
        missing_folders: usize,
    },
}

impl Before {
    /// The number of the interface that it is about, if it is about one and that is known.
    pub(super) const fn link(&self) -> Option<u32> {
        match self {
            Self::Qdisc { link, .. } | Self::Ingress { link, .. } | Self::Offload { link, .. } => {
                *link
            }
            Self::Module { .. } | Self::Sysctl { .. } | Self::Route { .. } | Self::File { .. } => {
                None
            }
        }
    }

    /// Takes note of that number, if it is about an interface.
    pub(super) const fn set_link(&mut self, number: Option<u32>) {
        match self {
            Self::Qdisc { link, .. } | Self::Ingress { link, .. } | Self::Offload { link, .. } => {
                *link = number;
            }
            Self::Module { .. } | Self::Sysctl { .. } | Self::Route { .. } | Self::File { .. } => {}
        }
    }
}

impl Record {
    /// How much time is left to confirm it.
    #[must_use]
    pub fn left_to_confirm(&self, now: &Moment) -> Duration {
        (self.applied.since_boot + self.within).saturating_sub(now.since_boot)
    }

    /// Why it has to be taken back without anybody asking for it, if it has.
    #[must_use]
    pub fn unfinished(&self, now: &Moment) -> Option<String> {
        let restarted = now.restarted_since(&self.applied);
        match self.phase {
            Phase::Applying | Phase::Applied if restarted => {
                Some("the machine was restarted before it was confirmed".to_owned())
            }
            Phase::Applying => Some("it was interrupted while it was applied".to_owned()),
            Phase::Applied if self.left_to_confirm(now).is_zero() => {
                Some(format!("it was not confirmed within {} s", self.within.as_secs()))
            }
            Phase::Confirming => Some("it was interrupted while it was confirmed".to_owned()),
            Phase::RollingBack => Some(self.why.clone().unwrap_or_default()),
            Phase::Applied | Phase::Confirmed | Phase::RolledBack => None,
        }
    }

    /// Refuses what dualq does not write: a record is made real as root.
    pub(super) fn check(&self, number: u64) -> Result<(), String> {
        let wrong = |what: &str| Err(what.to_owned());
        if self.number != number {
            return wrong("its number is another");
        }
        bounds::check(&self.plan).map_err(|error| error.to_string())?;
        if self.entries.len() != self.plan.changes.len() {
            return wrong("it has not one entry for each change");
        }
        if self.borrowed.as_deref().is_some_and(|kind| !only(kind, "_-")) {
            return wrong("net.core.default_qdisc is to become what is no name");
        }
        for (change, entry) in self.plan.changes.iter().zip(&self.entries) {
            match (&change.what, &entry.before) {
                (What::Module { .. }, Before::Module { .. }) => {}
                (What::Sysctl { .. }, Before::Sysctl { value }) => sysctl_value(value)?,
                (What::Qdisc { .. }, Before::Qdisc { tree, made, .. }) => {
                    tree.iter().chain(made.iter().flatten()).try_for_each(Node::check)?;
                }
                (What::Ingress { .. }, Before::Ingress { made, .. }) => {
                    made.iter().flatten().try_for_each(Node::check)?;
                }
                (What::Offload { key, .. }, Before::Offload { value, .. }) => key.check(value)?,
                (What::Route { to, mtu }, Before::Route { route }) => {
                    interface(&route.dev)?;
                    if route.mtu != *mtu || (to.address(), to.length()) != (route.to, route.prefix)
                    {
                        return wrong("its route is not the plan's");
                    }
                }
                (What::File { path, .. }, Before::File { file, missing_folders }) => {
                    file.as_ref().map_or(Ok(()), Saved::check)?;
                    if *missing_folders >= path.split('/').count() {
                        return wrong("there are not that many folders above a file");
                    }
                }
                _ => return wrong("its entries are not of the kinds of its changes"),
            }
        }
        Ok(())
    }

    /// Forgets what is true of one start of the machine only.
    pub(super) fn after_a_restart(&mut self) {
        for entry in &mut self.entries {
            // What a plan that was taken back had to leave is gone with the restart, but for files.
            let left = self.phase == Phase::RolledBack && entry.progress != Progress::Kept;
            if left && !entry.is_file() {
                entry.progress = Progress::Untouched;
            }
            entry.before.set_link(None);
        }
    }

    /// Takes note that it is worked on now.
    pub(crate) fn touch(&mut self, now: Moment) {
        self.applied = Moment { unix: self.applied.unix, ..now };
    }

    /// Whether its plan was applied and not taken back.
    pub(crate) fn is_in_force(&self) -> bool {
        self.phase != Phase::RolledBack
    }

    /// Whether there is something to take back: its plan is in force, or something was left when it was taken back.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let is_there =
            |entry: &Entry| !matches!(entry.progress, Progress::Kept | Progress::Untouched);
        self.phase != Phase::RolledBack || self.entries.iter().any(is_there)
    }
}
