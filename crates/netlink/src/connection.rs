//! TCP connections: what `ss -ti` tells, by sock_diag(7).

use std::net::IpAddr;
use std::time::Duration;

use netlink_packet_core::Parseable as _;
use netlink_packet_sock_diag::constants::{
    AF_INET, AF_INET6, INET_DIAG_CONG, INET_DIAG_INFO, IPPROTO_TCP, SOCK_DIAG_BY_FAMILY,
};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseBuffer, InetResponseHeader, SocketId, StateFlags,
};

use crate::attributes::{Attributes, u32_at};
use crate::channel::{Channel, messages};
use crate::link::bytes;
use crate::{Netlink, NetlinkError};

/// Where `tcpi_min_rtt` is in `struct tcp_info` (Linux 4.6).
const MIN_RTT: usize = 148;

/// An established TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// This end.
    pub local: IpAddr,
    /// The other end.
    pub remote: IpAddr,
    /// Its congestion control, by the kernel's name.
    pub congestion_control: Option<String>,
    /// The smallest round-trip time that it has seen; `None` if it has none yet, or the kernel is too old to tell.
    pub min_rtt: Option<Duration>,
}

impl Connection {
    fn read(payload: &[u8]) -> Option<Self> {
        let header = InetResponseHeader::parse(payload).ok()?;
        let attributes = Attributes::read(payload.get(size_of::<InetResponseBuffer>()..)?);
        // What has not been measured is all ones.
        let min_rtt = attributes.get(INET_DIAG_INFO).and_then(|info| u32_at(info, MIN_RTT));
        let min_rtt = min_rtt.filter(|micros| !matches!(*micros, 0 | u32::MAX));
        Some(Self {
            local: header.socket_id.source_address.to_canonical(),
            remote: header.socket_id.destination_address.to_canonical(),
            congestion_control: attributes.string(INET_DIAG_CONG).map(str::to_owned),
            min_rtt: min_rtt.map(|micros| Duration::from_micros(micros.into())),
        })
    }
}

impl Netlink {
    /// All established TCP connections of the network namespace in which the calling thread is.
    ///
    /// # Errors
    /// If the kernel does not tell, for which it may need its module `tcp_diag`.
    pub fn connections(&mut self) -> Result<Vec<Connection>, NetlinkError> {
        let mut channel =
            Channel::open(netlink_sys::protocols::NETLINK_SOCK_DIAG).map_err(NetlinkError::Open)?;
        let mut connections = Vec::new();
        for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            let request = InetRequest {
                family,
                protocol: IPPROTO_TCP,
                extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
                states: StateFlags::ESTABLISHED,
                socket_id,
            };
            let answer = channel.dump(SOCK_DIAG_BY_FAMILY, &bytes(&request));
            let answer = answer.map_err(|failure| failure.of("list TCP connections"))?;
            let told = messages(&answer).filter(|message| message.kind == SOCK_DIAG_BY_FAMILY);
            connections.extend(told.filter_map(|message| Connection::read(message.payload)));
        }
        Ok(connections)
    }
}
