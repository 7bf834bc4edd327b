use std::io;

use dualq_netlink::NetlinkError;
use dualq_units::plain;

/// Why there is no namespace. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The kernel refused a device, an address or a route.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The kernel refused something else.
    #[error("cannot {what}: {}", plain(error))]
    System {
        /// What was asked.
        what: String,
        /// What it said.
        error: io::Error,
    },
    /// This user may not make namespaces here.
    #[error("cannot make network namespaces: {0}")]
    NotPermitted(String),
    /// All addresses that a link's ends may have are taken where the program was started.
    #[error("no addresses are left for another link: {tried} networks from {first} on are taken")]
    NoAddresses {
        /// The first network.
        first: std::net::Ipv4Addr,
        /// How many were tried.
        tried: u32,
    },
}

impl NamespaceError {
    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), error: error.into() }
    }
}
