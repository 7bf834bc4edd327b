//! Routes of both families, and which of them the kernel chooses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use crate::attributes::{Attributes, Writer};
use crate::channel::{Failure, messages};
use crate::header::{self, AF_INET, AF_INET6, octets};
use crate::{Link, Netlink, NetlinkError};

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_CACHEINFO: u16 = 12;
const RTA_VIA: u16 = 18;
const RTA_TABLE: u16 = 15;
const RTAX_MTU: u16 = 2;

/// `struct rtmsg`: four bytes of address, four of the route itself, flags.
const HEADER: usize = 12;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_UNSPEC: u8 = 0;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_NOWHERE: u8 = 255;
const RTN_UNICAST: u8 = 1;
const ESRCH: i32 = 3;
/// The metric of a route of IPv6 that was added without one (Linux: `IP6_RT_PRIO_USER`).
const USUAL_METRIC: u32 = 1024;
/// A copy that the kernel made of a route for one address, when it learned something of the path there.
const RTM_F_CLONED: u32 = 0x200;

/// A route of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where to.
    pub to: IpAddr,
    /// How many bits of that count.
    pub prefix: u8,
    /// The router, if there is one.
    pub via: Option<IpAddr>,
    /// The device's index; if a route is added without one, it is the device by which the router is reached.
    pub link: Option<u32>,
    /// The address that its packets come from, if it says so.
    pub source: Option<IpAddr>,
    /// The longest packet, in bytes, if it says so.
    pub mtu: Option<u32>,
    /// Of several routes to one destination, that with the least metric is used. There is none if it is what the kernel takes where nobody gives one: 0, or
    /// 1024 with IPv6.
    pub metric: Option<u32>,
}

impl Route {
    /// What is for `destination` (an address, and how many of its bits count) goes to the router `via`.
    #[must_use]
    pub fn via(destination: (impl Into<IpAddr>, u8), via: impl Into<IpAddr>) -> Self {
        let (to, prefix) = (destination.0.into(), destination.1);
        Self {
            to,
            prefix,
            via: Some(via.into()),
            link: None,
            source: None,
            mtu: None,
            metric: None,
        }
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (header, attributes) = payload.split_at_checked(HEADER)?;
        let attributes = Attributes::read(attributes);
        let any: IpAddr = match header[0] {
            AF_INET => Ipv4Addr::UNSPECIFIED.into(),
            AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => return None,
        };
        let table = attributes.u32(RTA_TABLE).unwrap_or(header[4].into());
        let is_learned = flags(header)? & RTM_F_CLONED != 0;
        if table != u32::from(RT_TABLE_MAIN) || header[7] != RTN_UNICAST || is_learned {
            return None;
        }
        Some(Self {
            to: address(&attributes, RTA_DST).unwrap_or(any),
            prefix: header[1],
            via: router(&attributes),
            link: Some(attributes.u32(RTA_OIF)?),
            source: address(&attributes, RTA_PREFSRC),
            mtu: mtu(&attributes),
            metric: attributes
                .u32(RTA_PRIORITY)
                .filter(|metric| any.is_ipv4() || *metric != USUAL_METRIC),
        })
    }

    /// What is to be added.
    fn addition(&self) -> Writer {
        let scope = match (self.to, self.via) {
            (IpAddr::V4(_), None) => RT_SCOPE_LINK,
            _ => RT_SCOPE_UNIVERSE,
        };
        self.message(RTPROT_STATIC, scope)
    }

    /// What is to be removed, whoever added it. Without a metric any would do: with IPv4, the least comes first.
    fn removal(&self) -> Writer {
        let usual = (!self.to.is_ipv4()).then_some(USUAL_METRIC);
        Self { metric: self.metric.or(usual), ..*self }.message(RTPROT_UNSPEC, RT_SCOPE_NOWHERE)
    }

    fn message(&self, protocol: u8, scope: u8) -> Writer {
        let family = header::family(self.to);
        let kind = [RT_TABLE_MAIN, protocol, scope, RTN_UNICAST];
        let header = [&[family, self.prefix, 0, 0][..], &kind, &[0; 4]].concat();
        let mut message = Writer::after(header);
        message.put(RTA_DST, &octets(self.to));
        message.u32_if(RTA_OIF, self.link);
        match self.via {
            Some(via) if via.is_ipv4() == self.to.is_ipv4() => {
                message.put(RTA_GATEWAY, &octets(via));
            }
            Some(via) => {
                let family = u16::from(header::family(via));
                message.put(RTA_VIA, &[&family.to_ne_bytes()[..], &octets(via)].concat());
            }
            None => {}
        }
        message.u32_if(RTA_PRIORITY, self.metric);
        if let Some(source) = self.source {
            message.put(RTA_PREFSRC, &octets(source));
        }
        if let Some(mtu) = self.mtu {
            message.nest(RTA_METRICS, |metrics| metrics.u32(RTAX_MTU, mtu));
        }
        message
    }
}

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
    /// Whether it was learnt, of routers that said so, and is forgotten again.
    pub mtu_expires: bool,
}

fn address(attributes: &Attributes<'_>, kind: u16) -> Option<IpAddr> {
    ip(attributes.get(kind)?)
}

fn router(attributes: &Attributes<'_>) -> Option<IpAddr> {
    // One of the other family has two bytes before its address that say which.
    let other = || ip(attributes.get(RTA_VIA)?.get(2..)?);
    address(attributes, RTA_GATEWAY).or_else(other)
}

fn mtu(attributes: &Attributes<'_>) -> Option<u32> {
    attributes.nested(RTA_METRICS)?.u32(RTAX_MTU)
}

fn flags(header: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(header.get(8..HEADER)?.try_into().ok()?))
}

/// Whether the kernel's choice is a copy that it made of a route for what it learned. Neither sign is enough alone: every choice of
/// IPv4's is called a copy, and what a router of IPv6 advertised expires too.
fn is_learned(header: &[u8], attributes: &Attributes<'_>) -> bool {
    // Third in `struct rta_cacheinfo`.
    let expires = || attributes.get(RTA_CACHEINFO)?.get(8..12)?.try_into().ok();
    flags(header).is_some_and(|flags| flags & RTM_F_CLONED != 0)
        && expires().is_some_and(|expires| i32::from_ne_bytes(expires) != 0)
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

impl Netlink {
    /// Which way packets go to an address. This takes no privileges.
    ///
    /// # Errors
    /// If there is no way.
    pub fn way_to(&mut self, to: IpAddr) -> Result<Way, NetlinkError> {
        self.way_to_socket(SocketAddr::new(to, 0))
    }

    /// The same, where an address of one link alone is there on the interface that it names (`fe80::1%eth1`, RFC 4007): every interface
    /// has such addresses.
    ///
    /// # Errors
    /// As there.
    pub fn way_to_socket(&mut self, to: SocketAddr) -> Result<Way, NetlinkError> {
        let interface = match to {
            SocketAddr::V6(v6) => Some(v6.scope_id()).filter(|index| *index != 0),
            SocketAddr::V4(_) => None,
        };
        let to = to.ip();
        let mut header = vec![0; HEADER];
        (header[0], header[1]) = (header::family(to), if to.is_ipv4() { 32 } else { 128 });
        let mut question = Writer::after(header);
        question.put(RTA_DST, &octets(to));
        question.u32_if(RTA_OIF, interface);
        let what = || format!("find a way to {to}");
        let answer = self.route.ask(RTM_GETROUTE, 0, &question.finish());
        let answer = answer.map_err(|failure| failure.of(what()))?;
        let malformed = || Failure::Malformed.of(what());
        let (header, payload) = messages(&answer)
            .find(|message| message.kind == RTM_NEWROUTE)
            .and_then(|message| message.payload.split_at_checked(HEADER))
            .ok_or_else(malformed)?;
        let attributes = Attributes::read(payload);
        let index = attributes.u32(RTA_OIF).ok_or_else(malformed)?;
        let (gateway, mtu) = (router(&attributes), mtu(&attributes));
        let source = address(&attributes, RTA_PREFSRC);
        let mtu_expires = mtu.is_some() && is_learned(header, &attributes);
        Ok(Way { link: self.link_at(index)?, gateway, source, mtu, mtu_expires })
    }

    /// The routes of the main table to exactly this destination, without what the kernel itself learned of paths.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn routes(&mut self, to: IpAddr, prefix: u8) -> Result<Vec<Route>, NetlinkError> {
        let mut header = [0; HEADER];
        header[0] = header::family(to);
        let answer = self.route.dump(RTM_GETROUTE, &header);
        let answer = answer.map_err(|failure| failure.of("list routes"))?;
        let routes = messages(&answer).filter(|message| message.kind == RTM_NEWROUTE);
        let routes = routes.filter_map(|message| Route::read(message.payload));
        Ok(routes.filter(|route| route.to == to && route.prefix == prefix).collect())
    }

    /// Adds a route where there is none to exactly this destination: `ip route add`.
    ///
    /// # Errors
    /// If the kernel refuses, as it does if no device leads to the router.
    pub fn add_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let question = route.addition().finish();
        let answer = self.route.ask(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &question);
        answer.map(drop).map_err(|failure| {
            let via = route.via.map_or(String::new(), |via| format!(" via {via}"));
            failure.of(format!("add route to {}/{}{via}", route.to, route.prefix))
        })
    }

    /// Removes a route, whoever added it; it is no error if it is gone: `ip route del`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn delete_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        match self.route.ask(RTM_DELROUTE, 0, &route.removal().finish()) {
            Ok(_) | Err(Failure::Refused { errno: ESRCH, .. }) => Ok(()),
            Err(failure) => {
                Err(failure.of(format!("delete the route to {}/{}", route.to, route.prefix)))
            }
        }
    }
}
