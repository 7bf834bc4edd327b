//! Why there is no measurement.

use std::io;
use std::net::SocketAddr;

use dualq_units::plain;

use crate::measurement::Server;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// There is no such host.
    #[error("cannot find the host {host}: {reason}")]
    Unknown {
        /// The host's name.
        host: String,
        /// Why not.
        reason: String,
    },
    /// Nobody answers there.
    #[error("cannot reach {address}: {reason}; {}", .server.hint())]
    Unreachable {
        /// The server's address.
        address: SocketAddr,
        /// Why not.
        reason: String,
        /// What was looked for.
        server: Server,
    },
    /// Somebody else answers there.
    #[error("what answers at {address} is no {}: {reason}", .server.name())]
    Stranger {
        /// The server's address.
        address: SocketAddr,
        /// What it did.
        reason: String,
        /// What was looked for.
        server: Server,
    },
    /// A web server's file is of no use.
    #[error("cannot measure with {url}: {reason}")]
    File {
        /// Which.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The server does not want to.
    #[error("{address} refuses: {reason}")]
    Refused {
        /// The server's address.
        address: SocketAddr,
        /// Why, in its words.
        reason: String,
    },
    /// The server answers no more.
    #[error("{address} has vanished: {reason}")]
    Vanished {
        /// The server's address.
        address: SocketAddr,
        /// What was missed.
        reason: String,
    },
    /// The server does what no server does.
    #[error("{address} does not keep to the protocol: {reason}")]
    Nonsense {
        /// The server's address.
        address: SocketAddr,
        /// What it did.
        reason: String,
    },
    /// This end cannot.
    #[error("{what}: {reason}")]
    Here {
        /// What it cannot do.
        what: String,
        /// Why not.
        reason: String,
    },
}

impl MeasureError {
    pub(super) fn here(what: &str, error: &io::Error) -> Self {
        Self::Here { what: what.to_owned(), reason: plain(error) }
    }
}
