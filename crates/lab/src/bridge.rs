//! What routers do to packets and no queue discipline of ours: a thread of our own takes each frame that comes in at one device,
//! looks at it, and puts it out at the other. Aggregates stay what they are: frames come and go with what Linux tells a virtual
//! machine of them (`struct virtio_net_hdr`).

use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::thread;
use std::time::Duration;

use dualq_namespace::Namespace;
use dualq_net::Police;
use dualq_units::{Bytes, Ecn, Instant, Rate};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::LabError;
use crate::network::{netlink, sysctl};

/// What comes before each frame, and Ethernet's header: two addresses and the protocol.
const VIRTIO_HEADER: usize = 10;
const ETHERNET_HEADER: usize = 14;
/// The longest IP packet, with both.
const FRAME_BYTES: usize = VIRTIO_HEADER + ETHERNET_HEADER + 65_535;
/// Nothing waits here.
const BUFFER_BYTES: usize = 256 << 20;
/// The header of IP without options.
const IP_HEADER: usize = 20;

/// What is done to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// The ECN field is cleared.
    Bleach,
    /// ECT(0) becomes ECT(1).
    Ect1,
    /// What exceeds a rate, and a burst, is dropped.
    Police(Rate, Bytes),
}

/// Takes over what comes in at one device of a router, and goes out at the other to the neighbour with that Ethernet address. The other
/// way round the kernel forwards as ever. It ends with one of the devices.
pub(crate) fn start(
    namespace: &Namespace,
    (from, to): (&str, &str),
    neighbour: [u8; 6],
    deed: Deed,
) -> Result<(), LabError> {
    sysctl(namespace, &format!("net/ipv4/conf/{from}/forwarding"), "0")?;
    let mut netlink = netlink(namespace)?;
    let (from, to) = (netlink.link(from)?, netlink.link(to)?);
    let open = || Ok([packet_socket(from.index)?, packet_socket(to.index)?]);
    let sockets: io::Result<[Socket; 2]> = namespace.inside(open)?;
    let cannot = |error| LabError::system("cannot take over a router's packets", error);
    let [from, out] = sockets.map_err(cannot)?;
    let addresses = [neighbour, to.mac.unwrap_or_default()];
    let work = move || forward(&from, &out, addresses, deed);
    thread::Builder::new().name("bridge".to_owned()).spawn(work).map_err(cannot)?;
    Ok(())
}

/// A socket for the IPv4 frames that come in at a device, and for those that go out there.
#[allow(unsafe_code)]
fn packet_socket(index: u32) -> io::Result<Socket> {
    // No frame comes before it is bound.
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)?;
    setsockopt(&socket, sockopt::SndBufForce, &BUFFER_BYTES)?;
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads as many bytes of `on` as it is told. No library has this option.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VNET_HDR,
            (&raw const on).cast(),
            mem::size_of_val(&on) as libc::socklen_t,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let fill = |storage: *mut socket2::SockAddrStorage, length: *mut libc::socklen_t| {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::sa_family_t,
            sll_protocol: (libc::ETH_P_IP as u16).to_be(),
            sll_ifindex: index.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the storage is large enough for every address, and aligned for it.
        unsafe {
            storage.cast::<libc::sockaddr_ll>().write(address);
            *length = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        }
        Ok(())
    };
    // SAFETY: what it is filled with is an address of its family and of that length.
    let ((), address) = unsafe { SockAddr::try_init(fill) }?;
    socket.bind(&address)?;
    Ok(socket)
}

fn forward(from: &Socket, out: &Socket, [to, own]: [[u8; 6]; 2], deed: Deed) {
    let mut police = match deed {
        Deed::Police(rate, burst) => Some(Police::new(rate, burst)),
        Deed::Bleach | Deed::Ect1 => None,
    };
    let mut frame = vec![0; FRAME_BYTES];
    while let Ok(length) = io::Read::read(&mut &*from, &mut frame) {
        let Some((headers, packet)) = frame
            .get_mut(..length)
            .and_then(|f| f.split_at_mut_checked(VIRTIO_HEADER + ETHERNET_HEADER))
        else {
            continue;
        };
        let on_wire = (packet.len() + ETHERNET_HEADER) as u32;
        let passes = police.as_mut().is_none_or(|police| police.conforms(now(), on_wire));
        let field = match deed {
            Deed::Bleach => Some(Ecn::NotEct),
            Deed::Ect1 => packet
                .get(1)
                .filter(|field| Ecn::from_bits(**field) == Ecn::Ect0)
                .map(|_| Ecn::Ect1),
            Deed::Police(..) => None,
        };
        if let Some(ecn) = field {
            set_ecn(packet, ecn);
        }
        headers[VIRTIO_HEADER..VIRTIO_HEADER + 6].copy_from_slice(&to);
        headers[VIRTIO_HEADER + 6..VIRTIO_HEADER + 12].copy_from_slice(&own);
        if passes && out.send(&frame[..length]).is_err() {
            return;
        }
    }
}

fn now() -> Instant {
    let since_boot = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    Instant::ZERO + since_boot
}

/// Gives an IPv4 packet another ECN field, and its header the checksum for that.
fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let Some(header) = packet.first_chunk_mut::<IP_HEADER>() else { return };
    let word = |header: &[u8; IP_HEADER]| u16::from_be_bytes([header[0], header[1]]);
    let before = word(header);
    header[1] = header[1] & !3 | ecn as u8;
    // RFC 1624 §3.
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(word(header));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with the right checksum sums up to all ones (RFC 1071).
    fn is_right(header: &[u8]) -> bool {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn the_checksum_follows_the_field() {
        let mut packet = [
            0x45, 0x02, 0x05, 0xdc, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1,
            0xff,
        ];
        let sum: u32 = packet[..20]
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert!(is_right(&packet[..20]));
        for ecn in [Ecn::Ect1, Ecn::NotEct, Ecn::Ce, Ecn::Ect0] {
            set_ecn(&mut packet, ecn);
            assert_eq!((packet[1], packet[20]), (ecn as u8, 0xff));
            assert!(is_right(&packet[..20]), "{ecn:?}");
        }
    }
}
