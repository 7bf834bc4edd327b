//! What can go wrong.

#[cfg(all(target_os = "linux", feature = "probe"))]
use std::io;
use std::net::IpAddr;

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
pub enum MtuError {
    /// This machine knows no way to the host.
    #[error("no route to {host}: {reason}; see `ip route get {host}`")]
    NoRoute {
        /// The host.
        host: IpAddr,
        /// What the system says.
        reason: String,
    },
    /// This machine does not let packets out.
    #[error("cannot send to {host}: {reason}; does this machine's own firewall forbid it?")]
    Forbidden {
        /// The host.
        host: IpAddr,
        /// What the system says.
        reason: String,
    },
    /// Something else.
    #[error("cannot send to {host}: {reason}")]
    Send {
        /// The host.
        host: IpAddr,
        /// What the system says.
        reason: String,
    },
}

#[cfg(all(target_os = "linux", feature = "probe"))]
impl MtuError {
    pub(crate) fn send(host: IpAddr, error: &io::Error) -> Self {
        let reason = dualq_units::plain(error);
        match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                Self::NoRoute { host, reason }
            }
            io::ErrorKind::PermissionDenied => Self::Forbidden { host, reason },
            _ => Self::Send { host, reason },
        }
    }
}
