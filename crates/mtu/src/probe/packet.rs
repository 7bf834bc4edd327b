//! Single packets on their way, a socket each, and what the kernel tells of them.

use std::io::{self, ErrorKind, IoSliceMut, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::time::Instant;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::echo;
use crate::search::SMALLEST;

/// What comes back of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// The host answered.
    Reached,
    /// It is too big.
    TooBig {
        /// What would fit, if that is said.
        mtu: Option<u16>,
        /// Who says so; `None` for this machine.
        by: Option<IpAddr>,
    },
    /// It had no hops left at this router.
    Expired(IpAddr),
    /// This router does not let it through, or knows no way.
    Rejected(IpAddr),
}

/// What carries a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// UDP, to a port where nobody should listen.
    Udp,
    /// ICMP echo from an unprivileged socket.
    Ping,
    /// ICMP echo from a raw one.
    RawPing,
}

/// What a packet is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Its size, IP header and all.
    pub(crate) size: u16,
    /// How many hops it may take, if not all.
    pub(crate) hops: Option<u8>,
    /// Its ECN field.
    pub(crate) ecn: u8,
}

impl Shape {
    /// One that is nothing but that large.
    pub(crate) const fn of(size: u16) -> Self {
        Self { size, hops: None, ecn: 0 }
    }
}

/// A packet that was sent, and the socket that waits for what comes of it.
#[derive(Debug)]
pub(crate) struct ProbePacket {
    socket: Socket,
    kind: Kind,
    host: IpAddr,
    /// By which an echo is known.
    number: u16,
    pub(crate) shape: Shape,
    pub(crate) sent: Instant,
}

/// With it, errors tell the traffic class of what they quote (Linux: `ipv6_recv_error`).
#[derive(Clone, Copy)]
struct FlowInfo;
nix::setsockopt_impl!(FlowInfo, libc::IPPROTO_IPV6, IPV6_FLOWINFO_SEND, bool, sockopt::SetBool);
/// No library has it (include/uapi/linux/in6.h).
const IPV6_FLOWINFO_SEND: libc::c_int = 33;

/// The headers that both UDP and ICMP echo put before their payload.
const TRANSPORT_HEADER: u16 = 8;

/// The header of the host's IP.
pub(crate) const fn ip_header(host: IpAddr) -> u16 {
    match host {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    }
}

/// A socket of this kind, on which nothing is fragmented and all errors are told.
pub(crate) fn open(kind: Kind, host: IpAddr) -> io::Result<Socket> {
    let (domain, icmp) = match host {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = match kind {
        Kind::Udp => Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?,
        Kind::Ping => Socket::new(domain, Type::DGRAM, Some(icmp))?,
        Kind::RawPing => Socket::new(domain, Type::RAW, Some(icmp))?,
    };
    socket.set_nonblocking(true)?;
    // PROBE sets DF, and ignores the path MTU that the kernel believes in: that is what is to be found out.
    match host {
        IpAddr::V4(_) => {
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
            setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        }
        IpAddr::V6(_) => {
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
            setsockopt(&socket, FlowInfo, &true)?;
            setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        }
    }
    Ok(socket)
}

impl ProbePacket {
    /// Sends a packet, whose payload begins like that if it is UDP. `Err` is what this machine says: no route, a firewall of its own.
    pub(crate) fn send(
        kind: Kind,
        to: SocketAddr,
        number: u16,
        shape: Shape,
        head: &[u8],
    ) -> io::Result<Self> {
        let socket = open(kind, to.ip())?;
        match to {
            SocketAddr::V4(_) => socket.set_tos_v4(shape.ecn.into())?,
            SocketAddr::V6(_) => socket.set_tclass_v6(shape.ecn.into())?,
        }
        if let Some(hops) = shape.hops {
            match to {
                SocketAddr::V4(_) => socket.set_ttl_v4(hops.into())?,
                SocketAddr::V6(_) => socket.set_unicast_hops_v6(hops.into())?,
            }
        }
        let mut to = to;
        if kind != Kind::Udp {
            to.set_port(0);
        }
        socket.connect(&SockAddr::from(to))?;
        let payload = usize::from(shape.size.saturating_sub(ip_header(to.ip()) + TRANSPORT_HEADER));
        let packet = match kind {
            Kind::Udp => {
                let mut packet = head.to_vec();
                packet.resize(payload.max(head.len()), 0);
                packet
            }
            Kind::Ping | Kind::RawPing => echo::request(to.ip(), number, payload),
        };
        // What a queue of this machine cannot take is lost like what others lose, and a packet that is too big for it is told by the
        // queue of errors.
        let lost = [libc::EMSGSIZE, libc::ENOBUFS, libc::EAGAIN].map(Some);
        match socket.send(&packet) {
            Err(error) if !lost.contains(&error.raw_os_error()) => return Err(error),
            _ => {}
        }
        let host = to.ip();
        Ok(Self { socket, kind, host, number, shape, sent: Instant::now() })
    }

    /// What has come of it by now; of an error, the ECN field of the packet that it quotes, where IPv6 tells it.
    pub(crate) fn look(&self) -> Option<(Response, Option<u8>)> {
        self.error().or_else(|| Some((self.answer()?, None)))
    }

    /// The port that it was sent from.
    pub(crate) fn port(&self) -> Option<u16> {
        Some(self.socket.local_addr().ok()?.as_socket()?.port())
    }

    /// An answer of the host itself.
    fn answer(&self) -> Option<Response> {
        let mut buffer = [0; 128];
        loop {
            match (&self.socket).read(&mut buffer) {
                Ok(length) => {
                    let start = &buffer[..length.min(buffer.len())];
                    if self.kind == Kind::Udp || echo::is_reply(self.kind, self.number, start) {
                        return Some(Response::Reached);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// What the kernel keeps in the socket's queue of errors (ip(7), IP_RECVERR).
    fn error(&self) -> Option<(Response, Option<u8>)> {
        let mut buffer = [0; 128];
        loop {
            let mut space = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let descriptor = self.socket.as_raw_fd();
            let read = recvmsg::<SockaddrStorage>(descriptor, &mut parts, Some(&mut space), flags);
            let (response, quoted_ecn, length) = match read {
                Ok(message) => {
                    let to = message.address.as_ref().and_then(|to| to.as_sockaddr_in6());
                    let ecn = to.map(|to| (u32::from_be(to.flowinfo()) >> 20) as u8 & 0b11);
                    let response = message
                        .cmsgs()
                        .ok()
                        .and_then(|mut all| all.find_map(|one| self.response(&one)));
                    (response, ecn, message.bytes)
                }
                Err(Errno::EINTR) => continue,
                Err(_) => return None,
            };
            let quoted = &buffer[..length.min(buffer.len())];
            let ours = self.kind != Kind::RawPing
                || matches!(response, Some(Response::TooBig { by: None, .. }))
                || echo::is_quoted(self.number, quoted);
            if let Some(response) = response.filter(|_| ours) {
                return Some((response, quoted_ecn));
            }
        }
    }

    fn response(&self, message: &ControlMessageOwned) -> Option<Response> {
        let (error, by) = match message {
            ControlMessageOwned::Ipv4RecvErr(error, by) => {
                let address =
                    |by: &libc::sockaddr_in| Ipv4Addr::from(u32::from_be(by.sin_addr.s_addr));
                (error, by.as_ref().map(address).map(IpAddr::V4))
            }
            ControlMessageOwned::Ipv6RecvErr(error, by) => {
                let address = |by: &libc::sockaddr_in6| Ipv6Addr::from(by.sin6_addr.s6_addr);
                (error, by.as_ref().map(address).map(IpAddr::V6))
            }
            _ => return None,
        };
        // A router may say 0, or nonsense; sizes above 64 KB tell nothing.
        let mtu = u16::try_from(error.ee_info).ok().filter(|mtu| *mtu >= SMALLEST);
        match (error.ee_origin, error.ee_type, error.ee_code) {
            (libc::SO_EE_ORIGIN_LOCAL, ..) if error.ee_errno == libc::EMSGSIZE as u32 => {
                Some(Response::TooBig { mtu, by: None })
            }
            (libc::SO_EE_ORIGIN_ICMP, 3, 4) | (libc::SO_EE_ORIGIN_ICMP6, 2, _) => {
                Some(Response::TooBig { mtu, by })
            }
            (libc::SO_EE_ORIGIN_ICMP, 11, _) | (libc::SO_EE_ORIGIN_ICMP6, 3, _) => {
                by.map(Response::Expired)
            }
            // Only a host has ports; others of its words, too, tell that the packet came to it.
            (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => {
                Some(Response::Reached)
            }
            (libc::SO_EE_ORIGIN_ICMP, 3, _) | (libc::SO_EE_ORIGIN_ICMP6, 1, _) => match by {
                Some(by) if by == self.host => Some(Response::Reached),
                by => by.map(Response::Rejected),
            },
            _ => None,
        }
    }
}

impl AsFd for ProbePacket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
