//! Addresses, and neighbours of IPv4.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use crate::attributes::Writer;
use crate::header::{if_address, neighbour, octets};
use crate::{Netlink, NetlinkError};

const RTM_NEWADDR: u16 = 20;
const RTM_NEWNEIGH: u16 = 28;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;

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
        let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
        let mut message = Writer::after(if_address(address, prefix, flags, index));
        message.put(IFA_LOCAL, &octets(address));
        message.put(IFA_ADDRESS, &octets(address));
        let answer = self.route.ask(RTM_NEWADDR, NEW, &message.finish());
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
        let mut message = Writer::after(neighbour(address.into(), NUD_PERMANENT, index));
        message.put(NDA_DST, &address.octets());
        message.put(NDA_LLADDR, &mac);
        let answer = self.route.ask(RTM_NEWNEIGH, NEW, &message.finish());
        answer.map(drop).map_err(|failure| {
            failure.of(format!("add neighbour {address} to {}", self.name_of(index)))
        })
    }
}
