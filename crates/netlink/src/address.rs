//! Addresses, and neighbours of IPv4.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use crate::link::bytes;
use crate::{Netlink, NetlinkError};

const RTM_NEWADDR: u16 = 20;
const RTM_NEWNEIGH: u16 = 28;

const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;

impl Netlink {
    /// Gives a device an address, in a network of which `prefix` bits are common: `ip addr add`. One of IPv6 is there at once: nobody is
    /// asked whether it is another's (`nodad`).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_address(
        &mut self,
        index: u32,
        address: impl Into<IpAddr>,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let address = address.into();
        let mut message = AddressMessage::default();
        message.header.family =
            if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.header.index = index;
        message.header.prefix_len = prefix;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        let answer = self.route.ask(RTM_NEWADDR, NEW, &bytes(&message));
        answer.map(drop).map_err(|failure| {
            failure.of(format!("add address {address}/{prefix} to {}", self.name_of(index)))
        })
    }

    /// Says for good which link-layer address a neighbour has, so that nobody has to ask: `ip neigh add … nud permanent`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_neighbour(
        &mut self,
        index: u32,
        address: Ipv4Addr,
        mac: [u8; 6],
    ) -> Result<(), NetlinkError> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let answer = self.route.ask(RTM_NEWNEIGH, NEW, &bytes(&message));
        answer.map(drop).map_err(|failure| {
            failure.of(format!("add neighbour {address} to {}", self.name_of(index)))
        })
    }
}
