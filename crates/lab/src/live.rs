//! The network of a scenario around dualq's own link, in real time:
//!
//! ```text
//! sender 0 ──┐                                                     ┌── sender …: upwards
//! sender …───┴─ router: receiver of what goes up ── link ── receiver of what goes down
//! ```
//!
//! What packets pass between the two in the middle are the elements of the model, run by the clock; nothing of it is the kernel's. So it
//! needs no queue discipline from this kernel, and no netem.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualq_link::{
    Change, DirectionSnapshot, Link, Options, Packet, Running, Seen, Tun, TunOptions, Watch,
};
use dualq_namespace::Namespace;
use dualq_netlink::{Handle, NetlinkError, Queue, Route};
use dualq_qdisc::{Packet as _, Spec};
use dualq_scenario::{Direction, Limit, Scenario};
use dualq_units::{Instant, Rate};

use crate::LabError;
use crate::experiment::model_only;
use crate::middle::Middle;
use crate::network::{
    FAR, Host, NEAR, NEAR_RECEIVER, Network, RECEIVER, add_qdisc, netlink, sysctl, tune_receiver,
};
use crate::taps::Passed;
use crate::udp;

/// The congestion controls that are loaded.
const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The device of the link at both ends.
const DEVICE: &str = "link";
/// The router's address on the link, beside that of the receiver of what goes up.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 254);
/// Figures are not valid if the link was later than this share of the mean round trip, at the 99th percentile of both directions together.
const MOST_LATE: f64 = 0.1;

/// The link, and what it told.
pub(crate) struct LiveLink {
    running: Running,
    /// What has left the queues since somebody looked.
    seen: [Arc<Departures>; 2],
}

#[derive(Default)]
struct Departures(Mutex<Vec<Passed>>);

/// Sees packets leave a queue.
struct Tap(Arc<Departures>);

impl Watch for Tap {
    fn packet(&mut self, at: Instant, seen: Seen, packet: &Packet) {
        if let Seen::Sent { sojourn, .. } = seen {
            let passed =
                Passed { left: Duration::from_nanos(at.as_nanos()), sojourn, ecn: packet.ecn() };
            self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(passed);
        }
    }
}

/// Says why this machine cannot run a scenario live.
#[must_use]
pub fn refusal(scenario: &Scenario) -> Option<String> {
    let known = std::fs::read_to_string(CONTROLS).unwrap_or_default();
    let flows = scenario.flow.iter().map(|group| group.cc.name());
    let mut asked = flows.chain(scenario.probe.iter().map(|probe| probe.cc.name()));
    let lacking = asked.find(|asked| !known.split_whitespace().any(|known| known == *asked));
    if let Some(lacking) = lacking {
        let has = known.split_whitespace().collect::<Vec<_>>().join(", ");
        return Some(format!(
            "this kernel does not have the congestion control {lacking}; it has {has} (net.ipv4.tcp_available_congestion_control)"
        ));
    }
    model_only(scenario).or_else(|| udp::refusal(scenario))
}

/// Builds it in namespaces of its own. All that is random in it follows from `seed`.
pub(crate) fn build(scenario: &Scenario, seed: u64) -> Result<Network, LabError> {
    let (router, receiver) = (Namespace::create()?, Namespace::create()?);
    for namespace in [&router, &receiver] {
        tune_receiver(namespace, scenario)?;
        sysctl(namespace, "net/ipv4/ip_forward", "1")?;
    }
    let hosts = Host::all(scenario);
    let (mut senders, mut hops) = (Vec::new(), Vec::new());
    for (number, host) in hosts.iter().enumerate() {
        let edge = if host.direction.is_down() { &router } else { &receiver };
        let (sender, marker) = host.join(number, host.direction, edge, scenario)?;
        let (mut netlink, place) = Host::interface(&sender)?;
        let seed = seed.wrapping_add(number as u64);
        match add_qdisc(&mut netlink, &place, scenario.sender.qdisc.spec(), seed) {
            // Without fq, TCP paces itself: see `Network::paces_itself`.
            Err(LabError::Netlink(NetlinkError::NoSuchKind { .. })) if is_fq(scenario) => {}
            added => added?,
        }
        hops.extend(marker);
        senders.push(sender);
    }
    let ends = [
        (&router, vec![(ROUTER, 24), (NEAR_RECEIVER, 32)], FAR),
        (&receiver, vec![(RECEIVER, 24)], NEAR),
    ];
    let [near, far] =
        ends.map(|(namespace, addresses, to)| device(namespace, scenario.link.mtu, &addresses, to));
    let rest = hosts
        .iter()
        .enumerate()
        .map(|(number, host)| (Host::address(number, host.direction).into(), host.extra_rtt));
    let extra_delays: Vec<(IpAddr, Duration)> =
        rest.filter(|(_, extra)| !extra.is_zero()).collect();
    let options = Options { seed, split: false, ..Options::default() };
    let mut passages = [Direction::Down, Direction::Up].map(|way| scenario.link.passage(way));
    for passage in &mut passages {
        // The experiment changes rates, on its own time.
        passage.step.clear();
    }
    passages[1].extra_delays = extra_delays;
    let seen: [Arc<Departures>; 2] = Default::default();
    let mut watch = |direction: Direction| -> Box<dyn Watch> {
        Box::new(Tap(Arc::clone(&seen[usize::from(!direction.is_down())])))
    };
    // Downwards is towards the link's near end, which is the receiver's here.
    let running =
        Link::start([&passages[0], &passages[1]], far?, near?, &options, Some(&mut watch))?;
    Ok(Network {
        senders,
        near_receiver: Some(router.try_clone()?),
        router,
        receiver,
        hops,
        holes: Vec::new(),
        receiver_delays: false,
        queue_is_at_router: false,
        paces_itself: is_fq(scenario),
        middle: Middle::Link(LiveLink { running, seen }),
    })
}

fn is_fq(scenario: &Scenario) -> bool {
    matches!(scenario.sender.qdisc.spec(), Spec::Fq(_))
}

/// The link's device at one end, which leads to all that is at the other.
fn device(
    namespace: &Namespace,
    mtu: u32,
    addresses: &[(Ipv4Addr, u8)],
    to: Ipv4Addr,
) -> Result<Tun, LabError> {
    let addresses = addresses.iter().map(|(address, prefix)| ((*address).into(), *prefix));
    let options = TunOptions { name: DEVICE.to_owned(), mtu, addresses: addresses.collect() };
    let tun = namespace.inside(|| Tun::open(&options))??;
    let link = Some(tun.index());
    let route = Route { to: to.into(), prefix: 16, via: None, link, source: None, mtu: None };
    netlink(namespace)?.add_route(&route)?;
    Ok(tun)
}

impl LiveLink {
    pub(crate) fn set_rate(&self, direction: Direction, rate: Rate) -> Result<(), LabError> {
        Ok(self.running.change(direction, Change::Rate(rate))?)
    }

    pub(crate) fn read(&self, passed: &mut dyn FnMut(Direction, Passed)) {
        for (direction, seen) in Direction::ALL.into_iter().zip(&self.seen) {
            let seen = std::mem::take(&mut *seen.0.lock().unwrap_or_else(PoisonError::into_inner));
            seen.into_iter().for_each(|one| passed(direction, one));
        }
    }

    pub(crate) fn queues(&self) -> Result<(Queue, Option<Queue>), LabError> {
        let now = self.running.snapshot()?;
        let down = queue(now.down);
        let no_queue = || LabError::Scenario("the way down has no queue".to_owned());
        Ok((down.ok_or_else(no_queue)?, queue(now.up)))
    }

    /// Whether it was in time and lost nothing by itself. `round_trip` is the mean of what is shown.
    pub(crate) fn faults(&self, round_trip: Duration) -> Result<Vec<Limit>, LabError> {
        let now = self.running.snapshot()?;
        let mut faults = Vec::new();
        let mut late = Duration::ZERO;
        for (direction, side) in [(Direction::Down, &now.down), (Direction::Up, &now.up)] {
            late += side.figures.lateness.at(0.99);
            let lost = side.figures.lost;
            for (count, counter, what) in [
                (side.device_dropped, "tx_dropped", "came faster than the link could read them"),
                (lost.no_room, "memory", "found no memory left in the link"),
                (lost.refused, "write", "were refused by the device behind the link"),
            ] {
                faults.push(Limit {
                    at: format!("link, {}", direction.name()),
                    what: format!("figures are not valid: packets {what}"),
                    counter: counter.to_owned(),
                    count,
                });
            }
        }
        let most = round_trip.mul_f64(MOST_LATE);
        if late > most {
            faults.push(Limit {
                at: "link".to_owned(),
                what: format!(
                    "figures are not valid: this machine was too busy, packets were written {:.3} ms late at the 99th percentile of \
                     both ways, more than {:.0} % of the mean round trip, {:.3} ms",
                    late.as_secs_f64() * 1e3,
                    MOST_LATE * 1e2,
                    round_trip.as_secs_f64() * 1e3
                ),
                counter: "lateness in us".to_owned(),
                count: late.as_micros() as u64,
            });
        }
        faults.retain(|fault| fault.count > 0);
        Ok(faults)
    }
}

/// A link's queue as if the kernel had told of it.
fn queue(side: DirectionSnapshot) -> Option<Queue> {
    let queue = side.queue?;
    Some(Queue {
        handle: Handle::qdisc(1),
        parent: Handle::ROOT,
        kind: queue.config.kind().to_owned(),
        counters: queue.stats.counters,
        config: Some(queue.config),
        stats: Some(queue.stats),
        requeues: 0,
    })
}
