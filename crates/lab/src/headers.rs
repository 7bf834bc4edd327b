//! Which part of a captured packet is headers, and what place that is where it was captured.

use dualq_scenario::Point;

use crate::network::{FAR, NEAR};

/// Bytes of the headers of UDP, of ICMP, and of what an ICMP error quotes at least (RFC 792).
const UDP_BYTES: usize = 8;
const ICMP_BYTES: usize = 8;
const QUOTED_BYTES: usize = 28;
const ICMP_UNREACHABLE: u8 = 3;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Where a packet socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// At the router with the queue under test, which may be that of the hosts near it.
    Queue { is_router: bool },
    /// At the router of these hosts.
    Router,
    /// At the router with the queue of the other direction.
    UpQueue,
}

impl Site {
    /// The places that a packet passes there, as it comes or `leaves`.
    pub(crate) fn points(self, leaves: bool, packet: &[u8]) -> [Option<Point>; 2] {
        let net = |at: usize| packet.get(at..at + 2);
        let (near, far) = (&NEAR.octets()[..2], &FAR.octets()[..2]);
        let is_in = |at: usize, network: &[u8]| net(at) == Some(network);
        let (source, target) = (12, 16);
        let host = match leaves {
            true => is_in(target, near),
            false => is_in(source, near),
        };
        let host = host.then_some(Point::Near);
        let queue = is_in(target, far).then_some(if leaves { Point::Out } else { Point::In });
        let up = is_in(target, near).then_some(if leaves { Point::UpOut } else { Point::UpIn });
        match self {
            Self::Queue { is_router: true } => [host, queue],
            Self::Queue { is_router: false } => [None, queue],
            Self::Router => [host, None],
            Self::UpQueue => [None, up],
        }
    }
}

/// The headers at the beginning of an IPv4 packet, and its length.
pub(crate) fn cut(packet: &[u8]) -> Option<(&[u8], u32)> {
    let length = u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]);
    let ip = usize::from(packet.first()? & 0xf) * 4;
    let transport = match *packet.get(9)? {
        TCP => usize::from(packet.get(ip + 12)? >> 4) * 4,
        UDP => UDP_BYTES,
        ICMP if packet.get(ip) == Some(&ICMP_UNREACHABLE) => ICMP_BYTES + QUOTED_BYTES,
        ICMP => ICMP_BYTES,
        _ => 0,
    };
    let end = (ip + transport).min(length.into()).min(packet.len());
    Some((&packet[..end], length.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet from one network to another.
    fn packet(protocol: u8, source: u8, target: u8) -> Vec<u8> {
        let mut packet = vec![0; 100];
        packet[0] = 0x45;
        packet[3] = 90;
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&[10, source, 0, 1]);
        packet[16..20].copy_from_slice(&[10, target, 0, 1]);
        packet
    }

    #[test]
    fn payload_is_cut_off() {
        let mut data = packet(TCP, 1, 2);
        data[32] = 8 << 4;
        let mut message = packet(ICMP, 3, 1);
        message[20] = ICMP_UNREACHABLE;
        for (packet, headers) in
            [(data, 52), (packet(UDP, 1, 2), 28), (packet(ICMP, 1, 2), 28), (message, 56)]
        {
            let (bytes, length) = cut(&packet).unwrap();
            assert_eq!((bytes.len(), length), (headers, 90));
            for end in 0..packet.len() {
                let _ = cut(&packet[..end]);
            }
        }
    }

    #[test]
    fn one_router_may_be_two_places() {
        use Point::{In, Near, Out, UpIn, UpOut};
        let (down, up) = (packet(TCP, 1, 2), packet(TCP, 2, 1));
        let both = Site::Queue { is_router: true };
        assert_eq!(both.points(false, &down), [Some(Near), Some(In)]);
        assert_eq!(both.points(true, &down), [None, Some(Out)]);
        assert_eq!(both.points(false, &up), [None, None]);
        assert_eq!(both.points(true, &up), [Some(Near), None]);
        assert_eq!(Site::Queue { is_router: false }.points(false, &down), [None, Some(In)]);
        assert_eq!(Site::UpQueue.points(false, &up), [None, Some(UpIn)]);
        assert_eq!(Site::UpQueue.points(true, &up), [None, Some(UpOut)]);
        assert_eq!(Site::UpQueue.points(true, &down), [None, None]);
    }
}
