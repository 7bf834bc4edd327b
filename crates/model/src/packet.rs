//! What travels through the network.

use dualq_qdisc::{FlowPacket, PureAck};
use dualq_scenario::Kind;
use dualq_tcp::{Ack, Data, ETHERNET_BYTES, HEADER_BYTES, PACKET_OVERHEAD, SYN_BYTES, SackBlock};
use dualq_units::{Ecn, Instant};

use crate::sacks::{Sacks, Stored};

/// A packet on its way, or an aggregate of several.
#[derive(Debug)]
pub struct Packet {
    /// Whose it is.
    pub(crate) owner: Owner,
    /// What queues tell it by: in a tunnel, all are one; else another number with each seed, as Linux draws its hash's secret anew
    /// at boot.
    pub(crate) flow: u32,
    pub(crate) body: Body,
}

/// A connection, and the host that opened it, which has a group of the scenario to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    const NUMBER_BITS: u32 = 24;
    /// Where a tunnel hides who it is.
    const TUNNEL: usize = 0xff;

    /// Of more hosts than eight bits tell apart, some are taken for one.
    pub(crate) const fn new(number: u32, group: usize) -> Self {
        Self(number | ((group % Self::TUNNEL) as u32) << Self::NUMBER_BITS)
    }

    /// Inside a tunnel.
    pub(crate) const fn hidden(number: u32) -> Self {
        Self(number | (Self::TUNNEL as u32) << Self::NUMBER_BITS)
    }

    /// The connection's number.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }

    const fn host(self) -> u32 {
        self.0 >> Self::NUMBER_BITS
    }

    const fn is_hidden(self) -> bool {
        self.host() == Self::TUNNEL as u32
    }
}

/// What a packet carries.
#[derive(Debug)]
pub(crate) enum Body {
    /// TCP segments with data, or without in the direction in which data go.
    Data(Data),
    /// A TCP acknowledgement.
    Ack(SmallAck),
    /// The acknowledgement of an answer that came with an acknowledgement: nobody waits for it.
    AnswerAck(Ecn),
    /// An ICMP echo request or its reply.
    Echo(Echo),
    /// A UDP packet.
    Datagram(Datagram),
    /// The ICMP message of a router whose next link takes no IP packets longer than this (RFC 1191).
    TooLong(u32),
}

/// A UDP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Its number in its stream.
    pub(crate) number: u64,
    pub(crate) sent_ns: u64,
    pub(crate) ip_bytes: u32,
    pub(crate) ecn: Ecn,
}

/// An ICMP echo request or its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    /// When the request was sent.
    pub(crate) sent_ns: u64,
    pub(crate) is_reply: bool,
    pub(crate) ecn: Ecn,
}

/// What `ping` sends by default: an IP packet of so many bytes.
const PING_BYTES: u32 = 84;
/// The header of IP, and that of UDP, which is as long as that of ICMP.
pub(crate) const IP_BYTES: u32 = 20;
pub(crate) const UDP_BYTES: u32 = 8;
/// An ICMP error: its own headers, and the header and first eight bytes of what it is about (RFC 792).
const ICMP_ERROR_BYTES: u32 = 20 + 8 + 20 + 8;

/// A packet that leaves a sender, and when its interface's queue may let it go.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) body: Body,
    pub(crate) departure: Instant,
}

/// An [`Ack`] that is as small as data are: its SACK blocks, which few have, lie in [`Sacks`].
#[derive(Debug)]
pub(crate) struct SmallAck {
    ack: u64,
    window: u64,
    echo_ms: u32,
    timestamp_ms: u32,
    blocks: Option<Stored>,
    block_count: u8,
    flags: u8,
    ecn: Ecn,
    /// Bytes of an answer that travels with it.
    answer: u8,
}

const DSACK: u8 = 1;
const ECE: u8 = 2;
const SYN: u8 = 4;

impl SmallAck {
    #[inline]
    pub(crate) fn new(ack: &Ack, ecn: Ecn, answer: u8, sacks: &mut Sacks) -> Self {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        Self {
            ack: ack.ack,
            window: ack.window,
            echo_ms: ack.echo_ms,
            timestamp_ms: ack.timestamp_ms,
            blocks: (ack.block_count > 0).then(|| sacks.store(ack.blocks)),
            block_count: ack.block_count,
            flags: flag(ack.dsack, DSACK) | flag(ack.ece, ECE) | flag(ack.syn, SYN),
            ecn,
            answer: if ack.syn { 0 } else { answer },
        }
    }

    /// What it was made of. Its blocks are not stored any more.
    #[inline]
    pub(crate) fn open(self, sacks: &mut Sacks) -> Ack {
        let blocks = self.blocks.map_or([SackBlock::default(); 3], |blocks| sacks.take(blocks));
        Ack {
            ack: self.ack,
            window: self.window,
            blocks,
            block_count: self.block_count,
            dsack: self.flags & DSACK > 0,
            ece: self.flags & ECE > 0,
            syn: self.flags & SYN > 0,
            echo_ms: self.echo_ms,
            timestamp_ms: self.timestamp_ms,
        }
    }

    /// Bytes of the IP packet. SACK blocks take eight each, and four for their option and its padding.
    #[inline]
    const fn ip_bytes(&self) -> u32 {
        if self.flags & SYN > 0 {
            return SYN_BYTES;
        }
        let sack = if self.block_count > 0 { 4 + 8 * self.block_count as u32 } else { 0 };
        HEADER_BYTES + sack + self.answer as u32
    }
}

impl Body {
    /// Bytes on the wire, Ethernet headers included; an aggregate counts the headers of each segment.
    #[inline]
    pub(crate) const fn wire_bytes(&self) -> u32 {
        // Most are these, and told apart at less cost than all.
        if let Self::Data(data) = self {
            return data.wire_bytes();
        }
        match self {
            Self::Data(data) => data.wire_bytes(),
            Self::Ack(ack) => ack.ip_bytes() + ETHERNET_BYTES,
            Self::AnswerAck(_) => HEADER_BYTES + ETHERNET_BYTES,
            Self::Echo(_) => PING_BYTES + ETHERNET_BYTES,
            Self::Datagram(datagram) => datagram.ip_bytes + ETHERNET_BYTES,
            Self::TooLong(_) => ICMP_ERROR_BYTES + ETHERNET_BYTES,
        }
    }

    /// Payload bytes, for the memory that a packet takes. Where there is no TCP, they are what is longer than its headers.
    #[inline]
    pub(crate) const fn payload(&self) -> u32 {
        match self {
            Self::Data(data) => data.payload,
            Self::Ack(ack) => ack.answer as u32,
            Self::AnswerAck(_) => 0,
            Self::Echo(_) => PING_BYTES - HEADER_BYTES,
            Self::Datagram(datagram) => datagram.ip_bytes.saturating_sub(HEADER_BYTES),
            Self::TooLong(_) => ICMP_ERROR_BYTES - HEADER_BYTES,
        }
    }

    /// Payload bytes, behind the headers that it has.
    pub(crate) const fn carried(&self) -> u32 {
        match self {
            Self::Data(data) => data.payload,
            Self::Ack(ack) => ack.answer as u32,
            Self::AnswerAck(_) => 0,
            Self::Echo(_) | Self::Datagram(_) | Self::TooLong(_) => {
                (self.wire_bytes() - ETHERNET_BYTES).saturating_sub(IP_BYTES + UDP_BYTES)
            }
        }
    }

    /// What it is.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Data(_) | Self::AnswerAck(_) => Kind::Data,
            Self::Ack(_) => Kind::Ack,
            Self::Echo(_) => Kind::Echo,
            Self::Datagram(_) => Kind::Udp,
            Self::TooLong(_) => Kind::Error,
        }
    }

    /// The place in the stream, or what else tells it from others of its flow.
    pub(crate) const fn seq(&self) -> u64 {
        match self {
            Self::Data(data) => data.seq,
            Self::Ack(ack) => ack.ack,
            Self::AnswerAck(_) | Self::TooLong(_) => 0,
            Self::Echo(echo) => echo.sent_ns,
            Self::Datagram(datagram) => datagram.number,
        }
    }

    /// How many segments it is.
    #[inline]
    pub(crate) const fn segments(&self) -> u16 {
        match self {
            Self::Data(data) => data.segments,
            _ => 1,
        }
    }

    #[inline]
    const fn ecn(&self) -> Ecn {
        if let Self::Data(data) = self {
            return data.ecn;
        }
        match self {
            Self::Data(data) => data.ecn,
            Self::Ack(ack) => ack.ecn,
            Self::AnswerAck(ecn) => *ecn,
            Self::Echo(echo) => echo.ecn,
            Self::Datagram(datagram) => datagram.ecn,
            Self::TooLong(_) => Ecn::NotEct,
        }
    }

    #[inline]
    const fn set_ecn(&mut self, ecn: Ecn) {
        match self {
            Self::Data(data) => data.ecn = ecn,
            Self::Ack(ack) => ack.ecn = ecn,
            Self::AnswerAck(own) => *own = ecn,
            Self::Echo(echo) => echo.ecn = ecn,
            Self::Datagram(datagram) => datagram.ecn = ecn,
            Self::TooLong(_) => {}
        }
    }

    /// The same again, for another packet.
    pub(crate) fn copy(&self, sacks: &mut Sacks) -> Self {
        match self {
            Self::Data(data) => Self::Data(*data),
            Self::Ack(ack) => {
                let blocks = ack.blocks.as_ref().map(|blocks| sacks.copy(blocks));
                Self::Ack(SmallAck { blocks, ..*ack })
            }
            Self::AnswerAck(ecn) => Self::AnswerAck(*ecn),
            Self::Echo(echo) => Self::Echo(*echo),
            Self::Datagram(datagram) => Self::Datagram(*datagram),
            Self::TooLong(mtu) => Self::TooLong(*mtu),
        }
    }

    /// It is lost: what is stored for it is so no longer.
    pub(crate) fn discard(self, sacks: &mut Sacks) {
        if let Self::Ack(SmallAck { blocks: Some(blocks), .. }) = self {
            sacks.take(blocks);
        }
    }
}

impl Packet {
    /// Whether its own sender of data, or of pings, waits for it.
    #[inline]
    pub(crate) const fn is_answer(&self) -> bool {
        matches!(self.body, Body::Ack(_) | Body::Echo(Echo { is_reply: true, .. }))
    }

    /// Takes the aggregate apart, if it is one.
    #[inline]
    pub(crate) fn segments(self, segment: &mut impl FnMut(Self)) {
        let Self { owner, flow, body } = self;
        let mut data = match body {
            Body::Data(data) => data,
            body => return segment(Self { owner, flow, body }),
        };
        while data.segments > 1 {
            segment(Self { owner, flow, body: Body::Data(data.split_first()) });
        }
        segment(Self { owner, flow, body: Body::Data(data) });
    }
}

impl dualq_qdisc::Packet for Packet {
    #[inline]
    fn length(&self) -> u32 {
        self.body.wire_bytes()
    }

    #[inline]
    fn memory(&self) -> u32 {
        self.body.payload() + PACKET_OVERHEAD
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.body.ecn()
    }

    #[inline]
    fn set_ce(&mut self) {
        self.body.set_ecn(Ecn::Ce);
    }

    #[inline]
    fn is_gso(&self) -> bool {
        self.body.segments() > 1
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

    /// All that are opened in one direction are with one host there; a tunnel has one host at each end.
    fn hosts(&self) -> [u32; 2] {
        let [opener, other] = [self.owner.host(), u32::MAX];
        if self.is_answer() { [other, opener] } else { [opener, other] }
    }

    fn segments(&self) -> (u32, u32) {
        match &self.body {
            Body::Data(data) if data.segments > 1 => {
                (data.segments.into(), u32::from(data.mss) + HEADER_BYTES + ETHERNET_BYTES)
            }
            body => (1, body.wire_bytes()),
        }
    }

    fn pure_ack(&self) -> Option<PureAck> {
        let Body::Ack(ack) = &self.body else { return None };
        (!self.owner.is_hidden()).then(|| PureAck {
            connection: self.owner.number(),
            number: ack.ack,
            has_sacks: ack.block_count > 0,
            ecn_flags: ack.flags & ECE,
            is_special: ack.answer > 0 || ack.flags & SYN > 0,
        })
    }
}

impl dualq_net::Packet for Packet {
    fn clear_ecn(&mut self) {
        self.body.set_ecn(Ecn::NotEct);
    }

    fn ip_bytes(&self) -> u32 {
        match &self.body {
            Body::Data(data) if data.segments > 1 => u32::from(data.mss) + HEADER_BYTES,
            body => body.wire_bytes() - ETHERNET_BYTES,
        }
    }

    #[inline]
    fn origin(&self) -> u32 {
        self.owner.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_small() {
        assert!(size_of::<Packet>() <= 48, "{}", size_of::<Packet>());
    }

    #[test]
    fn acknowledgements_are_what_they_were_and_leave_nothing_behind() {
        let mut sacks = Sacks::default();
        let block = |start| SackBlock { start, end: start + 10 };
        let full = Ack {
            ack: 5,
            window: 7,
            blocks: [block(20), block(40), SackBlock::default()],
            block_count: 2,
            dsack: true,
            ece: true,
            syn: false,
            echo_ms: 3,
            timestamp_ms: 4,
        };
        let body = Body::Ack(SmallAck::new(&full, Ecn::NotEct, 0, &mut sacks));
        assert_eq!(body.wire_bytes(), 86);
        let (copy, lost) = (body.copy(&mut sacks), body.copy(&mut sacks));
        lost.discard(&mut sacks);
        for body in [body, copy] {
            let Body::Ack(small) = body else { unreachable!("it is one") };
            assert_eq!(small.open(&mut sacks), full);
        }
        assert_eq!(sacks.len(), 0);
        let plain = SmallAck::new(&Ack::default(), Ecn::NotEct, 48, &mut sacks);
        assert_eq!((plain.ip_bytes(), sacks.len()), (100, 0));
    }
}
