//! Connections to the server, each of which begins alike.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::error::{MeasureError, plain};
use crate::Token;
use crate::handshake::{Lines, LinesError};
use crate::protocol::{
    Cookie, FlowReport, FromClient, FromServer, Limits, Nonce, Proof, Role, VERSION,
};
use crate::token::{Prover, random};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a report may take: behind what the flows that it is of have left in queues.
const REPORTING: Duration = Duration::from_secs(30);
/// No line of a server is longer, in bytes: the report of many flows over minutes.
const LONGEST_REPORT: usize = 8 << 20;

/// The server.
#[derive(Debug)]
pub(super) struct Peer {
    address: SocketAddr,
    token: Token,
    /// It has shown once that it knows the token.
    is_known: AtomicBool,
}

/// A connection whose beginning is over.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) lines: Lines,
    pub(super) session: Cookie,
    pub(super) limits: Limits,
    /// How long TCP's handshake took, and the answer to the first question.
    pub(super) connect: Duration,
    pub(super) request: Duration,
}

impl Peer {
    pub(super) const fn new(address: SocketAddr, token: Token) -> Self {
        Self { address, token, is_known: AtomicBool::new(false) }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens a connection for that, whose own end has the congestion control.
    pub(super) fn open(&self, role: Role, cc: Option<&str>) -> Result<Opened, MeasureError> {
        let address = self.address;
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
            .map_err(|error| MeasureError::here("cannot open a socket", &error))?;
        if let Some(cc) = cc {
            socket.set_tcp_congestion(cc.as_bytes()).map_err(|error| no_control(cc, &error))?;
        }
        let began = Instant::now();
        socket.connect_timeout(&address.into(), PATIENCE).map_err(|error| {
            let reason = match error.kind() {
                ErrorKind::TimedOut => format!("no answer within {} s", PATIENCE.as_secs()),
                _ => plain(&error),
            };
            MeasureError::Unreachable { address, reason }
        })?;
        let connect = began.elapsed();
        socket
            .set_tcp_nodelay(true)
            .map_err(|error| MeasureError::here("cannot set TCP_NODELAY", &error))?;
        let mut lines = Lines::new(TcpStream::from(socket), LONGEST_REPORT);
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
                    let reason = "it does not know the token".to_owned();
                    return Err(MeasureError::Stranger { address, reason });
                }
                self.is_known.store(true, Ordering::Relaxed);
                Ok(Opened { lines, session, limits, connect, request: asked.elapsed() })
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// What a failure means before anything was heard on a connection.
    fn at_first(&self, error: &LinesError) -> MeasureError {
        if self.is_known.load(Ordering::Relaxed) {
            return self.later(error);
        }
        MeasureError::Stranger { address: self.address, reason: error.to_string() }
    }

    /// What a failure means later.
    pub(super) fn later(&self, error: &LinesError) -> MeasureError {
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
    pub(super) fn unexpected(&self, message: &FromServer) -> MeasureError {
        let address = self.address;
        match message {
            FromServer::Refusal { reason } => {
                // It is shown to people, on their terminals.
                let reason: String = reason.chars().filter(|c| !c.is_control()).take(200).collect();
                MeasureError::Refused { address, reason }
            }
            _ => self.nonsense("it said what it was not asked for"),
        }
    }

    pub(super) fn nonsense(&self, reason: &str) -> MeasureError {
        MeasureError::Nonsense { address: self.address, reason: reason.to_owned() }
    }

    pub(super) fn vanished(&self, reason: String) -> MeasureError {
        MeasureError::Vanished { address: self.address, reason }
    }
}

fn no_control(cc: &str, error: &io::Error) -> MeasureError {
    let reason = match error.kind() {
        ErrorKind::NotFound => format!("this kernel has no {cc}"),
        ErrorKind::PermissionDenied => {
            "only root may use it; see net.ipv4.tcp_allowed_congestion_control".to_owned()
        }
        _ => plain(error),
    };
    MeasureError::Here { what: format!("cannot use the congestion control {cc}"), reason }
}

/// The connection that a session lasts as long as.
#[derive(Debug)]
pub(super) struct Control(Opened);

impl Control {
    pub(super) const fn new(opened: Opened) -> Self {
        Self(opened)
    }

    pub(super) const fn session(&self) -> Cookie {
        self.0.session
    }

    pub(super) const fn limits(&self) -> Limits {
        self.0.limits
    }

    /// What the server saw of these flows, which have ended here.
    pub(super) fn collect(
        &mut self,
        peer: &Peer,
        flows: &[u32],
    ) -> Result<Vec<FlowReport>, MeasureError> {
        let deadline = Instant::now() + REPORTING;
        let asked = FromClient::Collect { flows: flows.to_vec() };
        self.0.lines.send(&asked, deadline).map_err(|error| peer.later(&error))?;
        match self.0.lines.next(deadline).map_err(|error| peer.later(&error))? {
            FromServer::Flows { flows: reports } => {
                let known = reports.iter().all(|report| flows.contains(&report.flow));
                let in_order = |report: &FlowReport| {
                    report.samples.is_sorted_by(|a, b| a.t_us <= b.t_us && a.bytes <= b.bytes)
                };
                if !known || !reports.iter().all(in_order) {
                    return Err(
                        peer.nonsense("its report is of flows that never were, or not in order")
                    );
                }
                Ok(reports)
            }
            other => Err(peer.unexpected(&other)),
        }
    }

    /// Why the server ended the session, if it said so.
    pub(super) fn farewell(&mut self, peer: &Peer) -> Option<MeasureError> {
        match self.0.lines.next(Instant::now() + Duration::from_millis(100)) {
            Ok(message @ FromServer::Refusal { .. }) => Some(peer.unexpected(&message)),
            _ => None,
        }
    }
}
