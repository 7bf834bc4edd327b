//! Packets as C describes them, and what becomes of them.

use std::ffi::c_void;

/// The ECN field of an IP header (RFC 3168), for `ecn` of `struct dualpi2_packet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Ecn {
    /// Not ECN-capable, or not IP: congestion can only be told by a drop.
    NotEct = 0,
    /// ECT(1): low latency (L4S) traffic (RFC 9331).
    Ect1 = 1,
    /// ECT(0): ECN-capable classic traffic.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// The treatment that the caller asks for, for `priority_class` of `struct dualpi2_packet`. The ECN field decides before
/// it: a packet with ECT(1) or CE (or any ECT, with `any_ect`) is L4S whatever its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Class {
    /// The classic queue; also what any number that is not listed here stands for.
    Classic = 0,
    /// The low latency queue.
    L4s = 1,
    /// The low latency queue, but the AQM leaves the packet alone: for sparse traffic such as DNS or VoIP.
    LowLatency = 2,
    /// None: the packet is dropped, and counted.
    Refuse = 255,
}

/// One of the two queues (RFC 9332 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Queue {
    /// C: classic traffic.
    Classic = 0,
    /// L: low latency traffic.
    LowLatency = 1,
}

impl From<dualpi2::Queue> for Queue {
    fn from(queue: dualpi2::Queue) -> Self {
        match queue {
            dualpi2::Queue::Classic => Self::Classic,
            dualpi2::Queue::LowLatency => Self::LowLatency,
        }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum DropReason {
    /// The packet limit or the memory limit was reached.
    Overlimit = 0,
    /// The controller's probability said so.
    Congested = 1,
    /// The low latency queue's step would have marked it, but it is not ECN-capable.
    Step = 2,
    /// Its class was `DUALPI2_CLASS_REFUSE`.
    Refused = 3,
    /// A smaller limit took effect, or the queue was reset or destroyed.
    Flushed = 4,
}

impl From<dualpi2::DropReason> for DropReason {
    fn from(reason: dualpi2::DropReason) -> Self {
        match reason {
            dualpi2::DropReason::Overlimit => Self::Overlimit,
            dualpi2::DropReason::Step => Self::Step,
            dualpi2::DropReason::Refused => Self::Refused,
            dualpi2::DropReason::Flushed => Self::Flushed,
            // Congested, and the AQM's reasons that a later engine may tell apart.
            _ => Self::Congested,
        }
    }
}

/// A packet, described by its owner. Passed by value: the library keeps the description, not the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// The caller's own: handed back as it was given, never followed.
    pub user: *mut c_void,
    /// Bytes on the wire, link-layer header included.
    pub length: u32,
    /// Bytes of memory that the packet holds while it waits, overhead included; counts against `memory_limit`. With 0 for
    /// all packets that limit never applies.
    pub memory: u32,
    /// `enum dualpi2_ecn`. Only the two low bits count: the whole TOS or traffic class byte may be given, and comes back with
    /// CE set in it if the packet was marked.
    pub ecn: u8,
    /// `enum dualpi2_class`; 0 if there is nothing to say.
    pub priority_class: u8,
}

impl dualpi2::Packet for Packet {
    fn length(&self) -> u32 {
        self.length
    }

    fn memory(&self) -> u32 {
        self.memory
    }

    fn ecn(&self) -> dualpi2::Ecn {
        dualpi2::Ecn::from_bits(self.ecn)
    }

    fn set_ce(&mut self) {
        self.ecn |= dualpi2::Ecn::Ce.bits();
    }

    fn class(&self) -> Option<dualpi2::Class> {
        dualpi2::Class::from_minor(self.priority_class.into())
    }
}

impl Packet {
    /// The class of a packet that neither its ECN field nor its priority class places.
    pub(crate) fn fallback_class(&self) -> Option<dualpi2::Class> {
        (self.priority_class != Class::Refuse as u8).then_some(dualpi2::Class::Classic)
    }
}

/// A packet that leaves, and how it fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Departure {
    /// The packet, CE in its `ecn` if it was marked.
    pub packet: Packet,
    /// The queue it waited in.
    pub queue: Queue,
    /// How long it waited, in nanoseconds; 0 if the clock went backwards meanwhile.
    pub sojourn_ns: u64,
    /// The AQM marked it: before sending it, the caller must set CE in its IP header (and correct an IPv4 header's checksum).
    pub ce: bool,
    /// It was marked by the squared (classic) or coupled (L4S) probability.
    pub marked_by_probability: bool,
    /// It was marked by the low latency queue's step. A packet may be marked by both.
    pub marked_by_step: bool,
}

impl From<dualpi2::Departure<Packet>> for Departure {
    fn from(departure: dualpi2::Departure<Packet>) -> Self {
        let dualpi2::Departure {
            packet,
            queue,
            sojourn_ns,
            marked_by_probability,
            marked_by_step,
            ..
        } = departure;
        Self {
            packet,
            queue: queue.into(),
            sojourn_ns,
            ce: marked_by_probability || marked_by_step,
            marked_by_probability,
            marked_by_step,
        }
    }
}

/// Takes back a packet that is lost: `context` as given to `dualpi2_create`, the packet, the queue it was in or bound for,
/// and why.
pub type DropCallback = Option<
    unsafe extern "C" fn(context: *mut c_void, packet: Packet, queue: Queue, reason: DropReason),
>;
