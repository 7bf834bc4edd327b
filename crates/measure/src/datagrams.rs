//! The ECN field of single datagrams, sent and received.

use std::io::{self, ErrorKind, IoSlice};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, sendmsg};
use socket2::SockRef;

/// The ECN field is the lower two bits of the traffic class (RFC 3168 §5).
const ECN: u8 = 0b11;

/// The ECN field that a datagram arrived with.
pub(crate) fn ecn_of(messages: impl Iterator<Item = ControlMessageOwned>) -> u8 {
    let mut ecn = 0;
    for message in messages {
        match message {
            ControlMessageOwned::Ipv4Tos(tos) => ecn = tos & ECN,
            ControlMessageOwned::Ipv6TClass(class) => ecn = class as u8 & ECN,
            _ => {}
        }
    }
    ecn
}

/// Sends a datagram with that ECN field, over IPv6 or over IPv4.
pub(crate) fn send(
    socket: &UdpSocket,
    bytes: &[u8],
    (is_v6, ecn): (bool, u8),
    to: Option<&SockaddrStorage>,
) -> nix::Result<()> {
    let class = i32::from(ecn);
    let control =
        if is_v6 { ControlMessage::Ipv6TClass(&class) } else { ControlMessage::Ipv4Tos(&ecn) };
    let parts = [IoSlice::new(bytes)];
    sendmsg(socket.as_raw_fd(), &parts, &[control], MsgFlags::MSG_DONTWAIT, to).map(drop)
}

/// Has the kernel tell with each datagram which ECN field it arrived with.
pub(crate) fn tell_ecn(socket: &UdpSocket) -> io::Result<()> {
    let is_v6 = socket.local_addr()?.is_ipv6();
    let options = SockRef::from(socket);
    if is_v6 {
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
    } else {
        options.set_recv_tos_v4(true)
    }
}
