//! What the engine needs to know of a packet.

/// The ECN field of an IP header (RFC 3168 §5; RFC 9331 §2 gives ECT(1) to L4S).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be told by a drop.
    #[default]
    NotEct = 0b00,
    /// ECT(1): the sender's congestion control is scalable (L4S).
    Ect1 = 0b01,
    /// ECT(0): ECN-capable, classic.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The ECN field in the two low bits of `tos`, the IPv4 TOS or IPv6 traffic class byte.
    #[must_use]
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The field as two bits, 0 to 3.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a queue may set CE instead of dropping.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// How a packet is treated; the numbers are the minor class ids that `tc` names (`1:0`, `1:1`, `1:2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// The classic queue, dropped or marked with the squared probability.
    Classic = 0,
    /// The low latency queue, marked with the coupled probability and by the step (RFC 9332 §2.3).
    L4s = 1,
    /// The low latency queue, but no AQM touches the packet: for traffic known to be sparse, such as DNS or VoIP
    /// (the additional classifiers of RFC 9331 §5.4.1.1).
    LowLatency = 2,
}

impl Class {
    /// The class that a minor class id names; `None` for ids that DualPI2 does not have.
    #[must_use]
    pub const fn from_minor(minor: u16) -> Option<Self> {
        match minor {
            0 => Some(Self::Classic),
            1 => Some(Self::L4s),
            2 => Some(Self::LowLatency),
            _ => None,
        }
    }
}

/// One of the two queues (RFC 9332 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Queue {
    /// C: classic traffic.
    Classic = 0,
    /// L: low latency traffic.
    LowLatency = 1,
}

impl From<Class> for Queue {
    #[inline]
    fn from(class: Class) -> Self {
        if class == Class::Classic { Self::Classic } else { Self::LowLatency }
    }
}

/// A packet, as its owner sees it. The engine asks for [`length`](Self::length) and [`ecn`](Self::ecn) more than once:
/// between enqueue and dequeue they must answer the same, but for the ECN field that [`set_ce`](Self::set_ce) sets. What
/// [`memory`](Self::memory) says when the packet is enqueued counts until it leaves.
pub trait Packet {
    /// Bytes on the wire, link-layer header included (the kernel's `qdisc_pkt_len`).
    fn length(&self) -> u32;

    /// Bytes of memory the packet holds while it waits, overhead included (the kernel's `truesize`). Counts against
    /// [`Config::memory_limit`](crate::Config::memory_limit).
    fn memory(&self) -> u32;

    /// The ECN field; [`Ecn::NotEct`] for what is not IP.
    fn ecn(&self) -> Ecn;

    /// Sets the field to CE. Never called on a Not-ECT packet (RFC 3168 §5).
    fn set_ce(&mut self);

    /// The class that the packet's priority names, if it names one (the kernel's `skb->priority` under this queue's
    /// handle). Looked at when the ECN field did not decide.
    fn class(&self) -> Option<Class> {
        None
    }

    /// Whether this is an aggregate (GSO) that [`split`](Self::split) takes apart.
    fn is_gso(&self) -> bool {
        false
    }

    /// Takes an aggregate apart and hands each segment, in order, to `segment`. Called if
    /// [`is_gso`](Self::is_gso) and [`Config::split_gso`](crate::Config::split_gso).
    fn split(self, segment: &mut impl FnMut(Self))
    where
        Self: Sized,
    {
        segment(self);
    }
}
