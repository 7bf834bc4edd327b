//! What errors of IPv4 quote: of the packet that they are of, its header as it arrived. The queue of errors of its socket leaves that out, so it
//! takes a raw socket (CAP_NET_RAW).

use std::collections::HashMap;
use std::io::{self, Read as _};

use socket2::{Domain, Protocol, Socket, Type};

/// Headers of IP, of ICMP, of the quoted IP with all options, and of UDP.
const BYTES: usize = 256;
const ICMP_HEADER: usize = 8;
const TIME_EXCEEDED: u8 = 11;
const UNREACHABLE: u8 = 3;
const UDP: u8 = 17;

/// The ECN fields of packets that errors quoted, by the ports that they came from.
#[derive(Debug)]
pub(super) struct Quotes {
    raw: Socket,
    seen: HashMap<u16, u8>,
}

impl Quotes {
    pub(super) fn open() -> io::Result<Self> {
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
        raw.set_nonblocking(true)?;
        Ok(Self { raw, seen: HashMap::new() })
    }

    /// That of the packet from this port, of which an error has come.
    pub(super) fn ecn(&mut self, port: u16) -> Option<u8> {
        let mut bytes = [0; BYTES];
        while let Ok(length) = self.raw.read(&mut bytes) {
            self.seen.extend(quoted(&bytes[..length.min(BYTES)]));
        }
        self.seen.get(&port).copied()
    }
}

/// The port and the ECN field of the UDP datagram that an error of IPv4 quotes (RFC 792).
fn quoted(packet: &[u8]) -> Option<(u16, u8)> {
    let header = |bytes: &[u8]| Some(usize::from(bytes.first()? & 0xf) * 4);
    let icmp = packet.get(header(packet)?..)?;
    if ![TIME_EXCEEDED, UNREACHABLE].contains(icmp.first()?) {
        return None;
    }
    let ip = icmp.get(ICMP_HEADER..)?;
    let udp = ip.get(header(ip)?..)?;
    let port = u16::from_be_bytes(udp.get(..2)?.try_into().ok()?);
    (*ip.get(9)? == UDP).then_some((port, *ip.get(1)? & 0b11))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quoted_header_tells_the_field_as_it_arrived() {
        let mut packet = vec![0x45; 20];
        packet.extend([TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend([0x46, 0b1010_1001, 0, 40, 0, 0, 0, 0, 1, UDP]);
        packet.resize(20 + 8 + 24, 0);
        packet.extend([0x82, 0x9a, 0, 53]);
        assert_eq!(quoted(&packet), Some((0x829a, 1)));
        for length in 0..packet.len() - 2 {
            assert_eq!(quoted(&packet[..length]), None, "{length}");
        }
        packet[20] = 0;
        assert_eq!(quoted(&packet), None);
    }
}
