//! The two ends of a link, each with a network of its own.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use dualq_netlink::{Netlink, Route};

use crate::{Addresses, Namespace, NamespaceError};

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the user is.
    Near,
    /// The other one.
    Far,
}

impl End {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Near, Self::Far];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// Two network namespaces, and the addresses that they are to have.
#[derive(Debug)]
pub struct Ends {
    /// Where the user is.
    pub near: Namespace,
    /// The other one.
    pub far: Namespace,
    /// Of both.
    pub addresses: Addresses,
    /// Whether this kernel has IPv6.
    pub has_ipv6: bool,
}

impl Ends {
    /// Makes both, each with its loopback device up, where every group may ping. What they are connected by, comes later: a device with
    /// the addresses [`of`](Self::of) each.
    ///
    /// # Errors
    /// If the kernel refuses, or the calling thread's namespace has addresses of all networks that a link may have.
    pub fn create() -> Result<Self, NamespaceError> {
        let addresses = Addresses::free()?;
        let (near, far) = (Namespace::create()?, Namespace::create()?);
        for end in [&near, &far] {
            end.inside(prepare)??;
        }
        let has_ipv6 = near.inside(|| Path::new(NEW_DEVICES).exists())?;
        Ok(Self { near, far, addresses, has_ipv6 })
    }

    /// That of an end.
    #[must_use]
    pub const fn namespace(&self, end: End) -> &Namespace {
        match end {
            End::Near => &self.near,
            End::Far => &self.far,
        }
    }

    /// The addresses of an end, with the lengths of their prefixes.
    #[must_use]
    pub fn of(&self, end: End) -> Vec<(IpAddr, u8)> {
        let count = if self.has_ipv6 { 2 } else { 1 };
        self.addresses.of(end).into_iter().take(count).collect()
    }

    /// Sends all that is not for an end itself out by a device of it, which is up.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn lead_out(&self, end: End, device: &str) -> Result<(), NamespaceError> {
        self.namespace(end).inside(|| {
            let mut netlink = Netlink::open()?;
            let link = Some(netlink.link(device)?.index);
            for (address, _) in self.of(end) {
                let to: IpAddr = match address {
                    IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                netlink.add_route(&Route {
                    to,
                    prefix: 0,
                    via: None,
                    link,
                    source: None,
                    mtu: None,
                    metric: None,
                })?;
            }
            Ok(())
        })?
    }
}

/// What devices of IPv6 are like that are made later.
const NEW_DEVICES: &str = "/proc/sys/net/ipv6/conf/default";

fn prepare() -> Result<(), NamespaceError> {
    let mut netlink = Netlink::open()?;
    let index = netlink.link("lo")?.index;
    netlink.set_up(index)?;
    // Without them, ping takes a privilege (icmp(7)). In a user namespace it may only name groups that are there.
    let _ = ["0 2147483647".to_owned(), format!("{0} {0}", nix::unistd::getegid())]
        .iter()
        .find(|groups| fs::write("/proc/sys/net/ipv4/ping_group_range", groups).is_ok());
    // On a link of two that know each other, nobody needs to ask for routers, or to have addresses that nobody chose: these would be
    // packets that nobody sent.
    let settings = [
        ("disable_ipv6", "0"),
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
    ];
    for (name, value) in settings {
        // A kernel without IPv6 has none of these.
        let _ = fs::write(Path::new(NEW_DEVICES).join(name), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::{AsFd as _, AsRawFd as _};

    use dualq_netlink::{NetlinkError, VethEnd};

    use super::*;

    #[test]
    fn ends_have_addresses_and_nothing_of_the_machine() {
        if !tests_skipped::is_root() {
            return tests_skipped::again_as_root("true");
        }
        let ends = match Ends::create() {
            Ok(ends) => ends,
            Err(error) => return tests_skipped::skipped(&error.to_string()),
        };
        let device = |name, end| VethEnd {
            name,
            mac: [2, 0, 0, 0, 0, ends.namespace(end).as_fd().as_raw_fd() as u8],
            mtu: 1500,
            namespace: Some(ends.namespace(end).as_fd()),
        };
        let made =
            Netlink::open().unwrap().add_veth(&device("d", End::Near), &device("d", End::Far));
        if let Err(error) = made {
            return tests_skipped::skipped(&format!("no veth: {error}"));
        }
        for end in End::ALL {
            let addresses = ends.of(end);
            let give = || -> Result<(), NetlinkError> {
                let mut netlink = Netlink::open()?;
                let index = netlink.link("d")?.index;
                for (address, prefix) in &addresses {
                    netlink.add_address(index, *address, *prefix)?;
                }
                netlink.set_up(index)
            };
            ends.namespace(end).inside(give).unwrap().unwrap();
            ends.lead_out(end, "d").unwrap();
            for (address, _) in addresses {
                let bound = ends.namespace(end).inside(|| UdpSocket::bind((address, 0))).unwrap();
                assert!(bound.is_ok(), "{address}");
                // Not here.
                assert!(UdpSocket::bind((address, 0)).is_err());
            }
            let links = ends.namespace(end).inside(|| Netlink::open().unwrap().links().unwrap());
            let names: Vec<String> = links.unwrap().into_iter().map(|link| link.name).collect();
            assert!(
                names.contains(&"lo".to_owned()) && names.contains(&"d".to_owned()),
                "{names:?}"
            );
        }
        assert!(ends.lead_out(End::Near, "no-such-device").is_err());
        // A link inside this one has others.
        let inner = ends.near.inside(Addresses::free).unwrap().unwrap();
        assert_ne!(inner, ends.addresses);
    }
}
