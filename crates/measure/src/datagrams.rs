//! Single datagrams with what the kernel knows of them: the ECN field, and at which of this host's addresses they came.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use socket2::SockRef;

/// The ECN field is the lower two bits of the traffic class (RFC 3168 §5).
const ECN: u8 = 0b11;

/// A datagram that came.
pub(crate) struct Arrival {
    pub(crate) length: usize,
    pub(crate) from: Option<SockaddrStorage>,
    pub(crate) ecn: u8,
    /// Where it came to: an answer is to come from there, or whoever asked takes it for a stranger's.
    pub(crate) here: Option<Here>,
}

/// An address of this host's.
pub(crate) enum Here {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

/// Has the kernel tell with each datagram what an [`Arrival`] has.
pub(crate) fn tell_all(socket: &impl AsFd) -> io::Result<()> {
    let options = SockRef::from(socket);
    let is_v6 = options.local_addr()?.is_ipv6();
    if !is_v6 {
        setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?;
        return options.set_recv_tos_v4(true);
    }
    setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?;
    options.set_recv_tclass_v6(true)?;
    // Of a socket of both families this one too; one of IPv6 alone has no such option everywhere.
    match options.set_recv_tos_v4(true) {
        Err(error)
            if error.kind() != ErrorKind::Unsupported
                && error.raw_os_error() != Some(libc::ENOPROTOOPT) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Takes a datagram, of which so many bytes are of interest.
pub(crate) fn receive(socket: &impl AsFd, bytes: &mut [u8]) -> nix::Result<Arrival> {
    let mut space = cmsg_space!(u8, i32, libc::in_pktinfo, libc::in6_pktinfo);
    let mut parts = [IoSliceMut::new(bytes)];
    let (fd, flags) = (socket.as_fd().as_raw_fd(), MsgFlags::empty());
    let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut space), flags)?;
    let mut arrival = Arrival { length: message.bytes, from: message.address, ecn: 0, here: None };
    for told in message.cmsgs()? {
        match told {
            ControlMessageOwned::Ipv4Tos(tos) => arrival.ecn = tos & ECN,
            ControlMessageOwned::Ipv6TClass(class) => arrival.ecn = class as u8 & ECN,
            // The way back is the routes' to choose, not that of the interface that it came by.
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                arrival.here = Some(Here::V4(libc::in_pktinfo { ipi_ifindex: 0, ..info }));
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                arrival.here = Some(Here::V6(libc::in6_pktinfo { ipi6_ifindex: 0, ..info }));
            }
            _ => {}
        }
    }
    Ok(arrival)
}

/// Sends a datagram with that ECN field over IPv6 or over IPv4, from an address of this host's if one is given.
pub(crate) fn send(
    socket: &impl AsFd,
    bytes: &[u8],
    (is_v6, ecn): (bool, u8),
    (from, to): (Option<&Here>, Option<&SockaddrStorage>),
) -> nix::Result<()> {
    let class = i32::from(ecn);
    let mut control = vec![match is_v6 {
        true => ControlMessage::Ipv6TClass(&class),
        false => ControlMessage::Ipv4Tos(&ecn),
    }];
    control.extend(from.map(|from| match from {
        Here::V4(info) => ControlMessage::Ipv4PacketInfo(info),
        Here::V6(info) => ControlMessage::Ipv6PacketInfo(info),
    }));
    let parts = [IoSlice::new(bytes)];
    sendmsg(socket.as_fd().as_raw_fd(), &parts, &control, MsgFlags::MSG_DONTWAIT, to).map(drop)
}
