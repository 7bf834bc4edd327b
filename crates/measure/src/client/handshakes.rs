//! What the path does to the ECN that TCP's handshakes negotiate: to the kernel's own, and, where raw sockets may be had, to SYNs of each sort.
//!
//! To the kernel an own SYN's connection is none: it would end it by a reset. So each has a port at which a socket listens that takes nothing in.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use dualq_units::plain;
use etherparse::{TcpHeader, TcpOptionElement};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::error::MeasureError;
use super::far::FarEnd;
use crate::datagrams::{receive, send, tell_all};
use crate::figures::{Codepoint, Crossing, Handshake, HandshakeEcn, Opener, TcpEcn};
use crate::measurement::Handshakes;
use crate::segment::{self, Segment};
use crate::token::random;

/// What SYNs ask for, and the value of IP's field that they are sent with. The last two are those of DCTCP and of RFC 9331's experiments.
const SYNS: [(TcpEcn, Codepoint); 5] = [
    (TcpEcn::Off, Codepoint::NotEct),
    (TcpEcn::Classic, Codepoint::NotEct),
    (TcpEcn::Accurate, Codepoint::NotEct),
    (TcpEcn::Classic, Codepoint::Ect0),
    (TcpEcn::Accurate, Codepoint::Ect1),
];
/// How often each is sent, and how long an answer may take: what a kernel waits at first (RFC 6298 §2).
const TRIES: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the server is asked for what it saw, and how far apart: it has to accept the connection first.
const QUESTIONS: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(100);
/// Of a segment nothing but headers is of interest.
const SEGMENT_BYTES: usize = 256;
/// What every path carries (IPv6's smallest MTU without headers).
const MSS: u16 = 1220;
/// A filter (`BPF_RET`) that takes no byte of any packet.
const TAKE_NOTHING: u16 = 0x06;

/// All that is seen of handshakes.
pub(super) fn seen(far: &dyn FarEnd) -> Result<Handshakes, MeasureError> {
    let (mut own, unable) = match OwnSyns::open(far.address()) {
        Ok(own) => (Some(own), None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            (None, Some("this user may open no raw sockets (CAP_NET_RAW)".to_owned()))
        }
        Err(error) => (None, Some(plain(&error))),
    };
    if let Some(own) = &mut own {
        own.open_all();
    }
    let numbers = own.as_ref().map_or_else(Vec::new, OwnSyns::answered);
    let mut arrived = far.syns(&[])?;
    if arrived.is_some()
        && let Some(own) = &own
    {
        for _ in 0..QUESTIONS {
            own.acknowledge();
            thread::sleep(BETWEEN);
            arrived = far.syns(&numbers)?;
            if arrived.as_ref().is_some_and(|syns| syns.others.len() == numbers.len()) {
                break;
            }
        }
    }
    let told = arrived.as_ref().and_then(|syns| syns.own);
    let kernels = far.connection().map(|info| Handshake {
        by: Opener::Kernel,
        asked: asked_by_kernel(),
        ip: Codepoint::NotEct,
        answered: true,
        sent_again: info.retransmits,
        syn: Crossing::of(told.map(|syn| syn.ecn)),
        syn_ack: Crossing::of(None),
        here: Some(info.ecn.into()),
        there: told.map(|syn| syn.agreed),
    });
    let others = arrived.map_or_else(Vec::new, |syns| syns.others);
    let programs = own.iter().flat_map(|own| &own.syns).map(|syn| {
        let told = others.iter().find(|told| told.number == syn.number);
        let answer = syn.answer.as_ref().map(|answer| answer.ecn);
        Handshake {
            by: Opener::Program,
            asked: Some(syn.asked),
            ip: syn.ip,
            answered: answer.is_some(),
            sent_again: syn.sent.saturating_sub(1),
            syn: Crossing::of(told.map(|told| told.ecn)),
            syn_ack: Crossing::of(answer),
            here: answer.map(|answer| answer.agreed(syn.asked)),
            there: told.map(|told| told.agreed),
        }
    });
    let seen: Vec<Handshake> = kernels.into_iter().chain(programs).collect();
    let plain_one = seen.iter().find(|one| one.asked == Some(TcpEcn::Off) && one.answered);
    let is_answered = plain_one.is_some();
    Ok(Handshakes { seen: seen.into_iter().map(|one| one.judged(is_answered)).collect(), unable })
}

/// What this host's kernel asks for, of its own accord (`tcp_ecn` in ip-sysctl.rst, which is of IPv6 too).
fn asked_by_kernel() -> Option<TcpEcn> {
    match fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").ok()?.trim() {
        "0" | "2" | "5" => Some(TcpEcn::Off),
        "1" | "4" => Some(TcpEcn::Classic),
        "3" => Some(TcpEcn::Accurate),
        _ => None,
    }
}

/// SYNs of this program's own.
struct OwnSyns {
    raw: Socket,
    from: SocketAddr,
    to: SocketAddr,
    syns: Vec<OwnSyn>,
}

/// One of them.
struct OwnSyn {
    asked: TcpEcn,
    ip: Codepoint,
    /// Keeps its port from others, and the kernel from answering at it.
    _port: Socket,
    port: u16,
    number: u32,
    /// How often it was sent.
    sent: u32,
    answer: Option<Segment>,
}

impl OwnSyns {
    fn open(to: SocketAddr) -> io::Result<Self> {
        let raw = Socket::new(Domain::for_address(to), Type::RAW, Some(Protocol::TCP))?;
        let mut host = to;
        host.set_port(0);
        raw.connect(&host.into())?;
        tell_all(&raw)?;
        let from = raw.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let syns = SYNS.map(|(asked, ip)| OwnSyn::new(from, asked, ip));
        let syns = syns.into_iter().collect::<io::Result<_>>()?;
        Ok(Self { raw, from, to, syns })
    }

    /// Sends all of them, and those without an answer again.
    fn open_all(&mut self) {
        for _ in 0..TRIES {
            for at in 0..self.syns.len() {
                if self.syns[at].answer.is_none() {
                    self.syns[at].sent += 1;
                    let syn = &self.syns[at];
                    self.send(syn.syn(self.to), syn.ip);
                }
            }
            let end = Instant::now() + PATIENCE;
            while self.syns.iter().any(|syn| syn.answer.is_none())
                && let Some(left) = end.checked_duration_since(Instant::now())
            {
                let Some(segment) = self.next(left) else { continue };
                let mut open = self.syns.iter_mut().filter(|syn| syn.answer.is_none());
                if let Some(syn) = open.find(|syn| syn.is_answer(&segment.tcp)) {
                    syn.answer = Some(segment);
                }
            }
        }
    }

    /// The next segment from that port of the host, if one comes within that time.
    fn next(&self, within: Duration) -> Option<Segment> {
        self.raw.set_read_timeout(Some(within.max(Duration::from_millis(1)))).ok()?;
        let mut bytes = [0; SEGMENT_BYTES];
        let arrival = receive(&self.raw, &mut bytes).ok()?;
        let bytes = &bytes[..arrival.length.min(SEGMENT_BYTES)];
        // The header of IP comes with what came by IPv4 only (raw(7)).
        let segment = match self.to {
            SocketAddr::V4(_) => Segment::read(bytes),
            SocketAddr::V6(_) => Segment::of_tcp(bytes, arrival.ecn),
        };
        segment.filter(|segment| segment.tcp.source_port == self.to.port())
    }

    /// The sequence numbers of those that were answered.
    fn answered(&self) -> Vec<u32> {
        let answered = self.syns.iter().filter(|syn| syn.answer.is_some());
        answered.map(|syn| syn.number).collect()
    }

    /// Has the server accept those that it answered.
    fn acknowledge(&self) {
        for syn in &self.syns {
            let Some(answer) = &syn.answer else { continue };
            let mut header = syn.header(1, self.to);
            header.ack = true;
            header.acknowledgment_number = answer.tcp.sequence_number.wrapping_add(1);
            if answer.ecn.agreed(syn.asked) == TcpEcn::Accurate {
                [header.ns, header.cwr, header.ece] = HandshakeEcn::accepting(answer.ecn.ip);
            }
            self.send(header, Codepoint::NotEct);
        }
    }

    fn send(&self, header: TcpHeader, ip: Codepoint) {
        let bytes = segment::write(header, self.from, self.to);
        // What the system does not send is lost like what a path does not carry.
        let _ = send(&self.raw, &bytes, (self.to.is_ipv6(), ip.bits()), (None, None));
    }
}

impl Drop for OwnSyns {
    /// Nothing of them stays at the server.
    fn drop(&mut self) {
        for syn in &self.syns {
            let mut header = syn.header(1, self.to);
            header.rst = true;
            self.send(header, Codepoint::NotEct);
        }
    }
}

impl OwnSyn {
    fn new(from: SocketAddr, asked: TcpEcn, ip: Codepoint) -> io::Result<Self> {
        let listener = Socket::new(Domain::for_address(from), Type::STREAM, Some(Protocol::TCP))?;
        listener.attach_filter(&[SockFilter::new(TAKE_NOTHING, 0, 0, 0)])?;
        let mut at = from;
        at.set_port(0);
        listener.bind(&at.into())?;
        listener.listen(1)?;
        let port = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?.port();
        let number = u32::from_ne_bytes(random()?);
        Ok(Self { asked, ip, _port: listener, port, number, sent: 0, answer: None })
    }

    /// A header that comes so many bytes behind the beginning of the SYN.
    fn header(&self, behind: u32, to: SocketAddr) -> TcpHeader {
        TcpHeader::new(self.port, to.port(), self.number.wrapping_add(behind), u16::MAX)
    }

    fn syn(&self, to: SocketAddr) -> TcpHeader {
        let mut header = self.header(0, to);
        header.syn = true;
        let HandshakeEcn { ae, cwr, ece, .. } = self.asked.syn(self.ip);
        (header.ns, header.cwr, header.ece) = (ae, cwr, ece);
        // Nothing is sent; but a SYN without this looks odd to those who look at SYNs.
        let _ = header.set_options(&[TcpOptionElement::MaximumSegmentSize(MSS)]);
        header
    }

    fn is_answer(&self, tcp: &TcpHeader) -> bool {
        tcp.destination_port == self.port
            && tcp.syn
            && tcp.ack
            && tcp.acknowledgment_number == self.number.wrapping_add(1)
    }
}
