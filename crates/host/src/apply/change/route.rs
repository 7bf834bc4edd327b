//! Routes with a smaller MTU.

use std::net::IpAddr;

use dualq_netlink::{Netlink, Route};
use serde::{Deserialize, Serialize};

use crate::apply::ApplyError;
use crate::plan::Destination;

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// Where to, without its prefix length.
    pub to: IpAddr,
    /// How many bits of that count.
    pub prefix: u8,
    /// The router, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<IpAddr>,
    /// The interface.
    pub dev: String,
    /// The address that its packets come from, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// In bytes.
    pub mtu: u32,
}

impl Made {
    /// What becomes of the route in use for a destination: it, but for the destination and the MTU.
    pub(crate) fn copy(
        netlink: &mut Netlink,
        to: Destination,
        mtu: u32,
    ) -> Result<Self, ApplyError> {
        let used = netlink.way_to(to.address())?;
        let (via, source, dev) = (used.gateway, used.source, used.link.name);
        Ok(Self { to: to.address(), prefix: to.length(), via, dev, source, mtu })
    }

    fn route(&self, netlink: &mut Netlink) -> Result<Route, ApplyError> {
        let link = netlink.link(&self.dev)?.index;
        let Self { to, prefix, via, source, mtu, .. } = *self;
        Ok(Route { to, prefix, via, link: Some(link), source, mtu: Some(mtu), metric: None })
    }

    pub(crate) fn add(&self, netlink: &mut Netlink) -> Result<(), ApplyError> {
        let route = self.route(netlink)?;
        netlink.add_route(&route)?;
        // Rules for routing may know better.
        if netlink.way_to(self.to)?.mtu == Some(self.mtu) {
            return Ok(());
        }
        Err(ApplyError::Plan(format!("the route to {}/{} is not used here", self.to, self.prefix)))
    }

    /// The plan's route and what somebody made of it: before, there was none to this destination. One that has a metric is somebody's own.
    fn found(&self, netlink: &mut Netlink) -> Result<Vec<Route>, ApplyError> {
        let mut found = netlink.routes(self.to, self.prefix)?;
        found.retain(|route| route.metric.is_none());
        Ok(found)
    }

    /// What is there of it, in words, and whether that is what the plan made; the router may have changed since.
    pub(crate) fn now(&self, netlink: &mut Netlink) -> Result<Option<(String, bool)>, ApplyError> {
        let link = netlink.link(&self.dev).map(|link| link.index).ok();
        let found = self.found(netlink)?;
        let is_own = |route: &Route| route.mtu == Some(self.mtu) && route.link == link;
        let Some(telling) = found.iter().find(|route| !is_own(route)).or(found.first()) else {
            return Ok(None);
        };
        let link = telling.link.and_then(|index| netlink.link_at(index).ok());
        let dev = link.map_or_else(|| "?".to_owned(), |link| link.name);
        Ok(Some((words(&dev, telling.mtu), is_own(telling))))
    }

    /// The plan's route, in the same words.
    pub(crate) fn words(&self) -> String {
        words(&self.dev, Some(self.mtu))
    }

    pub(crate) fn delete(&self, netlink: &mut Netlink) -> Result<(), ApplyError> {
        for found in self.found(netlink)? {
            netlink.delete_route(&found)?;
        }
        match self.found(netlink)?.is_empty() {
            true => Ok(()),
            false => {
                let (to, prefix) = (self.to, self.prefix);
                Err(ApplyError::Plan(format!("the route to {to}/{prefix} is still there")))
            }
        }
    }
}

fn words(dev: &str, mtu: Option<u32>) -> String {
    let mtu = mtu.map_or("no mtu".to_owned(), |mtu| format!("mtu {mtu}"));
    format!("dev {dev} {mtu}")
}

/// Puts a route back that went: where the way by that interface is there again, and nobody has one of their own to exactly there.
pub(crate) fn put_back(
    netlink: &mut Netlink,
    dev: &str,
    to: Destination,
    mtu: u32,
) -> Result<(), ApplyError> {
    let way = netlink.way_to(to.address())?;
    // On a large router the list of routes is long: mostly this is enough.
    let is_there = way.mtu == Some(mtu) || way.link.name != dev;
    if is_there || mtu_of(netlink, to)?.is_some() {
        return Ok(());
    }
    Made::copy(netlink, to, mtu)?.add(netlink)
}

/// What is there to exactly this destination: its MTU, if there is a route.
pub(crate) fn mtu_of(
    netlink: &mut Netlink,
    to: Destination,
) -> Result<Option<Option<u32>>, ApplyError> {
    Ok(netlink.routes(to.address(), to.length())?.first().map(|route| route.mtu))
}
