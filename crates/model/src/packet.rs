//! A packet on its way through the bottleneck.

use dualq_qdisc::FlowPacket;
use dualq_tcp::{Data, PACKET_OVERHEAD};
use dualq_units::Ecn;

/// A segment of a connection, or an aggregate of several.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The connection's number.
    pub(crate) connection: u32,
    /// What queues tell it by: in a tunnel, all are one; else another number with each seed, as Linux draws its hash's secret anew
    /// at boot.
    pub(crate) flow: u32,
    pub(crate) data: Data,
}

impl Packet {
    /// Takes the aggregate apart, if it is one.
    #[inline]
    pub(crate) fn segments(mut self, segment: &mut impl FnMut(Self)) {
        while self.data.segments > 1 {
            segment(Self { data: self.data.split_first(), ..self });
        }
        segment(self);
    }
}

impl dualq_qdisc::Packet for Packet {
    #[inline]
    fn length(&self) -> u32 {
        self.data.wire_bytes()
    }

    #[inline]
    fn memory(&self) -> u32 {
        self.data.payload + PACKET_OVERHEAD
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.data.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.data.ecn = Ecn::Ce;
    }

    #[inline]
    fn is_gso(&self) -> bool {
        self.data.segments > 1
    }

    fn split(self, segment: &mut impl FnMut(Self)) {
        self.segments(segment);
    }
}

impl FlowPacket for Packet {
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }
}
