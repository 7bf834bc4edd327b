//! What answers at the other end: `dualq serve`, a stock iperf3 server, a web server.

mod dualq;
mod http;
mod iperf3;

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use dualq_socket::TcpInfo;
use socket2::{Domain, Protocol, Socket, Type};

use super::board::{Board, Track};
use super::error::MeasureError;
use super::{Family, Far, Options};
use crate::measurement::{Direction, Server};
use crate::protocol::{ArrivedSyn, Cookie, FlowReport};

pub use http::{Url, UrlError};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that bytes come and go on from now on.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) stream: TcpStream,
    /// What has come on it already.
    pub(super) rest: Vec<u8>,
}

/// How long the beginning of a connection took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    /// TCP's handshake.
    pub(super) connect: Duration,
    /// The answer to the first question.
    pub(super) request: Duration,
}

/// What the flows of a stage are to be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage<'a> {
    pub(super) direction: Direction,
    pub(super) flows: &'a [&'a Track],
    /// It lasts no longer.
    pub(super) most: Duration,
}

/// How SYNs arrived.
#[derive(Debug)]
pub(super) struct Syns {
    pub(super) own: Option<ArrivedSyn>,
    pub(super) others: Vec<ArrivedSyn>,
}

/// What answers at the other end, and what it can be asked for.
pub(super) trait FarEnd: Sync {
    fn server(&self) -> Server;

    fn address(&self) -> SocketAddr;

    /// How long it lets a measurement last, if it says so.
    fn most(&self) -> Option<Duration> {
        None
    }

    /// How many flows it lets run at once, if it says so.
    fn most_flows(&self) -> Option<u32> {
        None
    }

    /// How fast it lets each direction be altogether, in bits per second, if it says so.
    fn most_rate(&self) -> Option<u64> {
        None
    }

    /// A connection on which what is sent comes back; none where no server does that.
    fn echo(&self) -> Result<Option<Opened>, MeasureError> {
        Ok(None)
    }

    /// How datagrams begin that it answers, if it answers any.
    fn datagrams(&self) -> Option<Cookie> {
        None
    }

    /// Opens a new connection and asks one question; none where that cannot be asked for.
    fn begin(&self) -> Option<Result<Beginning, MeasureError>> {
        None
    }

    /// What the kernel said of a connection to there when it had just begun.
    fn connection(&self) -> Option<TcpInfo> {
        None
    }

    /// How SYNs arrived, if somebody there tells: that of [`connection`](Self::connection), and those with these sequence numbers.
    fn syns(&self, _numbers: &[u32]) -> Result<Option<Syns>, MeasureError> {
        Ok(None)
    }

    /// Before the flows of a stage begin; on the threads of which [`flow`](Self::flow) is called then.
    fn prepare(&self, _stage: Stage<'_>) -> Result<(), MeasureError> {
        Ok(())
    }

    /// The connection of a flow.
    fn flow(&self, track: &Track) -> Result<Opened, MeasureError>;

    /// Whether flows have blocks and questions, and not only payload.
    fn is_framed(&self) -> bool {
        false
    }

    /// The server ended a flow after that time, which is to be opened again, or a fault.
    fn ended(&self, track: &Track, _after: Duration) -> Result<(), MeasureError> {
        let way = if track.is_up { "upload" } else { "download" };
        Err(self.vanished(format!("it closed a flow in the middle of {way}")))
    }

    /// What the far end saw of the flows, which have ended here.
    fn collect(&self, _board: &Board) -> Result<Vec<FlowReport>, MeasureError> {
        Ok(Vec::new())
    }

    /// Why the server ended all, if it said so.
    fn farewell(&self) -> Option<MeasureError> {
        None
    }

    fn vanished(&self, reason: String) -> MeasureError {
        MeasureError::Vanished { address: self.address(), reason }
    }

    fn nonsense(&self, reason: &str) -> MeasureError {
        MeasureError::Nonsense { address: self.address(), reason: reason.to_owned() }
    }
}

/// The far end at the first of the host's addresses that answers.
pub(super) fn reach(options: &Options) -> Result<Box<dyn FarEnd + '_>, MeasureError> {
    let bare = options.host.trim_start_matches('[').trim_end_matches(']');
    let unknown = |reason: String| MeasureError::Unknown { host: bare.to_owned(), reason };
    let found = (bare, options.port).to_socket_addrs().map_err(|error| {
        let reason = dualq_units::plain(&error);
        unknown(reason.rsplit(": ").next().unwrap_or_default().to_owned())
    })?;
    let wanted = |address: &SocketAddr| match options.family {
        None => true,
        Some(Family::V4) => address.is_ipv4(),
        Some(Family::V6) => address.is_ipv6(),
    };
    let mut failure = None;
    for address in found.filter(wanted) {
        let reached: Result<Box<dyn FarEnd>, MeasureError> = match &options.far {
            Far::Dualq(token) => {
                dualq::Serve::reach(address, token, options).map(|far| Box::new(far) as _)
            }
            Far::Iperf3 => iperf3::Iperf3::reach(address, options).map(|far| Box::new(far) as _),
            Far::Http { path } => {
                http::Http::reach(address, path, options).map(|far| Box::new(far) as _)
            }
        };
        match reached {
            // Whoever answers is the host, whatever is said.
            Err(error @ MeasureError::Unreachable { .. }) => failure = failure.or(Some(error)),
            reached => return reached,
        }
    }
    Err(failure.unwrap_or_else(|| unknown("it has no address of that family of IP".to_owned())))
}

/// A new connection, whose own end has the congestion control, and how long its handshake took.
fn connect(
    address: SocketAddr,
    cc: Option<&str>,
    server: Server,
) -> Result<(TcpStream, Duration), MeasureError> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| MeasureError::here("cannot open a socket", &error))?;
    if let Some(cc) = cc {
        socket.set_tcp_congestion(cc.as_bytes()).map_err(|error| no_control(cc, &error))?;
    }
    let began = Instant::now();
    socket.connect_timeout(&address.into(), PATIENCE).map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::TimedOut => format!("no answer within {} s", PATIENCE.as_secs()),
            _ => dualq_units::plain(&error),
        };
        MeasureError::Unreachable { address, reason, server }
    })?;
    let took = began.elapsed();
    socket
        .set_tcp_nodelay(true)
        .map_err(|error| MeasureError::here("cannot set TCP_NODELAY", &error))?;
    Ok((TcpStream::from(socket), took))
}

fn no_control(cc: &str, error: &std::io::Error) -> MeasureError {
    let reason = match error.kind() {
        std::io::ErrorKind::NotFound => format!("this kernel has no {cc}"),
        std::io::ErrorKind::PermissionDenied => {
            "only root may use it; see net.ipv4.tcp_allowed_congestion_control".to_owned()
        }
        _ => dualq_units::plain(error),
    };
    MeasureError::Here { what: format!("cannot use the congestion control {cc}"), reason }
}

/// What a server says is shown to people, on their terminals.
fn harmless(words: &str) -> String {
    words.chars().filter(|letter| !letter.is_control()).take(200).collect()
}
