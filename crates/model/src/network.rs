//! The network: a path in each direction, and what they have around them.

use dualq_net::{Delay, Element, Environment, Lost, Path, Queue as Link};
use dualq_qdisc::{Departure, Device, Discipline, Dropped, QdiscLine, Random, SplitMix64};
use dualq_scenario::{
    CLOCK_AT_START, Direction, OTHER_QUEUES, QUEUES_MADE, Scenario, TESTED_QUEUE, UP_QUEUE, Which,
};
use dualq_tcp::{Ack, TIMER_LATENCY};
use dualq_units::Instant;
use dualq_units::hint::cold_path;

use crate::host::Connection;
use crate::options::Options;
use crate::packet::{Packet, TooLong};
use crate::record::Record;
use crate::watcher::Watcher;

/// The other direction.
#[inline]
pub(crate) const fn back(direction: Direction) -> Direction {
    match direction {
        Direction::Down => Direction::Up,
        Direction::Up => Direction::Down,
    }
}

/// The paths between the hosts. The one up always ends with a delay, if only of no time at all, so that nothing comes out of it in
/// the call in which it entered.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) down: Path<Packet>,
    pub(crate) up: Path<Packet>,
    /// The place of the queue under test in the path down.
    tested: usize,
    /// The place of its queue in the path up, if it has one.
    up_queue: Option<usize>,
    /// The first places of the paths down and up from which what is let go arrives, but for senders with an extra round-trip time.
    arrives_from: [usize; 2],
    /// The places in the paths down and up of what [delays](extra_delays) what comes back to some senders, next to these.
    beside_senders: [usize; 2],
    /// The places of other queues, in the order of their numbers.
    others: Vec<(Direction, usize)>,
}

impl Network {
    /// What the scenario says, with `queue` under test. Seeds of other queues are drawn.
    pub(crate) fn new(
        scenario: &Scenario,
        connections: &[Connection],
        queue: Discipline<Packet>,
        draw: &mut impl FnMut() -> u64,
    ) -> Self {
        let link = &scenario.link;
        let device = Device::ethernet(link.mtu);
        let mut tested = Some(queue);
        let mut build =
            |which, line: &QdiscLine| match tested.take_if(|_| which == Which::Bottleneck) {
                Some(queue) => queue,
                None => {
                    line.spec().build(&device, SplitMix64::new(draw()), Instant::ZERO + QUEUES_MADE)
                }
            };
        let passage = link.passage(Direction::Down);
        let (mut down, place) = passage.elements(TESTED_QUEUE, OTHER_QUEUES, &mut build);
        let tested = place.expect("there is a queue under test");
        let mut others = queues(&down, Direction::Down);
        others.retain(|(_, place)| *place != tested);
        if !passage.delay.is_zero() {
            down.push(Element::from(Delay::new(passage.delay + TIMER_LATENCY)));
        }
        let mut arrives_from = [last_to_hold(&down), 0];
        let mut beside_senders = [down.len(), 0];
        down.extend(extra_delays(scenario, connections, Direction::Up));

        let passage = link.passage(Direction::Up);
        let (mut up, up_queue) =
            passage.elements(UP_QUEUE, OTHER_QUEUES + others.len(), &mut build);
        others.extend(
            queues(&up, Direction::Up).into_iter().filter(|(_, place)| Some(*place) != up_queue),
        );
        up.push(Element::from(Delay::new(passage.delay + TIMER_LATENCY)));
        arrives_from[1] = last_to_hold(&up);
        beside_senders[1] = up.len();
        up.extend(extra_delays(scenario, connections, Direction::Down));
        for element in down.iter_mut().chain(&mut up) {
            if let Element::Queue(queue) = element {
                queue.start_clock_at(CLOCK_AT_START);
            }
        }
        Self {
            down: Path::new(down),
            up: Path::new(up),
            tested,
            up_queue,
            arrives_from,
            beside_senders,
            others,
        }
    }

    #[inline]
    pub(crate) const fn path(&mut self, direction: Direction) -> &mut Path<Packet> {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    /// Whether what that element lets go arrives.
    #[inline]
    pub(crate) const fn is_last(&self, direction: Direction, place: usize) -> bool {
        place >= of(self.arrives_from, direction)
    }

    /// Whether senders are so near to that element that what a router says there reaches them at once: it is before the link's queue.
    #[cold]
    pub(crate) const fn is_near(&self, direction: Direction, place: usize) -> bool {
        match (direction, self.up_queue) {
            (Direction::Down, _) => place < self.tested,
            (Direction::Up, Some(queue)) => place < queue,
            (Direction::Up, None) => false,
        }
    }

    /// Whether what this element of the path up lets go goes on, while what that of the path down does arrives.
    #[cold]
    pub(crate) const fn goes_on_up(&self, down: usize, up: usize) -> bool {
        self.is_last(Direction::Down, down) && !self.is_last(Direction::Up, up)
    }

    /// Whether what that element lets go is at its sender at once, and passes no router before.
    #[cold]
    pub(crate) const fn is_beside_senders(&self, direction: Direction, place: usize) -> bool {
        place >= of(self.beside_senders, direction)
    }

    const fn of(&self, direction: Direction) -> &Path<Packet> {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// When the next element of a path is due, and which; at the end of time if none is.
    #[inline]
    pub(crate) const fn next_start(&self, direction: Direction) -> (u64, usize) {
        let (due, place) = self.of(direction).next_start();
        (due.as_nanos(), place)
    }

    /// When the next element of a path is due, which is at `due_ns` if not at `now_ns`, at which another timer runs out: then if its own was set for that
    /// already, and is only a little late.
    #[cold]
    pub(crate) fn ripe_ns(
        &self,
        direction: Direction,
        (due_ns, place): (u64, usize),
        now_ns: u64,
    ) -> u64 {
        let is_ripe = due_ns <= now_ns + TIMER_LATENCY.as_nanos() as u64
            && match self.of(direction).elements().get(place) {
                Some(Element::Delay(_)) => true,
                Some(Element::Queue(queue)) => queue.is_ready(Instant::from_nanos(now_ns)),
                _ => false,
            };
        if is_ripe { now_ns } else { due_ns }
    }

    /// The queue under test.
    pub(crate) fn tested(&self) -> &Link<Packet> {
        self.down.queue(self.tested).expect("it was put there")
    }

    /// The queue under test, and that of the other direction if there is one.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Link<Packet>> {
        let up = self.up_queue.and_then(|place| self.up.queue(place));
        [self.tested()].into_iter().chain(up)
    }

    /// The queues that figures are taken of, with their numbers, the one under test first.
    pub(crate) fn observed(&self) -> impl Iterator<Item = (usize, &Link<Packet>)> {
        let others =
            (OTHER_QUEUES..).zip(&self.others).filter_map(|(number, (direction, place))| {
                let path = match direction {
                    Direction::Down => &self.down,
                    Direction::Up => &self.up,
                };
                Some((number, path.queue(*place)?))
            });
        (TESTED_QUEUE..).zip(self.queues()).chain(others)
    }

    /// The link with the queue under test, to change it.
    pub(crate) fn tested_mut(&mut self) -> &mut Link<Packet> {
        self.down.queue_mut(self.tested).expect("it was put there")
    }

    /// The link with the queue of the path up, if there is one.
    pub(crate) fn up_queue_mut(&mut self) -> Option<&mut Link<Packet>> {
        self.up.queue_mut(self.up_queue?)
    }

    /// A packet that will probably leave the queue under test soon.
    #[inline]
    pub(crate) fn upcoming(&self) -> Option<&Packet> {
        self.down.upcoming_of_queue(self.tested)
    }
}

/// What the last routers add to the round trips of some senders of this direction, as what comes back reaches them. The others it lets pass.
fn extra_delays(
    scenario: &Scenario,
    connections: &[Connection],
    of: Direction,
) -> Option<Element<Packet>> {
    let extra = |connection: &Connection| {
        let group = scenario.flow.get(connection.owner)?;
        let delay = Some(group.extra_rtt).filter(|extra| !extra.is_zero())?;
        (connection.route.direction == of).then_some(delay + TIMER_LATENCY)
    };
    let delays: Vec<_> = connections.iter().map(extra).collect();
    let any = delays.iter().any(Option::is_some);
    any.then(|| Delay::of_origins(delays.into_iter().map(Option::unwrap_or_default)).into())
}

/// What is of a direction, of what is of the path down and of that up.
#[inline]
const fn of([down, up]: [usize; 2], direction: Direction) -> usize {
    match direction {
        Direction::Down => down,
        Direction::Up => up,
    }
}

/// The place of the last element that holds packets: what it lets go passes all behind it at that instant.
fn last_to_hold(elements: &[Element<Packet>]) -> usize {
    let holds = |element: &Element<Packet>| {
        matches!(
            element,
            Element::Queue(_) | Element::Delay(_) | Element::Jitter(_) | Element::Slots(_)
        )
    };
    elements.iter().rposition(holds).unwrap_or(0)
}

/// What all parts of a simulation use: random numbers, what is written down, and what packets hold.
pub(crate) struct Surroundings<'a> {
    pub(crate) random: SplitMix64,
    pub(crate) record: Record,
    pub(crate) options: Options,
    /// Acknowledgements that leave with data of the same end, if there are any to send.
    pub(crate) unsaid: Vec<(u32, Ack)>,
    /// Connections that are to hear that a packet was too long, and the place in its path of the router that says so.
    pub(crate) too_long: Vec<(u32, usize, TooLong)>,
    pub(crate) watcher: Option<Box<Watcher<'a>>>,
}

impl Surroundings<'_> {
    /// A packet sets out from its host.
    #[inline]
    pub(crate) fn sets_out(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        if let Some(watcher) = &mut self.watcher {
            cold_path();
            watcher.sets_out(now, direction, packet, &self.options);
        }
    }

    /// A packet reaches its host.
    #[inline]
    pub(crate) fn comes_in(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        if let Some(watcher) = &mut self.watcher {
            cold_path();
            watcher.comes_in(now, direction, packet, &self.options);
        }
    }
}

/// The queues in a path, each with its direction and place.
fn queues(path: &[Element<Packet>], direction: Direction) -> Vec<(Direction, usize)> {
    let places = (0..).zip(path).filter(|(_, element)| matches!(element, Element::Queue(_)));
    places.map(|(place, _)| (direction, place)).collect()
}

/// The direction of an observed queue, if whoever watches packets is to hear of it.
#[inline]
const fn direction(queue: usize) -> Option<Direction> {
    match queue {
        TESTED_QUEUE => Some(Direction::Down),
        UP_QUEUE => Some(Direction::Up),
        _ => None,
    }
}

impl Surroundings<'_> {
    /// The sender of what was too long is to hear of it.
    #[cold]
    fn note_too_long(&mut self, packet: &Packet, mtu: u32, place: usize) {
        if packet.body.data_bytes().is_some() {
            let ip_bytes = dualq_net::Packet::ip_bytes(packet);
            let seq = packet.body.seq();
            self.too_long.push((packet.owner.number(), place, TooLong { mtu, seq, ip_bytes }));
        }
    }
}

impl Environment<Packet> for Surroundings<'_> {
    #[inline]
    fn random(&mut self) -> u32 {
        self.random.next_u32()
    }

    fn copy(&mut self, packet: &Packet) -> Packet {
        Packet { body: packet.body.copy(&mut self.options), ..*packet }
    }

    fn lost(&mut self, packet: Packet, why: Lost) {
        if let Lost::TooLong { mtu, told: true, place } = why {
            self.note_too_long(&packet, mtu, place);
        }
        packet.body.discard(&mut self.options);
    }

    #[inline]
    fn arrived(&mut self, queue: usize, now: Instant, packet: &Packet) {
        if let Some(watcher) = &mut self.watcher
            && let Some(direction) = direction(queue)
        {
            cold_path();
            watcher.arrived(now, direction, packet, &self.options);
        }
    }

    #[inline(always)]
    fn departed(&mut self, queue: usize, now: Instant, departure: &Departure<Packet>) {
        if let Some(watcher) = &mut self.watcher
            && let Some(direction) = direction(queue)
        {
            cold_path();
            watcher.departed(now, direction, departure, &self.options);
        }
        self.record.departed(queue, now.as_nanos(), departure);
    }

    #[inline]
    fn dropped(&mut self, queue: usize, now: Instant, dropped: &Dropped<Packet>) {
        if let Some(watcher) = &mut self.watcher
            && let Some(direction) = direction(queue)
        {
            cold_path();
            watcher.dropped(now, direction, dropped);
        }
    }
}
