//! Queue disciplines, from the RFCs, the manual pages and observed behaviour. Each stands alone: packets are anything
//! that is a [`Frame`], time is an argument.

mod codel;
mod fifo;
mod fq;
mod fq_codel;
mod pie;

use dualpi2::{DualPi2, SplitMix64};
use dualq_units::Ecn;

pub use codel::{Codel, CodelParameters};
pub use fifo::{Fifo, FifoLimit};
pub use fq::{Fq, FqParameters};
pub use fq_codel::{FqCodel, FqCodelParameters};
pub use pie::{Pie, PieParameters};

/// What a queue has to know of a packet.
pub trait Frame: Copy {
    /// Bytes on the wire, link-layer header included.
    fn length(&self) -> u32;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to CE.
    fn set_ce(&mut self);
    /// A number that the packets of one flow share.
    fn flow(&self) -> u32;
    /// Segments in the aggregate, 1 if it is none.
    fn segments(&self) -> u32;
    /// Takes the first segment off an aggregate.
    fn split_first(&mut self) -> Self;
}

/// Counters that every discipline has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets that entered.
    pub enqueued: u64,
    /// Packets that were dropped, at either end.
    pub drops: u64,
    /// Packets that were marked CE.
    pub marks: u64,
}

/// A packet and when it came.
#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    packet: P,
    since_ns: u64,
}

/// The packet that leaves, and for how long it waited.
#[derive(Clone, Copy, Debug)]
pub struct Departure<P> {
    /// The packet, marked or not.
    pub packet: P,
    /// Nanoseconds in the queue.
    pub sojourn_ns: u64,
}

impl<P> Waiting<P> {
    #[inline]
    fn depart(self, now_ns: u64) -> Departure<P> {
        Departure { packet: self.packet, sojourn_ns: now_ns.saturating_sub(self.since_ns) }
    }
}

/// A packet, as the DualPI2 engine wants it.
#[derive(Clone, Copy, Debug)]
pub struct Dual<P>(P);

impl<P: Frame> dualpi2::Packet for Dual<P> {
    fn length(&self) -> u32 {
        self.0.length()
    }

    fn memory(&self) -> u32 {
        self.0.length() + 768
    }

    fn ecn(&self) -> dualpi2::Ecn {
        dualpi2::Ecn::from_bits(self.0.ecn().bits())
    }

    fn set_ce(&mut self) {
        self.0.set_ce();
    }

    fn is_gso(&self) -> bool {
        self.0.segments() > 1
    }

    fn split(mut self, segment: &mut impl FnMut(Self)) {
        while self.0.segments() > 1 {
            segment(Self(self.0.split_first()));
        }
        segment(self);
    }
}

/// Any of the disciplines.
pub enum Queue<P> {
    /// `pfifo`, `bfifo`, `pfifo_fast`.
    Fifo(Fifo<P>),
    /// `codel`.
    Codel(Codel<P>),
    /// `fq_codel`.
    FqCodel(FqCodel<P>),
    /// `fq`.
    Fq(Fq<P>),
    /// `pie`.
    Pie(Pie<P>),
    /// `dualpi2`.
    DualPi2(DualPi2<Dual<P>, SplitMix64>),
}

impl<P: Frame> Queue<P> {
    /// A packet arrives.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P) {
        match self {
            Self::Fifo(queue) => queue.enqueue(now_ns, packet),
            Self::Codel(queue) => queue.enqueue(now_ns, packet),
            Self::FqCodel(queue) => queue.enqueue(now_ns, packet),
            Self::Fq(queue) => queue.enqueue(now_ns, packet),
            Self::Pie(queue) => queue.enqueue(now_ns, packet),
            Self::DualPi2(queue) => {
                queue.poll(now_ns);
                queue.enqueue(now_ns, Dual(packet), &mut |_| ());
            }
        }
    }

    /// The next packet to send, if there is one.
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departure<P>> {
        match self {
            Self::Fifo(queue) => queue.dequeue(now_ns),
            Self::Codel(queue) => queue.dequeue(now_ns),
            Self::FqCodel(queue) => queue.dequeue(now_ns),
            Self::Fq(queue) => queue.dequeue(now_ns),
            Self::Pie(queue) => queue.dequeue(now_ns),
            Self::DualPi2(queue) => {
                queue.poll(now_ns);
                let departure = queue.dequeue(now_ns, &mut |_| ())?;
                Some(Departure { packet: departure.packet.0, sojourn_ns: departure.sojourn_ns })
            }
        }
    }

    /// Packets waiting.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Codel(queue) => queue.len(),
            Self::FqCodel(queue) => queue.len(),
            Self::Fq(queue) => queue.len(),
            Self::Pie(queue) => queue.len(),
            Self::DualPi2(queue) => queue.len(),
        }
    }

    /// Whether no packet waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        match self {
            Self::Fifo(queue) => queue.stats(),
            Self::Codel(queue) => queue.stats(),
            Self::FqCodel(queue) => queue.stats(),
            Self::Fq(queue) => queue.stats(),
            Self::Pie(queue) => queue.stats(),
            Self::DualPi2(queue) => {
                let stats = queue.stats(0);
                QueueStats {
                    enqueued: stats.packets_in_classic + stats.packets_in_low_latency,
                    drops: stats.drops,
                    marks: stats.ecn_marks,
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::Frame;
    use dualq_units::Ecn;

    /// A frame of one segment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct TestFrame {
        pub(crate) flow: u32,
        pub(crate) length: u32,
        pub(crate) ecn: Ecn,
        pub(crate) number: u32,
    }

    impl TestFrame {
        pub(crate) fn new(flow: u32, number: u32) -> Self {
            Self { flow, length: 1514, ecn: Ecn::NotEct, number }
        }
    }

    impl Frame for TestFrame {
        fn length(&self) -> u32 {
            self.length
        }
        fn ecn(&self) -> Ecn {
            self.ecn
        }
        fn set_ce(&mut self) {
            self.ecn = Ecn::Ce;
        }
        fn flow(&self) -> u32 {
            self.flow
        }
        fn segments(&self) -> u32 {
            1
        }
        fn split_first(&mut self) -> Self {
            *self
        }
    }
}
