//! TCP connections: what `ss -ti` tells, by sock_diag(7).

use std::net::IpAddr;
use std::time::Duration;

use crate::attributes::{u32_at, u64_at};
use crate::channel::{Channel, messages};
use crate::header::{AF_INET, AF_INET6, InetDiag, inet_diag_request};
use crate::{Netlink, NetlinkError};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
/// `1 << TCP_ESTABLISHED`.
const ESTABLISHED: u32 = 1 << 1;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// A bit each, by their numbers from 1.
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);

/// Where fields are in `struct tcp_info`, which grows at its end only: `tcpi_rtt`, `tcpi_total_retrans`, `tcpi_bytes_acked` (Linux 4.1),
/// `tcpi_min_rtt`, `tcpi_data_segs_out` (4.6), `tcpi_delivered`, `tcpi_delivered_ce` (4.18).
const RTT: usize = 68;
const TOTAL_RETRANS: usize = 100;
const BYTES_ACKED: usize = 120;
const MIN_RTT: usize = 148;
const DATA_SEGS_OUT: usize = 156;
const DELIVERED: usize = 192;
const DELIVERED_CE: usize = 196;

/// What a connection has sent so far. What the kernel is too old to count is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Segments with payload, those that were sent again among them.
    pub segments: u32,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Segments that arrived, as far as acknowledgements tell.
    pub delivered: u32,
    /// Those of them that arrived with CE, as the other end echoed.
    pub delivered_ce: u32,
    /// Payload that was acknowledged, in bytes.
    pub acked_bytes: u64,
}

/// An established TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// What the kernel tells it apart by, as long as this machine runs (`idiag_cookie`).
    pub cookie: [u8; 8],
    /// This end.
    pub local: IpAddr,
    /// The other end.
    pub remote: IpAddr,
    /// Its congestion control, by the kernel's name.
    pub congestion_control: Option<String>,
    /// The smoothed round-trip time (`tcpi_rtt`); `None` if it has none yet.
    pub rtt: Option<Duration>,
    /// The smallest round-trip time that it has seen; `None` if it has none yet, or the kernel is too old to tell.
    pub min_rtt: Option<Duration>,
    /// What it has sent.
    pub sent: Sent,
}

impl Connection {
    fn read(payload: &[u8]) -> Option<Self> {
        let (header, attributes) = InetDiag::read(payload)?;
        let info = attributes.get(INET_DIAG_INFO).unwrap_or_default();
        // What has not been measured is nothing, or all ones.
        let time = |offset| {
            let micros = u32_at(info, offset).filter(|micros| !matches!(*micros, 0 | u32::MAX));
            micros.map(|micros| Duration::from_micros(micros.into()))
        };
        let count = |offset| u32_at(info, offset).unwrap_or(0);
        Some(Self {
            cookie: header.cookie,
            local: header.source.to_canonical(),
            remote: header.destination.to_canonical(),
            congestion_control: attributes.string(INET_DIAG_CONG).map(str::to_owned),
            rtt: time(RTT),
            min_rtt: time(MIN_RTT),
            sent: Sent {
                segments: count(DATA_SEGS_OUT),
                retransmitted: count(TOTAL_RETRANS),
                delivered: count(DELIVERED),
                delivered_ce: count(DELIVERED_CE),
                acked_bytes: u64_at(info, BYTES_ACKED).unwrap_or(0),
            },
        })
    }

    /// Whether the other end is another machine, as far as addresses tell.
    #[must_use]
    pub fn leaves_the_machine(&self) -> bool {
        !self.remote.is_loopback() && self.remote != self.local
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
        for family in [AF_INET, AF_INET6] {
            let request = inet_diag_request(family, IPPROTO_TCP, EXTENSIONS, ESTABLISHED);
            let answer = channel.dump(SOCK_DIAG_BY_FAMILY, &request);
            let answer = answer.map_err(|failure| failure.of("list TCP connections"))?;
            let told = messages(&answer).filter(|message| message.kind == SOCK_DIAG_BY_FAMILY);
            connections.extend(told.filter_map(|message| Connection::read(message.payload)));
        }
        Ok(connections)
    }
}
