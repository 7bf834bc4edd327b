//! ICMP echo requests and replies as bytes (RFC 792, RFC 4443 §4).

use std::net::IpAddr;
use std::process;

use super::packet::Kind;

const HEADER: usize = 8;
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;

/// By which raw sockets know this process's echoes; the kernel gives unprivileged sockets their own.
fn identifier() -> [u8; 2] {
    (process::id() as u16).to_be_bytes()
}

/// A request with this sequence number.
pub(super) fn request(to: IpAddr, number: u16, payload: usize) -> Vec<u8> {
    let mut packet = vec![0; HEADER + payload];
    packet[0] = if to.is_ipv4() { REQUEST } else { REQUEST_V6 };
    packet[4..6].copy_from_slice(&identifier());
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    // The kernel computes ICMPv6's, for which it takes addresses.
    if to.is_ipv4() {
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// Whether what a socket received is the reply to that request.
pub(super) fn is_reply(kind: Kind, number: u16, received: &[u8]) -> bool {
    let raw = kind == Kind::RawPing;
    // A raw socket for IPv4 is given the IP header too. ICMP's types are 0 and 129, which as a first byte of IP mean nothing.
    let header = match received.first() {
        Some(first) if raw && first >> 4 == 4 => usize::from(first & 0xf) * 4,
        _ => 0,
    };
    let Some(icmp) = received.get(header..header + HEADER) else { return false };
    matches!(icmp[0], REPLY | REPLY_V6)
        && (!raw || icmp[4..6] == identifier())
        && icmp[6..8] == number.to_be_bytes()
}

/// Whether an error is about that request, which it quotes from its ICMP header on, or from its IP header.
pub(super) fn is_quoted(number: u16, quoted: &[u8]) -> bool {
    [0, 20, 40].into_iter().any(|header| {
        quoted.get(header..header + HEADER).is_some_and(|icmp| {
            matches!(icmp[0], REQUEST | REQUEST_V6)
                && icmp[4..6] == identifier()
                && icmp[6..8] == number.to_be_bytes()
        })
    })
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    // 32,768 words of 16 bits fit.
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_request_has_its_size_and_a_right_checksum() {
        let packet = request(Ipv4Addr::LOCALHOST.into(), 7, 41);
        assert_eq!(packet.len(), 49);
        // With its checksum in it, a sum is all ones (RFC 1071 §1).
        assert_eq!(checksum(&packet), 0);
    }

    /// The example of RFC 1071 §3: the sum is ddf2, and the checksum its complement.
    #[test]
    fn the_checksum_of_the_rfc() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn replies_are_told_from_other_peoples() {
        let mut reply = request(Ipv6Addr::LOCALHOST.into(), 300, 8);
        assert!(!is_reply(Kind::Ping, 300, &reply));
        reply[0] = REPLY_V6;
        assert!(is_reply(Kind::Ping, 300, &reply) && is_reply(Kind::RawPing, 300, &reply));
        assert!(!is_reply(Kind::Ping, 301, &reply));
        reply[4] ^= 1;
        assert!(is_reply(Kind::Ping, 300, &reply) && !is_reply(Kind::RawPing, 300, &reply));

        let mut reply = request(Ipv4Addr::LOCALHOST.into(), 5, 0);
        reply[0] = REPLY;
        let mut packet = vec![0; 24];
        packet[0] = 0x46;
        packet.extend(&reply);
        assert!(is_reply(Kind::RawPing, 5, &packet));
        assert!(!is_reply(Kind::RawPing, 5, &packet[..20]) && !is_reply(Kind::Ping, 5, &[]));
    }

    #[test]
    fn an_error_quotes_the_request() {
        let quoted = request(Ipv6Addr::LOCALHOST.into(), 9, 8);
        assert!(is_quoted(9, &quoted) && !is_quoted(8, &quoted));
        let with_header = [vec![0x60; 40], quoted].concat();
        assert!(is_quoted(9, &with_header) && !is_quoted(9, &with_header[..44]));
    }
}
