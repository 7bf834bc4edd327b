use crate::chance::Chance;
use crate::delay::Delay;
use crate::jitter::Jitter;
use crate::mtu::Mtu;
use crate::packet::Packet;
use crate::police::Police;
use crate::queue::Queue;
use crate::slots::Slots;

/// One thing on a path.
// With a tag of its own, which takes less to look at than one in the unused values of a field.
#[repr(u8)]
#[derive(Debug)]
pub enum Element<P: Packet> {
    /// A queue discipline in front of a rate.
    Queue(Box<Queue<P>>),
    /// Constant delay.
    Delay(Delay<P>),
    /// Delay that varies.
    Jitter(Jitter<P>),
    /// Packets gather and leave in bursts.
    Slots(Slots<P>),
    /// Packets are lost, each by itself; an aggregate is one.
    Loss(Chance),
    /// Packets come twice, each by itself.
    Duplicate(Chance),
    /// ECN fields are cleared.
    Bleach,
    /// Packets that are too long are lost; those of an aggregate by themselves.
    Mtu(Mtu),
    /// Packets above a rate are lost; those of an aggregate by themselves.
    Police(Police),
}

impl<P: Packet> Element<P> {
    /// Packets inside; an aggregate is one.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Queue(queue) => dualq_qdisc::Qdisc::<P>::len(queue.discipline()),
            Self::Delay(delay) => delay.len(),
            Self::Jitter(jitter) => jitter.len(),
            Self::Slots(slots) => slots.len(),
            Self::Loss(_) | Self::Duplicate(_) | Self::Bleach | Self::Mtu(_) | Self::Police(_) => 0,
        }
    }

    /// Whether no packet is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Packet> From<Queue<P>> for Element<P> {
    fn from(queue: Queue<P>) -> Self {
        Self::Queue(Box::new(queue))
    }
}

impl<P: Packet> From<Delay<P>> for Element<P> {
    fn from(delay: Delay<P>) -> Self {
        Self::Delay(delay)
    }
}

impl<P: Packet> From<Jitter<P>> for Element<P> {
    fn from(jitter: Jitter<P>) -> Self {
        Self::Jitter(jitter)
    }
}

impl<P: Packet> From<Slots<P>> for Element<P> {
    fn from(slots: Slots<P>) -> Self {
        Self::Slots(slots)
    }
}

impl<P: Packet> From<Mtu> for Element<P> {
    fn from(mtu: Mtu) -> Self {
        Self::Mtu(mtu)
    }
}

impl<P: Packet> From<Police> for Element<P> {
    fn from(police: Police) -> Self {
        Self::Police(police)
    }
}
