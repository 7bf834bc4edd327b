//! The headers that a part of a frame is written with.
//!
//! What a TUN device takes is one packet, or an aggregate that the kernel takes apart again where it has to. Each is made of the frame's
//! headers, changed where a part differs from the whole as the kernel's own segmentation does it (Linux: `inet_gso_segment`,
//! `tcp_gso_segment`, `__udp_gso_segment`), and of a piece of the frame's payload, which nobody touches or sums: the checksum of what
//! TCP and UDP carry stays to be made by whoever needs it.

use std::ops::Range;

use dualq_qdisc::{Ecn, Packet as _};

use crate::checksum::{add, checksum, fold, update};
use crate::frame::Frame;
use crate::layout::{
    IPV4_BYTES, IPV6_BYTES, Layout, Network, TCP_CWR, TCP_FIN, TCP_PSH, Transport, UDP_BYTES,
};
use crate::packet::Packet;
use crate::vnet::{VNET_BYTES, Vnet};

/// The longest headers that are written anew; what has longer ones is one packet of which all is.
const HEADERS: usize = VNET_BYTES + 256;

/// A packet as it is written: two pieces, of which the second may be empty.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    head: Head<'a>,
    payload: &'a [u8],
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives on the stack while a packet is written")]
enum Head<'a> {
    /// As it was read.
    Same(&'a [u8]),
    Own([u8; HEADERS], usize),
    Long(Vec<u8>),
}

impl Written<'_> {
    /// The header of virtio and what follows it, then the rest.
    pub(crate) fn pieces(&self) -> [&[u8]; 2] {
        let head = match &self.head {
            Head::Same(head) => head,
            Head::Own(head, length) => &head[..*length],
            Head::Long(head) => head.as_slice(),
        };
        [head, self.payload]
    }
}

/// What `packet` is written as.
pub(crate) fn write(packet: &Packet) -> Written<'_> {
    let frame = packet.frame();
    let layout = frame.layout();
    let ecn = packet.ecn();
    let is_whole = packet.segment_count() == layout.segments;
    if is_whole && ecn == layout.ecn {
        return Written { head: Head::Same(frame.bytes()), payload: &[] };
    }
    let all = frame.packet();
    if layout.segments == 1 {
        // Only the ECN field is another.
        let header = match layout.network {
            Network::V4 => IPV4_BYTES,
            Network::V6 => IPV6_BYTES,
            Network::Other => 0,
        };
        let (head, payload) = frame.bytes().split_at(VNET_BYTES + header);
        let mut written = Written { head: own(head), payload };
        set_ecn(written.head_mut(), layout.network, ecn);
        return written;
    }
    let headers = usize::from(layout.header_bytes);
    let range = bytes_of(frame, &packet.range());
    let (head, payload) = (&frame.bytes()[..VNET_BYTES + headers], &all[range.clone()]);
    let mut written = Written { head: own(head), payload };
    let is_first = packet.range().start == 0;
    let is_last = packet.range().end == layout.segments;
    let header = written.head_mut();
    write_network(header, layout, packet.range().start, headers + payload.len());
    write_transport(header, layout, (is_first, is_last), range.start - headers, payload.len());
    set_ecn(header, layout.network, ecn);
    let vnet = match (packet.segment_count(), layout.transport) {
        (1, _) => frame.vnet().single(),
        (_, Transport::Tcp) => {
            let at = VNET_BYTES + usize::from(layout.transport_at);
            let has_cwr = written.head_mut()[at + 13] & TCP_CWR > 0;
            frame.vnet().with_cwr(has_cwr)
        }
        _ => *frame.vnet(),
    };
    // The kernel refuses a packet that is shorter than this hint.
    let vnet = Vnet { header_bytes: layout.header_bytes, ..vnet };
    written.head_mut()[..VNET_BYTES].copy_from_slice(&vnet.write());
    written
}

/// Whether `next` may be written in one aggregate of datagrams with `first`: it could have come so from a sender that uses `UDP_SEGMENT`.
pub(crate) fn is_like(first: &Packet, next: &Packet) -> bool {
    let [frames, others] = [first, next].map(Packet::frame);
    let (layout, other) = (frames.layout(), others.layout());
    let (packet, following) = (frames.packet(), others.packet());
    let at = usize::from(layout.transport_at);
    let payload_at = at + UDP_BYTES;
    let is_alike = first.ecn() == next.ecn()
        && [layout, other].iter().all(|one| one.segments == 1 && one.transport == Transport::Udp)
        && layout.network == other.network
        && packet.len() == following.len()
        && packet.len() > payload_at
        // What is summed already may be summed wrongly, and would not be any more.
        && frames.vnet() == others.vnet()
        && frames.vnet().needs_checksum()
        && usize::from(frames.vnet().checksum_start) == at;
    let same = |range: Range<usize>| packet[range.clone()] == following[range];
    // All but what differs between datagrams of one flow: IPv4's identification and checksum, and the checksum of UDP. The field of ECN was compared.
    is_alike
        && match layout.network {
            Network::V4 => {
                at == IPV4_BYTES
                    && packet[1] >> 2 == following[1] >> 2
                    // No fragment of either.
                    && [packet, following].iter().all(|one| one[6] & 0x3f == 0 && one[7] == 0)
                    && [0..1, 2..4, 6..10, 12..at + 6].into_iter().all(same)
            }
            Network::V6 => {
                at == IPV6_BYTES
                    && packet[1] & !0x30 == following[1] & !0x30
                    && [0..1, 2..at + 6].into_iter().all(same)
            }
            Network::Other => false,
        }
        && packet[at + 4..at + 6] == ((packet.len() - at) as u16).to_be_bytes()
}

/// Writes datagrams that are [alike](is_like), of which there is at least one, as one aggregate into `bytes`.
pub(crate) fn write_together(datagrams: &[Packet], bytes: &mut Vec<u8>) {
    let first = &datagrams[0];
    let frame = first.frame();
    let headers = usize::from(frame.layout().transport_at) + UDP_BYTES;
    let layout = Layout { header_bytes: headers as u16, ..*frame.layout() };
    bytes.clear();
    bytes.extend_from_slice(&frame.bytes()[..VNET_BYTES + headers]);
    let payloads = datagrams.iter().map(|datagram| &datagram.frame().packet()[headers..]);
    payloads.for_each(|payload| bytes.extend_from_slice(payload));
    let length = bytes.len() - VNET_BYTES;
    write_network(bytes, &layout, 0, length);
    write_transport(bytes, &layout, (true, true), 0, length - headers);
    set_ecn(bytes, layout.network, first.ecn());
    let size = frame.packet().len() - headers;
    let vnet = frame.vnet().datagrams(layout.header_bytes, size as u16);
    bytes[..VNET_BYTES].copy_from_slice(&vnet.write());
}

impl Written<'_> {
    fn head_mut(&mut self) -> &mut [u8] {
        match &mut self.head {
            Head::Own(head, length) => &mut head[..*length],
            Head::Long(head) => head,
            // What is written as it was read is not asked for.
            Head::Same(_) => &mut [],
        }
    }
}

fn own(head: &[u8]) -> Head<'_> {
    let mut bytes = [0; HEADERS];
    match bytes.get_mut(..head.len()) {
        Some(place) => {
            place.copy_from_slice(head);
            Head::Own(bytes, head.len())
        }
        None => Head::Long(head.to_vec()),
    }
}

/// Where the payload of some segments is in their frame's packet.
fn bytes_of(frame: &Frame, segments: &Range<u16>) -> Range<usize> {
    let layout = frame.layout();
    let (headers, all) = (usize::from(layout.header_bytes), frame.packet().len());
    let at = |segment: u16| {
        (headers + usize::from(segment) * usize::from(layout.segment_bytes)).min(all)
    };
    at(segments.start)..at(segments.end)
}

/// Lengths, and the identification of IPv4, which counts up with each segment.
fn write_network(head: &mut [u8], layout: &Layout, first: u16, length: usize) {
    let header = &mut head[VNET_BYTES..];
    match layout.network {
        Network::V4 => {
            let identification = u16::from_be_bytes([header[4], header[5]]).wrapping_add(first);
            header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            header[4..6].copy_from_slice(&identification.to_be_bytes());
            header[10..12].fill(0);
            let own = usize::from(header[0] & 0xf) * 4;
            let sum = checksum(&header[..own]);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Network::V6 => {
            let payload = (length - IPV6_BYTES) as u16;
            header[4..6].copy_from_slice(&payload.to_be_bytes());
        }
        Network::Other => {}
    }
}

/// The place in the stream, flags that only the first or the last segment has, the length of UDP; and of both the sum of the pseudo-header,
/// which the checksum is begun with.
fn write_transport(
    head: &mut [u8],
    layout: &Layout,
    (is_first, is_last): (bool, bool),
    offset: usize,
    payload: usize,
) {
    let at = VNET_BYTES + usize::from(layout.transport_at);
    let length = VNET_BYTES + usize::from(layout.header_bytes) + payload - at;
    let addresses = match layout.network {
        Network::V6 => VNET_BYTES + 8..VNET_BYTES + 40,
        Network::V4 | Network::Other => VNET_BYTES + 12..VNET_BYTES + 20,
    };
    let addresses = add(0, &head[addresses]);
    let header = &mut head[at..];
    let (protocol, sum_at) = match layout.transport {
        Transport::Tcp => {
            let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            let seq = seq.wrapping_add(offset as u32);
            header[4..8].copy_from_slice(&seq.to_be_bytes());
            if !is_first {
                header[13] &= !TCP_CWR;
            }
            if !is_last {
                header[13] &= !(TCP_FIN | TCP_PSH);
            }
            (6, 16)
        }
        Transport::Udp => {
            header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            (17, 6)
        }
        Transport::Other => return,
    };
    let sum = fold(addresses + protocol + length as u64);
    header[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn set_ecn(head: &mut [u8], network: Network, ecn: Ecn) {
    let header = &mut head[VNET_BYTES..];
    match network {
        Network::V4 => {
            let old = u16::from_be_bytes([header[0], header[1]]);
            header[1] = header[1] & !0b11 | ecn.bits();
            let new = u16::from_be_bytes([header[0], header[1]]);
            let sum = u16::from_be_bytes([header[10], header[11]]);
            header[10..12].copy_from_slice(&update(sum, old, new).to_be_bytes());
        }
        // The traffic class begins in the middle of the first byte.
        Network::V6 => header[1] = header[1] & !0b11_0000 | ecn.bits() << 4,
        Network::Other => {}
    }
}
