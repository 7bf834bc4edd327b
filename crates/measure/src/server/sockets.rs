//! A server's sockets: its own, or those that it was started with.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd as _;

use dualq_units::plain;
use listenfd::ListenFd;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::datagrams::tell_all;

/// As many as can arrive at once without being turned away.
const BACKLOG: i32 = 1024;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot listen there.
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, String),
    /// It was not started with sockets.
    #[error("it was not started with a listening TCP socket and a UDP socket (LISTEN_FDS)")]
    NotActivated,
    /// The system does not let it.
    #[error("cannot serve: {}", plain(.0))]
    System(#[from] io::Error),
}

type Sockets = (Vec<TcpListener>, Vec<UdpSocket>);

/// Sockets at these addresses. An address of all of IPv6 is left out where there is no IPv6, if there is another.
pub(super) fn bound(addresses: &[SocketAddr]) -> Result<Sockets, ServeError> {
    let (mut listeners, mut datagrams) = (Vec::new(), Vec::new());
    for address in addresses {
        let opened = open(*address, Type::STREAM).and_then(|listener| {
            listener.listen(BACKLOG)?;
            // With port 0 the kernel chooses, and datagrams are to come to the same one.
            let chosen = listener.local_addr()?.as_socket().unwrap_or(*address);
            Ok((listener, open(chosen, Type::DGRAM)?))
        });
        match opened {
            Ok((listener, socket)) => {
                listeners.push(listener.into());
                datagrams.push(socket.into());
            }
            Err(error) if lacks_family(&error, *address) && addresses.len() > 1 => {}
            Err(error) => {
                return Err(ServeError::Listen(*address, plain(&error)));
            }
        }
    }
    for socket in &datagrams {
        tell_all(socket)?;
        never_fragment(socket)?;
    }
    keep_syns(&listeners);
    Ok((listeners, datagrams))
}

/// Nothing is fragmented, whatever the kernel believes of paths: what they carry is what clients want to know.
fn never_fragment(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()? {
        SocketAddr::V4(_) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?,
        SocketAddr::V6(_) => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?,
    }
    Ok(())
}

/// Clients are told how their SYNs arrived. Without that a server is of use, too.
fn keep_syns(listeners: &[TcpListener]) {
    for listener in listeners {
        let _ = dualq_socket::save_syns(listener.as_fd());
    }
}

fn lacks_family(error: &io::Error, address: SocketAddr) -> bool {
    let missing = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL];
    address.is_ipv6()
        && address.ip().is_unspecified()
        && error.raw_os_error().is_some_and(|code| missing.contains(&code))
}

fn open(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    let protocol = if kind == Type::STREAM { Protocol::TCP } else { Protocol::UDP };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if kind == Type::STREAM {
        // A server that is started again need not wait for the connections of the one before.
        socket.set_reuse_address(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// The sockets that this process was started with.
pub(super) fn inherited() -> Result<Sockets, ServeError> {
    let mut inherited = ListenFd::from_env();
    let (mut listeners, mut datagrams) = (Vec::new(), Vec::new());
    for number in 0..inherited.len() {
        // Whichever it is not is left for the next question.
        if let Ok(Some(listener)) = inherited.take_tcp_listener(number) {
            listener.set_nonblocking(false)?;
            listeners.push(listener);
        } else if let Ok(Some(socket)) = inherited.take_udp_socket(number) {
            socket.set_nonblocking(false)?;
            tell_all(&socket)?;
            never_fragment(&socket)?;
            datagrams.push(socket);
        }
    }
    if listeners.is_empty() || datagrams.is_empty() {
        return Err(ServeError::NotActivated);
    }
    keep_syns(&listeners);
    Ok((listeners, datagrams))
}
