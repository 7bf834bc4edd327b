use std::io;

use dualq_netlink::NetlinkError;
use dualq_scenario::Direction;
use dualq_units::plain;

/// Why there is no link, or why something about it cannot be had. The text is one line that says what would help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is no `/dev/net/tun`.
    #[error(
        "no /dev/net/tun: the kernel has no TUN devices or its module is not loaded; as root, `modprobe tun`, or in a container \
         `--device /dev/net/tun`"
    )]
    NoTun,
    /// The node may not be opened.
    #[error(
        "/dev/net/tun may not be opened: {}; as root, `chmod 0666 /dev/net/tun`, as most distributions have it, or run as root",
        plain(.0)
    )]
    MayNotOpen(io::Error),
    /// `/dev/net/tun` is something else.
    #[error(
        "/dev/net/tun is not the kernel's TUN: {}; as root, `rm /dev/net/tun && mknod -m 0666 /dev/net/tun c 10 200`",
        plain(.0)
    )]
    NotTun(io::Error),
    /// No device may be made in this network namespace.
    #[error(
        "no TUN device may be made here: {}; this takes root, or CAP_NET_ADMIN in a network namespace of one's own",
        plain(.0)
    )]
    MayNotMake(io::Error),
    /// The kernel refuses something about a device.
    #[error("TUN device {name}: cannot {what}: {}", plain(.error))]
    Device {
        /// The device.
        name: String,
        /// What was asked for.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A name that no device can have.
    #[error("{0:?} is no name of a device: 1 to 15 characters without / and space")]
    Name(String),
    /// The kernel refuses something by netlink.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The system refuses something.
    #[error("cannot {what}: {}", plain(.error))]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A direction does not change so.
    #[error("the way {}: {fault}", .direction.name())]
    Change {
        /// The direction.
        direction: Direction,
        /// Why.
        fault: ChangeFault,
    },
    /// The link has stopped.
    #[error("the link has stopped")]
    Stopped,
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeFault {
    /// There is no bottleneck.
    #[error("it has no rate, so that there is no queue to change")]
    NoQueue,
    /// No option was given that says anything, which Linux refuses.
    #[error(
        "a change of dualpi2 needs an option that says something, such as target 5ms; a limit or memlimit of 0 says nothing"
    )]
    NothingGiven,
}
