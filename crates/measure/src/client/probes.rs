//! Round trips beside the flows: on a TCP connection, by datagrams, by ICMP echo, on new connections.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use dualq_units::plain;
use socket2::{Domain, Protocol, Socket, Type};

use super::board::{Board, locked};
use super::error::MeasureError;
use super::far::{self, FarEnd};
use crate::datagrams::{receive, send, tell_all};
use crate::measurement::{Loss, Method};
use crate::protocol::{Cookie, DATAGRAM_BYTES, Datagram, ECHO_BYTES};

/// So long nobody notices that a stage is over.
const PATIENCE: Duration = Duration::from_millis(20);
/// What was on its way when a stage ended may take so much longer than the longest round trip so far.
const GRACE: Duration = Duration::from_millis(300);
const LONGEST_GRACE: Duration = Duration::from_secs(3);
/// On a connection it comes in any case, unless the server has vanished: 1000 packets at 1 Mbit/s are a queue of 12 s.
const ECHO_GRACE: Duration = Duration::from_secs(20);
/// Questions on it that have no answer yet.
const MOST_OPEN: usize = 64;
/// What `ping` sends by default: 56 bytes behind the ICMP header.
const ICMP_BYTES: usize = 64;

/// How far probes of each method are apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    pub(super) tcp: Duration,
    pub(super) udp: Duration,
    pub(super) icmp: Duration,
}

impl Intervals {
    /// Nothing else is on the path.
    pub(super) const IDLE: Self = Self {
        tcp: Duration::from_millis(20),
        udp: Duration::from_millis(20),
        icmp: Duration::from_millis(20),
    };
    /// Beside flows.
    pub(super) const LOADED: Self = Self {
        tcp: Duration::from_millis(100),
        udp: Duration::from_millis(50),
        icmp: Duration::from_millis(100),
    };
}

/// Those that last for all stages.
#[derive(Debug)]
pub(super) struct Probes {
    pub(super) echo: Result<Echo, String>,
    pub(super) udp: Result<Datagrams, String>,
    pub(super) icmp: Result<Icmp, String>,
}

impl Probes {
    pub(super) fn open(far: &dyn FarEnd) -> Result<Self, MeasureError> {
        let silent = || format!("{}s answer no such questions", far.server().name());
        let echo = match far.echo()? {
            Some(far::Opened { stream, rest }) => {
                Ok(Echo { stream, rest, number: 0, open: VecDeque::new() })
            }
            None => Err(silent()),
        };
        let udp = match far.datagrams() {
            Some(cookie) => Datagrams::open(far.address(), cookie).map_err(|error| plain(&error)),
            None => Err(silent()),
        };
        let icmp = Icmp::open(far.address()).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => {
                "this user may not: net.ipv4.ping_group_range".to_owned()
            }
            _ => plain(&error),
        });
        Ok(Self { echo, udp, icmp })
    }

    /// How long a round trip takes now, by the nearest method that there is; nothing if none is answered.
    pub(super) fn once(&mut self, far: &dyn FarEnd) -> Result<Option<Duration>, MeasureError> {
        if let Ok(echo) = &mut self.echo {
            return echo.once(far).map(Some);
        }
        if let Some(begun) = far.begin() {
            return begun.map(|beginning| Some(beginning.connect));
        }
        let Ok(icmp) = &mut self.icmp else { return Ok(None) };
        Ok(icmp.once())
    }
}

/// A connection on which what is sent comes back.
#[derive(Debug)]
pub(super) struct Echo {
    stream: TcpStream,
    /// Of answers, what has come and was not read.
    rest: Vec<u8>,
    number: u64,
    /// Questions without an answer, and when they were asked: it comes in their order, for TCP keeps it.
    open: VecDeque<(u64, Instant)>,
}

/// Why an answer did not come.
enum Missing {
    Yet,
    Broken(String),
    Nonsense,
}

impl Echo {
    fn ask(&mut self) -> Result<(), Missing> {
        self.number += 1;
        let mut question = [0; ECHO_BYTES];
        question[..8].copy_from_slice(&self.number.to_be_bytes());
        self.open.push_back((self.number, Instant::now()));
        self.stream.write_all(&question).map_err(|error| Missing::Broken(plain(&error)))
    }

    /// How long the next answer took, if it comes within that time.
    fn answer(&mut self, within: Duration) -> Result<Duration, Missing> {
        if self.rest.len() < ECHO_BYTES {
            let _ = self.stream.set_read_timeout(Some(within.max(Duration::from_millis(1))));
            let mut bytes = [0; 256];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(Missing::Broken("it closed a connection".to_owned())),
                Ok(count) => self.rest.extend_from_slice(&bytes[..count]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(Missing::Broken(plain(&error))),
            }
        }
        let came = Instant::now();
        let Some(answer) = self.rest.first_chunk::<ECHO_BYTES>() else { return Err(Missing::Yet) };
        let (number, asked) = self.open.pop_front().ok_or(Missing::Nonsense)?;
        let is_right = answer[..8] == number.to_be_bytes();
        self.rest.drain(..ECHO_BYTES);
        if is_right { Ok(came - asked) } else { Err(Missing::Nonsense) }
    }

    /// Questions at equal distances, whether those before are answered or not: if the next waited for an answer, there were the fewer the longer answers take, and
    /// their median would be too short. Ends when the stage is over and the last is answered.
    pub(super) fn run(&mut self, board: &Board, far: &dyn FarEnd, interval: Duration) {
        let (mut due, mut over_since) = (Instant::now(), None);
        loop {
            let is_over = board.is_over();
            let now = Instant::now();
            if is_over && self.open.is_empty() {
                return;
            }
            // The next stage is to find no answer of this one.
            if is_over && over_since.get_or_insert(now).elapsed() > ECHO_GRACE {
                return board.fail(far.vanished("an answer is missing".to_owned()));
            }
            let mut heard = Err(Missing::Yet);
            if !is_over && now >= due && self.open.len() < MOST_OPEN {
                due = (due + board.stretched(interval)).max(now);
                board.sent(Method::Tcp);
                heard = self.ask().and(Err(Missing::Yet));
            }
            let until_due = due.saturating_duration_since(Instant::now()).min(PATIENCE);
            let wait = if is_over { PATIENCE } else { until_due };
            if self.open.is_empty() {
                thread::sleep(wait);
            } else if matches!(heard, Err(Missing::Yet)) {
                heard = self.answer(wait);
            }
            match heard {
                Ok(took) => board.answered(Method::Tcp, took),
                Err(Missing::Yet) => {}
                Err(Missing::Broken(why)) => return board.fail(far.vanished(why)),
                Err(Missing::Nonsense) => {
                    return board.fail(far.nonsense("it echoes what was not sent"));
                }
            }
        }
    }

    /// How long one question takes now.
    pub(super) fn once(&mut self, far: &dyn FarEnd) -> Result<Duration, MeasureError> {
        let failed = |missing| match missing {
            Missing::Broken(why) => far.vanished(why),
            Missing::Nonsense => far.nonsense("it echoes what was not sent"),
            Missing::Yet => far.vanished(format!("no answer within {} s", ECHO_GRACE.as_secs())),
        };
        let asked = Instant::now();
        self.ask().map_err(failed)?;
        loop {
            match self.answer(PATIENCE) {
                Ok(took) => return Ok(took),
                Err(Missing::Yet) if asked.elapsed() < ECHO_GRACE => {}
                Err(missing) => return Err(failed(missing)),
            }
        }
    }
}

/// Sleeps until then, or until the stage is over.
fn pause(board: &Board, until: Instant) {
    while !board.is_over() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(PATIENCE));
    }
}

/// Datagrams to the server and back.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    is_v6: bool,
    cookie: Cookie,
    number: u64,
    /// Of all stages, how many had arrived at the server when it last said so.
    arrived: u64,
}

/// An answer to a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) datagram: Datagram,
    pub(super) came: Instant,
    /// The ECN field that it arrived with.
    pub(super) ecn: u8,
}

impl Datagrams {
    fn open(to: SocketAddr, cookie: Cookie) -> io::Result<Self> {
        let any: SocketAddr = if to.is_ipv4() {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(any)?;
        tell_all(&socket)?;
        socket.connect(to)?;
        Ok(Self { socket, is_v6: to.is_ipv6(), cookie, number: 0, arrived: 0 })
    }

    /// Sends a question with an ECN field, whose answer is to have another; its number.
    pub(super) fn ask(&mut self, ecn: u8, answer_ecn: u8) -> u64 {
        self.number += 1;
        let question = Datagram {
            cookie: self.cookie,
            number: self.number,
            ecn: answer_ecn,
            is_echo: false,
            echoed: None,
        };
        // What the system does not send is lost like what a path does not carry.
        let _ = send(&self.socket, &question.write(), (self.is_v6, ecn), (None, None));
        self.number
    }

    /// The next answer, if one comes within that time.
    pub(super) fn answer(&mut self, within: Duration) -> Option<Answer> {
        self.socket.set_read_timeout(Some(within.max(Duration::from_millis(1)))).ok()?;
        let mut bytes = [0; DATAGRAM_BYTES + 1];
        let arrival = receive(&self.socket, &mut bytes).ok()?;
        let came = Instant::now();
        let datagram = Datagram::read(&bytes[..arrival.length])?;
        let echoed = datagram.echoed.filter(|_| datagram.cookie == self.cookie)?;
        // A server that lies here would have more arrive than were sent.
        self.arrived = self.arrived.max(echoed.arrived.min(self.number));
        Some(Answer { datagram, came, ecn: arrival.ecn })
    }

    pub(super) fn run(&mut self, board: &Board, interval: Duration) {
        let before = self.arrived;
        let (mut open, mut due) = (BTreeMap::new(), Instant::now());
        let (mut sent, mut answered, mut longest) = (0, 0, Duration::ZERO);
        let mut last = Instant::now();
        loop {
            let now = Instant::now();
            if !board.is_over() && now >= due {
                // Whatever happens to this thread meanwhile is no shorter path.
                let asked = Instant::now();
                open.insert(self.ask(0, 0), asked);
                board.sent(Method::Udp);
                sent += 1;
                (last, due) = (now, (due + board.stretched(interval)).max(now));
            }
            if board.is_over()
                && (open.is_empty() || last.elapsed() > (longest + GRACE).min(LONGEST_GRACE))
            {
                break;
            }
            let wait = due.saturating_duration_since(Instant::now()).min(PATIENCE);
            let Some(answer) = self.answer(wait) else { continue };
            // One that came twice, or too late for its own stage, is none.
            let Some(asked) = open.remove(&answer.datagram.number) else { continue };
            let took = answer.came - asked;
            board.answered(Method::Udp, took);
            answered += 1;
            longest = longest.max(took);
        }
        let arrived = (self.arrived - before).clamp(answered, sent);
        *locked(&board.loss) = Some(Loss { sent, up: sent - arrived, down: arrived - answered });
    }
}

/// ICMP echo by a socket that needs no privileges (icmp(7)).
#[derive(Debug)]
pub(super) struct Icmp {
    socket: Socket,
    is_v6: bool,
    number: u16,
}

impl Icmp {
    fn open(to: SocketAddr) -> io::Result<Self> {
        let protocol = if to.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(protocol))?;
        let mut to = to;
        to.set_port(0);
        socket.connect(&to.into())?;
        Ok(Self { socket, is_v6: to.is_ipv6(), number: 0 })
    }

    /// Sends a request: its number, and when.
    fn ask(&mut self) -> (u16, Instant) {
        self.number = self.number.wrapping_add(1);
        // The kernel fills in the identifier and the checksum of such a socket.
        let mut bytes = [0; ICMP_BYTES];
        bytes[0] = if self.is_v6 { 128 } else { 8 };
        bytes[6..8].copy_from_slice(&self.number.to_be_bytes());
        let asked = Instant::now();
        let _ = (&self.socket).write(&bytes);
        (self.number, asked)
    }

    /// The number of the next answer, if one comes within that time.
    fn answer(&self, within: Duration) -> Option<u16> {
        let _ = self.socket.set_read_timeout(Some(within.max(Duration::from_millis(1))));
        let mut bytes = [0; ICMP_BYTES];
        let Ok(8..) = (&self.socket).read(&mut bytes) else { return None };
        let reply = if self.is_v6 { 129 } else { 0 };
        (bytes[0] == reply).then(|| u16::from_be_bytes([bytes[6], bytes[7]]))
    }

    /// How long one takes now, if it is answered within a second.
    fn once(&mut self) -> Option<Duration> {
        let (number, asked) = self.ask();
        while let Some(left) = Duration::from_secs(1).checked_sub(asked.elapsed()) {
            if self.answer(left) == Some(number) {
                return Some(asked.elapsed());
            }
        }
        None
    }

    pub(super) fn run(&mut self, board: &Board, interval: Duration) {
        let (mut open, mut due) = (BTreeMap::new(), Instant::now());
        let (mut longest, mut last) = (Duration::ZERO, Instant::now());
        loop {
            let now = Instant::now();
            if !board.is_over() && now >= due {
                let (number, asked) = self.ask();
                open.insert(number, asked);
                board.sent(Method::Icmp);
                (last, due) = (now, (due + board.stretched(interval)).max(now));
            }
            if board.is_over()
                && (open.is_empty() || last.elapsed() > (longest + GRACE).min(LONGEST_GRACE))
            {
                return;
            }
            let wait = due.saturating_duration_since(Instant::now()).min(PATIENCE);
            let Some(number) = self.answer(wait) else { continue };
            let Some(asked) = open.remove(&number) else { continue };
            let took = asked.elapsed();
            board.answered(Method::Icmp, took);
            longest = longest.max(took);
        }
    }
}

/// A new connection each time, as somebody who opens a page has it; none where the far end is not to be asked.
pub(super) fn connections(board: &Board, far: &dyn FarEnd, interval: Duration) {
    while !board.is_over() {
        let asked = Instant::now();
        let Some(begun) = far.begin() else { return };
        board.sent(Method::Connect);
        board.sent(Method::Request);
        match begun {
            Ok(beginning) => {
                board.answered(Method::Connect, beginning.connect);
                board.answered(Method::Request, beginning.request);
            }
            Err(_) if board.is_over() => {}
            // A path that is overloaded loses some of them, which says as much.
            Err(MeasureError::Unreachable { .. } | MeasureError::Vanished { .. }) => {}
            Err(error) => return board.fail(error),
        }
        pause(board, asked + board.stretched(interval));
    }
}
