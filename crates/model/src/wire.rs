//! Packets as they look on the wire: IPv4 with TCP, UDP or ICMP, without payload.
//!
//! Hosts have the addresses and ports that they have in the world `kernel`. Streams begin with sequence number 1, behind a SYN of
//! number 0. Where there are data both ways, their packets have the same ends. Identifications are 0, as may be where nothing is
//! fragmented (RFC 6864 §4.1). Checksums are those of a payload of zeros.

use std::borrow::Cow;

use dualq_qdisc::Packet as _;
use dualq_scenario::{Headers, Point, Scenario};
use dualq_tcp::{Ack, Control, Data, EcnBytes, EcnFlags, SackBlock, WINDOW_SCALE};
use dualq_units::{Ecn, Instant};
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Type, IpEcn, IpNumber, Ipv4Header, TcpHeader,
    TcpOptionElement, UdpHeader,
};

use crate::host::Connection;
use crate::options::Options;
use crate::other_way::OtherWay;
use crate::packet::{Arrival, Datagram, Echo, IP_BYTES, Packet, TooLong, UDP_BYTES};

/// The receivers of what goes down and of what goes up, and a router: host 1 of networks for which no scenario has enough groups.
const FAR_RECEIVER: [u8; 4] = [10, 2, 0, 1];
const NEAR_RECEIVER: [u8; 4] = [10, 1, 255, 1];
const ROUTER: [u8; 4] = [10, 3, 0, 254];
/// The ports of receivers, one for each group of its kind, and the first of senders (Linux: `ip_local_port_range`).
const FLOW_PORT: u16 = 5001;
const PROBE_PORT: u16 = 6001;
const UDP_PORT: u16 = 7001;
const FIRST_PORT: u32 = 32_768;
const TIME_TO_LIVE: u8 = 64;
/// IP and TCP without options: what the MSS leaves of an MTU.
const PLAIN_HEADERS: u32 = 40;
/// What who sends data offers in return, which nobody uses: 64 KB.
const IDLE_WINDOW: u16 = ((1 << 16) >> WINDOW_SCALE) as u16;
const IDLE_SYN_WINDOW: u16 = 64_240;
/// The option of Accurate ECN whose first counter is that of ECT(1), as Linux writes it, and what its counters begin with (RFC 9768 §3.2.1, §3.2.3).
const ACCURATE_ECN: u8 = 174;
const FIRST_COUNTERS: [u8; 9] = [0, 0, 1, 0, 0, 0, 0, 0, 1];
const NO_OPERATION: u8 = 1;
/// The option of TCP Fast Open (RFC 7413 §4.1.1).
const FAST_OPEN: u8 = 34;
/// What an ICMP error quotes behind the IP header (RFC 792).
const QUOTED_BYTES: usize = 8;
/// For checksums.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The ends of a connection: first its sender of data.
#[derive(Clone, Copy, Debug)]
struct Ends {
    addresses: [[u8; 4]; 2],
    ports: [u16; 2],
    /// What both offer as the largest segment.
    mss: u16,
    /// Whether there are data the other way, of which packets tell.
    both_ways: bool,
    /// The receiver's window scale option.
    scale: u32,
}

/// Makes headers of packets.
#[derive(Debug)]
pub(crate) struct Wire {
    ends: Vec<Ends>,
    /// The headers made last.
    bytes: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(scenario: &Scenario, connections: &[Connection]) -> Self {
        let (flows, probes) = (scenario.flow.len(), scenario.probe.len());
        let mut within = vec![0; scenario.groups()];
        let mss = scenario.link.mtu.saturating_sub(PLAIN_HEADERS) as u16;
        let mut all: Vec<Ends> = Vec::with_capacity(connections.len());
        for connection in connections {
            let other = connection.route.counterpart.and_then(|other| all.get(other as usize));
            // The other direction of a connection that is there already.
            if let Some(&Ends { addresses: [to, from], ports: [target, source], .. }) = other {
                let ends = Ends::of(connection, mss, [from, to], [source, target]);
                all.push(ends);
                continue;
            }
            let owner = connection.owner;
            let number = within[owner];
            within[owner] += 1;
            let [sender, receiver] = match connection.route.direction.is_down() {
                true => [[10, 1, owner as u8, 1], FAR_RECEIVER],
                false => [[10, 2, owner as u8 + 1, 1], NEAR_RECEIVER],
            };
            let port = match owner {
                _ if owner < flows => FLOW_PORT + owner as u16,
                _ if owner < flows + probes => PROBE_PORT + (owner - flows) as u16,
                _ => UDP_PORT + (owner - flows - probes) as u16,
            };
            let source_port = FIRST_PORT + number % (1 + u32::from(u16::MAX) - FIRST_PORT);
            all.push(Ends::of(connection, mss, [sender, receiver], [source_port as u16, port]));
        }
        Self { ends: all, bytes: Vec::new() }
    }

    /// What a capture sees of a packet.
    pub(crate) fn headers(
        &mut self,
        now: Instant,
        point: Point,
        packet: &Packet,
        options: &Options,
    ) -> Headers<'_> {
        let Self { ends, bytes } = self;
        bytes.clear();
        let number = packet.owner.number();
        let ends = &ends[number as usize];
        let (carried, other_way) = (packet.body.carried(), packet.body.other_way());
        let length = match packet.body.look(options) {
            Arrival::Data(data) => ends.data(&data, other_way, bytes),
            Arrival::Ack(ack) => ends.ack(&ack, packet.ecn(), other_way, bytes),
            Arrival::Echo(echo) => ends.echo(number, echo, carried, bytes),
            Arrival::Datagram(datagram) => ends.datagram(datagram, bytes),
            Arrival::TooLong(message) => ends.too_long(message, bytes),
        };
        Headers { at_ns: now.as_nanos(), point, length, bytes: Cow::Borrowed(bytes) }
    }
}

/// The option of Fast Open, padded: that asks for a cookie, and with one, whose bytes nobody looks at (RFC 7413 §4.1.1).
const ASKS_FOR_COOKIE: &[u8] = &[FAST_OPEN, 2, NO_OPERATION, NO_OPERATION];
const HAS_COOKIE: &[u8] = &[FAST_OPEN, 10, 0, 0, 0, 0, 0, 0, 0, 0, NO_OPERATION, NO_OPERATION];

/// The number of a place in a stream: 32 bits, and the SYN comes before the first byte.
const fn sequence(place: u64) -> u32 {
    place.wrapping_add(1) as u32
}

/// Sets AE, CWR and ECE, or the field ACE, whose places these are (RFC 9768 §3.1).
const fn set_flags(tcp: &mut TcpHeader, flags: EcnFlags) {
    let bits = flags.bits();
    (tcp.ns, tcp.cwr, tcp.ece) = (bits & 0b100 != 0, bits & 0b010 != 0, bits & 0b001 != 0);
}

/// The option of Accurate ECN, padded; beside two SACK blocks it has its first two fields (RFC 9768 §3.2.3).
fn accurate_option(counters: EcnBytes, blocks: u8) -> Vec<u8> {
    let fields = if blocks < 2 { 9 } else { 6 };
    let mut option = vec![ACCURATE_ECN, 2 + fields as u8];
    option.extend(&counters.to_bytes()[..fields]);
    option.resize(option.len().next_multiple_of(4), NO_OPERATION);
    option
}

impl Ends {
    const fn of(
        connection: &Connection,
        mss: u16,
        addresses: [[u8; 4]; 2],
        ports: [u16; 2],
    ) -> Self {
        let both_ways = connection.route.counterpart.is_some();
        let scale = connection.receiver.window_scale();
        Self { addresses, ports, mss, both_ways, scale }
    }

    /// The IP header of a packet with so many bytes behind it, and what the sender of data is the target of.
    fn ip(&self, back: bool, protocol: IpNumber, ecn: Ecn, payload: u32) -> Ipv4Header {
        let [from, to] = if back { [1, 0] } else { [0, 1] };
        let (source, target) = (self.addresses[from], self.addresses[to]);
        let payload = payload.min(u32::from(u16::MAX) - IP_BYTES) as u16;
        let header = Ipv4Header::new(payload, TIME_TO_LIVE, protocol, source, target);
        let mut header = header.expect("it fits");
        header.ecn = IpEcn::try_new(ecn.bits()).expect("two bits");
        header.dont_fragment = true;
        header.header_checksum = header.calc_header_checksum();
        header
    }

    fn tcp(&self, back: bool, sequence: u32, window: u16) -> TcpHeader {
        let [from, to] = if back { [1, 0] } else { [0, 1] };
        TcpHeader::new(self.ports[from], self.ports[to], sequence, window)
    }

    /// Completes a TCP packet with its options, of which the timestamps come first in line and that of Accurate ECN last, and
    /// payload.
    fn finish(
        &self,
        (back, ecn): (bool, Ecn),
        mut tcp: TcpHeader,
        (options, accurate): (&[TcpOptionElement], &[u8]),
        payload: u32,
        bytes: &mut Vec<u8>,
    ) -> u32 {
        // All sets of options that there are fit.
        let _ = tcp.set_options(options);
        if !accurate.is_empty() {
            let _ = tcp.set_options_raw(&[tcp.options.as_slice(), accurate].concat());
        }
        let ip = self.ip(back, IpNumber::TCP, ecn, tcp.header_len() as u32 + payload);
        let zeros = &ZEROS[..(payload as usize).min(ZEROS.len())];
        tcp.checksum = tcp.calc_checksum_ipv4(&ip, zeros).unwrap_or(0);
        bytes.extend(ip.to_bytes());
        bytes.extend(tcp.to_bytes());
        ip.total_len.into()
    }

    /// What the MSS, SACK and window scale options of a SYN or its answer say, as Linux orders them.
    fn opening(&self, timestamp: TcpOptionElement, scale: u32) -> [TcpOptionElement; 5] {
        use TcpOptionElement::{
            MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, WindowScale,
        };
        let mss = MaximumSegmentSize(self.mss);
        let scale = WindowScale(scale as u8);
        [mss, SelectiveAcknowledgementPermitted, timestamp, Noop, scale]
    }

    fn data(&self, data: &Data, other_way: OtherWay, bytes: &mut Vec<u8>) -> u32 {
        let timestamp = TcpOptionElement::Timestamp(data.timestamp_ms, data.echo_ms);
        if data.has(Control::SYN) {
            let mut tcp = self.tcp(false, 0, IDLE_SYN_WINDOW);
            tcp.syn = true;
            set_flags(&mut tcp, data.flags);
            let cookie = match (data.asks_for_cookie(), data.has_cookie()) {
                (true, _) => ASKS_FOR_COOKIE,
                (_, true) => HAS_COOKIE,
                _ => &[],
            };
            let options = (&self.opening(timestamp, WINDOW_SCALE)[..], cookie);
            return self.finish((false, data.ecn), tcp, options, data.payload, bytes);
        }
        if data.has(Control::RESET) {
            let mut tcp = self.tcp(false, sequence(data.seq), 0);
            tcp.rst = true;
            return self.finish((false, data.ecn), tcp, (&[], &[]), 0, bytes);
        }
        let (acknowledged, window) = match self.both_ways {
            true => (other_way.place.into(), other_way.window),
            false => (data.has(Control::HEARD_FIN).into(), IDLE_WINDOW),
        };
        let mut tcp = self.tcp(false, sequence(data.seq), window);
        tcp.acknowledgment_number = sequence(acknowledged);
        (tcp.ack, tcp.fin, tcp.psh) =
            (true, data.has(Control::FIN), data.has(Control::PUSH) && data.bytes() > 0);
        set_flags(&mut tcp, data.flags);
        let options = [TcpOptionElement::Noop, TcpOptionElement::Noop, timestamp];
        // What comes back has no payload that could be counted, or its acknowledgements tell of it.
        let first = EcnBytes::from_bytes(FIRST_COUNTERS);
        let accurate = if data.options > 0 { accurate_option(first, 0) } else { Vec::new() };
        let payload = data.bytes();
        self.finish((false, data.ecn), tcp, (&options, &accurate), payload, bytes)
    }

    fn ack(&self, ack: &Ack, ecn: Ecn, other_way: OtherWay, bytes: &mut Vec<u8>) -> u32 {
        let timestamp = TcpOptionElement::Timestamp(ack.timestamp_ms, ack.echo_ms);
        // Beside a cookie there is as little room as beside two blocks.
        let blocks = if ack.has(Control::COOKIE) { 2 } else { ack.block_count };
        let accurate = ack.option.map(|option| accurate_option(option, blocks));
        let mut accurate = accurate.unwrap_or_default();
        let window = |scale: u32| (ack.window >> scale).min(u16::MAX.into()) as u16;
        if ack.has(Control::SYN) {
            let mut tcp = self.tcp(true, 0, window(0));
            tcp.acknowledgment_number = sequence(ack.ack);
            if ack.has(Control::COOKIE) {
                accurate.splice(0..0, HAS_COOKIE.iter().copied());
            }
            (tcp.syn, tcp.ack) = (true, true);
            set_flags(&mut tcp, ack.flags);
            let options = (&self.opening(timestamp, self.scale)[..], &accurate[..]);
            return self.finish((true, ecn), tcp, options, 0, bytes);
        }
        if ack.has(Control::RESET) {
            let mut tcp = self.tcp(true, sequence(1), 0);
            tcp.rst = true;
            return self.finish((true, ecn), tcp, (&[], &[]), 0, bytes);
        }
        let mut tcp = self.tcp(true, sequence(other_way.place.into()), window(self.scale));
        tcp.acknowledgment_number = sequence(ack.ack);
        (tcp.ack, tcp.fin) = (true, ack.has(Control::FIN));
        set_flags(&mut tcp, ack.flags);
        let mut options = vec![TcpOptionElement::Noop, TcpOptionElement::Noop, timestamp];
        let edges = |block: &SackBlock| (sequence(block.start), sequence(block.end));
        if let [first, others @ ..] = ack.blocks() {
            let mut more = others.iter().map(edges);
            let others = [more.next(), more.next(), None];
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::SelectiveAcknowledgement(edges(first), others));
        }
        self.finish((true, ecn), tcp, (&options, &accurate), 0, bytes)
    }

    fn echo(&self, number: u32, echo: Echo, payload: u32, bytes: &mut Vec<u8>) -> u32 {
        let header = IcmpEchoHeader { id: number as u16, seq: echo.number };
        let kind = match echo.is_reply {
            true => Icmpv4Type::EchoReply(header),
            false => Icmpv4Type::EchoRequest(header),
        };
        let icmp = Icmpv4Header::with_checksum(kind, &ZEROS[..payload as usize]);
        let ip =
            self.ip(echo.is_reply, IpNumber::ICMP, echo.ecn, icmp.header_len() as u32 + payload);
        bytes.extend(ip.to_bytes());
        bytes.extend(icmp.to_bytes());
        ip.total_len.into()
    }

    fn datagram(&self, datagram: Datagram, bytes: &mut Vec<u8>) -> u32 {
        let payload = datagram.ip_bytes.saturating_sub(IP_BYTES + UDP_BYTES);
        let ip = self.ip(false, IpNumber::UDP, datagram.ecn, UDP_BYTES + payload);
        let [source, target] = self.ports;
        let zeros = &ZEROS[..(payload as usize).min(ZEROS.len())];
        let udp = UdpHeader::with_ipv4_checksum(source, target, &ip, zeros).expect("it fits");
        bytes.extend(ip.to_bytes());
        bytes.extend(udp.to_bytes());
        ip.total_len.into()
    }

    /// A router's message: behind its own headers comes the beginning of the packet that it is about.
    fn too_long(&self, message: TooLong, bytes: &mut Vec<u8>) -> u32 {
        let TooLong { mtu, seq, ip_bytes } = message;
        let about = self.ip(false, IpNumber::TCP, Ecn::NotEct, ip_bytes.saturating_sub(IP_BYTES));
        let tcp = self.tcp(false, sequence(seq), IDLE_WINDOW).to_bytes();
        let mut quoted = about.to_bytes().to_vec();
        quoted.extend(&tcp[..QUOTED_BYTES]);
        let next_hop_mtu = mtu.min(u16::MAX.into()) as u16;
        let kind = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
        let icmp = Icmpv4Header::with_checksum(Icmpv4Type::DestinationUnreachable(kind), &quoted);
        let payload = (icmp.header_len() + quoted.len()) as u32;
        let mut ip = self.ip(true, IpNumber::ICMP, Ecn::NotEct, payload);
        ip.source = ROUTER;
        ip.dont_fragment = false;
        ip.header_checksum = ip.calc_header_checksum();
        bytes.extend(ip.to_bytes());
        bytes.extend(icmp.to_bytes());
        bytes.extend(quoted);
        ip.total_len.into()
    }
}
