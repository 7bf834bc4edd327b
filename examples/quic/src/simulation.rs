//! The event loop: hosts, a path in each direction, and one clock.

use std::time::Duration;

use dualq_net::{Delay, Element, Environment, Lost, Mtu, Path};
use dualq_qdisc::{Departure, Device, Ecn, Random, SplitMix64};
use dualq_scenario::{Direction, Link};
use dualq_units::Instant;

use crate::host::{Host, Identity};
use crate::packet::Datagram;
use crate::{Flow, RaceError};

/// What came of it, from the end of the warm-up on.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The connections, in their order.
    pub flows: Vec<FlowOutcome>,
    /// How long packets waited in the queue under test: the median.
    pub queue_p50: Duration,
    /// The same: the 99th percentile.
    pub queue_p99: Duration,
    /// What became of all packets, from the beginning on.
    pub packets: Packets,
}

/// What came of a connection.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// What the receiving program read, in Mbit/s.
    pub goodput_mbit: f64,
    /// Quinn's estimate of the round trip at the end.
    pub rtt: Duration,
    /// Packets that quinn deems lost, from the beginning on.
    pub lost: u64,
    /// Packets that arrived with CE.
    pub marks: u64,
}

/// Packets in both directions: sent are those that arrived, were dropped, or are on their way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packets {
    /// Sent by either end.
    pub sent: u64,
    /// Copied on the way.
    pub copied: u64,
    /// Arrived at the other end.
    pub arrived: u64,
    /// Lost: in the queue, at random, or longer than the link takes.
    pub dropped: u64,
    /// On their way at the end.
    pub on_the_way: u64,
}

/// Runs connections over a link for some simulated time; figures are of what comes after the warm-up.
///
/// What the path decides by chance follows from `seed`, and so does all of quinn but the handshake's keys, which are from the system.
///
/// # Errors
/// If no handshake can be configured, or a connection ends early.
pub fn race(
    link: &Link,
    flows: &[Flow],
    duration: Duration,
    warmup: Duration,
    seed: u64,
) -> Result<Outcome, RaceError> {
    let mut simulation = Simulation::new(link, flows, warmup, seed)?;
    let end = after(duration);
    let mut warm = None;
    while let Some(next) = simulation.next().filter(|next| *next < end) {
        if warm.is_none() && next >= after(warmup) {
            warm = Some(simulation.read());
        }
        simulation.step(next, flows)?;
    }
    let before = warm.unwrap_or_else(|| simulation.read());
    Ok(simulation.outcome(flows, &before, duration.saturating_sub(warmup)))
}

const fn after(time: Duration) -> Instant {
    Instant::from_nanos(time.as_nanos() as u64)
}

/// The two ends of a connection.
struct Pair {
    sender: Host,
    receiver: Host,
    /// Datagrams with CE that arrived after the warm-up.
    marks: u64,
    start: Option<Instant>,
}

struct Simulation {
    now: Instant,
    /// What quinn takes for the beginning: it wants a time of the system, and asks nothing of it but differences.
    zero: std::time::Instant,
    identity: Identity,
    pairs: Vec<Pair>,
    down: Path<Datagram>,
    up: Path<Datagram>,
    around: Around,
    /// Whether all is in one tunnel.
    tunnel: bool,
    sending: Vec<Datagram>,
}

/// Chance, and what is counted.
struct Around {
    random: SplitMix64,
    packets: Packets,
    from: Instant,
    /// Times in the queue under test.
    waits: Vec<Duration>,
}

impl Environment<Datagram> for Around {
    fn random(&mut self) -> u32 {
        self.random.next_u32()
    }

    fn copy(&mut self, packet: &Datagram) -> Datagram {
        self.packets.copied += 1;
        packet.clone()
    }

    fn lost(&mut self, _: Datagram, _: Lost) {
        self.packets.dropped += 1;
    }

    fn departed(&mut self, queue: usize, now: Instant, departure: &Departure<Datagram>) {
        if queue == UNDER_TEST && now >= self.from {
            self.waits.push(departure.sojourn());
        }
    }
}

const UNDER_TEST: usize = 0;
const OTHER: usize = 1;

impl Simulation {
    fn new(link: &Link, flows: &[Flow], warmup: Duration, seed: u64) -> Result<Self, RaceError> {
        let mut random = SplitMix64::new(seed);
        let mut draw = || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let device = Device::ethernet(link.mtu);
        let mut path = |direction, number| {
            let passage = link.passage(direction);
            let (mut elements, _) = passage.elements(number, OTHER, &mut |_, line| {
                line.spec().build(&device, SplitMix64::new(draw()), Instant::ZERO)
            });
            // Quinn looks for what passes by what does not (RFC 8899).
            elements.insert(0, Element::from(Mtu { mtu: link.mtu, icmp: false }));
            elements.push(Element::from(Delay::new(passage.delay)));
            Path::new(elements)
        };
        let (down, up) = (path(Direction::Down, UNDER_TEST), path(Direction::Up, OTHER));
        let identity = Identity::new()?;
        let pairs = (0..).zip(flows).map(|(number, flow)| Pair {
            sender: Host::sender(number, draw()),
            receiver: Host::receiver(number, draw(), &identity),
            marks: 0,
            start: Some(after(flow.start)),
        });
        let pairs = pairs.collect();
        let packets = Packets::default();
        let around = Around { random, packets, from: after(warmup), waits: Vec::new() };
        let zero = std::time::Instant::now();
        Ok(Self {
            now: Instant::ZERO,
            zero,
            identity,
            pairs,
            down,
            up,
            around,
            tunnel: link.tunnel,
            sending: Vec::new(),
        })
    }

    /// A time as quinn has it.
    fn system(&self, time: Instant) -> std::time::Instant {
        self.zero + Duration::from_nanos(time.as_nanos())
    }

    /// When something happens next.
    fn next(&self) -> Option<Instant> {
        let paths = [self.down.next_due(), self.up.next_due()];
        let paths = paths.into_iter().flatten().map(|(due, _)| due);
        let hosts = self.pairs.iter().flat_map(|pair| {
            let timers = [pair.sender.timer, pair.receiver.timer].into_iter().flatten();
            let timers = timers.map(|timer| after(timer.saturating_duration_since(self.zero)));
            timers.chain(pair.start)
        });
        paths.chain(hosts).min().map(|next| next.max(self.now))
    }

    /// All that happens at that time.
    fn step(&mut self, next: Instant, flows: &[Flow]) -> Result<(), RaceError> {
        self.now = next;
        let system = self.system(next);
        for path in [&mut self.down, &mut self.up] {
            if let Some((_, place)) = path.next_due().filter(|(due, _)| *due <= next) {
                path.start(place);
            }
        }
        for (pair, flow) in self.pairs.iter_mut().zip(flows) {
            if pair.start.take_if(|start| *start <= next).is_some() {
                pair.sender.connect(system, flow, &self.identity)?;
            }
            for host in [&mut pair.sender, &mut pair.receiver] {
                if host.timer.is_some_and(|timer| timer <= system) {
                    host.fire(system);
                }
            }
        }
        while self.deliver(system) | self.serve(system)? {}
        Ok(())
    }

    /// What has passed the paths arrives; whether anything did.
    fn deliver(&mut self, system: std::time::Instant) -> bool {
        let before = self.around.packets.arrived;
        let now = self.now;
        while let Some(datagram) = self.down.next_out(now, &mut self.around) {
            self.around.packets.arrived += 1;
            let pair = &mut self.pairs[datagram.flow as usize];
            pair.marks += u64::from(datagram.ecn == Ecn::Ce && now >= self.around.from);
            pair.receiver.receive(system, datagram, &mut self.sending);
        }
        // Answers of an endpoint that has no connection yet.
        self.depart(Direction::Up);
        while let Some(datagram) = self.up.next_out(now, &mut self.around) {
            self.around.packets.arrived += 1;
            let pair = &mut self.pairs[datagram.flow as usize];
            pair.sender.receive(system, datagram, &mut self.sending);
        }
        self.depart(Direction::Down);
        self.around.packets.arrived > before
    }

    /// Hosts to which something happened do what follows; whether there were any.
    fn serve(&mut self, system: std::time::Instant) -> Result<bool, RaceError> {
        let mut any = false;
        for flow in 0..self.pairs.len() {
            for direction in [Direction::Down, Direction::Up] {
                let pair = &mut self.pairs[flow];
                let host = match direction {
                    Direction::Down => &mut pair.sender,
                    Direction::Up => &mut pair.receiver,
                };
                if !host.is_due {
                    continue;
                }
                any = true;
                let after = Duration::from_nanos(self.now.as_nanos());
                let served = host.serve(system, &mut self.sending);
                served.map_err(|reason| RaceError::Lost { flow, after, reason })?;
                self.depart(direction);
            }
        }
        Ok(any)
    }

    /// What was sent enters the path.
    fn depart(&mut self, direction: Direction) {
        let path = match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        };
        for mut datagram in self.sending.drain(..) {
            datagram.tunnel = self.tunnel;
            self.around.packets.sent += 1;
            path.enter(self.now, datagram, &mut self.around);
        }
    }

    /// What receivers have read so far.
    fn read(&self) -> Vec<u64> {
        self.pairs.iter().map(|pair| pair.receiver.read).collect()
    }

    fn outcome(mut self, flows: &[Flow], before: &[u64], time: Duration) -> Outcome {
        let elements = self.down.elements().iter().chain(self.up.elements());
        self.around.packets.on_the_way = elements.map(|element| element.len() as u64).sum();
        let figures = self.pairs.iter().zip(flows).zip(before).map(|((pair, flow), before)| {
            let (lost, rtt) = pair.sender.path();
            let bits = (pair.receiver.read - before) as f64 * 8.0;
            let goodput_mbit = bits / time.as_secs_f64() / 1e6;
            FlowOutcome { name: flow.name.clone(), goodput_mbit, rtt, lost, marks: pair.marks }
        });
        let flows = figures.collect();
        self.around.waits.sort_unstable();
        let waits = &self.around.waits;
        // The nearest rank.
        let at = |percent: usize| {
            let rank = (waits.len() * percent).div_ceil(100).max(1) - 1;
            waits.get(rank).copied().unwrap_or_default()
        };
        let (queue_p50, queue_p99) = (at(50), at(99));
        Outcome { flows, queue_p50, queue_p99, packets: self.around.packets }
    }
}
