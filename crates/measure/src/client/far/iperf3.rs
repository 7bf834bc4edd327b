//! A stock iperf3 server, of version 3.1 or later. Its protocol is documented nowhere; this is what it was seen to do, and what
//! esnet/iperf's `iperf_api.c` names:
//! a connection that a test lasts as long as carries states, of a byte each, and documents of JSON, whose length is told before; a connection for
//! each flow begins with the test's cookie.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use dualq_socket::TcpInfo;
use dualq_units::plain;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FarEnd, Opened, PATIENCE, Stage, connect, harmless};
use crate::client::Options;
use crate::client::board::{Board, Track, locked};
use crate::client::error::MeasureError;
use crate::measurement::{Direction, Server};
use crate::protocol::FlowReport;
use crate::token::random;

/// The cookie that names a test: so many letters, and a zero.
const COOKIE_LETTERS: usize = 36;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// A document of a server is no longer.
const LONGEST_DOCUMENT: u32 = 4 << 20;
/// What a server writes at once.
const BLOCK_BYTES: u32 = 128 << 10;
/// The server ends a test by itself some time after this end said it would take.
const LONGER: Duration = Duration::from_secs(10);
/// A server that has just ended a test takes a moment until it takes another.
const AGAIN: Duration = Duration::from_millis(200);
const TRIES: u32 = 10;

/// States, as the server and this end tell each other.
mod state {
    pub(super) const TEST_START: u8 = 1;
    pub(super) const TEST_RUNNING: u8 = 2;
    pub(super) const TEST_END: u8 = 4;
    pub(super) const PARAM_EXCHANGE: u8 = 9;
    pub(super) const CREATE_STREAMS: u8 = 10;
    pub(super) const SERVER_TERMINATE: u8 = 11;
    pub(super) const EXCHANGE_RESULTS: u8 = 13;
    pub(super) const DISPLAY_RESULTS: u8 = 14;
    pub(super) const DONE: u8 = 16;
    pub(super) const ACCESS_DENIED: u8 = 255;
    pub(super) const SERVER_ERROR: u8 = 254;
}

/// The server.
#[derive(Debug)]
pub(super) struct Iperf3<'a> {
    address: SocketAddr,
    options: &'a Options,
    /// The test that waits, or runs.
    test: Mutex<Option<Test>>,
}

/// A test, of a stage.
#[derive(Debug)]
struct Test {
    control: TcpStream,
    cookie: Vec<u8>,
    /// The flows' connections by the number of the flow. They stay open until the server knows that the test is over.
    flows: BTreeMap<u32, TcpStream>,
}

/// What the server says of its ends of the flows.
#[derive(Debug, Deserialize)]
struct Results {
    /// Whether it knows them: as a sender, on Linux.
    sender_has_retransmits: Value,
    congestion_used: Option<String>,
    streams: Vec<StreamResult>,
}

#[derive(Debug, Deserialize)]
struct StreamResult {
    id: u32,
    /// -1, in one of several ways to write it, where it is not known.
    retransmits: Value,
}

impl<'a> Iperf3<'a> {
    /// Begins a test, which keeps others out.
    pub(super) fn reach(address: SocketAddr, options: &'a Options) -> Result<Self, MeasureError> {
        let far = Self { address, options, test: Mutex::default() };
        let test = far.open()?;
        *locked(&far.test) = Some(test);
        Ok(far)
    }

    fn broke(&self, error: &std::io::Error) -> MeasureError {
        self.vanished(plain(error))
    }

    /// A new test, which the server has taken.
    fn open(&self) -> Result<Test, MeasureError> {
        let (control, _) = connect(self.address, None, Server::Iperf3)?;
        control.set_write_timeout(Some(PATIENCE)).map_err(|error| self.broke(&error))?;
        let mut test = Test { control, cookie: cookie()?, flows: BTreeMap::new() };
        test.control.write_all(&test.cookie).map_err(|error| self.broke(&error))?;
        self.expect(&mut test, state::PARAM_EXCHANGE).map_err(|error| match error {
            MeasureError::Nonsense { address, reason }
            | MeasureError::Vanished { address, reason } => {
                MeasureError::Stranger { address, reason, server: Server::Iperf3 }
            }
            other => other,
        })?;
        Ok(test)
    }

    /// The test that waits, or a new one.
    fn next(&self) -> Result<Test, MeasureError> {
        if let Some(test) = locked(&self.test).take() {
            return Ok(test);
        }
        let mut tries = 1;
        loop {
            match self.open() {
                Err(MeasureError::Refused { .. } | MeasureError::Vanished { .. })
                    if tries < TRIES =>
                {
                    tries += 1;
                    thread::sleep(AGAIN);
                }
                opened => return opened,
            }
        }
    }

    /// Waits for a state.
    fn expect(&self, test: &mut Test, wanted: u8) -> Result<(), MeasureError> {
        let deadline = Instant::now() + PATIENCE;
        let mut byte = [0];
        self.read(test, &mut byte, deadline)?;
        if byte[0] == wanted { Ok(()) } else { Err(self.other(test, byte[0])) }
    }

    /// What a state means that was not expected.
    fn other(&self, test: &mut Test, state: u8) -> MeasureError {
        let address = self.address;
        let refused = |reason: String| MeasureError::Refused { address, reason };
        match state {
            state::ACCESS_DENIED => refused("it is busy with another test".to_owned()),
            state::SERVER_TERMINATE => self.vanished("it was ended".to_owned()),
            state::SERVER_ERROR => {
                // Its own number of the error, and the system's.
                let mut numbers = [0; 8];
                let deadline = Instant::now() + Duration::from_secs(1);
                if self.read(test, &mut numbers, deadline).is_err() {
                    return refused("it reports an error".to_owned());
                }
                let [own, system] = [0, 4].map(|at| {
                    i32::from_be_bytes([
                        numbers[at],
                        numbers[at + 1],
                        numbers[at + 2],
                        numbers[at + 3],
                    ])
                });
                let mut reason = format!("it reports its error {own}");
                if system != 0 {
                    reason += ": ";
                    reason += &plain(&std::io::Error::from_raw_os_error(system));
                }
                refused(reason)
            }
            other => self.nonsense(&format!("it goes to a state {other} that was not to come")),
        }
    }

    fn read(
        &self,
        test: &Test,
        mut into: &mut [u8],
        deadline: Instant,
    ) -> Result<(), MeasureError> {
        while !into.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.vanished("it sent nothing in time".to_owned()));
            }
            test.control.set_read_timeout(Some(left)).map_err(|error| self.broke(&error))?;
            match (&test.control).read(into) {
                Ok(0) => return Err(self.vanished("it closed the connection".to_owned())),
                Ok(count) => into = &mut into[count..],
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(self.broke(&error)),
            }
        }
        Ok(())
    }

    fn send_state(&self, test: &Test, state: u8) -> Result<(), MeasureError> {
        (&test.control).write_all(&[state]).map_err(|error| self.broke(&error))
    }

    fn send_document(&self, test: &Test, document: &Value) -> Result<(), MeasureError> {
        let text = document.to_string();
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        (&test.control).write_all(&bytes).map_err(|error| self.broke(&error))
    }

    fn results(&self, test: &Test) -> Result<Results, MeasureError> {
        let deadline = Instant::now() + PATIENCE;
        let mut length = [0; 4];
        self.read(test, &mut length, deadline)?;
        let length = u32::from_be_bytes(length);
        if length > LONGEST_DOCUMENT {
            return Err(self.nonsense(&format!("it announces results of {length} bytes")));
        }
        let mut text = vec![0; length as usize];
        self.read(test, &mut text, deadline)?;
        serde_json::from_slice(&text)
            .map_err(|error| self.nonsense(&format!("its results are none: {error}")))
    }

    fn parameters(&self, stage: &Stage<'_>) -> Value {
        let cc = &self.options.cc;
        let mut parameters = json!({
            "tcp": true,
            "omit": 0,
            "time": (stage.most + LONGER).as_secs(),
            "num": 0,
            "blockcount": 0,
            "parallel": self.options.fixed_streams(),
            "len": BLOCK_BYTES,
            "pacing_timer": 1000,
        });
        match stage.direction {
            Direction::Upload => {}
            Direction::Download => parameters["reverse"] = true.into(),
            Direction::Both => parameters["bidirectional"] = true.into(),
        }
        if let Some(rate) = self.options.flow_rate() {
            parameters["bandwidth"] = rate.into();
        }
        if let Some(cc) = cc {
            parameters["congestion"] = cc.as_str().into();
        }
        parameters
    }
}

impl FarEnd for Iperf3<'_> {
    fn connection(&self) -> Option<TcpInfo> {
        TcpInfo::of(locked(&self.test).as_ref()?.control.as_fd()).ok()
    }

    fn server(&self) -> Server {
        Server::Iperf3
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn prepare(&self, stage: Stage<'_>) -> Result<(), MeasureError> {
        let mut test = self.next()?;
        self.send_document(&test, &self.parameters(&stage))?;
        self.expect(&mut test, state::CREATE_STREAMS)?;
        for flow in in_order(stage.flows) {
            let cc = self.options.cc.as_deref().filter(|_| flow.is_up);
            let (mut stream, _) = connect(self.address, cc, Server::Iperf3)?;
            stream.write_all(&test.cookie).map_err(|error| self.broke(&error))?;
            test.flows.insert(flow.number, stream);
        }
        self.expect(&mut test, state::TEST_START)?;
        self.expect(&mut test, state::TEST_RUNNING)?;
        *locked(&self.test) = Some(test);
        Ok(())
    }

    fn flow(&self, track: &Track) -> Result<Opened, MeasureError> {
        let test = locked(&self.test);
        let flow = test.as_ref().and_then(|test| test.flows.get(&track.number));
        let flow = flow.ok_or_else(|| self.vanished("a flow is gone".to_owned()))?;
        let stream = flow
            .try_clone()
            .map_err(|error| MeasureError::here("cannot share a socket", &error))?;
        Ok(Opened { stream, rest: Vec::new() })
    }

    /// The server tells at the end only: how often it sent again, which the last sample gets.
    fn collect(&self, board: &Board) -> Result<Vec<FlowReport>, MeasureError> {
        let mut test =
            locked(&self.test).take().ok_or_else(|| self.vanished("no test runs".to_owned()))?;
        self.send_state(&test, state::TEST_END)?;
        self.expect(&mut test, state::EXCHANGE_RESULTS)?;
        let flows: Vec<&Track> = board.flows().collect();
        let streams: Vec<Value> = in_order(&flows)
            .enumerate()
            .map(|(at, flow)| {
                let seen = locked(&flow.seen);
                let last = seen.samples.last().copied().unwrap_or_default();
                json!({
                    "id": stream_id(at), "bytes": last.bytes, "retransmits": last.retransmits, "jitter": 0, "errors": 0,
                    "packets": 0, "start_time": 0, "end_time": last.t_us as f64 / 1e6,
                })
            })
            .collect();
        let own = json!({
            "cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0, "sender_has_retransmits": 1, "streams": streams,
        });
        self.send_document(&test, &own)?;
        let Results { sender_has_retransmits, congestion_used, streams } = self.results(&test)?;
        // What follows is only manners: the results are here.
        if self.expect(&mut test, state::DISPLAY_RESULTS).is_ok() {
            let _ = self.send_state(&test, state::DONE);
        }
        let report = |(at, track): (usize, &Track)| {
            let told = streams.iter().find(|stream| stream.id == stream_id(at))?;
            let told = told.retransmits.as_u64().filter(|_| sender_has_retransmits == 1)?;
            let retransmits = u32::try_from(told).ok()?;
            let mut samples = locked(&track.seen).samples.clone();
            samples.last_mut()?.retransmits = retransmits;
            let cc = congestion_used.as_deref().map(harmless);
            Some(FlowReport { flow: track.number, cc, samples })
        };
        Ok(in_order(&flows)
            .enumerate()
            .filter(|(_, track)| !track.is_up)
            .filter_map(report)
            .collect())
    }

    fn farewell(&self) -> Option<MeasureError> {
        let mut test = locked(&self.test).take()?;
        let mut byte = [0];
        self.read(&test, &mut byte, Instant::now() + Duration::from_millis(100)).ok()?;
        Some(self.other(&mut test, byte[0]))
    }
}

/// Flows as the server wants them opened: those that it receives first.
fn in_order<'a>(flows: &[&'a Track]) -> impl Iterator<Item = &'a Track> {
    let of = |is_up| flows.iter().copied().filter(move |flow| flow.is_up == is_up);
    of(true).chain(of(false))
}

/// How iperf3 numbers the flows of a test: there is no second.
const fn stream_id(at: usize) -> u32 {
    if at == 0 { 1 } else { at as u32 + 2 }
}

fn cookie() -> Result<Vec<u8>, MeasureError> {
    let bytes: [u8; COOKIE_LETTERS] =
        random().map_err(|error| MeasureError::here("no random numbers", &error))?;
    let mut cookie: Vec<u8> =
        bytes.iter().map(|byte| ALPHABET[usize::from(*byte) % ALPHABET.len()]).collect();
    cookie.push(0);
    Ok(cookie)
}
