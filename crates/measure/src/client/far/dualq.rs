//! `dualq serve`: connections to it, each of which begins alike.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dualq_socket::TcpInfo;

use super::{Beginning, FarEnd, Opened, PATIENCE, Syns, connect, harmless};
use crate::Token;
use crate::client::Options;
use crate::client::board::{Board, Track, locked};
use crate::client::error::MeasureError;
use crate::handshake::{Lines, LinesError};
use crate::measurement::Server;
use crate::protocol::{
    Cookie, FlowReport, FromClient, FromServer, Limits, Nonce, Proof, Role, VERSION,
};
use crate::token::{Prover, random};

/// How long a report may take: behind what the flows that it is of have left in queues.
const REPORTING: Duration = Duration::from_secs(30);
/// No line of a server is longer, in bytes: the report of many flows over minutes.
const LONGEST_REPORT: usize = 8 << 20;

/// The server, and the session there.
#[derive(Debug)]
pub(super) struct Serve<'a> {
    peer: Peer<'a>,
    options: &'a Options,
    session: Cookie,
    limits: Limits,
    /// The connection that the session lasts as long as.
    control: Mutex<Lines>,
    /// What the kernel said of it when it had just begun.
    info: Option<TcpInfo>,
}

/// Where it is, and how it is known.
#[derive(Debug)]
struct Peer<'a> {
    address: SocketAddr,
    token: &'a Token,
    /// It has shown once that it knows the token.
    is_known: AtomicBool,
}

/// A connection whose beginning is over.
#[derive(Debug)]
struct Welcome {
    lines: Lines,
    session: Cookie,
    limits: Limits,
    beginning: Beginning,
    info: Option<TcpInfo>,
}

impl Peer<'_> {
    /// Opens a connection for that, whose own end has the congestion control.
    fn open(&self, role: Role, cc: Option<&str>) -> Result<Welcome, MeasureError> {
        let address = self.address;
        let (stream, connect) = connect(address, cc, Server::Dualq)?;
        let info = TcpInfo::of(stream.as_fd()).ok();
        let mut lines = Lines::new(stream, LONGEST_REPORT);
        let deadline = Instant::now() + PATIENCE;
        let theirs = match lines.next(deadline).map_err(|error| self.at_first(&error))? {
            FromServer::Hello { dualq_measure: VERSION, challenge } => challenge,
            FromServer::Hello { dualq_measure, .. } => {
                let reason = format!(
                    "it speaks version {dualq_measure} of the protocol, this end {VERSION}"
                );
                return Err(MeasureError::Refused { address, reason });
            }
            other => return Err(self.unexpected(&other)),
        };
        let own: [u8; 16] =
            random().map_err(|error| MeasureError::here("no random numbers", &error))?;
        let challenges = [&theirs.0, &own];
        let proof = Proof(self.token.prove(Prover::Client, challenges));
        let asked = Instant::now();
        let prove =
            FromClient::Prove { dualq_measure: VERSION, challenge: Nonce(own), proof, role };
        lines.send(&prove, deadline).map_err(|error| self.later(&error))?;
        match lines.next(deadline).map_err(|error| self.later(&error))? {
            FromServer::Welcome { proof, session, limits } => {
                if !self.token.verify(Prover::Server, challenges, &proof.0) {
                    return Err(self.stranger("it does not know the token".to_owned()));
                }
                self.is_known.store(true, Ordering::Relaxed);
                let beginning = Beginning { connect, request: asked.elapsed() };
                Ok(Welcome { lines, session, limits, beginning, info })
            }
            other => Err(self.unexpected(&other)),
        }
    }

    const fn stranger(&self, reason: String) -> MeasureError {
        MeasureError::Stranger { address: self.address, reason, server: Server::Dualq }
    }

    /// What a failure means before anything was heard on a connection.
    fn at_first(&self, error: &LinesError) -> MeasureError {
        if self.is_known.load(Ordering::Relaxed) {
            return self.later(error);
        }
        let mut reason = error.to_string();
        if matches!(error, LinesError::Closed) {
            reason += " at once, as one does only to addresses that its --allow leaves out";
        }
        self.stranger(reason)
    }

    /// What a failure means later.
    fn later(&self, error: &LinesError) -> MeasureError {
        let (address, reason) = (self.address, error.to_string());
        match error {
            LinesError::Line(_) | LinesError::Message(_) => {
                MeasureError::Nonsense { address, reason }
            }
            LinesError::Closed | LinesError::Late | LinesError::System(_) => {
                MeasureError::Vanished { address, reason }
            }
        }
    }

    /// What a message means that was not asked for.
    fn unexpected(&self, message: &FromServer) -> MeasureError {
        let address = self.address;
        match message {
            FromServer::Refusal { reason } => {
                MeasureError::Refused { address, reason: harmless(reason) }
            }
            _ => {
                let reason = "it said what it was not asked for".to_owned();
                MeasureError::Nonsense { address, reason }
            }
        }
    }
}

impl<'a> Serve<'a> {
    /// Begins a session.
    pub(super) fn reach(
        address: SocketAddr,
        token: &'a Token,
        options: &'a Options,
    ) -> Result<Self, MeasureError> {
        let peer = Peer { address, token, is_known: AtomicBool::new(false) };
        let Welcome { lines, session, limits, info, .. } = peer.open(Role::Control, None)?;
        Ok(Self { peer, options, session, limits, control: lines.into(), info })
    }

    /// A question on the session's own connection, and its answer.
    fn ask(&self, question: &FromClient) -> Result<FromServer, MeasureError> {
        let deadline = Instant::now() + REPORTING;
        let mut control = locked(&self.control);
        let sent = control.send(question, deadline);
        sent.and_then(|()| control.next(deadline)).map_err(|error| self.peer.later(&error))
    }

    fn open(&self, role: Role, cc: Option<&str>) -> Result<Opened, MeasureError> {
        let (stream, rest) = self.peer.open(role, cc)?.lines.into_parts();
        Ok(Opened { stream, rest })
    }
}

impl FarEnd for Serve<'_> {
    fn server(&self) -> Server {
        Server::Dualq
    }

    fn address(&self) -> SocketAddr {
        self.peer.address
    }

    fn most(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.limits.duration_ms.saturating_sub(1000)))
    }

    fn most_flows(&self) -> Option<u32> {
        Some(self.limits.flows)
    }

    fn most_rate(&self) -> Option<u64> {
        self.limits.rate
    }

    fn echo(&self) -> Result<Option<Opened>, MeasureError> {
        self.open(Role::Echo { session: self.session }, None).map(Some)
    }

    fn datagrams(&self) -> Option<Cookie> {
        Some(self.session)
    }

    fn begin(&self) -> Option<Result<Beginning, MeasureError>> {
        let role = Role::Echo { session: self.session };
        Some(self.peer.open(role, None).map(|welcome| welcome.beginning))
    }

    fn flow(&self, track: &Track) -> Result<Opened, MeasureError> {
        let (session, flow, cc) = (self.session, track.number, &self.options.cc);
        if track.is_up {
            return self.open(Role::Up { session, flow }, cc.as_deref());
        }
        let rate = self.options.flow_rate();
        self.open(Role::Down { session, flow, cc: cc.clone(), rate }, None)
    }

    fn is_framed(&self) -> bool {
        true
    }

    fn connection(&self) -> Option<TcpInfo> {
        self.info
    }

    fn syns(&self, numbers: &[u32]) -> Result<Option<Syns>, MeasureError> {
        match self.ask(&FromClient::Handshakes { numbers: numbers.to_vec() })? {
            FromServer::Handshakes { own, others } => Ok(Some(Syns { own, others })),
            other => Err(self.peer.unexpected(&other)),
        }
    }

    fn collect(&self, board: &Board) -> Result<Vec<FlowReport>, MeasureError> {
        let flows: Vec<u32> = board.flows().map(|flow| flow.number).collect();
        match self.ask(&FromClient::Collect { flows: flows.clone() })? {
            FromServer::Flows { flows: reports } => {
                let known = reports.iter().all(|report| flows.contains(&report.flow));
                let in_order = |report: &FlowReport| {
                    report.samples.is_sorted_by(|a, b| a.t_us <= b.t_us && a.bytes <= b.bytes)
                };
                if !known || !reports.iter().all(in_order) {
                    let reason = "its report is of flows that never were, or not in order";
                    return Err(self.nonsense(reason));
                }
                Ok(reports)
            }
            other => Err(self.peer.unexpected(&other)),
        }
    }

    fn farewell(&self) -> Option<MeasureError> {
        match locked(&self.control).next(Instant::now() + Duration::from_millis(100)) {
            Ok(message @ FromServer::Refusal { .. }) => Some(self.peer.unexpected(&message)),
            _ => None,
        }
    }
}
