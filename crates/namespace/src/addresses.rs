//! Which addresses the ends of a link have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use nix::ifaddrs::getifaddrs;

use crate::{End, NamespaceError};

/// Bits of the network of two addresses.
const PREFIX: u8 = 30;
/// The same of IPv6.
const PREFIX6: u8 = 64;

/// For measurements between interconnected devices, and never routed on the Internet (RFC 2544 §C.2.2, RFC 6890).
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Networks of 256 addresses, of each of which the first four are used: what is taken is easily seen.
const NETWORKS: u32 = 512;

/// The addresses of the namespace in which the process was started, once that is out of reach.
static OUTSIDE: OnceLock<Vec<Ipv4Addr>> = OnceLock::new();

/// Keeps in mind which addresses there are here, before the process goes elsewhere.
pub(crate) fn remember() -> Result<(), NamespaceError> {
    let here = here()?.collect();
    OUTSIDE.get_or_init(|| here);
    Ok(())
}

/// The addresses of the calling thread's namespace.
fn here() -> Result<impl Iterator<Item = Ipv4Addr>, NamespaceError> {
    let all = getifaddrs().map_err(|error| NamespaceError::system("list addresses", error))?;
    Ok(all.filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip())))
}

/// The addresses of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    number: u16,
}

impl Addresses {
    /// Addresses of a network of which nobody has one where the process was started.
    ///
    /// # Errors
    /// If all have some.
    pub fn free() -> Result<Self, NamespaceError> {
        let outside = OUTSIDE.get().into_iter().flatten().copied();
        Self::beside(outside.chain(here()?))
    }

    fn beside(taken: impl Iterator<Item = Ipv4Addr>) -> Result<Self, NamespaceError> {
        let numbers: Vec<u32> =
            taken.filter_map(|taken| taken.to_bits().checked_sub(FIRST.to_bits())).collect();
        let is_free = |number: &u32| numbers.iter().all(|taken| taken >> 8 != *number);
        let number = (0..NETWORKS).find(is_free);
        let number = number.ok_or(NamespaceError::NoAddresses { first: FIRST, tried: NETWORKS })?;
        Ok(Self { number: number as u16 })
    }

    /// That of the end where the user is.
    #[must_use]
    pub fn near(self) -> Ipv4Addr {
        self.v4(2)
    }

    /// That of the other end.
    #[must_use]
    pub fn far(self) -> Ipv4Addr {
        self.v4(1)
    }

    /// The near end's of IPv6: 2001:2::/48 is for measurements too (RFC 5180 §8).
    #[must_use]
    pub fn near6(self) -> Ipv6Addr {
        self.v6(2)
    }

    /// The far end's of IPv6.
    #[must_use]
    pub fn far6(self) -> Ipv6Addr {
        self.v6(1)
    }

    /// For a device by which the far end reaches the outside, networks of their own: its addresses, those that it is led by, and the
    /// length of the prefix of the first of each.
    #[must_use]
    pub fn outside(self) -> ([IpAddr; 2], [IpAddr; 2], u8) {
        let of = |host: u8| {
            let beyond = self.number + NETWORKS as u16;
            [self.v4(u32::from(128 + host)).into(), v6(beyond, host.into()).into()]
        };
        (of(2), of(1), PREFIX)
    }

    /// Whom programs ask for names where the outside can be reached: nobody has it.
    #[must_use]
    pub fn resolver(self) -> Ipv4Addr {
        self.v4(53)
    }

    /// Both of an end, with the lengths of their prefixes.
    pub(crate) fn of(self, end: End) -> [(IpAddr, u8); 2] {
        let (v4, v6) = match end {
            End::Near => (self.near(), self.near6()),
            End::Far => (self.far(), self.far6()),
        };
        [(v4.into(), PREFIX), (v6.into(), PREFIX6)]
    }

    fn v4(self, host: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(FIRST.to_bits() + (u32::from(self.number) << 8) + host)
    }

    fn v6(self, host: u16) -> Ipv6Addr {
        v6(self.number, host)
    }
}

fn v6(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0x0002, 0, network, 0, 0, 0, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_network_is_taken_of_which_nobody_has_an_address() {
        let beside = |taken: &[&str]| {
            let taken: Vec<Ipv4Addr> = taken.iter().map(|text| text.parse().unwrap()).collect();
            Addresses::beside(taken.into_iter())
        };
        let first = beside(&["127.0.0.1", "203.0.113.9"]).unwrap();
        assert_eq!(first.far(), Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(first.near6(), "2001:2::2".parse::<Ipv6Addr>().unwrap());
        let third = beside(&["198.18.0.2", "198.18.1.1"]).unwrap();
        assert_eq!(third.near(), Ipv4Addr::new(198, 18, 2, 2));
        assert_eq!(third.far6(), "2001:2:0:2::1".parse::<Ipv6Addr>().unwrap());
        let (own, router, _) = third.outside();
        assert_eq!(own.map(|address| address.to_string()), ["198.18.2.130", "2001:2:0:202::2"]);
        assert_eq!(router.map(|address| address.to_string()), ["198.18.2.129", "2001:2:0:202::1"]);
        let all: Vec<String> =
            (0..512).map(|n| format!("198.{}.{}.1", 18 + n / 256, n % 256)).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(beside(&all[..511]).is_ok());
        assert!(matches!(beside(&all), Err(NamespaceError::NoAddresses { .. })));
    }
}
