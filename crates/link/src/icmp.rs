//! What a router says to who sent a packet that is too long.

use crate::checksum::{add, checksum, fold};
use crate::layout::{IPV4_BYTES, IPV6_BYTES, Network};
use crate::packet::Packet;

/// Destination unreachable: fragmentation needed and DF set (RFC 792), which tells the next hop's MTU (RFC 1191 §4).
const UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
/// Packet too big (RFC 4443 §3.2).
const PACKET_TOO_BIG: u8 = 2;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;
const ICMP_BYTES: usize = 8;
/// The longest message of IPv4 (RFC 1812 §4.3.2.3) and of IPv6 (RFC 4443 §2.4): as much of the packet as fits is told.
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;
const HOPS: u8 = 64;

/// The message about a packet, if there may be one: to its sender, and in its receiver's name, as the path's routers have no addresses.
pub(crate) fn too_long(packet: &Packet, mtu: u32) -> Option<Vec<u8>> {
    let layout = packet.frame().layout();
    let mut about = Vec::new();
    packet.write_to(&mut about, LONGEST_V6);
    if !layout.may_be_answered(&about) {
        return None;
    }
    match layout.network {
        Network::V4 => {
            about.truncate(LONGEST_V4 - IPV4_BYTES - ICMP_BYTES);
            Some(v4(&about, mtu))
        }
        Network::V6 => {
            about.truncate(LONGEST_V6 - IPV6_BYTES - ICMP_BYTES);
            Some(v6(&about, mtu))
        }
        Network::Other => None,
    }
}

fn v4(about: &[u8], mtu: u32) -> Vec<u8> {
    let length = (IPV4_BYTES + ICMP_BYTES + about.len()) as u16;
    let mut header = [0; IPV4_BYTES];
    // Version and header length; the precedence of network control (RFC 1812 §4.3.2.5).
    (header[0], header[1]) = (0x45, 0xc0);
    header[2..4].copy_from_slice(&length.to_be_bytes());
    (header[8], header[9]) = (HOPS, PROTOCOL_ICMP);
    header[12..16].copy_from_slice(&about[16..20]);
    header[16..20].copy_from_slice(&about[12..16]);
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());

    let mut icmp = [0; ICMP_BYTES];
    (icmp[0], icmp[1]) = (UNREACHABLE, FRAGMENTATION_NEEDED);
    icmp[6..8].copy_from_slice(&u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
    let sum = !fold(add(add(0, &icmp), about));
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    [&header, &icmp[..], about].concat()
}

fn v6(about: &[u8], mtu: u32) -> Vec<u8> {
    let length = (ICMP_BYTES + about.len()) as u16;
    let mut header = [0; IPV6_BYTES];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    (header[6], header[7]) = (PROTOCOL_ICMPV6, HOPS);
    header[8..24].copy_from_slice(&about[24..40]);
    header[24..40].copy_from_slice(&about[8..24]);

    let mut icmp = [0; ICMP_BYTES];
    icmp[0] = PACKET_TOO_BIG;
    icmp[4..8].copy_from_slice(&mtu.to_be_bytes());
    // The pseudo-header (RFC 8200 §8.1) is the addresses, the length and the protocol.
    let pseudo = add(u64::from(length) + u64::from(PROTOCOL_ICMPV6), &header[8..40]);
    let sum = !fold(add(add(pseudo, &icmp), about));
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    [&header, &icmp[..], about].concat()
}
