//! Why a plan is not applied, confirmed or taken back.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use dualq_netlink::NetlinkError;
use dualq_units::plain;

use super::Difference;
use crate::plan::ClassId;

/// Why nothing was done, or why it was taken back.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The plan asks for something that no plan of dualq's does.
    #[error("{0}")]
    Plan(String),
    /// Something is in the way.
    #[error("cannot {what}: {}", plain(error))]
    Io {
        /// What was to be done.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no such sysctl, or no more.
    #[error("there is no sysctl {key} here: make a new plan")]
    NoSysctl {
        /// Its name.
        key: String,
    },
    /// Somebody else's class, below which something is put, is not there, or no more.
    #[error(
        "{dev} has no class {class}: whoever made its tree can make it again; for another tree, make a new plan"
    )]
    NoClass {
        /// The class.
        class: ClassId,
        /// The interface.
        dev: String,
    },
    /// The kernel refuses.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// Another dualq is at work.
    #[error("another dualq is changing this machine; try again when it is done")]
    Busy,
    /// The machine is not what the plan was made for.
    #[error("{} is not as the plan found it: make a new plan", names(.0))]
    NotAsPlanned(Vec<Difference>),
    /// Somebody changed what was applied.
    #[error("{} changed since: --force takes it back all the same", names(.0))]
    ChangedSince(Vec<Difference>),
    /// Another plan has to be decided about first.
    #[error(
        "another plan waits to be confirmed ({about}): `dualq confirm` or `dualq rollback` first"
    )]
    Unconfirmed {
        /// What that is for.
        about: String,
    },
    /// Nobody said in time that all is well.
    #[error("too late: the plan was not confirmed within {} s and is taken back", within.as_secs())]
    TooLate {
        /// The time that there was.
        within: Duration,
    },
    /// What was to be confirmed is there no more.
    #[error("{about} was taken back {when}: {why}; {}", in_force.as_ref().map_or("no plan is in force".to_owned(), |about| format!("in force is {about}")))]
    WasTakenBack {
        /// What the plan was for.
        about: String,
        /// How long ago, in words.
        when: String,
        /// Why.
        why: String,
        /// What the plan is for that is there now, if there is one.
        in_force: Option<String>,
    },
    /// Another plan than the one that was named is there.
    #[error("that plan is not the one that is applied here, which is {about}")]
    AnotherPlan {
        /// What that is for.
        about: String,
    },
    /// There is nothing to confirm or to take back.
    #[error("no plan is applied here")]
    Nothing,
    /// A change failed, and all before it were undone.
    #[error("{error}; all is as it was before")]
    TakenBack {
        /// What failed.
        error: Box<ApplyError>,
    },
    /// Something could not be restored.
    #[error("not all could be taken back, `dualq rollback` tries again: {}", .0.join("; "))]
    Left(Vec<String>),
}

impl ApplyError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Self::Io { what, error }
    }

    /// Whether what it is about went away: an interface, the sysctls of one, or a class.
    pub(crate) const fn is_gone(&self) -> bool {
        matches!(
            self,
            Self::Netlink(NetlinkError::NoLink { .. })
                | Self::NoSysctl { .. }
                | Self::NoClass { .. }
        )
    }

    /// What is not as it should be, a piece of text for each, with lines that begin with `-` and `+`.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::NotAsPlanned(list) | Self::ChangedSince(list) => list,
            _ => &[],
        }
    }
}

fn names(differences: &[Difference]) -> String {
    let mut names = String::new();
    for (index, difference) in differences.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(names, "{comma}{}", difference.name);
    }
    names
}
