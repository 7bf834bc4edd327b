//! What can go wrong.

use std::io;

use dualq_units::plain;

use crate::channel::Failure;

/// Why the kernel did not do what it was asked for. The text is one line that says what that was, and on which device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetlinkError {
    /// No socket could be had.
    #[error("cannot open a netlink socket: {}", plain(.0))]
    Open(#[source] io::Error),
    /// The socket failed.
    #[error("cannot {what}: {}", plain(.source))]
    Socket {
        /// What was asked for.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The kernel understood, and refuses.
    #[error("cannot {what}: {message}")]
    Refused {
        /// What was asked for.
        what: String,
        /// The error's number (errno(3)).
        errno: i32,
        /// The kernel's own words, or those for the number if it has none.
        message: String,
    },
    /// The kernel was built without a queue discipline, or cannot load its module.
    #[error("cannot {what}: this kernel has no qdisc {kind} ({message})")]
    NoSuchKind {
        /// What was asked for.
        what: String,
        /// The kind that it lacks.
        kind: String,
        /// The kernel's own words.
        message: String,
    },
    /// It takes privileges that the process does not have.
    #[error(
        "cannot {what}: {message}; this takes root, or CAP_NET_ADMIN in this network namespace"
    )]
    NotPermitted {
        /// What was asked for.
        what: String,
        /// The kernel's own words.
        message: String,
    },
    /// There is no such device.
    #[error("no device {name:?} in this network namespace")]
    NoLink {
        /// Its name.
        name: String,
    },
    /// A discipline with others inside it has no handle by which they could name their place.
    #[error("a {kind} with a discipline inside needs a handle from 1: to fffe:, such as 1:")]
    NeedsHandle {
        /// The kind of the outer discipline.
        kind: &'static str,
    },
    /// A device does not let its offloads be switched.
    #[error("cannot turn {feature} of {name} {}: the device does not allow it", on_off(*.on))]
    FixedOffload {
        /// What it is.
        feature: &'static str,
        /// The device.
        name: String,
        /// Whether it should have been on.
        on: bool,
    },
    /// The answer cannot be read.
    #[error("cannot {what}: the kernel's answer cannot be read")]
    Malformed {
        /// What was asked for.
        what: String,
    },
}

pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Numbers of errno(3).
pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const ENODEV: i32 = 19;
pub(crate) const EOPNOTSUPP: i32 = 95;

impl Failure {
    /// The error, of a question that asked to do `what`.
    pub(crate) fn of(self, what: impl Into<String>) -> NetlinkError {
        let what = what.into();
        match self {
            Self::Socket(source) => NetlinkError::Socket { what, source },
            Self::Malformed => NetlinkError::Malformed { what },
            Self::Refused { errno, message } => {
                let words = || plain(&io::Error::from_raw_os_error(errno));
                let message = message.unwrap_or_else(words);
                match errno {
                    EPERM => NetlinkError::NotPermitted { what, message },
                    _ => NetlinkError::Refused { what, errno, message },
                }
            }
        }
    }
}
