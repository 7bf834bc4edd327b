//! What packets pass in each direction of a scenario's path, and the elements that are made of it.

use std::net::IpAddr;
use std::time::Duration;

use dualq_net::{Chance, Delay, Element as Part, Jitter, Mtu, Packet, Police, Queue, Slots};
use dualq_qdisc::{Discipline, QdiscLine};
use dualq_units::Rate;

use crate::loss::Loss;
use crate::path::{Direction, Element};
use crate::scenario::{Link, RateStep};

/// One direction of a path: what packets pass, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passage {
    /// What comes before the queue.
    pub before: Vec<Element>,
    /// The bottleneck: its rate, Ethernet headers included, and its queue discipline. Without one nothing queues here.
    pub bottleneck: Option<(Rate, QdiscLine)>,
    /// Random loss behind the queue.
    pub loss: Loss,
    /// What comes behind that.
    pub behind: Vec<Element>,
    /// Constant delay at the end.
    pub delay: Duration,
    /// Hosts whose packets take longer at the end, and how much, whichever way they go.
    pub extra_delays: Vec<(IpAddr, Duration)>,
    /// The largest IP packet of its devices, in bytes.
    pub mtu: u32,
    /// Whether all packets are in one tunnel: queues see one flow.
    pub tunnel: bool,
    /// Other rates that the bottleneck has later, in the order of time.
    pub step: Vec<RateStep>,
}

/// Which queue of a [`Passage`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// That of its bottleneck.
    Bottleneck,
    /// That of an element.
    Element,
}

/// The number of the queue under test among those that figures are taken of.
pub const TESTED_QUEUE: usize = 0;
/// That of the queue of the other direction.
pub const UP_QUEUE: usize = 1;
/// That of the first of [`Link::other_bottlenecks`].
pub const OTHER_QUEUES: usize = 2;

/// A bottleneck that is an element of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherBottleneck<'a> {
    /// Where it is: `before 1`, the first element before the bottleneck; `up behind 2`, the second one behind that of the other direction.
    pub at: String,
    /// Which way its packets go.
    pub direction: Direction,
    /// Its rate, Ethernet headers included.
    pub rate: Rate,
    /// Its queue discipline.
    pub qdisc: &'a QdiscLine,
}

impl Link {
    /// The bottlenecks that are elements, in the order in which packets meet them, those on the way down first.
    pub fn other_bottlenecks(&self) -> impl Iterator<Item = OtherBottleneck<'_>> {
        let down = [("before", &self.before), ("behind", &self.behind)];
        let up =
            self.up.iter().flat_map(|up| [("up before", &up.before), ("up behind", &up.behind)]);
        let sides = down.into_iter().map(|side| (Direction::Down, side));
        let sides = sides.chain(up.map(|side| (Direction::Up, side)));
        sides.flat_map(|(direction, (side, elements))| {
            bottlenecks(side, elements).map(move |(at, rate, qdisc)| OtherBottleneck {
                at,
                direction,
                rate,
                qdisc,
            })
        })
    }

    /// One of its two directions.
    #[must_use]
    pub fn passage(&self, direction: Direction) -> Passage {
        let alike = Passage { mtu: self.mtu, tunnel: self.tunnel, ..Passage::default() };
        match (direction, &self.up) {
            (Direction::Down, _) => Passage {
                before: self.before.clone(),
                bottleneck: Some((self.rate, self.qdisc.clone())),
                loss: self.loss,
                behind: self.behind.clone(),
                delay: self.forward,
                step: self.step.clone(),
                ..alike
            },
            (Direction::Up, None) => Passage { delay: self.rtt - self.forward, ..alike },
            (Direction::Up, Some(up)) => Passage {
                before: up.before.clone(),
                bottleneck: up
                    .rate
                    .map(|rate| (rate, up.qdisc.as_ref().unwrap_or(&self.qdisc).clone())),
                loss: up.loss,
                behind: up.behind.clone(),
                delay: self.rtt - self.forward,
                step: up.step.clone(),
                ..alike
            },
        }
    }
}

impl Passage {
    /// Where the bottlenecks are that are elements, in the order in which packets meet them: `before 1`, the first element before the bottleneck.
    pub fn other_bottlenecks(&self) -> impl Iterator<Item = String> {
        let sides = [("before", &self.before), ("behind", &self.behind)];
        sides
            .into_iter()
            .flat_map(|(side, elements)| bottlenecks(side, elements).map(|(at, ..)| at))
    }

    /// The elements up to the constant delay at the end, which is the caller's to add, and the place of the bottleneck's queue. `build`
    /// makes the disciplines, in the order in which packets pass them; the bottleneck's queue is observed under the number `observed`, and
    /// those of elements from the number `others` on.
    pub fn elements<P: Packet>(
        &self,
        observed: usize,
        mut others: usize,
        build: &mut impl FnMut(Which, &QdiscLine) -> Discipline<P>,
    ) -> (Vec<Part<P>>, Option<usize>) {
        let mut parts = Vec::new();
        for element in &self.before {
            parts.push(part(element, &mut others, build));
        }
        let place = self.bottleneck.as_ref().map(|(rate, qdisc)| {
            let queue = Queue::new(build(Which::Bottleneck, qdisc), *rate);
            parts.push(queue.observed(observed).into());
            parts.len() - 1
        });
        if !self.loss.is_none() {
            parts.push(Part::Loss(self.loss.chance()));
        }
        for element in &self.behind {
            parts.push(part(element, &mut others, build));
        }
        (parts, place)
    }
}

impl Loss {
    /// As elements of paths have it.
    #[must_use]
    pub fn chance(self) -> Chance {
        Chance::from_threshold(self.threshold())
    }
}

/// The elements that are bottlenecks, and where each is.
fn bottlenecks<'a>(
    side: &'static str,
    elements: &'a [Element],
) -> impl Iterator<Item = (String, Rate, &'a QdiscLine)> {
    (1..).zip(elements).filter_map(move |(number, element)| match element {
        Element::Queue { rate, qdisc } => Some((format!("{side} {number}"), *rate, qdisc)),
        _ => None,
    })
}

fn part<P: Packet>(
    element: &Element,
    observed: &mut usize,
    build: &mut impl FnMut(Which, &QdiscLine) -> Discipline<P>,
) -> Part<P> {
    match element {
        Element::Delay { delay, jitter, .. } if jitter.is_zero() => Delay::new(*delay).into(),
        Element::Delay { delay, jitter, reorder: true } => Jitter::new(*delay, *jitter).into(),
        Element::Delay { delay, jitter, reorder: false } => {
            Jitter::new(*delay, *jitter).keeping_order().into()
        }
        Element::Slot { least, most, packets, bytes } => {
            Slots::new(*least, *most).at_most(*packets, *bytes).into()
        }
        Element::Loss(loss) => Part::Loss(loss.chance()),
        Element::Duplicate(duplicate) => Part::Duplicate(duplicate.chance()),
        Element::Queue { rate, qdisc } => {
            let queue = Queue::new(build(Which::Element, qdisc), *rate).observed(*observed);
            *observed += 1;
            queue.into()
        }
        Element::Mtu { mtu, icmp } => Mtu { mtu: *mtu, icmp: *icmp }.into(),
        Element::Bleach => Part::Bleach,
        Element::Police { rate, burst } => Police::new(*rate, *burst).into(),
    }
}
