//! What dualq asks of the Linux kernel: links, addresses, offloads, queue disciplines and TCP connections, over netlink.
//!
//! A [`Netlink`] belongs to the network namespace in which its thread was when it was opened, and stays with it. Each method
//! is one question and waits for its answer. Queue disciplines are asked for with a [`Spec`](dualq_qdisc::Spec) and read back
//! as [`Config`](dualq_qdisc::Config) and [`Stats`](dualq_qdisc::show::Stats), so that
//! [`dualq_qdisc::show`] prints them as `tc` does.
//!
//! ```no_run
//! use dualq_netlink::{Netlink, Place};
//! use dualq_qdisc::{grammar, show};
//!
//! let mut netlink = Netlink::open()?;
//! let link = netlink.link("eth0")?;
//! let spec = grammar::parse("tbf rate 50mbit burst 10kb latency 50ms leaf dualpi2 target 5ms")?.spec;
//! netlink.replace_qdisc(&Place::root(link.index), &spec)?;
//! for queue in netlink.qdiscs(link.index)? {
//!     match &queue.config {
//!         Some(config) => println!("{}", show::text(config)),
//!         None => println!("qdisc {} {}", queue.kind, queue.handle),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Numbers and layouts are those of Linux's `include/uapi/linux/{rtnetlink,pkt_sched,gen_stats,ethtool_netlink}.h`.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod address;
mod attributes;
mod channel;
mod connection;
mod dump;
mod error;
mod ethtool;
mod filter;
mod handle;
mod kinds;
mod learn;
mod link;
mod qdisc;
mod route;
mod tree;

use channel::Channel;
pub use connection::Connection;
pub use dump::Queue;
pub use error::NetlinkError;
pub use ethtool::{Offloads, SegmentationOffload};
pub use handle::{Handle, Place};
pub use link::{Link, VethEnd};
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
