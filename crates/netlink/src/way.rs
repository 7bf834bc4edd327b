//! Which way packets to an address go, and what is known of it.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};

use crate::attributes::{Attributes, u32_at};
use crate::channel::{Failure, messages};
use crate::link::{Link, bytes};
use crate::{Netlink, NetlinkError};

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;

/// The length of `struct rtmsg`.
const HEADER: usize = 12;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_VIA: u16 = 18;
const RTAX_MTU: u16 = 2;

/// The kernel's choice for packets to an address: `ip route get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The device that they leave by.
    pub link: Link,
    /// The router to which they go first, if the address is no neighbour's.
    pub gateway: Option<IpAddr>,
    /// The address that they come from.
    pub source: Option<IpAddr>,
    /// The path MTU that was set for this route, or learnt, in bytes.
    pub mtu: Option<u32>,
}

impl Netlink {
    /// Which way packets to `address` go. This takes no privileges.
    ///
    /// # Errors
    /// If there is no way.
    pub fn way_to(&mut self, address: IpAddr) -> Result<Way, NetlinkError> {
        let mut message = RouteMessage::default();
        (message.header.address_family, message.header.destination_prefix_length) = match address {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        message.attributes.push(RouteAttribute::Destination(RouteAddress::from(address)));
        let what = || format!("find a way to {address}");
        let answer = self.route.ask(RTM_GETROUTE, 0, &bytes(&message));
        let answer = answer.map_err(|failure| failure.of(what()))?;
        let malformed = || Failure::Malformed.of(what());
        let payload = messages(&answer)
            .find(|message| message.kind == RTM_NEWROUTE)
            .and_then(|message| message.payload.get(HEADER..))
            .ok_or_else(malformed)?;
        let attributes = Attributes::read(payload);
        let index = attributes.u32(RTA_OIF).ok_or_else(malformed)?;
        // A gateway of the other family has two bytes before its address that say which.
        let via = || attributes.get(RTA_VIA).and_then(|via| via.get(2..));
        let gateway = attributes.get(RTA_GATEWAY).or_else(via).and_then(ip);
        let metrics = attributes.nested(RTA_METRICS);
        let mtu = metrics.and_then(|metrics| u32_at(metrics.get(RTAX_MTU)?, 0));
        let source = attributes.get(RTA_PREFSRC).and_then(ip);
        Ok(Way { link: self.link_at(index)?, gateway, source, mtu })
    }
}

pub(crate) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
