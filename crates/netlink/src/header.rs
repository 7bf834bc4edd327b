//! The structures of fixed length with which messages begin, before their attributes: linux/rtnetlink.h, linux/if_addr.h,
//! linux/neighbour.h, linux/inet_diag.h.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Handle;
use crate::attributes::{Attributes, u32_at};

pub(crate) const AF_UNSPEC: u8 = 0;
pub(crate) const AF_INET: u8 = 2;
pub(crate) const AF_INET6: u8 = 10;

/// The number of an address's family.
pub(crate) const fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// The bytes of an address.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A structure of so many bytes, and the attributes behind it.
fn split<const LENGTH: usize>(payload: &[u8]) -> Option<(&[u8; LENGTH], Attributes<'_>)> {
    let (header, attributes) = payload.split_first_chunk()?;
    Some((header, Attributes::read(attributes)))
}

/// `struct ifinfomsg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IfInfo {
    /// `ARPHRD_…`.
    pub(crate) kind: u16,
    pub(crate) index: u32,
    /// `IFF_…`.
    pub(crate) flags: u32,
    /// Which flags are meant.
    pub(crate) change: u32,
}

impl IfInfo {
    const LENGTH: usize = 16;

    pub(crate) fn of(index: u32) -> Self {
        Self { index, ..Self::default() }
    }

    pub(crate) fn read(payload: &[u8]) -> Option<(Self, Attributes<'_>)> {
        let (header, attributes) = split::<{ Self::LENGTH }>(payload)?;
        let info = Self {
            kind: u16::from_ne_bytes([header[2], header[3]]),
            index: u32_at(header, 4)?,
            flags: u32_at(header, 8)?,
            change: u32_at(header, 12)?,
        };
        Some((info, attributes))
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let [k0, k1] = self.kind.to_ne_bytes();
        let words = [self.index, self.flags, self.change].map(u32::to_ne_bytes);
        [&[AF_UNSPEC, 0, k0, k1], words.as_flattened()].concat()
    }
}

/// `struct tcmsg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tc {
    /// The device's index.
    pub(crate) link: u32,
    pub(crate) handle: Handle,
    pub(crate) parent: Handle,
    pub(crate) info: u32,
}

impl Tc {
    const LENGTH: usize = 20;

    pub(crate) const fn of(link: u32, handle: Handle, parent: Handle) -> Self {
        Self { link, handle, parent, info: 0 }
    }

    /// Asks for all that a device has.
    pub(crate) const fn all_of(link: u32) -> Self {
        Self::of(link, Handle::UNSPECIFIED, Handle::UNSPECIFIED)
    }

    pub(crate) fn read(payload: &[u8]) -> Option<(Self, Attributes<'_>)> {
        let (header, attributes) = split::<{ Self::LENGTH }>(payload)?;
        let tc = Self {
            link: u32_at(header, 4)?,
            handle: Handle::from_raw(u32_at(header, 8)?),
            parent: Handle::from_raw(u32_at(header, 12)?),
            info: u32_at(header, 16)?,
        };
        Some((tc, attributes))
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let words = [self.link, self.handle.as_raw(), self.parent.as_raw(), self.info];
        [&[AF_UNSPEC, 0, 0, 0], words.map(u32::to_ne_bytes).as_flattened()].concat()
    }
}

/// `struct ifaddrmsg`.
pub(crate) fn if_address(address: IpAddr, prefix: u8, flags: u8, link: u32) -> Vec<u8> {
    [&[family(address), prefix, flags, 0], &link.to_ne_bytes()[..]].concat()
}

/// `struct ndmsg`.
pub(crate) fn neighbour(address: IpAddr, state: u16, link: u32) -> Vec<u8> {
    let state = state.to_ne_bytes();
    [&[family(address), 0, 0, 0], &link.to_ne_bytes()[..], &state, &[0, 0]].concat()
}

/// `struct inet_diag_req_v2`: all connections of that family and protocol in one of the states, and which extensions are to be told.
pub(crate) fn inet_diag_request(family: u8, protocol: u8, extensions: u8, states: u32) -> Vec<u8> {
    let mut bytes = vec![family, protocol, extensions, 0];
    bytes.extend(states.to_ne_bytes());
    // `struct inet_diag_sockid` of none.
    bytes.resize(56, 0);
    bytes
}

/// `struct inet_diag_msg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InetDiag {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) cookie: [u8; 8],
}

impl InetDiag {
    const LENGTH: usize = 72;

    pub(crate) fn read(payload: &[u8]) -> Option<(Self, Attributes<'_>)> {
        let (header, attributes) = split::<{ Self::LENGTH }>(payload)?;
        let address = |at: usize| -> Option<IpAddr> {
            let bytes: [u8; 16] = *header.get(at..)?.first_chunk()?;
            match header[0] {
                AF_INET => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
                AF_INET6 => Some(Ipv6Addr::from(bytes).into()),
                _ => None,
            }
        };
        let diag = Self {
            source: address(8)?,
            destination: address(24)?,
            cookie: *header.get(44..)?.first_chunk()?,
        };
        Some((diag, attributes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let info = IfInfo { kind: 772, index: 7, flags: 0x1_0041, change: u32::MAX };
        assert_eq!(info.bytes().len(), IfInfo::LENGTH);
        assert_eq!(IfInfo::read(&info.bytes()).unwrap().0, info);
        let tc = Tc { link: 3, handle: Handle::qdisc(1), parent: Handle::ROOT, info: 9 };
        assert_eq!(tc.bytes().len(), Tc::LENGTH);
        assert_eq!(Tc::read(&tc.bytes()).unwrap().0, tc);
        assert!(Tc::read(&tc.bytes()[1..]).is_none());
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(if_address(address, 24, 0, 1).len(), 8);
        assert_eq!(neighbour(address, 0x80, 1).len(), 12);
        assert_eq!(inet_diag_request(AF_INET, 6, 0, 2).len(), 56);
    }

    #[test]
    fn both_ends_of_a_connection_are_read() {
        let mut bytes = [0; InetDiag::LENGTH];
        bytes[0] = AF_INET;
        bytes[8..12].copy_from_slice(&[10, 0, 0, 1]);
        bytes[24..28].copy_from_slice(&[10, 0, 0, 2]);
        bytes[44..52].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let (diag, _) = InetDiag::read(&bytes).unwrap();
        assert_eq!(diag.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(diag.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!(diag.cookie, [1, 2, 3, 4, 5, 6, 7, 8]);
        bytes[0] = AF_INET6;
        let (diag, _) = InetDiag::read(&bytes).unwrap();
        assert_eq!(diag.source, "a00:1::".parse::<IpAddr>().unwrap());
        bytes[0] = 1;
        assert!(InetDiag::read(&bytes).is_none());
    }
}
