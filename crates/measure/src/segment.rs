//! Segments of TCP's handshake as bytes: what a server's kernel kept of a SYN, and what a raw socket sends and receives.

use std::net::{IpAddr, SocketAddr};

use dualq_socket::EcnMode;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpHeader, TransportSlice};

use crate::figures::{Codepoint, HandshakeEcn, TcpEcn};

/// A segment that came: its header, and its ECN.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) tcp: TcpHeader,
    pub(crate) ecn: HandshakeEcn,
}

impl Segment {
    /// Reads one with its header of IP, whatever is missing behind TCP's.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        // Slices, for headers that are taken apart are larger than the stack of a connection's thread: IPv6 has so many extensions.
        let packet = LaxSlicedPacket::from_ip(bytes).ok()?;
        let ip = match packet.net? {
            LaxNetSlice::Ipv4(ip) => ip.header().ecn().value(),
            LaxNetSlice::Ipv6(ip) => ip.header().traffic_class(),
            LaxNetSlice::Arp(_) => return None,
        };
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else { return None };
        let tcp = tcp.to_header();
        Some(Self { ecn: ecn(&tcp, ip), tcp })
    }

    /// Reads one of TCP alone, which came with that field of IP.
    pub(crate) fn of_tcp(bytes: &[u8], ip: u8) -> Option<Self> {
        let (tcp, _) = TcpHeader::from_slice(bytes).ok()?;
        Some(Self { ecn: ecn(&tcp, ip), tcp })
    }
}

fn ecn(tcp: &TcpHeader, ip: u8) -> HandshakeEcn {
    let ip = Codepoint::ALL[usize::from(ip & 0b11)];
    HandshakeEcn { ip, ae: tcp.ns, cwr: tcp.cwr, ece: tcp.ece }
}

/// A header with its checksum, as it crosses the path from one address to the other.
pub(crate) fn write(mut tcp: TcpHeader, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let sum = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            tcp.calc_checksum_ipv4_raw(from.octets(), to.octets(), &[])
        }
        (from, to) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            tcp.calc_checksum_ipv6_raw(octets(from), octets(to), &[])
        }
    };
    tcp.checksum = sum.expect("a header alone is no longer than IP takes");
    tcp.to_bytes().to_vec()
}

impl From<EcnMode> for TcpEcn {
    fn from(mode: EcnMode) -> Self {
        match mode {
            EcnMode::Off => Self::Off,
            EcnMode::On => Self::On,
            EcnMode::Classic => Self::Classic,
            EcnMode::Accurate => Self::Accurate,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A server reads what anybody sends on a thread whose stack is small.
    #[test]
    fn a_syn_of_either_family_is_read_on_a_small_stack() {
        let mut syn = TcpHeader::new(9, 9332, 7, 100);
        (syn.syn, syn.ns, syn.ece) = (true, true, true);
        let mut v4 = vec![0x45, 0b10, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
        v4.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        let mut v6 = vec![0x60, 0b10_0000, 0, 0, 0, 20, 6, 64];
        v6.extend([0x20; 32]);
        let read = move || {
            for mut packet in [v4, v6] {
                packet.extend_from_slice(&syn.to_bytes());
                let Segment { tcp, ecn } = Segment::read(&packet).unwrap();
                assert_eq!((tcp.sequence_number, ecn.ip), (7, Codepoint::Ect0));
                assert!(ecn.ae && ecn.ece && !ecn.cwr);
                for length in 0..packet.len() {
                    assert!(Segment::read(&packet[..length]).is_none(), "{length}");
                }
            }
        };
        let small = thread::Builder::new().stack_size(crate::server::STACK_BYTES / 2);
        small.spawn(read).unwrap().join().unwrap();
    }
}
