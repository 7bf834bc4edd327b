//! What TCP makes of the path: the segment size that both ends agree on, and, if asked, whether full segments arrive.

use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::GetSockOpt as _;
use socket2::SockRef;

use super::packet::ip_header;

const TCP_HEADER: u16 = 20;
/// The option in each segment (RFC 7323 §3.2), padded.
const TIMESTAMP: u16 = 12;
const TCPI_OPT_TIMESTAMPS: u8 = 1;

/// How often the connection is looked at.
const TICK: Duration = Duration::from_millis(10);

/// The sizes that are tried if nothing else is known of the path.
const LADDER: [u16; 6] = [1400, 1300, 1220, 1000, 576, 256];

/// What was seen with TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// A port answered.
    Connected(Connection),
    /// None of these ports did: refused, or silent.
    Closed(Vec<u16>),
}

/// A connection, as the kernel describes it once it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The port that was connected to.
    pub port: u16,
    /// The payload of a full segment, options not counted.
    pub mss: u16,
    /// The packet that a full segment makes.
    pub packet: u16,
    /// What this machine believed the path MTU to be.
    pub believed: u16,
    /// What became of segments, if any were sent.
    pub bulk: Option<Bulk>,
}

/// What became of segments, in the order in which they were sent, each on a connection of its own.
pub type Bulk = Vec<Segment>;

/// A segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The packet's size.
    pub packet: u16,
    /// Whether the host acknowledged it, or answered it by closing the connection.
    pub arrived: bool,
    /// How often TCP sent it again.
    pub sent_again: u32,
}

/// `struct tcp_info`, as far as all kernels since 4.1 have it.
type Words = [u32; 32];

#[derive(Clone, Copy)]
struct TcpInfo;

nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    Words,
    nix::sys::socket::sockopt::GetStruct<Words>
);

/// Fields of the structure, by their place in it (include/uapi/linux/tcp.h).
struct Info {
    timestamps: bool,
    snd_mss: u32,
    pmtu: u32,
    sent_again: u32,
    acknowledged: u64,
}

impl Info {
    fn of(stream: &TcpStream) -> io::Result<Self> {
        let words = TcpInfo.get(stream)?;
        let [low, high] = [words[30].to_ne_bytes(), words[31].to_ne_bytes()];
        let acknowledged = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
        Ok(Self {
            timestamps: words[1].to_ne_bytes()[1] & TCPI_OPT_TIMESTAMPS != 0,
            snd_mss: words[4],
            pmtu: words[15],
            sent_again: words[25],
            acknowledged: u64::from_ne_bytes(acknowledged),
        })
    }

    /// What a segment has besides its payload.
    fn headers(&self, host: IpAddr) -> u16 {
        ip_header(host) + TCP_HEADER + if self.timestamps { TIMESTAMP } else { 0 }
    }
}

/// Connects to the first of `ports` that answers, all being tried at once, and sends nothing.
pub(super) fn connect(to: SocketAddr, ports: &[u16], timeout: Duration) -> Tcp {
    let attempts: Vec<_> = ports
        .iter()
        .map(|&port| {
            let mut to = to;
            to.set_port(port);
            (port, thread::spawn(move || TcpStream::connect_timeout(&to, timeout)))
        })
        .collect();
    let mut streams =
        attempts.into_iter().filter_map(|(port, attempt)| Some((port, attempt.join().ok()?.ok()?)));
    let described = streams.find_map(|(port, stream)| describe(to.ip(), port, &stream).ok());
    described.map_or_else(|| Tcp::Closed(ports.to_vec()), Tcp::Connected)
}

fn describe(host: IpAddr, port: u16, stream: &TcpStream) -> io::Result<Connection> {
    let info = Info::of(stream)?;
    let cut = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let mss = cut(info.snd_mss);
    let packet = mss.saturating_add(info.headers(host));
    Ok(Connection { port, mss, packet, believed: cut(info.pmtu), bulk: None })
}

/// Sends one full segment, and if it does not arrive a smaller one: of `fits` bytes, if that is known to get through, else of
/// less and less. The payload is empty lines, which most services ignore.
pub(super) fn send(
    to: SocketAddr,
    connection: &Connection,
    fits: Option<u16>,
    patience: Duration,
) -> Bulk {
    let mut to = to;
    to.set_port(connection.port);
    let smaller: Vec<u16> = fits.map_or_else(|| LADDER.to_vec(), |fits| vec![fits]);
    let sizes = smaller.into_iter().filter(|size| *size < connection.packet);
    let mut bulk = Bulk::new();
    for size in std::iter::once(connection.packet).chain(sizes) {
        let Ok(segment) = send_one(to, size, patience) else { break };
        bulk.push(segment);
        if segment.arrived {
            break;
        }
    }
    bulk
}

fn send_one(to: SocketAddr, packet: u16, patience: Duration) -> io::Result<Segment> {
    let mut stream = TcpStream::connect_timeout(&to, patience)?;
    stream.set_nodelay(true)?;
    let before = Info::of(&stream)?;
    let headers = before.headers(to.ip());
    let payload = usize::from(packet.saturating_sub(headers).max(1)).min(before.snd_mss as usize);
    let lines: Vec<u8> = b"\r\n".iter().copied().cycle().take(payload).collect();
    stream.write_all(&lines)?;
    let started = Instant::now();
    let (mut arrived, mut sent_again) = (false, 0);
    while !arrived && started.elapsed() < patience {
        thread::sleep(TICK);
        let info = Info::of(&stream)?;
        sent_again = info.sent_again;
        let closed =
            stream.take_error()?.is_some_and(|e| e.kind() == io::ErrorKind::ConnectionReset);
        arrived = closed || info.acknowledged >= before.acknowledged + payload as u64;
    }
    if !arrived {
        // Else the kernel would go on sending it for minutes.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    }
    let packet = headers.saturating_add(payload as u16);
    Ok(Segment { packet, arrived, sent_again })
}
