use dualq_units::{Instant, Rate};

use crate::Packet;

/// What disciplines that know flows, priorities or pacing ask of a packet, beside what [`Packet`] says. Each answer has a
/// default, so that an empty `impl` makes a packet of one flow, of no priority, that may leave at once. The answers must not
/// change while the packet waits.
pub trait FlowPacket: Packet + Send + 'static {
    /// The flow: equal for packets of one flow, such as a hash of addresses and ports. Disciplines hash it further, so any
    /// number that tells flows apart does.
    fn flow(&self) -> u32 {
        0
    }

    /// The same for disciplines that look at addresses and ports themselves: not changed by a host that gives a connection another
    /// hash after a timeout, as Linux does (`sk_rethink_txhash`).
    fn addresses(&self) -> u32 {
        self.flow()
    }

    /// The socket that sent the packet, if that is on the discipline's own host: what `fq` tells local flows apart by,
    /// without collisions.
    fn socket(&self) -> Option<u32> {
        None
    }

    /// Linux's `skb->priority`: 0 is best effort, 6 interactive, 7 control, 2 bulk (tc-prio(8)). Only the four low bits
    /// count.
    fn priority(&self) -> u32 {
        0
    }

    /// The six bits of the IP header that say how it wants to be treated (RFC 2474), which stand before the ECN field.
    fn dscp(&self) -> u8 {
        0
    }

    /// The hosts that it comes from and goes to: any numbers that tell hosts apart.
    fn hosts(&self) -> [u32; 2] {
        [0, 0]
    }

    /// How many packets this is on the wire, and the length there of each but the last: more than one for an aggregate (GSO).
    fn segments(&self) -> (u32, u32) {
        (1, self.length())
    }

    /// What it acknowledges, if it is a segment of TCP without data.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }

    /// The earliest moment at which the packet may leave: what `fq` paces by.
    fn departure_time(&self) -> Option<Instant> {
        None
    }

    /// The same packet once more, if its owner can make one: a path that copies packets asks for it.
    fn copy(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// A bit of it is wrong from now on, so that its receiver will not take it.
    fn spoil(&mut self) {}

    /// The rate that the packet's socket allows its flow, where packets have no departure times (Linux's
    /// `SO_MAX_PACING_RATE` and TCP's internal pacing rate).
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// A segment of TCP that only acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PureAck {
    /// The connection, in one direction.
    pub connection: u32,
    /// Up to where it acknowledges.
    pub number: u64,
    /// Whether it selectively acknowledges more: then it says what no other acknowledgement is known to say.
    pub has_sacks: bool,
    /// The ECE and CWR flags, and AccECN's in time (RFC 3168, RFC 9768).
    pub ecn_flags: u8,
    /// Whether it has other flags or options, so that it must not be dropped for another one: SYN, FIN, PSH.
    pub is_special: bool,
}

/// Spreads what tells flows apart over 32 bits, the same way on every machine (the finalizer of MurmurHash3).
#[inline]
pub(crate) const fn hash(flow: u32) -> u32 {
    let mut hash = flow.wrapping_add(0x9e37_79b9);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
