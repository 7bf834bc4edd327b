use std::error::Error;

use dualq_link::LinkError;
use dualq_namespace::NamespaceError;
use dualq_netlink::NetlinkError;
use dualq_units::plain;

/// Why a scenario could not be run on this kernel.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The kernel refused a link, an address or a queue discipline.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// There is no network namespace to be had.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// There is no link of dualq's own, or it broke.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Whoever watches asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The kernel refused something else.
    #[error("{what}: {}", plain(.error.as_ref()))]
    System {
        /// What was asked.
        what: String,
        /// What it said.
        error: Box<dyn Error + Send + Sync>,
    },
    /// The scenario asks for what this world does not do.
    #[error("{0}")]
    Scenario(String),
}

impl LabError {
    pub(crate) fn system(
        what: impl Into<String>,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::System { what: what.into(), error: error.into() }
    }
}
