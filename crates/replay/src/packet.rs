use dualq_qdisc::{Class, Ecn, FlowPacket, Packet};
use dualq_units::Instant;

/// Ethernet, IPv4 and TCP with timestamps: the headers that each segment of an aggregate gets.
pub(crate) const GSO_HEADERS: u32 = 14 + 20 + 32;

/// What a packet costs in memory beside its own bytes, where a trace does not tell: about Linux's `sk_buff` and the rounding
/// of its data.
pub(crate) const MEMORY_OVERHEAD: u32 = 768;

/// A packet that arrives at the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Bytes on the wire, with a 14-byte Ethernet header.
    pub length: u32,
    /// Bytes of memory that it holds while it waits (the kernel's `truesize`).
    pub memory: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// The class that its priority names under the qdisc's own handle.
    pub class: Option<Class>,
    /// The payload of one segment if this is an aggregate (GSO), else 0.
    pub gso_size: u32,
    /// The flow: a hash of addresses, protocol and ports; 0 where a trace does not tell.
    pub flow: u32,
}

/// An arrival on its way through a link: who it is, and which segment of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracked {
    pub(crate) id: u64,
    /// From 1; 0 for a packet that is whole.
    pub(crate) segment: u32,
    pub(crate) length: u32,
    memory: u32,
    gso_size: u32,
    pub(crate) ecn: Ecn,
    class: Option<Class>,
    flow: u32,
}

impl Tracked {
    pub(crate) const fn new(id: u64, arrival: &Arrival) -> Self {
        let Arrival { length, memory, ecn, class, gso_size, flow, .. } = *arrival;
        Self { id, segment: 0, length, memory, gso_size, ecn, class, flow }
    }
}

impl Packet for Tracked {
    #[inline]
    fn length(&self) -> u32 {
        self.length
    }

    #[inline]
    fn memory(&self) -> u32 {
        self.memory
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    #[inline]
    fn class(&self) -> Option<Class> {
        self.class
    }

    #[inline]
    fn is_gso(&self) -> bool {
        self.gso_size > 0
    }

    fn split(self, segment: &mut impl FnMut(Self)) {
        let mut payload = self.length.saturating_sub(GSO_HEADERS);
        let mut number = 0;
        while payload > 0 {
            let part = payload.min(self.gso_size);
            payload -= part;
            number += 1;
            let length = GSO_HEADERS + part;
            let memory = length.saturating_add(MEMORY_OVERHEAD);
            segment(Self { segment: number, length, memory, gso_size: 0, ..self });
        }
    }
}

impl FlowPacket for Tracked {
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }
}
