//! The network of a scenario: namespaces for hosts and routers, joined by veth pairs.
//!
//! ```text
//! sender 0 ──┐                                    [path: delay and loss]
//! sender 1 ──┼── router ── htb + the queue under test ── (path) ── receiver
//! sender …───┘                                              netem: the way back
//! ```
//!
//! If packets pass more than that, each direction has a [way](crate::way) of its own between two routers:
//!
//! ```text
//! sender 0 ──┐         ┌── before ── queue ── delay and loss ── behind ──→┐       ┌── receiver
//! sender …───┼─ router ┤                                                  ├─ far ─┤
//! receiver 2 ┘         └←── behind ── delay and loss ── queue ── before ──┘       └── sender …: upwards
//! ```

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use dualq_namespace::Namespace;
use dualq_netlink::{Handle, Netlink, Place, Queue, Route, VethEnd};
use dualq_qdisc::kinds::{htb, netem};
use dualq_qdisc::{Spec, SplitMix64};
use dualq_scenario::{Direction, EcnOption, EcnRequest, Loss, Scenario, UpLink};
use dualq_units::Rate;

use crate::LabError;
use crate::bridge::{self, Deed};
use crate::middle::Middle;
use crate::way::Way;

/// The receiver of what goes down, and that of what goes up.
pub(crate) const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
pub(crate) const NEAR_RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 1);
/// Where hosts are: those near the router, and those at the other end. Each has a network of its own among 256.
pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 0);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 0);
/// Room for what is on its way over any path that people ask for.
pub(crate) const PATH_LIMIT: u32 = 1_000_000;
/// The windows that the recorded runs had: enough for 10 Gbit/s over 50 ms.
const BUFFER_BYTES: u32 = 64 << 20;
/// TCP Fast Open as client and as server, for every socket that listens (Documentation/networking/ip-sysctl.rst: 1, 2 and 0x400).
const FAST_OPEN: &str = "1027";
/// The class of the shaper, and the queue under test inside it.
pub(crate) const SHAPER: Handle = Handle::qdisc(1);
const CLASS: Handle = Handle::class(1, 1);
const LEAF: Handle = Handle::qdisc(10);

/// What makes dice of other places out of a seed, beside those of senders: with the same dice, what one netem spoils another would lose.
const OF_PATH: u64 = 1 << 32;
const OF_BOTTLENECK: u64 = 2 << 32;

/// The network, from the first namespace to the last queue.
pub(crate) struct Network {
    /// One for each group of flows, then one for each probe, then one for each group of UDP streams, on either side.
    pub(crate) senders: Vec<Namespace>,
    /// The router of those who send downwards.
    pub(crate) router: Namespace,
    pub(crate) receiver: Namespace,
    /// Who receives what goes up, if anything does.
    pub(crate) near_receiver: Option<Namespace>,
    /// All others.
    pub(crate) hops: Vec<Hop>,
    /// Where devices lose packets on purpose, and as what they count them.
    pub(crate) holes: Vec<(String, String)>,
    /// Whether the receiver's own interface delays the way back.
    pub(crate) receiver_delays: bool,
    /// Whether the queue under test is at `router`, rather than at a router behind it.
    pub(crate) queue_is_at_router: bool,
    /// Whether TCP paces itself, as the senders' interfaces have no fq that would do so.
    pub(crate) paces_itself: bool,
    /// The queue under test, and that of the other direction, if it has one.
    pub(crate) middle: Middle,
}

/// A router on the way.
pub(crate) struct Hop {
    pub(crate) name: String,
    pub(crate) namespace: Namespace,
}

/// A shaper with a queue, and the router where it is.
pub(crate) struct Bottleneck {
    pub(crate) namespace: Namespace,
    netlink: Netlink,
    link: u32,
}

/// One end of a cable, with the address that the other end sends to.
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// The longest IP packet that it takes, in bytes.
    pub(crate) mtu: u32,
}

/// A host that sends, as far as the network is concerned.
pub(crate) struct Host {
    pub(crate) direction: Direction,
    ecn: EcnRequest,
    ecn_option: EcnOption,
    ect1: bool,
    fast_open: bool,
    pub(crate) extra_rtt: Duration,
}

impl Host {
    /// All of them, in the order of [`Network::senders`].
    pub(crate) fn all(scenario: &Scenario) -> Vec<Self> {
        let flows = scenario.flow.iter().map(|group| Self {
            direction: group.direction,
            ecn: group.ecn,
            ecn_option: group.ecn_option,
            ect1: group.ect1,
            fast_open: group.fast_open,
            extra_rtt: group.extra_rtt,
        });
        let of = |direction, ecn| Self {
            direction,
            ecn,
            ecn_option: EcnOption::Full,
            ect1: false,
            fast_open: false,
            extra_rtt: Duration::ZERO,
        };
        let probes = scenario.probe.iter().map(|probe| of(Direction::Down, probe.ecn));
        let udp = scenario.udp.iter().map(|group| of(group.direction, EcnRequest::Off));
        flows.chain(probes).chain(udp).collect()
    }

    /// The address of the one of that number.
    pub(crate) const fn address(number: usize, direction: Direction) -> Ipv4Addr {
        match direction {
            Direction::Down => Ipv4Addr::new(10, 1, number as u8, 1),
            Direction::Up => Ipv4Addr::new(10, 2, number as u8 + 1, 1),
        }
    }

    /// Makes it, and connects it to the router `edge` of that side; also another router, if its packets are marked on the way there.
    pub(crate) fn join(
        &self,
        number: usize,
        direction: Direction,
        edge: &Namespace,
        scenario: &Scenario,
    ) -> Result<(Namespace, Option<Hop>), LabError> {
        let sender = Namespace::create()?;
        tune(&sender, asks(self.ecn))?;
        set_ecn_option(&sender, self.ecn_option)?;
        if self.fast_open {
            sysctl(&sender, "net/ipv4/tcp_fastopen", FAST_OPEN)?;
        }
        let mtu = scenario.link.mtu;
        let name = sender_name(number);
        let address = Self::address(number, direction).octets();
        let marker = if self.ect1 {
            let namespace = join_by_marker(&sender, edge, &name, address, mtu)?;
            Some(Hop { name: format!("marker of sender {number}"), namespace })
        } else {
            join(&sender, edge, &name, address, mtu, number as u8)?;
            None
        };
        if !scenario.sender.gso {
            netlink(&sender)?.set_segmentation_offload("eth0", false)?;
        }
        Ok((sender, marker))
    }

    /// Where the queue discipline of a host's interface is.
    pub(crate) fn interface(host: &Namespace) -> Result<(Netlink, Place), LabError> {
        let mut netlink = netlink(host)?;
        let link = netlink.link("eth0")?.index;
        Ok((netlink, Place { link, parent: Handle::ROOT, handle: SHAPER }))
    }
}

/// What the device to a sender is called.
fn sender_name(number: usize) -> String {
    format!("sender{number}")
}

impl Network {
    /// Builds it in namespaces of its own. All that is random in it follows from `seed`.
    pub(crate) fn build(scenario: &Scenario, seed: u64) -> Result<Self, LabError> {
        let hosts = Host::all(scenario);
        let (router, receiver) = (Namespace::create()?, Namespace::create()?);
        tune(&router, "1")?;
        tune_receiver(&receiver, scenario)?;
        sysctl(&router, "net/ipv4/ip_forward", "1")?;
        let far = has_far_router(scenario, &hosts).then(new_router).transpose()?;

        let (mut senders, mut hops) = (Vec::new(), Vec::new());
        for (number, host) in hosts.iter().enumerate() {
            let edge = match (&far, host.direction) {
                (Some(far), Direction::Up) => far,
                _ => &router,
            };
            let direction = far.as_ref().map_or(Direction::Down, |_| host.direction);
            let (sender, marker) = host.join(number, direction, edge, scenario)?;
            if !host.extra_rtt.is_zero() {
                delay(edge, &sender_name(number), host.extra_rtt, Loss::NONE, seed)?;
            }
            let (mut netlink, place) = Host::interface(&sender)?;
            let seed = seed.wrapping_add(number as u64);
            add_qdisc(&mut netlink, &place, scenario.sender.qdisc.spec(), seed)?;
            hops.extend(marker);
            senders.push(sender);
        }
        match far {
            None => Self::with_queue_only(scenario, seed, (senders, hops, router, receiver)),
            Some(far) => Self::with_ways(scenario, seed, (senders, hops, router, receiver, far)),
        }
    }

    /// The rest of a network whose way back only delays.
    fn with_queue_only(
        scenario: &Scenario,
        seed: u64,
        (senders, mut hops, router, receiver): (Vec<Namespace>, Vec<Hop>, Namespace, Namespace),
    ) -> Result<Self, LabError> {
        let link = &scenario.link;
        let mtu = link.mtu;
        // What loses and delays on the way there is behind the queue, on a hop of its own.
        let needs_path = !link.loss.is_none() || !link.forward.is_zero();
        let path = needs_path.then(Namespace::create).transpose()?;
        let last = End { namespace: &receiver, name: "eth0".to_owned(), address: RECEIVER, mtu };
        let first = End {
            namespace: &router,
            name: "bottleneck".to_owned(),
            address: Ipv4Addr::new(10, 2, 0, 254),
            mtu,
        };
        match &path {
            None => {
                connect(&first, &last, u8::MAX)?;
                default_route(&last, first.address)?;
            }
            Some(path) => {
                tune(path, "1")?;
                sysctl(path, "net/ipv4/ip_forward", "1")?;
                let [near, far] = [("near", 3, 1), ("far", 2, 253)].map(|(name, net, host)| End {
                    namespace: path,
                    name: name.to_owned(),
                    address: Ipv4Addr::new(10, net, 0, host),
                    mtu,
                });
                let first = End { address: Ipv4Addr::new(10, 3, 0, 254), ..first };
                connect(&first, &near, u8::MAX)?;
                connect(&far, &last, u8::MAX - 1)?;
                default_route(&last, far.address)?;
                default_route(&near, first.address)?;
                self::netlink(&router)?
                    .add_route(&Route::via(([10, 2, 0, 0], 24), near.address))?;
                delay(path, "far", link.forward, link.loss, seed ^ OF_PATH)?;
            }
        }
        let receiver_delays = link.rtt > link.forward;
        if receiver_delays {
            delay(&receiver, "eth0", link.rtt - link.forward, Loss::NONE, seed)?;
        }
        let queue = (link.rate, link.qdisc.spec(), link.tunnel);
        let bottleneck = Bottleneck::open(&router, "bottleneck", queue, seed ^ OF_BOTTLENECK)?;
        hops.extend(path.map(|namespace| Hop { name: "path".to_owned(), namespace }));
        Ok(Self {
            senders,
            router,
            receiver,
            near_receiver: None,
            hops,
            holes: Vec::new(),
            receiver_delays,
            queue_is_at_router: true,
            paces_itself: false,
            middle: Middle::Kernel { down: bottleneck, up: None, others: Vec::new() },
        })
    }

    /// The rest of a network with a way of its own for each direction.
    fn with_ways(
        scenario: &Scenario,
        seed: u64,
        (senders, mut hops, router, receiver, far): (
            Vec<Namespace>,
            Vec<Hop>,
            Namespace,
            Namespace,
            Namespace,
        ),
    ) -> Result<Self, LabError> {
        let mtu = scenario.link.mtu;
        join(&receiver, &far, "receiver", RECEIVER.octets(), mtu, u8::MAX)?;
        let near_receiver = Namespace::create()?;
        tune_receiver(&near_receiver, scenario)?;
        join(&near_receiver, &router, "receiver", NEAR_RECEIVER.octets(), mtu, u8::MAX)?;
        let down = Way::down(scenario).build(&router, &far, seed)?;
        let up = Way::up(scenario).build(&far, &router, seed)?;
        let no_queue = || LabError::Scenario("the way down has no queue".to_owned());
        let bottleneck = down.bottleneck.ok_or_else(no_queue)?;
        hops.push(Hop { name: "far router".to_owned(), namespace: far });
        hops.extend(down.hops.into_iter().chain(up.hops));
        let holes = down.holes.into_iter().chain(up.holes).collect();
        Ok(Self {
            senders,
            router,
            receiver,
            near_receiver: Some(near_receiver),
            hops,
            holes,
            receiver_delays: false,
            queue_is_at_router: scenario.link.before.is_empty(),
            paces_itself: false,
            middle: Middle::Kernel {
                down: bottleneck,
                up: up.bottleneck,
                others: down.others.into_iter().chain(up.others).collect(),
            },
        })
    }

    /// Who receives what goes in that direction, and under which address.
    pub(crate) fn receiver(&self, direction: Direction) -> (&Namespace, Ipv4Addr) {
        match (direction, &self.near_receiver) {
            (Direction::Up, Some(near)) => (near, NEAR_RECEIVER),
            _ => (&self.receiver, RECEIVER),
        }
    }
}

/// Whether packets pass more than the queue under test, loss and delays.
fn has_far_router(scenario: &Scenario, hosts: &[Host]) -> bool {
    let link = &scenario.link;
    !(link.before.is_empty() && link.behind.is_empty())
        || link.up.as_ref().is_some_and(|up| *up != UpLink::default())
        || hosts.iter().any(|host| host.direction == Direction::Up)
}

/// A namespace that forwards packets.
pub(crate) fn new_router() -> Result<Namespace, LabError> {
    let router = Namespace::create()?;
    tune(&router, "1")?;
    sysctl(&router, "net/ipv4/ip_forward", "1")?;
    Ok(router)
}

/// Connects a host to its router, where the device gets that name.
fn join(
    host: &Namespace,
    router: &Namespace,
    name: &str,
    address: [u8; 4],
    mtu: u32,
    number: u8,
) -> Result<(), LabError> {
    let [a, b, c, _] = address;
    let inner =
        End { namespace: host, name: "eth0".to_owned(), address: Ipv4Addr::from(address), mtu };
    let outer =
        End { namespace: router, name: name.to_owned(), address: Ipv4Addr::new(a, b, c, 254), mtu };
    connect(&inner, &outer, number)?;
    default_route(&inner, outer.address)
}

/// Connects a host to its router by another one that makes ECT(1) of ECT(0), and is returned.
fn join_by_marker(
    host: &Namespace,
    router: &Namespace,
    name: &str,
    address: [u8; 4],
    mtu: u32,
) -> Result<Namespace, LabError> {
    let marker = new_router()?;
    let [_, net, octet, _] = address;
    join(host, &marker, "in", address, mtu, octet)?;
    let near = End {
        namespace: &marker,
        name: "out".to_owned(),
        address: Ipv4Addr::new(10, net + 4, octet, 1),
        mtu,
    };
    let far = End {
        namespace: router,
        name: name.to_owned(),
        address: Ipv4Addr::new(10, net + 4, octet, 2),
        mtu,
    };
    connect(&near, &far, octet)?;
    default_route(&near, far.address)?;
    let back = Route::via(([10, net, octet, 0], 24), near.address);
    netlink(router)?.add_route(&back)?;
    bridge::start(&marker, ("in", "out"), ethernet_address(octet, 2), Deed::Ect1)?;
    Ok(marker)
}

impl Bottleneck {
    /// Puts a shaper with a queue, which may have to take all packets for one flow, at a device.
    pub(crate) fn open(
        namespace: &Namespace,
        device: &str,
        (rate, qdisc, tunnel): (Rate, &Spec, bool),
        seed: u64,
    ) -> Result<Self, LabError> {
        let mut netlink = self::netlink(namespace)?;
        let link = netlink.link(device)?.index;
        let place = Place { link, parent: Handle::ROOT, handle: SHAPER };
        add_qdisc(&mut netlink, &place, &shaper(rate), seed)?;
        let place = Place { link, parent: CLASS, handle: LEAF };
        add_qdisc(&mut netlink, &place, qdisc, seed)?;
        if tunnel {
            one_flow(&mut netlink, &place, qdisc)?;
        }
        Ok(Self { namespace: namespace.try_clone()?, netlink, link })
    }

    /// Gives it another rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) -> Result<(), LabError> {
        let place = Place { link: self.link, parent: Handle::ROOT, handle: SHAPER };
        Ok(self.netlink.change_qdisc(&place, &shaper(rate))?)
    }

    /// The queue, as it is now.
    pub(crate) fn queue(&mut self) -> Result<Queue, LabError> {
        let queues = self.netlink.qdiscs(self.link)?;
        let leaf = queues.into_iter().find(|queue| queue.parent == CLASS);
        leaf.ok_or_else(|| LabError::Scenario("the bottleneck has lost its queue".to_owned()))
    }
}

fn shaper(rate: Rate) -> Spec {
    Spec::Htb(htb::Options { rate, ceil: None, burst: None, cburst: None, leaf: None })
}

pub(crate) fn netlink(namespace: &Namespace) -> Result<Netlink, LabError> {
    Ok(namespace.inside(Netlink::open)??)
}

/// The address of one of the ends, 1 or 2, of a cable.
pub(crate) const fn ethernet_address(cable: u8, end: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, cable, end]
}

/// Puts a veth pair between two namespaces. Neighbours are told to each other: a question that waits behind the queue or
/// on a long way back would be a part of no scenario.
pub(crate) fn connect(one: &End<'_>, other: &End<'_>, number: u8) -> Result<(), LabError> {
    let [mac, other_mac] = [1, 2].map(|side| ethernet_address(number, side));
    Netlink::open()?.add_veth(
        &VethEnd { name: &one.name, mac, mtu: one.mtu, namespace: Some(one.namespace.as_fd()) },
        &VethEnd {
            name: &other.name,
            mac: other_mac,
            mtu: other.mtu,
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

pub(crate) fn default_route(from: &End<'_>, via: Ipv4Addr) -> Result<(), LabError> {
    Ok(netlink(from.namespace)?.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), via))?)
}

/// Netem's own generator starts right at what it is told (Linux: `prandom_seed_state`), and small seeds give it small numbers at
/// first: all runs with loss then began with the same packets lost.
pub(crate) const fn scattered(seed: u64) -> u64 {
    SplitMix64::new(seed).next_u64()
}

/// Puts a queue discipline at a place. If it has dice that can be told what to begin with, that follows from `seed`.
pub(crate) fn add_qdisc(
    netlink: &mut Netlink,
    place: &Place,
    spec: &Spec,
    seed: u64,
) -> Result<(), LabError> {
    let mut spec = spec.clone();
    if let Spec::Netem(options) = &mut spec {
        options.seed.get_or_insert(scattered(seed));
    }
    Ok(netlink.add_qdisc(place, &spec)?)
}

/// Makes a queue take all packets for one flow, as if they were inside one tunnel.
fn one_flow(netlink: &mut Netlink, place: &Place, spec: &Spec) -> Result<(), LabError> {
    // Others have one queue, or one for each class of packets, whatever flows there are.
    match spec.levels().last() {
        Some(Spec::FqCodel(_) | Spec::Cake(_)) => Ok(netlink.one_flow(place, spec)?),
        _ => Ok(()),
    }
}

/// The discipline that tells flows apart in a way that no filter changes, if there is one: `link.tunnel` cannot be had with it on
/// real Linux.
pub(crate) fn tells_flows_apart(spec: &Spec) -> Option<&'static str> {
    spec.levels().find(|spec| matches!(spec, Spec::Fq(_))).map(Spec::kind)
}

fn delay(
    namespace: &Namespace,
    name: &str,
    delay: Duration,
    loss: Loss,
    seed: u64,
) -> Result<(), LabError> {
    let options = netem::Options {
        delay: Some(delay),
        loss: Some(netem::Loss::Random(netem::Chance::independent(loss.as_threshold()))),
        ..netem::Options::default()
    };
    add_netem(namespace, name, options, seed)
}

/// Puts a netem, which has room for all that is on its way, at a device.
pub(crate) fn add_netem(
    namespace: &Namespace,
    name: &str,
    options: netem::Options,
    seed: u64,
) -> Result<(), LabError> {
    let mut netlink = netlink(namespace)?;
    let place = Place { link: netlink.link(name)?.index, parent: Handle::ROOT, handle: SHAPER };
    let options = netem::Options { limit: Some(PATH_LIMIT), ..options };
    add_qdisc(&mut netlink, &place, &Spec::Netem(options), seed)
}

/// The `tcp_ecn` of who asks for that: 2, Linux's default, asks for nothing, and says yes if asked for classic ECN.
pub(crate) const fn asks(ecn: EcnRequest) -> &'static str {
    match ecn {
        EcnRequest::Off => "2",
        EcnRequest::Classic => "1",
        EcnRequest::Accurate => ACCURATE,
    }
}

/// The `tcp_ecn` of who grants Accurate ECN, which older kernels do not take.
const ACCURATE: &str = "3";

/// The `tcp_ecn` of who receives.
fn grants(scenario: &Scenario) -> &'static str {
    match scenario.granted_ecn() {
        EcnRequest::Off => "0",
        EcnRequest::Classic => "1",
        EcnRequest::Accurate => "3",
    }
}

/// Sets up who receives.
pub(crate) fn tune_receiver(namespace: &Namespace, scenario: &Scenario) -> Result<(), LabError> {
    tune(namespace, grants(scenario))?;
    if scenario.flow.iter().any(|group| group.fast_open) {
        sysctl(namespace, "net/ipv4/tcp_fastopen", FAST_OPEN)?;
    }
    set_ecn_option(namespace, scenario.receiver.ecn_option)
}

/// Older kernels lack the setting, and have no use for it either.
fn set_ecn_option(namespace: &Namespace, option: EcnOption) -> Result<(), LabError> {
    match option {
        EcnOption::Disabled => sysctl(namespace, "net/ipv4/tcp_ecn_option", "0"),
        EcnOption::Minimum => sysctl(namespace, "net/ipv4/tcp_ecn_option", "1"),
        EcnOption::Full => Ok(()),
    }
}

pub(crate) fn tune(namespace: &Namespace, ecn: &str) -> Result<(), LabError> {
    sysctl(namespace, "net/ipv4/tcp_ecn", ecn).map_err(|error| match ecn {
        ACCURATE => LabError::Scenario(
            "this kernel does not have Accurate ECN (net.ipv4.tcp_ecn = 3)".to_owned(),
        ),
        _ => error,
    })?;
    sysctl(namespace, "net/ipv4/tcp_rmem", &format!("4096 131072 {BUFFER_BYTES}"))?;
    sysctl(namespace, "net/ipv4/tcp_wmem", &format!("4096 16384 {BUFFER_BYTES}"))?;
    // What one connection learnt of the path must not speed up the next.
    sysctl(namespace, "net/ipv4/tcp_no_metrics_save", "1")
}

pub(crate) fn sysctl(namespace: &Namespace, key: &str, value: &str) -> Result<(), LabError> {
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
