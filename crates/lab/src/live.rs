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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualq_link::{
    Change, Link, Options, Packet, QueueSnapshot, Running, Seen, Snapshot, Times, Tun, TunOptions,
    Watch,
};
use dualq_namespace::Namespace;
use dualq_netlink::{Handle, NetlinkError, Queue, Route};
use dualq_qdisc::{Packet as _, Spec};
use dualq_scenario::summary::millis;
use dualq_scenario::{
    Direction, Lateness, LatenessBin, Limit, LinkLateness, OTHER_QUEUES, Scenario, TESTED_QUEUE,
    UP_QUEUE,
};
use dualq_units::{Instant, Rate};

use crate::LabError;
use crate::controls::Controls;
use crate::experiment::model_only;
use crate::middle::Middle;
use crate::network::{
    FAR, Host, NEAR, NEAR_RECEIVER, Network, RECEIVER, add_qdisc, netlink, sysctl, tune_receiver,
};
use crate::taps::Passed;
use crate::udp;
use crate::watch::SNAP_BYTES;

/// The device of the link at both ends.
const DEVICE: &str = "link";
/// The router's address on the link, beside that of the receiver of what goes up.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 254);

/// The link, and what it told.
pub(crate) struct LiveLink {
    running: Running,
    /// What happened in each direction since somebody looked.
    noted: [Arc<Notes>; 2],
}

/// What a direction's thread notes for whoever looks later.
#[derive(Default)]
struct Notes {
    /// With the number of the queue.
    passed: Mutex<Vec<(usize, Passed)>>,
    met: Mutex<Vec<Met>>,
    /// Whether single packets are asked for.
    wants_packets: AtomicBool,
}

/// What happened to a packet.
pub(crate) struct Met {
    /// By the clock that only goes on.
    pub(crate) at: Duration,
    pub(crate) seen: Seen,
    /// Its headers.
    pub(crate) bytes: Vec<u8>,
}

/// Notes what a direction's packets meet, with the numbers of its queues.
struct Tap {
    notes: Arc<Notes>,
    bottleneck: usize,
    /// That of the first queue of an element.
    others: usize,
}

impl Watch for Tap {
    fn packet(&mut self, at: Instant, seen: Seen, packet: &Packet) {
        let at = Duration::from_nanos(at.as_nanos());
        let left = match seen {
            Seen::Sent { sojourn, .. } => Some((self.bottleneck, sojourn)),
            Seen::Passed { number, sojourn } => Some((self.others + number, sojourn)),
            _ => None,
        };
        if let Some((queue, sojourn)) = left {
            let passed = (queue, Passed { left: at, sojourn, ecn: packet.ecn() });
            self.notes.passed.lock().unwrap_or_else(PoisonError::into_inner).push(passed);
        }
        if self.notes.wants_packets.load(Ordering::Relaxed) {
            let mut bytes = Vec::with_capacity(SNAP_BYTES);
            packet.write_to(&mut bytes, SNAP_BYTES);
            let met = Met { at, seen, bytes };
            self.notes.met.lock().unwrap_or_else(PoisonError::into_inner).push(met);
        }
    }
}

/// Says why this machine cannot run a scenario live.
#[must_use]
pub fn refusal(scenario: &Scenario) -> Option<String> {
    if let Some((lacking, has)) = Controls::of_this_kernel().lacking(scenario) {
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
            Err(LabError::Netlink(NetlinkError::NoSuchKind { kind, .. })) => {
                return Err(LabError::Scenario(format!(
                    "sender.qdisc: this kernel has no queue discipline {kind} (sch_{kind}), and a sender's is the kernel's own; the model has it"
                )));
            }
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
    let noted: [Arc<Notes>; 2] = Default::default();
    let others_down = passages[0].other_bottlenecks().count();
    let mut watch = |direction: Direction| -> Box<dyn Watch> {
        let (way, bottleneck, others) = match direction {
            Direction::Down => (0, TESTED_QUEUE, OTHER_QUEUES),
            Direction::Up => (1, UP_QUEUE, OTHER_QUEUES + others_down),
        };
        Box::new(Tap { notes: Arc::clone(&noted[way]), bottleneck, others })
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
        middle: Middle::Link(LiveLink { running, noted }),
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
    let route =
        Route { to: to.into(), prefix: 16, via: None, link, source: None, mtu: None, metric: None };
    netlink(namespace)?.add_route(&route)?;
    Ok(tun)
}

impl LiveLink {
    pub(crate) fn set_rate(&self, direction: Direction, rate: Rate) -> Result<(), LabError> {
        Ok(self.running.change(direction, Change::Rate(rate))?)
    }

    /// What left a queue since the last call, with the queue's number.
    pub(crate) fn read(&self, passed: &mut dyn FnMut(usize, Passed)) {
        for noted in &self.noted {
            take(&noted.passed).into_iter().for_each(|(queue, one)| passed(queue, one));
        }
    }

    /// From now on single packets are noted.
    pub(crate) fn note_packets(&self) {
        for noted in &self.noted {
            noted.wants_packets.store(true, Ordering::Relaxed);
        }
    }

    /// What happened to packets since the last call.
    pub(crate) fn packets(&self) -> impl Iterator<Item = (Direction, Met)> {
        Direction::ALL.into_iter().zip(&self.noted).flat_map(|(direction, noted)| {
            take(&noted.met).into_iter().map(move |met| (direction, met))
        })
    }

    /// All queues that figures are taken of, as they are now, by their numbers.
    pub(crate) fn queues(&self) -> Result<Vec<(usize, Queue)>, LabError> {
        let Snapshot { down, up, .. } = self.running.snapshot()?;
        let bottlenecks = [(TESTED_QUEUE, down.queue), (UP_QUEUE, up.queue)];
        let bottlenecks = bottlenecks.into_iter().filter_map(|(number, now)| Some((number, now?)));
        let others = (OTHER_QUEUES..).zip(down.others.into_iter().chain(up.others));
        Ok(bottlenecks.chain(others).map(|(number, now)| (number, queue(now))).collect())
    }

    /// How late it was so far.
    pub(crate) fn lateness(&self) -> Result<LinkLateness, LabError> {
        let now = self.running.snapshot()?;
        let [down, up] = [now.down, now.up].map(|side| lateness(&side.figures.lateness));
        Ok(LinkLateness { down, up })
    }

    /// Whether it was in time and lost nothing by itself. `round_trip` is the mean of what is shown.
    pub(crate) fn faults(&self, round_trip: Duration) -> Result<Vec<Limit>, LabError> {
        let now = self.running.snapshot()?;
        let mut faults = Vec::new();
        for (direction, side) in [(Direction::Down, &now.down), (Direction::Up, &now.up)] {
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
        for (direction, side) in [(Direction::Down, &now.down), (Direction::Up, &now.up)] {
            faults.push(Limit {
                at: format!("link, {}", direction.name()),
                what: "figures are not valid: more came than the link could read, and packets waited before it"
                    .to_owned(),
                counter: "packets".to_owned(),
                count: if side.is_behind() { side.behind } else { 0 },
            });
        }
        if let Some(fault) = now.too_late(round_trip) {
            faults.push(Limit {
                at: "link".to_owned(),
                what: format!("figures are not valid: {fault}"),
                counter: "lateness in us".to_owned(),
                count: fault.late.as_micros() as u64,
            });
        }
        faults.retain(|fault| fault.count > 0);
        Ok(faults)
    }
}

/// All that is there.
fn take<T>(notes: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Bins from a microsecond on, each twice as long as the one before.
fn lateness(times: &Times) -> Lateness {
    let ms = |time: Duration| millis(time.as_nanos() as f64);
    let (mut histogram, mut counted, mut end) = (Vec::new(), 0, Duration::from_micros(1));
    while counted < times.count() {
        // The last one's own precision may lie above its bin.
        let below = if end >= times.max() { times.count() } else { times.up_to(end) };
        histogram.push(LatenessBin { up_to_ms: ms(end), packets: below - counted });
        (counted, end) = (below, end * 2);
    }
    Lateness {
        packets: times.count(),
        p50_ms: ms(times.at(0.5)),
        p95_ms: ms(times.at(0.95)),
        p99_ms: ms(times.at(0.99)),
        max_ms: ms(times.max()),
        histogram,
    }
}

/// A link's queue as if the kernel had told of it.
fn queue(queue: QueueSnapshot) -> Queue {
    Queue {
        handle: Handle::qdisc(1),
        parent: Handle::ROOT,
        kind: queue.config.kind().to_owned(),
        counters: queue.stats.counters,
        config: Some(queue.config),
        stats: Some(queue.stats),
        requeues: 0,
        flow_delays: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_rounded_to_thousandths() {
        let mut times = Times::default();
        times.record(Duration::from_nanos(536_575));
        times.record(Duration::from_nanos(1_234));
        let told = lateness(&times);
        let all = [told.p50_ms, told.p95_ms, told.p99_ms, told.max_ms];
        let ends = told.histogram.iter().map(|bin| bin.up_to_ms);
        for ms in all.into_iter().chain(ends) {
            assert!(ms.to_string().len() <= "0.123".len(), "{ms}");
        }
        assert_eq!(told.packets, 2);
    }
}
