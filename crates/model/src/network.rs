//! The network: a path in each direction, and what they have around them.

use dualq_net::{Chance, Delay, Element, Environment, Lost, Path, Queue};
use dualq_qdisc::{Departure, Discipline, Packet as _, Random, SplitMix64};
use dualq_scenario::{Event, Loss, Scenario, Seen};
use dualq_units::Instant;

use crate::host::Connection;
use crate::packet::Packet;
use crate::record::Record;
use crate::sacks::Sacks;

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Through the queue under test.
    Down,
    /// The other way.
    Up,
}

impl Direction {
    #[inline]
    pub(crate) const fn back(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
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
}

impl Network {
    /// What the scenario says, with `queue` under test.
    pub(crate) fn new(
        scenario: &Scenario,
        connections: &[Connection],
        queue: Discipline<Packet>,
    ) -> Self {
        let link = &scenario.link;
        let tested = 0;
        let mut down = vec![Element::from(Queue::new(queue, link.rate).observed(0))];
        if !link.loss.is_none() {
            down.push(Element::Loss(chance(link.loss)));
        }
        if !link.forward.is_zero() {
            down.push(Element::from(Delay::new(link.forward)));
        }
        let back = link.rtt - link.forward;
        let delays = connections.iter().map(|connection| {
            let group = scenario.flow.get(connection.owner);
            back + group.map_or_else(Default::default, |group| group.extra_rtt)
        });
        let up = vec![Element::from(Delay::of_origins(delays))];
        Self { down: Path::new(down), up: Path::new(up), tested }
    }

    #[inline]
    pub(crate) const fn path(&mut self, direction: Direction) -> &mut Path<Packet> {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    /// Whether that element of the path up is the last one.
    #[inline]
    pub(crate) fn is_last_up(&self, place: usize) -> bool {
        place + 1 == self.up.elements().len()
    }

    /// The queue under test.
    pub(crate) fn tested(&self) -> &Discipline<Packet> {
        let queue = self.down.queue(self.tested).expect("it was put there");
        queue.discipline()
    }

    /// The same, to change it.
    pub(crate) fn tested_mut(&mut self) -> &mut Queue<Packet> {
        self.down.queue_mut(self.tested).expect("it was put there")
    }

    /// A packet that will probably leave the queue under test soon.
    #[inline]
    pub(crate) fn upcoming(&self) -> Option<&Packet> {
        self.down.upcoming_of_queue(self.tested)
    }
}

/// The same for a path.
pub(crate) fn chance(loss: Loss) -> Chance {
    Chance::from_threshold(loss.threshold())
}

/// What all parts of a simulation use: random numbers, what is written down, and what packets hold.
pub(crate) struct Surroundings<'a> {
    pub(crate) random: SplitMix64,
    pub(crate) record: Record,
    pub(crate) sacks: Sacks,
    pub(crate) watch: Option<&'a mut dyn FnMut(Event)>,
}

impl Surroundings<'_> {
    #[inline]
    pub(crate) fn tell(&mut self, now: Instant, seen: Seen, packet: &Packet) {
        if let Some(watch) = &mut self.watch {
            watch(Event {
                at_ns: now.as_nanos(),
                seen,
                flow: packet.connection,
                seq: packet.body.seq(),
                bytes: packet.body.payload().into(),
                ecn: packet.ecn().bits(),
                sacks: 0,
            });
        }
    }
}

impl Environment<Packet> for Surroundings<'_> {
    #[inline]
    fn random(&mut self) -> u32 {
        self.random.next_u32()
    }

    fn copy(&mut self, packet: &Packet) -> Packet {
        Packet { body: packet.body.copy(&mut self.sacks), ..*packet }
    }

    fn lost(&mut self, packet: Packet, _: Lost) {
        packet.body.discard(&mut self.sacks);
    }

    #[inline]
    fn arrived(&mut self, _: usize, now: Instant, packet: &Packet) {
        self.tell(now, Seen::In, packet);
    }

    #[inline]
    fn departed(&mut self, _: usize, now: Instant, departure: &Departure<Packet>) {
        self.tell(now, Seen::Out, &departure.packet);
        self.record.departed(now.as_nanos(), departure);
    }
}
