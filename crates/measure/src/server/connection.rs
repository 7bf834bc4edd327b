//! A connection, from its first line to its end.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dualq_socket::TcpInfo;
use dualq_units::Rate;
use socket2::SockRef;

use super::Shared;
use super::guests::Guest;
use super::session::{Flow, MOST_FLOWS, Session};
use super::syns::Syns;
use crate::flow::{self, Echoes, Owner};
use crate::handshake::{Lines, LinesError};
use crate::protocol::{
    ArrivedSyn, FlowSample, FromClient, FromServer, LONGEST_LINE, Limits, Nonce, Proof, Role,
    VERSION, write,
};
use crate::token::{Prover, random};

/// Until then a client has to have proved itself.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long flows may take to end after they are asked for.
const COLLECTION: Duration = Duration::from_secs(5);
/// How long a line may take on its way to a client.
const WRITING: Duration = Duration::from_secs(10);
/// So long nobody notices that a session is over.
const PATIENCE: Duration = Duration::from_millis(200);
/// A congestion control's name is shorter (Linux: `TCP_CA_NAME_MAX`).
const CC_NAME: usize = 16;

/// Serves it. How a connection ends is its client's business.
pub(super) fn serve(stream: TcpStream, from: IpAddr, guest: Guest, shared: &Arc<Shared>) {
    let syn = Syns::note(shared, from, &stream);
    let mut lines = Lines::new(stream, LONGEST_LINE);
    let deadline = Instant::now() + HANDSHAKE;
    let _ = match open(&mut lines, deadline, shared) {
        Ok((role, proof)) => {
            guest.is_known();
            let own = syn.as_ref().map(|known| known.syn);
            play(lines, (from, own), role, proof, shared)
        }
        Err(Refused(reason)) => refuse(&mut lines, reason),
    };
    // It counts until here.
    drop(guest);
}

/// Says that there is no room, to whoever may be told in one packet.
pub(super) fn turn_away(stream: &TcpStream) {
    let refusal = FromServer::Refusal {
        reason: "it has as many connections as it may; try again later".to_owned(),
    };
    let _ = stream.set_nonblocking(true);
    let _ = (&*stream).write(&write(&refusal));
}

/// Why a client is sent away; nothing for whom nothing is to be told.
struct Refused(Option<String>);

impl From<LinesError> for Refused {
    fn from(error: LinesError) -> Self {
        Self(match error {
            LinesError::Line(error) => Some(error.to_string()),
            LinesError::Message(error) => Some(error.to_string()),
            LinesError::Closed | LinesError::Late | LinesError::System(_) => None,
        })
    }
}

fn refused(reason: impl Into<String>) -> Refused {
    Refused(Some(reason.into()))
}

fn refuse(lines: &mut Lines, reason: Option<String>) -> Result<(), LinesError> {
    let Some(reason) = reason else { return Ok(()) };
    lines.send(&FromServer::Refusal { reason }, Instant::now() + WRITING)
}

/// The first lines, by which each end shows that it knows the token.
fn open(lines: &mut Lines, deadline: Instant, shared: &Shared) -> Result<(Role, Proof), Refused> {
    let own: [u8; 16] = random().map_err(|_| Refused(None))?;
    lines.stream().set_nodelay(true).map_err(|_| Refused(None))?;
    lines.send(&FromServer::Hello { dualq_measure: VERSION, challenge: Nonce(own) }, deadline)?;
    let FromClient::Prove { dualq_measure, challenge, proof, role } = lines.next(deadline)? else {
        return Err(refused("the first line is to be a proof"));
    };
    if dualq_measure != VERSION {
        return Err(refused(format!(
            "it speaks version {VERSION} of the protocol, not {dualq_measure}"
        )));
    }
    let challenges = [&own, &challenge.0];
    let token = &shared.settings.token;
    if !token.verify(Prover::Client, challenges, &proof.0) {
        return Err(refused("its token is another one"));
    }
    Ok((role, Proof(token.prove(Prover::Server, challenges))))
}

fn play(
    mut lines: Lines,
    client: (IpAddr, Option<ArrivedSyn>),
    role: Role,
    proof: Proof,
    shared: &Shared,
) -> Result<(), LinesError> {
    let Some(cookie) = role.session() else {
        return control(lines, client, proof, shared);
    };
    let Some(session) = shared.sessions.find(cookie, client.0) else {
        return refuse(&mut lines, Some("there is no such session of this address".to_owned()));
    };
    let welcome = FromServer::Welcome { proof, session: cookie, limits: limits(shared) };
    let deadline = Instant::now() + WRITING;
    match role {
        Role::Control => {}
        Role::Echo { .. } => {
            lines.send(&welcome, deadline)?;
            let (stream, rest) = lines.into_parts();
            echo(&stream, &rest, &session)?;
        }
        Role::Down { flow, cc, rate, .. } => {
            if let Some(cc) = &cc
                && let Err(reason) = set_congestion_control(lines.stream(), cc)
            {
                return refuse(&mut lines, Some(reason));
            }
            let Some(mut serving) = Serving::begin(&session, flow, &session.sending) else {
                return refuse(&mut lines, Some(TOO_MANY.to_owned()));
            };
            (serving.rate, serving.most) = (rate, max_rate(shared));
            lines.send(&welcome, deadline)?;
            let (stream, rest) = lines.into_parts();
            serving.flow.cc = flow::congestion_control(&stream);
            flow::send(&stream, &rest, &mut serving)?;
        }
        Role::Up { flow, .. } => {
            let Some(mut serving) = Serving::begin(&session, flow, &session.receiving) else {
                return refuse(&mut lines, Some(TOO_MANY.to_owned()));
            };
            serving.most = max_rate(shared);
            lines.send(&welcome, deadline)?;
            let (stream, rest) = lines.into_parts();
            flow::receive(&stream, &rest, &mut serving)?;
        }
    }
    Ok(())
}

/// A session lasts as long as this connection.
fn control(
    mut lines: Lines,
    (from, own_syn): (IpAddr, Option<ArrivedSyn>),
    proof: Proof,
    shared: &Shared,
) -> Result<(), LinesError> {
    let Some(own) = shared.sessions.begin(from, shared.settings.max_duration)? else {
        let reason = "it has as many sessions as it may; try again later".to_owned();
        return refuse(&mut lines, Some(reason));
    };
    let session = &own.session;
    let welcome = FromServer::Welcome { proof, session: session.cookie, limits: limits(shared) };
    lines.send(&welcome, Instant::now() + WRITING)?;
    loop {
        let answer = match lines.next(session.deadline()) {
            Ok(FromClient::Collect { flows }) => {
                let flows = session.collect(&flows, Instant::now() + COLLECTION);
                FromServer::Flows { flows }
            }
            Ok(FromClient::Handshakes { numbers }) => {
                let others = shared.syns.find(from, &numbers);
                FromServer::Handshakes { own: own_syn, others }
            }
            Ok(FromClient::Prove { .. }) => return Ok(()),
            Err(LinesError::Late) => {
                let seconds = shared.settings.max_duration.as_secs();
                return refuse(&mut lines, Some(format!("a session may last {seconds} s there")));
            }
            Err(LinesError::Line(error)) => return refuse(&mut lines, Some(error.to_string())),
            Err(LinesError::Message(error)) => return refuse(&mut lines, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        lines.send(&answer, Instant::now() + WRITING)?;
    }
}

fn max_rate(shared: &Shared) -> Option<u64> {
    shared.settings.max_rate.map(Rate::as_bits_per_second)
}

fn limits(shared: &Shared) -> Limits {
    let settings = &shared.settings;
    let duration_ms = settings.max_duration.as_millis() as u64;
    Limits { duration_ms, rate: max_rate(shared), flows: MOST_FLOWS }
}

fn set_congestion_control(stream: &TcpStream, cc: &str) -> Result<(), String> {
    let is_name = cc.len() < CC_NAME
        && cc.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !is_name {
        return Err("that is no name of a congestion control".to_owned());
    }
    SockRef::from(stream).set_tcp_congestion(cc.as_bytes()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("its kernel has no congestion control {cc}"),
        ErrorKind::PermissionDenied => {
            format!("its kernel lets only root use {cc}; see net.ipv4.tcp_allowed_congestion_control there")
        }
        _ => format!("its kernel does not take the congestion control {cc}"),
    })
}

/// Sends back what comes, never more.
fn echo(stream: &TcpStream, rest: &[u8], session: &Session) -> io::Result<()> {
    let mut stream = stream;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(WRITING))?;
    stream.write_all(rest)?;
    let mut bytes = [0; 4096];
    while !session.is_over() {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => stream.write_all(&bytes[..count])?,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const TOO_MANY: &str = "that is one flow too many, or its number is in use";

/// This end of a flow.
struct Serving<'a> {
    session: &'a Session,
    flow: Flow,
    echoes: Echoes,
    /// Those of the session that go the same way.
    alike: &'a AtomicU32,
    /// The rates that the client asked for, and that this server sends, or takes, at most in a session, in bits per second.
    rate: Option<u64>,
    most: Option<u64>,
}

impl<'a> Serving<'a> {
    fn begin(session: &'a Arc<Session>, number: u32, alike: &'a AtomicU32) -> Option<Self> {
        let flow = session.begin_flow(number)?;
        alike.fetch_add(1, Ordering::Relaxed);
        Some(Self { session, flow, echoes: Echoes::default(), alike, rate: None, most: None })
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.alike.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Owner for Serving<'_> {
    fn is_over(&mut self) -> bool {
        self.session.is_over()
    }

    fn sample(&mut self, sample: FlowSample, _: &TcpInfo) {
        self.flow.samples.push(sample);
    }

    fn next_number(&mut self) -> Option<u64> {
        self.echoes.pop()
    }

    fn number(&mut self, number: u64) -> bool {
        self.echoes.push(number)
    }

    /// The session's share of a flow.
    fn rate(&mut self) -> Option<u64> {
        let alike = u64::from(self.alike.load(Ordering::Relaxed).max(1));
        let share = self.most.map(|most| most / alike);
        let bits = [self.rate, share].into_iter().flatten().min()?;
        Some((bits / 8).max(1))
    }
}
