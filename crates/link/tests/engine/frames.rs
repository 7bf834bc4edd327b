//! Frames as a TUN device gives them, made with another library than the crate's own code, and read with it.

use etherparse::{
    IpFragOffset, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader,
};

pub(crate) const VNET_BYTES: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Whom each is for.
pub(crate) const DESTINATION: [u8; 4] = [10, 0, 0, 2];
pub(crate) const DESTINATION_V6: [u8; 16] = [0xfe; 16];

/// What a frame carries.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    Tcp(TcpHeader),
    Udp { source: u16, destination: u16 },
}

/// A frame to be made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) v6: bool,
    pub(crate) ecn: u8,
    pub(crate) identification: u16,
    pub(crate) transport: Transport,
    pub(crate) payload: Vec<u8>,
    pub(crate) gso_size: u16,
}

/// The header of TCP of a usual segment, with timestamps.
pub(crate) fn tcp(sequence: u32) -> TcpHeader {
    let mut header = TcpHeader::new(5001, 40_000, sequence, 65_000);
    header.ack = true;
    header.acknowledgment_number = 77;
    let timestamps = etherparse::TcpOptionElement::Timestamp(5, 6);
    let noop = etherparse::TcpOptionElement::Noop;
    header.set_options(&[noop.clone(), noop, timestamps]).unwrap();
    header
}

impl Made {
    /// The bytes: the header of virtio, those of IP and the transport, and the payload.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (header_bytes, sum_at, protocol) = match &self.transport {
            Transport::Tcp(header) => (header.header_len(), 16, IpNumber::TCP),
            Transport::Udp { .. } => (8, 6, IpNumber::UDP),
        };
        let length = header_bytes + self.payload.len();
        let mut packet = Vec::new();
        if self.v6 {
            let header = Ipv6Header {
                traffic_class: self.ecn,
                flow_label: Ipv6FlowLabel::try_new(0x12345).unwrap(),
                payload_length: length as u16,
                next_header: protocol,
                hop_limit: 60,
                source: [0xfd; 16],
                destination: DESTINATION_V6,
            };
            header.write(&mut packet).unwrap();
        } else {
            let mut header =
                Ipv4Header::new(length as u16, 60, protocol, [10, 0, 0, 1], DESTINATION).unwrap();
            header.ecn = etherparse::IpEcn::try_new(self.ecn).unwrap();
            header.identification = self.identification;
            header.dont_fragment = true;
            header.fragment_offset = IpFragOffset::ZERO;
            header.header_checksum = header.calc_header_checksum();
            header.write(&mut packet).unwrap();
        }
        let at = packet.len();
        match &self.transport {
            Transport::Tcp(header) => header.write(&mut packet).unwrap(),
            Transport::Udp { source, destination } => {
                let header = UdpHeader {
                    source_port: *source,
                    destination_port: *destination,
                    length: length as u16,
                    checksum: 0,
                };
                header.write(&mut packet).unwrap();
            }
        }
        // A checksum that is to be made begins with the sum of the pseudo-header.
        let sum = pseudo_sum(&packet, at, length);
        packet[at + sum_at..at + sum_at + 2].copy_from_slice(&sum.to_be_bytes());
        packet.extend(&self.payload);

        let is_aggregate = self.payload.len() > usize::from(self.gso_size);
        let has_cwr = matches!(&self.transport, Transport::Tcp(header) if header.cwr);
        let gso_type = match (&self.transport, self.v6) {
            _ if !is_aggregate => 0,
            (Transport::Tcp(_), false) => GSO_TCPV4,
            (Transport::Tcp(_), true) => GSO_TCPV6,
            (Transport::Udp { .. }, _) => GSO_UDP,
        };
        let gso_type = if has_cwr && is_aggregate { gso_type | GSO_ECN } else { gso_type };
        let gso_size = if is_aggregate { self.gso_size } else { 0 };
        let mut bytes = vec![NEEDS_CHECKSUM, gso_type];
        for number in [(at + header_bytes) as u16, gso_size, at as u16, sum_at as u16] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(packet);
        bytes
    }
}

fn pseudo_sum(packet: &[u8], at: usize, length: usize) -> u16 {
    let (addresses, protocol) =
        if at == 40 { (&packet[8..40], packet[6]) } else { (&packet[12..20], packet[9]) };
    let words =
        addresses.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum = words.sum::<u32>() + u32::from(protocol) + length as u32;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// A frame that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) gso_type: u8,
    pub(crate) gso_size: u16,
    pub(crate) ecn: u8,
    pub(crate) identification: Option<u16>,
    pub(crate) tcp: Option<TcpHeader>,
    pub(crate) payload: Vec<u8>,
}

impl Read {
    /// Reads a frame, and asserts what must be so in each: lengths, the checksum of IPv4, and that the checksum that is to be made becomes
    /// the right one.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let (gso_type, header_bytes, gso_size, start, offset) =
            (bytes[1], number(2), number(4), number(6), number(8));
        assert_eq!(bytes[0], NEEDS_CHECKSUM);
        let packet = &bytes[VNET_BYTES..];
        assert!(usize::from(header_bytes) <= packet.len());
        let at = usize::from(start);
        // What a network card does: it sums all from there on, the begun sum too, and puts the result in its place.
        let mut done = packet.to_vec();
        let sum = !fold(&packet[at..]);
        let place = at + usize::from(offset);
        done[place..place + 2].copy_from_slice(&sum.to_be_bytes());

        let (ecn, identification, rest) = if packet[0] >> 4 == 4 {
            let (header, rest) = Ipv4Header::from_slice(&done).unwrap();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), packet.len());
            check(
                &done[at..],
                |tcp, payload| tcp.calc_checksum_ipv4(&header, payload).unwrap(),
                |udp, payload| udp.calc_checksum_ipv4(&header, payload).unwrap(),
                header.protocol,
            );
            (header.ecn.value(), Some(header.identification), rest)
        } else {
            let (header, rest) = Ipv6Header::from_slice(&done).unwrap();
            assert_eq!(usize::from(header.payload_length) + 40, packet.len());
            check(
                &done[at..],
                |tcp, payload| tcp.calc_checksum_ipv6(&header, payload).unwrap(),
                |udp, payload| udp.calc_checksum_ipv6(&header, payload).unwrap(),
                header.next_header,
            );
            (header.traffic_class & 3, None, rest)
        };
        let (tcp, payload) = if offset == 16 {
            let (tcp, payload) = TcpHeader::from_slice(rest).unwrap();
            (Some(tcp), payload)
        } else {
            let (udp, payload) = UdpHeader::from_slice(rest).unwrap();
            assert_eq!(usize::from(udp.length), 8 + payload.len());
            (None, payload)
        };
        let payload = payload.to_vec();
        Self { gso_type, gso_size, ecn, identification, tcp, payload }
    }
}

fn check(
    transport: &[u8],
    tcp_sum: impl FnOnce(&TcpHeader, &[u8]) -> u16,
    udp_sum: impl FnOnce(&UdpHeader, &[u8]) -> u16,
    protocol: IpNumber,
) {
    if protocol == IpNumber::TCP {
        let (header, payload) = TcpHeader::from_slice(transport).unwrap();
        assert_eq!(header.checksum, tcp_sum(&header, payload));
    } else {
        let (header, payload) = UdpHeader::from_slice(transport).unwrap();
        // Zero stands for no checksum, and is written as its complement.
        let is = if header.checksum == 0 { 0xffff } else { header.checksum };
        assert_eq!(is, udp_sum(&header, payload));
    }
}

fn fold(bytes: &[u8]) -> u16 {
    let mut sum: u64 = bytes
        .chunks(2)
        .map(|word| u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
