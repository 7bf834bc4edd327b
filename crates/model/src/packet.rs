//! What travels through the network.

use dualq_qdisc::{FlowPacket, PureAck};
use dualq_scenario::Kind;
use dualq_tcp::{
    Ack, Control, Data, ETHERNET_BYTES, EcnFlags, HEADER_BYTES, PACKET_OVERHEAD, PLAIN_HEADER_BYTES,
};
use dualq_units::hint::{cold_path, unlikely};
use dualq_units::{Ecn, Instant};

use crate::options::{AckOptions, Options, Stored};
use crate::other_way::OtherWay;
use crate::owner::Owner;

/// A packet on its way, or an aggregate of several.
#[derive(Debug)]
pub struct Packet {
    /// Whose it is.
    pub(crate) owner: Owner,
    /// What queues tell it by: in a tunnel, all are one; else another number with each seed, as Linux draws its hash's secret anew
    /// at boot. Above these bits stands how often the connection has timed out, as each time it takes another hash.
    pub(crate) flow: u32,
    pub(crate) body: Body,
}

/// The bits of a flow that do not change.
pub(crate) const ADDRESS_BITS: u32 = 24;
pub(crate) const ADDRESSES: u32 = (1 << ADDRESS_BITS) - 1;

/// What a packet is to its connection. What queues ask of it stands before the rest, so that they hand it on without looking
/// inside.
#[derive(Debug)]
pub(crate) struct Body {
    /// Bytes on the wire, Ethernet headers included; an aggregate counts the headers of each segment.
    wire_bytes: u32,
    segments: u16,
    ecn: Ecn,
    /// A bit is wrong, so that its receiver drops it.
    is_spoilt: bool,
    content: Content,
}

/// What a packet carries.
#[derive(Debug)]
enum Content {
    /// TCP segments with data, or without in the direction in which data go: a [`Data`] without what its [`Body`] has.
    Data {
        seq: u64,
        payload: u32,
        timestamp_ms: u32,
        echo_ms: u32,
        mss: u16,
        ecn_flags: EcnFlags,
        options: u8,
        control: Control,
        /// What they acknowledge: see [`OtherWay`].
        place: u32,
        window: u16,
    },
    /// A TCP acknowledgement, with what few have in [`Options`].
    Ack {
        ack: u64,
        /// All that can be told with a scale of 14 (RFC 7323 §2.3).
        window: u32,
        echo_ms: u32,
        /// See [`OtherWay`].
        place: u32,
        timestamp_ms: u32,
        options: Option<Stored>,
        ecn_flags: EcnFlags,
        control: Control,
        /// How many SACK blocks are among the options.
        blocks: u8,
    },
    /// An ICMP echo request or its reply.
    Echo { sent_ns: u64, number: u16, is_reply: bool },
    /// A UDP packet.
    Datagram { number: u64, sent_ns: u64 },
    /// The ICMP message of a router that a packet was too long.
    TooLong(TooLong),
}

/// What a packet was when it set out, for the host that it reaches.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// TCP segments with data, or without in the direction in which data go.
    Data(Data),
    /// A TCP acknowledgement.
    Ack(Ack),
    /// An ICMP echo request or its reply.
    Echo(Echo),
    /// A UDP packet.
    Datagram(Datagram),
    /// A router's message that a packet was too long.
    TooLong(TooLong),
}

/// The ICMP message of a router whose next link takes no longer IP packets than `mtu` (RFC 1191), and what it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooLong {
    pub(crate) mtu: u32,
    /// The packet's place in the stream, and its bytes.
    pub(crate) seq: u64,
    pub(crate) ip_bytes: u32,
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
    /// Counted from 1.
    pub(crate) number: u16,
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

impl Body {
    #[inline]
    pub(crate) const fn data(data: &Data) -> Self {
        let Data { seq, payload, segments, mss, timestamp_ms, echo_ms, ecn, control, .. } = *data;
        let content = Content::Data {
            seq,
            payload,
            timestamp_ms,
            echo_ms,
            mss,
            ecn_flags: data.flags,
            options: data.options,
            control,
            place: 0,
            window: 0,
        };
        Self { wire_bytes: data.wire_bytes(), segments, ecn, is_spoilt: false, content }
    }

    /// An acknowledgement.
    #[inline(always)]
    pub(crate) fn ack(ack: &Ack, options: &mut Options) -> Self {
        let Ack { blocks, block_count, option, control, .. } = *ack;
        let ip_bytes = match ack.has(Control::SYN) {
            true => {
                cold_path();
                Ack::syn_bytes(ack.has(Control::COOKIE), option.is_some())
            }
            false if unlikely(ack.has(Control::RESET)) => PLAIN_HEADER_BYTES,
            false => HEADER_BYTES + Ack::option_bytes(block_count, option.is_some()),
        };
        let has_options = block_count > 0 || option.is_some();
        let content = Content::Ack {
            ack: ack.ack,
            window: ack.window.min(u32::MAX.into()) as u32,
            echo_ms: ack.echo_ms,
            place: 0,
            timestamp_ms: ack.timestamp_ms,
            options: has_options.then(|| options.store(AckOptions { blocks, accurate: option })),
            ecn_flags: ack.flags,
            control,
            blocks: block_count,
        };
        Self::single(ip_bytes, ack.ecn, content)
    }

    /// These data acknowledge others, too.
    pub(crate) fn acknowledge(&mut self, ack: &Ack, window_scale: u32) {
        if let Content::Data { payload, ecn_flags, place, window, .. } = &mut self.content {
            *place = ack.ack as u32;
            *window = (ack.window >> window_scale).min(u16::MAX.into()) as u16;
            if *payload > 0 {
                *ecn_flags = ecn_flags.with(ack.flags);
            }
        }
    }

    /// The same, if it is an acknowledgement, of an end that has sent so much.
    pub(crate) const fn of_an_end_that_sent(self, bytes: u64) -> Self {
        if matches!(self.content, Content::Data { .. }) {
            return self;
        }
        self.with_other_way(OtherWay { place: bytes as u32, window: 0 })
    }

    const fn with_other_way(mut self, told: OtherWay) -> Self {
        match &mut self.content {
            Content::Data { place, window, .. } => (*place, *window) = (told.place, told.window),
            Content::Ack { place, .. } => *place = told.place,
            _ => {}
        }
        self
    }

    /// What its headers say of the other direction.
    pub(crate) const fn other_way(&self) -> OtherWay {
        match self.content {
            Content::Data { place, window, .. } => OtherWay { place, window },
            Content::Ack { place, .. } => OtherWay { place, window: 0 },
            _ => OtherWay { place: 0, window: 0 },
        }
    }

    pub(crate) const fn echo(Echo { sent_ns, number, is_reply, ecn }: Echo) -> Self {
        Self::single(PING_BYTES, ecn, Content::Echo { sent_ns, number, is_reply })
    }

    pub(crate) const fn datagram(datagram: Datagram) -> Self {
        let Datagram { number, sent_ns, ip_bytes, ecn } = datagram;
        Self::single(ip_bytes, ecn, Content::Datagram { number, sent_ns })
    }

    pub(crate) const fn too_long(message: TooLong) -> Self {
        Self::single(ICMP_ERROR_BYTES, Ecn::NotEct, Content::TooLong(message))
    }

    #[inline]
    const fn single(ip_bytes: u32, ecn: Ecn, content: Content) -> Self {
        let wire_bytes = ip_bytes + ETHERNET_BYTES;
        Self { wire_bytes, segments: 1, ecn, is_spoilt: false, content }
    }

    /// Bytes on the wire, Ethernet headers included; an aggregate counts the headers of each segment.
    #[inline]
    pub(crate) const fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    /// How many segments it is.
    #[inline]
    pub(crate) const fn segments(&self) -> u16 {
        self.segments
    }

    /// Payload bytes, for the memory that a packet takes. Where there is no TCP, they are what is longer than its headers.
    #[inline]
    const fn payload(&self) -> u32 {
        match &self.content {
            Content::Data { payload, .. } => *payload,
            Content::Ack { .. } => 0,
            _ => (self.wire_bytes - ETHERNET_BYTES).saturating_sub(HEADER_BYTES),
        }
    }

    /// Payload bytes, behind the headers that it has.
    pub(crate) const fn carried(&self) -> u32 {
        match &self.content {
            Content::Data { payload, control, .. } => {
                payload.saturating_sub(control.has(Control::FIN) as u32)
            }
            Content::Ack { .. } => 0,
            Content::Echo { .. } | Content::Datagram { .. } | Content::TooLong(_) => {
                (self.wire_bytes - ETHERNET_BYTES).saturating_sub(IP_BYTES + UDP_BYTES)
            }
        }
    }

    /// The places of TCP's stream that it takes, if it is data.
    #[inline]
    pub(crate) const fn data_bytes(&self) -> Option<u32> {
        if let Content::Data { payload, .. } = &self.content { Some(*payload) } else { None }
    }

    /// What it is.
    pub(crate) const fn kind(&self) -> Kind {
        match &self.content {
            Content::Data { .. } => Kind::Data,
            Content::Ack { .. } => Kind::Ack,
            Content::Echo { .. } => Kind::Echo,
            Content::Datagram { .. } => Kind::Udp,
            Content::TooLong(_) => Kind::Error,
        }
    }

    /// The place in the stream, or what else tells it from others of its flow.
    pub(crate) const fn seq(&self) -> u64 {
        match &self.content {
            Content::Data { seq, .. } => *seq,
            Content::Ack { ack, .. } => *ack,
            Content::TooLong(_) => 0,
            Content::Echo { sent_ns, .. } => *sent_ns,
            Content::Datagram { number, .. } => *number,
        }
    }

    /// Where options of it are stored, if it has any.
    #[inline]
    pub(crate) const fn stored(&self) -> Option<&Stored> {
        match &self.content {
            Content::Ack { options, .. } => options.as_ref(),
            _ => None,
        }
    }

    /// What it was made of. Its options are not stored any more.
    #[inline(always)]
    pub(crate) fn open(&mut self, options: &mut Options) -> Arrival {
        let stored = match &mut self.content {
            Content::Ack { options, .. } => options.take(),
            _ => None,
        };
        self.arrival(|| stored.map(|stored| options.take(stored)))
    }

    /// The same, and its options stay where they are.
    pub(crate) fn look(&self, options: &Options) -> Arrival {
        let stored = self.stored();
        self.arrival(|| stored.map(|stored| options.get(stored)))
    }

    /// The same with options that are looked for only if there may be some.
    #[inline(always)]
    fn arrival(&self, options: impl FnOnce() -> Option<AckOptions>) -> Arrival {
        let Self { segments, ecn, content, .. } = self;
        let (segments, ecn) = (*segments, *ecn);
        match *content {
            Content::Data {
                seq,
                payload,
                timestamp_ms,
                echo_ms,
                mss,
                ecn_flags,
                options,
                control,
                ..
            } => Arrival::Data(Data {
                seq,
                payload,
                segments,
                mss,
                timestamp_ms,
                echo_ms,
                ecn,
                flags: ecn_flags,
                options,
                control,
            }),
            Content::Ack {
                ack,
                window,
                echo_ms,
                timestamp_ms,
                ecn_flags,
                control,
                blocks: block_count,
                ..
            } => {
                let mut opened = Ack {
                    ack,
                    window: window.into(),
                    block_count,
                    flags: ecn_flags,
                    ecn,
                    control,
                    echo_ms,
                    timestamp_ms,
                    ..Ack::default()
                };
                if let Some(AckOptions { blocks, accurate }) = options() {
                    (opened.blocks, opened.option) = (blocks, accurate);
                }
                Arrival::Ack(opened)
            }
            _ => self.seldom_arrival(),
        }
    }

    /// The same of what is neither data nor their acknowledgement.
    #[cold]
    fn seldom_arrival(&self) -> Arrival {
        let Self { wire_bytes, ecn, .. } = *self;
        match self.content {
            Content::Echo { sent_ns, number, is_reply } => {
                Arrival::Echo(Echo { sent_ns, number, is_reply, ecn })
            }
            Content::Datagram { number, sent_ns } => {
                let ip_bytes = wire_bytes - ETHERNET_BYTES;
                Arrival::Datagram(Datagram { number, sent_ns, ip_bytes, ecn })
            }
            Content::TooLong(message) => Arrival::TooLong(message),
            Content::Data { .. } | Content::Ack { .. } => unreachable!("these are often there"),
        }
    }

    /// The same again, for another packet.
    pub(crate) fn copy(&self, options: &mut Options) -> Self {
        let copy = match self.look(options) {
            Arrival::Data(data) => Self::data(&data),
            Arrival::Ack(ack) => Self::ack(&ack, options),
            Arrival::Echo(echo) => Self::echo(echo),
            Arrival::Datagram(datagram) => Self::datagram(datagram),
            Arrival::TooLong(message) => Self::too_long(message),
        };
        copy.with_other_way(self.other_way())
    }

    /// Takes the first segment off an aggregate, as [`Data::split_first`] does; none if one is left.
    #[inline]
    fn split_first(&mut self) -> Option<Self> {
        let Content::Data {
            seq,
            payload,
            timestamp_ms,
            echo_ms,
            mss,
            ecn_flags,
            options,
            control,
            place,
            window,
        } = &mut self.content
        else {
            return None;
        };
        if self.segments <= 1 {
            return None;
        }
        *control = control.with(Control::CUT);
        let length = u32::from(*mss);
        let content = Content::Data {
            seq: *seq,
            payload: length,
            timestamp_ms: *timestamp_ms,
            echo_ms: *echo_ms,
            mss: *mss,
            ecn_flags: *ecn_flags,
            options: *options,
            control: control.without(Control::PUSH.with(Control::FIN)),
            place: *place,
            window: *window,
        };
        let wire_bytes = length + HEADER_BYTES + u32::from(*options) + ETHERNET_BYTES;
        *seq += u64::from(length);
        *payload -= length;
        *ecn_flags = ecn_flags.of_rest();
        self.wire_bytes -= wire_bytes;
        self.segments -= 1;
        self.is_spoilt = false;
        Some(Self { wire_bytes, segments: 1, ecn: self.ecn, is_spoilt: false, content })
    }

    /// Whether a bit is wrong.
    #[inline]
    pub(crate) const fn is_spoilt(&self) -> bool {
        self.is_spoilt
    }

    /// It is lost: what is stored for it is so no longer.
    pub(crate) fn discard(self, options: &mut Options) {
        if let Content::Ack { options: Some(stored), .. } = self.content {
            options.take(stored);
        }
    }
}

impl Packet {
    /// Whether its own sender of data, or of pings, waits for it.
    #[inline]
    pub(crate) const fn is_answer(&self) -> bool {
        matches!(self.body.content, Content::Ack { .. } | Content::Echo { is_reply: true, .. })
    }

    /// Whether a router sent it.
    pub(crate) const fn is_of_router(&self) -> bool {
        matches!(self.body.content, Content::TooLong(_))
    }

    /// Takes the aggregate apart, if it is one.
    #[inline]
    pub(crate) fn segments(mut self, segment: &mut impl FnMut(Self)) {
        while let Some(body) = self.body.split_first() {
            segment(Self { body, ..self });
        }
        segment(self);
    }
}

impl dualq_qdisc::Packet for Packet {
    #[inline]
    fn length(&self) -> u32 {
        self.body.wire_bytes
    }

    #[inline]
    fn memory(&self) -> u32 {
        self.body.payload() + PACKET_OVERHEAD
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.body.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.body.ecn = Ecn::Ce;
    }

    #[inline]
    fn is_gso(&self) -> bool {
        self.body.segments > 1
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

    #[inline]
    fn addresses(&self) -> u32 {
        self.flow & ADDRESSES
    }

    /// Of an acknowledgement with options that are stored elsewhere there is no second one: who has it knows what they say.
    fn copy(&self) -> Option<Self> {
        if matches!(self.body.content, Content::Ack { options: Some(_), .. }) {
            return None;
        }
        Some(Self { body: self.body.copy(&mut Options::default()), ..*self })
    }

    fn spoil(&mut self) {
        self.body.is_spoilt = true;
    }

    /// All that are opened in one direction are with one host there; a tunnel has one host at each end.
    fn hosts(&self) -> [u32; 2] {
        let [opener, other] = [self.owner.host(), u32::MAX];
        if self.is_answer() != self.owner.is_accepted() { [other, opener] } else { [opener, other] }
    }

    fn segments(&self) -> (u32, u32) {
        match &self.body.content {
            Content::Data { mss, options, .. } if self.body.segments > 1 => {
                let headers = HEADER_BYTES + u32::from(*options) + ETHERNET_BYTES;
                (self.body.segments.into(), u32::from(*mss) + headers)
            }
            _ => (1, self.body.wire_bytes),
        }
    }

    fn pure_ack(&self) -> Option<PureAck> {
        let Content::Ack { ack, ecn_flags, control, blocks, .. } = &self.body.content else {
            return None;
        };
        (!self.owner.is_hidden()).then(|| PureAck {
            connection: self.owner.number(),
            number: *ack,
            has_sacks: *blocks > 0,
            ecn_flags: ecn_flags.bits(),
            is_special: control.has(Control::SYN.with(Control::FIN)),
        })
    }
}

impl dualq_net::Packet for Packet {
    fn clear_ecn(&mut self) {
        self.body.ecn = Ecn::NotEct;
    }

    fn ip_bytes(&self) -> u32 {
        match self.body.content {
            Content::Data { mss, options, .. } if self.body.segments > 1 => {
                u32::from(mss) + HEADER_BYTES + u32::from(options)
            }
            _ => self.body.wire_bytes - ETHERNET_BYTES,
        }
    }

    #[inline]
    fn origin(&self) -> u32 {
        self.owner.number()
    }
}

#[cfg(test)]
mod tests {
    use dualq_tcp::{EcnBytes, SackBlock};

    use super::*;

    #[test]
    fn packets_are_small() {
        assert!(size_of::<Option<Packet>>() <= 48, "{}", size_of::<Option<Packet>>());
    }

    #[test]
    fn acknowledgements_are_what_they_were_and_leave_nothing_behind() {
        let mut options = Options::default();
        let block = |start| SackBlock { start, end: start + 10 };
        let full = Ack {
            ack: 5,
            window: 7,
            blocks: [block(20), block(40), SackBlock::default()],
            block_count: 2,
            flags: EcnFlags::from_bits(0b101),
            option: Some(EcnBytes::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9])),
            ecn: Ecn::Ect0,
            control: Control::DSACK.with(Control::FIN),
            echo_ms: 3,
            timestamp_ms: 4,
        };
        let other_way = OtherWay { place: 11, window: 0 };
        let body = Body::ack(&full, &mut options).with_other_way(other_way);
        assert_eq!(body.wire_bytes(), 94);
        let (copy, lost) = (body.copy(&mut options), body.copy(&mut options));
        lost.discard(&mut options);
        for mut body in [body, copy] {
            assert_eq!(body.other_way(), other_way);
            let Arrival::Ack(ack) = body.open(&mut options) else { unreachable!("it is one") };
            assert_eq!(ack, full);
        }
        assert_eq!(options.len(), 0);
        let plain = Body::ack(&Ack::default(), &mut options);
        assert_eq!((plain.wire_bytes(), options.len()), (66, 0));
    }

    #[test]
    fn data_are_what_they_were() {
        let whole = Data {
            seq: 1 << 40,
            payload: 2500,
            segments: 3,
            mss: 1000,
            timestamp_ms: 5,
            echo_ms: 6,
            ecn: Ecn::Ect0,
            flags: EcnFlags::CWR,
            options: 12,
            control: Control::PUSH,
        };
        let packet = |body| Packet { owner: Owner::new(7, 1), flow: 8, body };
        let other_way = OtherWay { place: 9, window: 10 };
        let mut parts = Vec::new();
        packet(Body::data(&whole).with_other_way(other_way)).segments(&mut |part| parts.push(part));
        let mut rest = whole;
        for mut part in parts {
            let expected = rest.split_first();
            assert_eq!(part.body.wire_bytes(), expected.wire_bytes());
            assert_eq!(part.body.other_way(), other_way);
            let Arrival::Data(data) = part.body.open(&mut Options::default()) else {
                unreachable!("it is data")
            };
            assert_eq!(data, expected);
        }
        assert_eq!((rest.segments, rest.payload), (1, 500));
    }
}
