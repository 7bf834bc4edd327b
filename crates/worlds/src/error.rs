#[cfg(feature = "linux")]
use std::io;

#[cfg(feature = "linux")]
use dualq_guest::GuestError;
#[cfg(feature = "linux")]
use dualq_units::plain;

/// Why a world has no outcome for a scenario.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The scenario asks for what the world does not have.
    #[error("{0}")]
    Refused(String),
    #[cfg(feature = "linux")]
    /// No folder could be made that a guest shares with the host.
    #[error("cannot make a folder for the guest: {}", plain(.0))]
    Folder(io::Error),
    #[cfg(feature = "linux")]
    /// The guest in which a scenario ran came to no good end.
    #[error("{scenario}: {error}")]
    Guest {
        /// The scenario's name.
        scenario: String,
        /// What happened.
        error: GuestError,
    },
    #[cfg(feature = "linux")]
    /// What was seen of the packets cannot be read.
    #[error("{scenario}: {file}: {}", plain(.error))]
    Events {
        /// The scenario's name.
        scenario: String,
        /// The file of the guest's.
        file: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Another world's own reason, in a line.
    #[error("{0}")]
    Other(String),
    /// Whoever watches asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// There are not so many seeds from the first one on, or none was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} seeds: there are not so many from {first} on, or it is none")]
pub struct NotSoMany {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}
