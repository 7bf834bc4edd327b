#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod address;
mod attributes;
mod channel;
mod class;
mod connection;
mod dump;
mod error;
mod ethtool;
mod filter;
mod handle;
mod header;
mod ingress;
mod kinds;
mod learn;
mod link;
mod monitor;
mod qdisc;
mod route;
mod tree;

use channel::Channel;
pub use class::Class;
pub use connection::{Connection, Sent};
pub use dump::Queue;
pub use error::NetlinkError;
pub use ethtool::{Offloads, ReceiveOffload, SegmentationOffload};
pub use handle::{Handle, Place};
pub use ingress::Arriving;
pub use link::{Link, Traffic, VethEnd};
pub use monitor::Monitor;
pub use qdisc::Request;
pub use route::{Route, Way};
pub use tree::Node;

/// A conversation with the kernel about one network namespace.
pub struct Netlink {
    route: Channel,
    generic: Channel,
    /// The number under which this kernel knows ethtool, once it was asked for.
    ethtool: Option<u16>,
}

impl Netlink {
    /// Opens the conversation about the network namespace in which the calling thread is now.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open() -> Result<Self, NetlinkError> {
        let open = |protocol| Channel::open(protocol).map_err(NetlinkError::Open);
        Ok(Self {
            route: open(netlink_sys::protocols::NETLINK_ROUTE)?,
            generic: open(netlink_sys::protocols::NETLINK_GENERIC)?,
            ethtool: None,
        })
    }
}
