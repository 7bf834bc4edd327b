//! What not every world has.

use crate::path::{Element, UpLink};
use crate::scenario::Setup;
use crate::traffic::Size;

/// A part of a scenario that a world may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A queue, or loss, in the other direction.
    Up,
    /// Flows whose data go the other way.
    UpFlows,
    /// A delay before or behind a queue.
    Delay,
    /// Loss before or behind a queue.
    Loss,
    /// Packets that come twice.
    Duplicate,
    /// Another queue before or behind.
    Queue,
    /// A hop that lets no large packets pass, and tells.
    Mtu,
    /// A hop that lets no large packets pass, and does not tell.
    BlackHole,
    /// A hop that clears the ECN field.
    Bleach,
    /// A policer.
    Police,
    /// Streams of UDP.
    Udp,
    /// ECT(1) with any congestion control.
    Ect1,
    /// Transfers that are made again and again on one connection.
    Every,
    /// Transfers at random, or of different sizes.
    Random,
    /// Receivers with limits of their own.
    Receivers,
}

impl Part {
    /// The key by which a scenario asks for it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Up => "link.up",
            Self::UpFlows => "direction = \"up\"",
            Self::Delay => "an element delay",
            Self::Loss => "an element loss",
            Self::Duplicate => "an element duplicate",
            Self::Queue => "an element rate",
            Self::Mtu => "an element mtu",
            Self::BlackHole => "an element mtu with icmp = false",
            Self::Bleach => "an element bleach",
            Self::Police => "an element police",
            Self::Udp => "udp",
            Self::Ect1 => "flow.ect1",
            Self::Every => "flow.every",
            Self::Random => "flow.arrivals or a range in flow.size",
            Self::Receivers => "flow.read_interval or flow.receive_buffer",
        }
    }
}

impl Element {
    const fn part(&self) -> Part {
        match self {
            Self::Delay { .. } => Part::Delay,
            Self::Loss(_) => Part::Loss,
            Self::Duplicate(_) => Part::Duplicate,
            Self::Queue { .. } => Part::Queue,
            Self::Mtu { icmp: true, .. } => Part::Mtu,
            Self::Mtu { icmp: false, .. } => Part::BlackHole,
            Self::Bleach => Part::Bleach,
            Self::Police { .. } => Part::Police,
        }
    }
}

impl Setup {
    /// The parts of it that not every world has, in no order, some perhaps more than once.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let link = &self.link;
        let up = link.up.iter();
        let elements = [&link.before, &link.behind]
            .into_iter()
            .chain(up.clone().flat_map(|up| [&up.before, &up.behind]))
            .flatten()
            .map(Element::part);
        let has_up = |up: &UpLink| up.rate.is_some() || !up.loss.is_none();
        let flows = self.flow.iter().flat_map(|group| {
            let random =
                !group.arrivals.is_even() || group.size.is_some_and(|size| !Size::is_fixed(size));
            let receivers = group.read_interval.is_some() || group.receive_buffer.is_some();
            [
                (!group.direction.is_down()).then_some(Part::UpFlows),
                group.ect1.then_some(Part::Ect1),
                group.every.map(|_| Part::Every),
                random.then_some(Part::Random),
                receivers.then_some(Part::Receivers),
            ]
        });
        let udp = self.udp.iter().flat_map(|group| {
            [Some(Part::Udp), (!group.direction.is_down()).then_some(Part::UpFlows)]
        });
        let up = up.filter(move |up| has_up(up)).map(|_| Part::Up);
        elements.chain(up).chain(flows.chain(udp).flatten())
    }
}
