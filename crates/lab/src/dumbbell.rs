//! The network of a scenario: namespaces for senders, router and receiver, joined by veth pairs.
//!
//! ```text
//! sender 0 ──┐                                    [path: delay and loss]
//! sender 1 ──┼── router ── htb + the queue under test ── (path) ── receiver
//! sender …───┘                                              netem: the way back
//! ```

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use dualq_netlink::{Handle, Netlink, Place, Queue, Route, VethEnd};
use dualq_qdisc::kinds::{htb, netem};
use dualq_qdisc::{Spec, SplitMix64};
use dualq_scenario::{Loss, Scenario};
use dualq_units::Rate;

use crate::LabError;
use crate::namespace::Namespace;

/// Where the receiver is.
pub(crate) const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
/// Room for what is on its way over any path that people ask for.
const PATH_LIMIT: u32 = 1_000_000;
/// The windows that the recorded runs had: enough for 10 Gbit/s over 50 ms.
const BUFFER_BYTES: u32 = 64 << 20;
/// The class of the shaper, and the queue under test inside it.
const SHAPER: Handle = Handle::qdisc(1);
const CLASS: Handle = Handle::class(1, 1);
const LEAF: Handle = Handle::qdisc(10);

/// The network, from the first namespace to the last queue.
pub(crate) struct Dumbbell {
    /// One for each group of flows, then one for each probe.
    pub(crate) senders: Vec<Namespace>,
    pub(crate) router: Namespace,
    pub(crate) receiver: Namespace,
    /// The hop that delays and loses, if there is one.
    pub(crate) path: Option<Namespace>,
    /// Asks the router's kernel side.
    netlink: Netlink,
    /// The router's interface towards the receiver.
    pub(crate) bottleneck: u32,
}

/// One end of a cable, with the address that the other end sends to.
struct End<'a> {
    namespace: &'a Namespace,
    name: String,
    address: Ipv4Addr,
}

impl Dumbbell {
    /// Builds it in namespaces of its own. All that is random in it follows from `seed`.
    pub(crate) fn build(scenario: &Scenario, seed: u64) -> Result<Self, LabError> {
        let link = &scenario.link;
        let (router, receiver) = (Namespace::create()?, Namespace::create()?);
        for namespace in [&router, &receiver] {
            tune(namespace, "1")?;
        }
        sysctl(&router, "net/ipv4/ip_forward", "1")?;

        let mut senders = Vec::new();
        let ecn = scenario.flow.iter().map(|group| group.ecn);
        for (number, ecn) in ecn.chain(scenario.probe.iter().map(|probe| probe.ecn)).enumerate() {
            let sender = Namespace::create()?;
            // 2, Linux's default: who is asked says yes.
            tune(&sender, if ecn { "1" } else { "2" })?;
            let octet = number as u8;
            let inner = End {
                namespace: &sender,
                name: "eth0".to_owned(),
                address: Ipv4Addr::new(10, 1, octet, 1),
            };
            let outer = End {
                namespace: &router,
                name: format!("sender{number}"),
                address: Ipv4Addr::new(10, 1, octet, 254),
            };
            connect(&inner, &outer, link.mtu, number as u8)?;
            default_route(&inner, outer.address)?;
            let extra_rtt = scenario.flow.get(number).map(|group| group.extra_rtt);
            if let Some(extra_rtt) = extra_rtt.filter(|extra| !extra.is_zero()) {
                delay(&router, &outer.name, extra_rtt, Loss::NONE, seed)?;
            }
            let mut netlink = netlink(&sender)?;
            if !scenario.sender.gso {
                netlink.set_segmentation_offload("eth0", false)?;
            }
            let index = netlink.link("eth0")?.index;
            let place = Place { link: index, parent: Handle::ROOT, handle: SHAPER };
            add_qdisc(
                &mut netlink,
                &place,
                scenario.sender.qdisc.spec(),
                seed.wrapping_add(number as u64),
            )?;
            senders.push(sender);
        }

        // What loses and delays on the way there is behind the queue, on a hop of its own.
        let needs_path = !link.loss.is_none() || !link.forward.is_zero();
        let path = needs_path.then(Namespace::create).transpose()?;
        let last = End { namespace: &receiver, name: "eth0".to_owned(), address: RECEIVER };
        let first = End {
            namespace: &router,
            name: "bottleneck".to_owned(),
            address: Ipv4Addr::new(10, 2, 0, 254),
        };
        match &path {
            None => {
                connect(&first, &last, link.mtu, u8::MAX)?;
                default_route(&last, first.address)?;
            }
            Some(path) => {
                tune(path, "1")?;
                sysctl(path, "net/ipv4/ip_forward", "1")?;
                let [near, far] = [("near", 3, 1), ("far", 2, 253)].map(|(name, net, host)| End {
                    namespace: path,
                    name: name.to_owned(),
                    address: Ipv4Addr::new(10, net, 0, host),
                });
                let first = End { address: Ipv4Addr::new(10, 3, 0, 254), ..first };
                connect(&first, &near, link.mtu, u8::MAX)?;
                connect(&far, &last, link.mtu, u8::MAX - 1)?;
                default_route(&last, far.address)?;
                default_route(&near, first.address)?;
                self::netlink(&router)?
                    .add_route(&Route::via(([10, 2, 0, 0], 24), near.address))?;
                delay(path, "far", link.forward, link.loss, seed)?;
            }
        }
        if link.rtt > link.forward {
            delay(&receiver, "eth0", link.rtt - link.forward, Loss::NONE, seed)?;
        }

        let mut netlink = self::netlink(&router)?;
        let bottleneck = netlink.link("bottleneck")?.index;
        let place = Place { link: bottleneck, parent: Handle::ROOT, handle: SHAPER };
        add_qdisc(&mut netlink, &place, &shaper(link.rate), seed)?;
        let place = Place { link: bottleneck, parent: CLASS, handle: LEAF };
        add_qdisc(&mut netlink, &place, link.qdisc.spec(), seed)?;
        if link.tunnel {
            one_flow(&mut netlink, &place, link.qdisc.spec())?;
        }
        Ok(Self { senders, router, receiver, path, netlink, bottleneck })
    }

    /// Gives the bottleneck another rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) -> Result<(), LabError> {
        let place = Place { link: self.bottleneck, parent: Handle::ROOT, handle: SHAPER };
        Ok(self.netlink.change_qdisc(&place, &shaper(rate))?)
    }

    /// The queue under test, as it is now.
    pub(crate) fn queue(&mut self) -> Result<Queue, LabError> {
        let queues = self.netlink.qdiscs(self.bottleneck)?;
        let leaf = queues.into_iter().find(|queue| queue.parent == CLASS);
        leaf.ok_or_else(|| LabError::Scenario("the bottleneck has lost its queue".to_owned()))
    }
}

fn shaper(rate: Rate) -> Spec {
    Spec::Htb(htb::Options { rate, ceil: None, burst: None, cburst: None, leaf: None })
}

fn netlink(namespace: &Namespace) -> Result<Netlink, LabError> {
    Ok(namespace.inside(Netlink::open)??)
}

/// Puts a veth pair between two namespaces. Neighbours are told to each other: a question that waits behind the queue or
/// on a long way back would be a part of no scenario.
fn connect(one: &End<'_>, other: &End<'_>, mtu: u32, number: u8) -> Result<(), LabError> {
    let [mac, other_mac] = [1, 2].map(|side| [0x02, 0, 0, 0, number, side]);
    Netlink::open()?.add_veth(
        &VethEnd { name: &one.name, mac, mtu, namespace: Some(one.namespace.as_fd()) },
        &VethEnd {
            name: &other.name,
            mac: other_mac,
            mtu,
            namespace: Some(other.namespace.as_fd()),
        },
    )?;
    for (near, far, far_mac) in [(one, other, other_mac), (other, one, mac)] {
        let mut netlink = netlink(near.namespace)?;
        let index = netlink.link(&near.name)?.index;
        netlink.add_address(index, near.address, 24)?;
        netlink.set_up(index)?;
        netlink.add_neighbour(index, far.address, far_mac)?;
    }
    Ok(())
}

fn default_route(from: &End<'_>, via: Ipv4Addr) -> Result<(), LabError> {
    Ok(netlink(from.namespace)?.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), via))?)
}

/// Netem's own generator starts right at what it is told (Linux: `prandom_seed_state`), and small seeds give it small numbers at
/// first: all runs with loss then began with the same packets lost.
const fn scattered(seed: u64) -> u64 {
    SplitMix64::new(seed).next_u64()
}

/// Puts a queue discipline at a place. If it has dice that can be told what to begin with, that follows from `seed`.
fn add_qdisc(netlink: &mut Netlink, place: &Place, spec: &Spec, seed: u64) -> Result<(), LabError> {
    let mut spec = spec.clone();
    if let Spec::Netem(options) = &mut spec {
        options.seed.get_or_insert(scattered(seed));
    }
    Ok(netlink.add_qdisc(place, &spec)?)
}

/// Makes a queue take all packets for one flow, as if they were inside one tunnel.
fn one_flow(netlink: &mut Netlink, place: &Place, spec: &Spec) -> Result<(), LabError> {
    if let Some(kind) = tells_flows_apart(spec) {
        let message = format!("{kind} cannot be made to see one flow (link.tunnel)");
        return Err(LabError::Scenario(message));
    }
    // Others have one queue, or one for each class of packets, whatever flows there are.
    match spec.levels().last() {
        Some(Spec::FqCodel(_) | Spec::Cake(_)) => Ok(netlink.one_flow(place, spec)?),
        _ => Ok(()),
    }
}

/// The discipline that tells flows apart in a way that no filter changes, if there is one: `link.tunnel` cannot be had with it on
/// real Linux.
#[must_use]
pub fn tells_flows_apart(spec: &Spec) -> Option<&'static str> {
    spec.levels().find(|spec| matches!(spec, Spec::Fq(_))).map(Spec::kind)
}

fn delay(
    namespace: &Namespace,
    name: &str,
    delay: Duration,
    loss: Loss,
    seed: u64,
) -> Result<(), LabError> {
    let mut netlink = netlink(namespace)?;
    let place = Place { link: netlink.link(name)?.index, parent: Handle::ROOT, handle: SHAPER };
    let path = netem::Options {
        limit: Some(PATH_LIMIT),
        delay: Some(delay),
        loss: Some(loss.as_threshold()),
        ..netem::Options::default()
    };
    add_qdisc(&mut netlink, &place, &Spec::Netem(path), seed)
}

fn tune(namespace: &Namespace, ecn: &str) -> Result<(), LabError> {
    sysctl(namespace, "net/ipv4/tcp_ecn", ecn)?;
    sysctl(namespace, "net/ipv4/tcp_rmem", &format!("4096 131072 {BUFFER_BYTES}"))?;
    sysctl(namespace, "net/ipv4/tcp_wmem", &format!("4096 16384 {BUFFER_BYTES}"))?;
    // What one connection learnt of the path must not speed up the next.
    sysctl(namespace, "net/ipv4/tcp_no_metrics_save", "1")
}

fn sysctl(namespace: &Namespace, key: &str, value: &str) -> Result<(), LabError> {
    namespace
        .inside(|| fs::write(format!("/proc/sys/{key}"), value))?
        .map_err(|error| LabError::system(format!("{} = {value}", key.replace('/', ".")), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_seeds_are_no_small_numbers() {
        assert_eq!(scattered(0), 0xe220_a839_7b1d_cdaf);
        assert_ne!(scattered(1) >> 32, scattered(2) >> 32);
    }
}
