//! What the headers of a packet say, as far as queues and cutting ask.

use std::net::IpAddr;

use dualq_qdisc::{Ecn, PureAck};

use crate::vnet::{Gso, Vnet};

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMPV6: u8 = 58;
/// Headers of IPv6 that may stand before that of a transport, and the one behind which there need be none (RFC 8200 §4.1, §4.5).
const IPV6_HOP_BY_HOP: u8 = 0;
const IPV6_ROUTING: u8 = 43;
const IPV6_FRAGMENT: u8 = 44;
const IPV6_DESTINATION: u8 = 60;

/// Bytes of an IPv4 header without options, of one of IPv6, of one of TCP without options, and of one of UDP.
pub(crate) const IPV4_BYTES: usize = 20;
pub(crate) const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
pub(crate) const UDP_BYTES: usize = 8;

/// Flags of TCP, in the fourteenth byte of its header (RFC 9293 §3.1, RFC 3168 §6.1).
pub(crate) const TCP_FIN: u8 = 0x01;
const TCP_SYN: u8 = 0x02;
const TCP_RST: u8 = 0x04;
pub(crate) const TCP_PSH: u8 = 0x08;
const TCP_ACK: u8 = 0x10;
const TCP_URG: u8 = 0x20;
const TCP_ECE: u8 = 0x40;
pub(crate) const TCP_CWR: u8 = 0x80;
/// AE, the third bit of ACE (RFC 9768 §3.1), in the thirteenth byte.
const TCP_AE: u8 = 0x01;

/// Options of TCP (RFC 9293 §3.1, RFC 2018 §3, RFC 7323 §3).
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;
const OPTION_TIMESTAMPS: u8 = 8;

/// Which version of IP, if it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    V4,
    V6,
    /// Something else, of which nothing is known.
    Other,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    /// A fragment that is not the first, ICMP, or anything else.
    Other,
}

/// Where things are in a packet, and what queues tell it by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) network: Network,
    pub(crate) transport: Transport,
    /// Where the transport's header begins, and how long all headers are. What is not cut has no headers in this sense.
    pub(crate) transport_at: u16,
    pub(crate) header_bytes: u16,
    /// So many packets on the wire, and bytes of payload in each but the last.
    pub(crate) segments: u16,
    pub(crate) segment_bytes: u16,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    /// A hash of the addresses, protocol and ports, and one of each address.
    pub(crate) flow: u32,
    pub(crate) hosts: [u32; 2],
}

/// Where a transport's header is, and whose.
struct Inner {
    at: usize,
    protocol: u8,
    /// It is a fragment behind the first, which has no ports.
    is_later_fragment: bool,
    is_fragment: bool,
}

impl Layout {
    /// Reads the headers of `packet`, which begins with that of IP. Whatever it is, there is an answer: what cannot be read is one packet of
    /// no known flow.
    pub(crate) fn of(vnet: &Vnet, packet: &[u8]) -> Self {
        let unknown = Self {
            network: Network::Other,
            transport: Transport::Other,
            transport_at: 0,
            header_bytes: 0,
            segments: 1,
            segment_bytes: 0,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: 0,
            hosts: [0; 2],
        };
        let (network, traffic_class, addresses, inner) = match packet.first().map(|byte| byte >> 4)
        {
            Some(4) => match ipv4(packet) {
                Some(inner) => (Network::V4, packet[1], &packet[12..20], inner),
                None => return unknown,
            },
            Some(6) => match ipv6(packet) {
                Some(inner) => {
                    (Network::V6, packet[0] << 4 | packet[1] >> 4, &packet[8..40], inner)
                }
                None => return unknown,
            },
            _ => return unknown,
        };
        let transport_at = u16::try_from(inner.at).unwrap_or(u16::MAX);
        let transport_header = packet.get(usize::from(transport_at)..).unwrap_or_default();
        let transport = match inner.protocol {
            _ if inner.is_later_fragment => Transport::Other,
            PROTOCOL_TCP if transport_header.len() >= TCP_BYTES => Transport::Tcp,
            PROTOCOL_UDP if transport_header.len() >= UDP_BYTES => Transport::Udp,
            _ => Transport::Other,
        };
        // Fragments of one packet belong together, and only the first has ports: no fragment is told by them.
        let ports = match transport {
            Transport::Tcp | Transport::Udp if !inner.is_fragment => &transport_header[..4],
            _ => &[],
        };
        let (from, to) = addresses.split_at(addresses.len() / 2);
        let hosts = [hash(HASH_START, from), hash(HASH_START, to)];
        let flow = hash(hash(hash(HASH_START, addresses), &[inner.protocol]), ports);
        let layout = Self {
            network,
            transport,
            transport_at,
            ecn: Ecn::from_bits(traffic_class),
            dscp: traffic_class >> 2,
            flow: finish(flow),
            hosts: hosts.map(finish),
            ..unknown
        };
        layout.cut(vnet, packet, inner.is_fragment).unwrap_or(layout)
    }

    /// The same of an aggregate, with its segments; `None` if it is none, or is not to be understood.
    fn cut(self, vnet: &Vnet, packet: &[u8], is_fragment: bool) -> Option<Self> {
        let at = usize::from(self.transport_at);
        let header_bytes = match (vnet.gso(), self.network, self.transport) {
            (Gso::Tcp4, Network::V4, Transport::Tcp) | (Gso::Tcp6, Network::V6, Transport::Tcp) => {
                let bytes = usize::from(packet[at + 12] >> 4) * 4;
                at + if bytes < TCP_BYTES { return None } else { bytes }
            }
            (Gso::Udp, Network::V4 | Network::V6, Transport::Udp) => at + UDP_BYTES,
            _ => return None,
        };
        let payload = packet.len().checked_sub(header_bytes)?;
        let is_sound = !is_fragment
            && vnet.gso_size > 0
            && vnet.needs_checksum()
            && usize::from(vnet.checksum_start) == at
            && u16::try_from(packet.len()).is_ok();
        let segments = payload.div_ceil(usize::from(vnet.gso_size).max(1)).max(1);
        is_sound.then_some(Self {
            header_bytes: header_bytes as u16,
            segments: u16::try_from(segments).ok()?,
            segment_bytes: vnet.gso_size,
            ..self
        })
    }

    /// The addresses of who sent it and whom it is for.
    pub(crate) fn addresses(&self, packet: &[u8]) -> Option<[IpAddr; 2]> {
        match self.network {
            Network::V4 => {
                let [from, to] = packet.get(12..20)?.as_chunks::<4>().0 else { return None };
                Some([(*from).into(), (*to).into()])
            }
            Network::V6 => {
                let [from, to] = packet.get(8..40)?.as_chunks::<16>().0 else { return None };
                Some([(*from).into(), (*to).into()])
            }
            Network::Other => None,
        }
    }

    /// What it acknowledges, if it is a segment of TCP without data.
    pub(crate) fn pure_ack(&self, packet: &[u8]) -> Option<PureAck> {
        if self.transport != Transport::Tcp || self.segments > 1 {
            return None;
        }
        let header = packet.get(usize::from(self.transport_at)..)?;
        let bytes = usize::from(*header.get(12)? >> 4) * 4;
        let flags = *header.get(13)?;
        let options = header.get(TCP_BYTES..bytes)?;
        if header.len() > bytes || flags & TCP_ACK == 0 {
            return None;
        }
        let number = u32::from_be_bytes(header[8..12].try_into().ok()?);
        let (has_sacks, has_others) = options_of(options);
        let accurate = (header[12] & TCP_AE) << 2;
        Some(PureAck {
            connection: self.flow,
            number: number.into(),
            has_sacks,
            ecn_flags: accurate | (flags & (TCP_ECE | TCP_CWR)) >> 6,
            is_special: has_others || flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_PSH | TCP_URG) > 0,
        })
    }

    /// Whether a router may answer it with an ICMP error: no fragment behind the first and no ICMP error gets one (RFC 1812 §4.3.2.7,
    /// RFC 4443 §2.4).
    pub(crate) fn may_be_answered(&self, packet: &[u8]) -> bool {
        let at = usize::from(self.transport_at);
        let kind = packet.get(at).copied();
        match self.network {
            Network::V4 => {
                let is_later = packet[6] & 0x1f > 0 || packet[7] > 0;
                // Echo and its reply, timestamps and the like; all others are errors (RFC 1122 §3.2.2).
                let is_error =
                    packet[9] == PROTOCOL_ICMP && !matches!(kind, Some(0 | 8..=10 | 13..=18));
                !is_later && !is_error
            }
            // Types below 128 are errors (RFC 4443 §2.1).
            Network::V6 => {
                let is_icmp = ipv6(packet).is_some_and(|inner| inner.protocol == PROTOCOL_ICMPV6);
                !(is_icmp && kind.is_some_and(|kind| kind < 128))
            }
            Network::Other => false,
        }
    }
}

/// Whether options of TCP include SACKs, and whether any that an acknowledgement may not be dropped for: all but padding, timestamps and
/// SACKs.
fn options_of(mut options: &[u8]) -> (bool, bool) {
    let (mut has_sacks, mut has_others) = (false, false);
    while let Some((&kind, rest)) = options.split_first() {
        options = match kind {
            OPTION_END => break,
            OPTION_NOP => rest,
            _ => {
                has_sacks |= kind == OPTION_SACK;
                has_others |= kind != OPTION_SACK && kind != OPTION_TIMESTAMPS;
                let length = rest.first().copied().unwrap_or(0).max(2);
                options.get(usize::from(length)..).unwrap_or_default()
            }
        };
    }
    (has_sacks, has_others)
}

/// What is inside a packet of IPv4, if its header is whole.
fn ipv4(packet: &[u8]) -> Option<Inner> {
    let header = packet.get(..IPV4_BYTES)?;
    let at = usize::from(header[0] & 0xf) * 4;
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    (at >= IPV4_BYTES && at <= packet.len()).then(|| Inner {
        at,
        protocol: header[9],
        is_later_fragment: fragment & 0x1fff > 0,
        is_fragment: fragment & 0x3fff > 0,
    })
}

/// What is inside a packet of IPv6, behind its headers.
fn ipv6(packet: &[u8]) -> Option<Inner> {
    let header = packet.get(..IPV6_BYTES)?;
    let mut inner =
        Inner { at: IPV6_BYTES, protocol: header[6], is_later_fragment: false, is_fragment: false };
    // Each is eight bytes at least, and a packet has no more than 64 KB: this ends.
    loop {
        let Some([next, length, fragment @ ..]) =
            packet.get(inner.at..).and_then(<[u8]>::first_chunk::<8>)
        else {
            return Some(inner);
        };
        match inner.protocol {
            IPV6_HOP_BY_HOP | IPV6_ROUTING | IPV6_DESTINATION if !inner.is_later_fragment => {
                inner.at += 8 + 8 * usize::from(*length);
            }
            IPV6_FRAGMENT if !inner.is_fragment => {
                let offset = u16::from_be_bytes([fragment[0], fragment[1]]) >> 3;
                (inner.is_fragment, inner.is_later_fragment) = (true, offset > 0);
                inner.at += 8;
            }
            _ => return Some(inner),
        }
        inner.protocol = *next;
    }
}

const HASH_START: u32 = 0x811c_9dc5;

/// FNV-1a by words of up to four bytes: disciplines hash it further.
fn hash(start: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(4).fold(start, |hash, word| {
        let mut padded = [0; 4];
        padded[..word.len()].copy_from_slice(word);
        (hash ^ u32::from_be_bytes(padded)).wrapping_mul(0x0100_0193).rotate_left(15)
    })
}

/// Spreads a hash over all its bits (the finalizer of MurmurHash3).
const fn finish(hash: u32) -> u32 {
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
