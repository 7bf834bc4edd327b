//! The programs of a scenario: who sends, who reads, who asks and who answers. Only those who read wait by themselves; the
//! experiment calls the others when there is something to do.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dualq_namespace::Namespace;
use dualq_scenario::summary::Echoes;
use dualq_scenario::{CongestionControl, EcnStyle, READ_BYTES, WRITE_BYTES};
use dualq_socket::TcpInfo;
use dualq_units::{Bytes, Instant};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::LabError;
use crate::network::RECEIVER;
use crate::repeats::Repeats;

/// What a bulk sender writes at once.
static CHUNK: [u8; WRITE_BYTES] = [0; WRITE_BYTES];
/// A probe's question, and its answer.
const PROBE_BYTES: usize = dualq_scenario::PROBE_BYTES as usize;
/// What `ping` sends by default: 56 bytes behind the ICMP header.
const PING_BYTES: usize = 64;
/// Who may ping without a privilege (icmp(7)).
const PING_GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const BACKLOG: i32 = 4096;
/// A receiver is asleep for so long at once. It sleeps as programs do: waits that somebody can end take their time otherwise, and runs of
/// the world kernel would not be those that were recorded.
const NAP: Duration = Duration::from_secs(1);

/// A program's socket is ready, or not yet.
fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn cannot(what: &str, error: io::Error) -> LabError {
    LabError::system(what, error)
}

/// Whatever is unsent when the program is gone, goes with it: else the kernel would try for minutes to send it, in namespaces that stay for
/// that.
fn go_at_once(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(Duration::ZERO))
}

/// What the kernel tells of a connection.
fn info(socket: &Socket) -> Result<TcpInfo, LabError> {
    TcpInfo::of(socket.as_fd()).map_err(|error| cannot("cannot read TCP_INFO", error))
}

/// How a connection is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// The kernel's name of the congestion control.
    pub(crate) cc: &'static str,
    /// TCP paces, not the interface.
    pub(crate) paces_itself: bool,
    /// By TCP Fast Open: where the host knows a cookie of the receiver, the first write sends the SYN.
    pub(crate) fast: bool,
    /// The send buffer that the program asks for.
    pub(crate) buffer: Option<Bytes>,
}

/// A TCP connection to a receiver that is being opened.
fn connect(
    namespace: &Namespace,
    to: SocketAddrV4,
    Opening { cc, paces_itself, fast, buffer }: Opening,
) -> Result<Socket, LabError> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        go_at_once(&socket)?;
        if paces_itself {
            dualq_socket::pace(socket.as_fd(), None)?;
        }
        socket.set_tcp_congestion(cc.as_bytes())?;
        if let Some(Bytes(bytes)) = buffer {
            let bytes = bytes as usize;
            if setsockopt(&socket, sockopt::SndBufForce, &bytes).is_err() {
                socket.set_send_buffer_size(bytes)?;
                allowed(bytes, socket.send_buffer_size()?, "send_buffer", "wmem_max")?;
            }
        }
        if fast {
            setsockopt(&socket, sockopt::TcpFastOpenConnect, &true)?;
        }
        match socket.connect(&SockAddr::from(to)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    };
    namespace.inside(open)?.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            LabError::Scenario(format!("this kernel does not have the congestion control {cc}"))
        }
        _ => cannot("cannot connect to the receiver", error),
    })
}

/// Whoever is not root gets no larger buffer than the host allows.
fn allowed(asked: usize, got: usize, key: &str, setting: &str) -> io::Result<()> {
    // Linux doubles what is asked for.
    if got >= 2 * asked {
        return Ok(());
    }
    let most = got / 2;
    let message = format!(
        "{key} is {asked} bytes, and who is not root gets {most} here at most (net.core.{setting})"
    );
    Err(io::Error::other(message))
}

/// A socket in which a receiver waits for connections of flows under `cc`. Each has that receive buffer, if one is given.
pub(crate) fn listen(
    (namespace, address): (&Namespace, Ipv4Addr),
    port: u16,
    cc: CongestionControl,
    buffer: Option<Bytes>,
) -> Result<Socket, LabError> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        if cc.ecn_style() == EcnStyle::Dctcp {
            // Such a control echoes marks in a way of its own, and is asked whether ECN is on. What is accepted here inherits it.
            socket.set_tcp_congestion(cc.name().as_bytes())?;
        }
        if let Some(Bytes(bytes)) = buffer {
            // What is accepted here inherits it.
            let bytes = bytes as usize;
            if setsockopt(&socket, sockopt::RcvBufForce, &bytes).is_err() {
                socket.set_recv_buffer_size(bytes)?;
                allowed(bytes, socket.recv_buffer_size()?, "receive_buffer", "rmem_max")?;
            }
        }
        socket.bind(&SockAddr::from(SocketAddrV4::new(address, port)))?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    };
    namespace.inside(open)?.map_err(|error| cannot("the receiver cannot listen", error))
}

/// Takes a connection that waits, if one does.
pub(crate) fn accept(listener: &Socket) -> Result<Option<Socket>, LabError> {
    match listener.accept() {
        Ok((socket, _)) => {
            let ready = socket.set_nonblocking(true).and_then(|()| go_at_once(&socket));
            ready.map_err(|error| cannot("accept", error))?;
            Ok(Some(socket))
        }
        Err(error) if would_block(&error) => Ok(None),
        Err(error) => Err(cannot("cannot accept a connection", error)),
    }
}

/// Sends, to an end or for ever.
#[derive(Debug)]
pub(crate) struct BulkSender {
    pub(crate) socket: Socket,
    pub(crate) group: usize,
    /// When it started, and when the other end had it all.
    pub(crate) started: Duration,
    pub(crate) done: Option<Duration>,
    /// What is left to write; no end without.
    left: Option<u64>,
    finite: bool,
    closed: bool,
    /// Transfers that are made again and again, if they are.
    pub(crate) repeats: Option<Repeats>,
    /// As it was at the end of the warm-up.
    pub(crate) at_warmup: TcpInfo,
}

impl BulkSender {
    pub(crate) fn open(
        namespace: &Namespace,
        to: SocketAddrV4,
        opening: Opening,
        (group, size, now): (usize, Option<u64>, Duration),
    ) -> Result<Self, LabError> {
        Ok(Self {
            socket: connect(namespace, to, opening)?,
            group,
            started: now,
            done: None,
            left: size,
            finite: size.is_some(),
            closed: false,
            repeats: None,
            at_warmup: TcpInfo::default(),
        })
    }

    /// Will write no more while so many bytes of what it has written are unsent; without a number, it is the send buffer that limits it.
    pub(crate) fn limit_unsent(&self, most: Option<Bytes>) -> Result<(), LabError> {
        let Some(Bytes(most)) = most else { return Ok(()) };
        let limited = self.socket.set_tcp_notsent_lowat(u32::try_from(most).unwrap_or(u32::MAX));
        limited.map_err(|error| cannot("TCP_NOTSENT_LOWAT", error))
    }

    /// Will send its size again and again, now for the first time.
    pub(crate) fn repeat(&mut self) -> Result<(), LabError> {
        let open = |size| {
            // The end of a transfer does not wait for an acknowledgement.
            self.socket.set_tcp_nodelay(true)?;
            Repeats::open(&self.socket, size)
        };
        let repeats = self.left.map(open).transpose();
        let mut repeats = repeats.map_err(|error| cannot("cannot repeat transfers", error))?;
        if let Some(repeats) = &mut repeats {
            repeats.ask(self.started);
        }
        self.repeats = repeats;
        Ok(())
    }

    /// Sends its size once more.
    pub(crate) fn again(&mut self, now: Duration) -> Result<(), LabError> {
        if let (Some(repeats), Some(left)) = (&mut self.repeats, &mut self.left) {
            *left += repeats.ask(now);
        }
        self.write()
    }

    /// Writes what the send buffer takes.
    pub(crate) fn write(&mut self) -> Result<(), LabError> {
        while !self.closed {
            let most = self.left.map_or(CHUNK.len(), |left| CHUNK.len().min(left as usize));
            if most == 0 {
                // What is closed before it is open is given up (Linux: `inet_shutdown`).
                let waits = self.repeats.is_some() || self.socket.peer_addr().is_err();
                return if waits { Ok(()) } else { self.stop() };
            }
            match self.socket.send(&CHUNK[..most]) {
                Ok(written) => {
                    self.left = self.left.map(|left| left - written as u64);
                }
                Err(error) if would_block(&error) || error.kind() == ErrorKind::NotConnected => {
                    return Ok(());
                }
                Err(error) => return Err(cannot("a flow broke", error)),
            }
        }
        Ok(())
    }

    /// Has nothing more to send.
    pub(crate) fn stop(&mut self) -> Result<(), LabError> {
        if !self.closed {
            self.closed = true;
            match self.socket.shutdown(Shutdown::Write) {
                // It never got its connection.
                Err(error) if error.kind() == ErrorKind::NotConnected => {}
                stopped => stopped.map_err(|error| cannot("cannot end a flow", error))?,
            }
        }
        Ok(())
    }

    /// The receiver ends its side once it has read all: then a finite flow is done.
    pub(crate) fn check_end(&mut self, now: Duration) -> Result<(), LabError> {
        // All went with the SYN, and its answer acknowledges it.
        if self.done.is_none()
            && self.finite
            && !self.closed
            && self.left == Some(0)
            && self.socket.peer_addr().is_ok()
            && self.info()?.in_flight == 0
        {
            self.done = Some(now - self.started);
        }
        if self.done.is_none() && self.closed {
            let mut byte = [MaybeUninit::uninit()];
            if matches!(self.socket.recv(&mut byte), Ok(0)) && self.finite {
                self.done = Some(now - self.started);
            }
        }
        Ok(())
    }

    /// Transfers that are made again and again are done when they are acknowledged; `began` is the start on the system's clock.
    pub(crate) fn check_repeats(&mut self, began: Duration) -> Result<(), LabError> {
        self.repeats.as_mut().map_or(Ok(()), |repeats| repeats.read(&self.socket, began))
    }

    pub(crate) fn info(&self) -> Result<TcpInfo, LabError> {
        info(&self.socket)
    }
}

/// Reads and throws away, in a thread of its own.
#[derive(Debug)]
pub(crate) struct BulkReceiver {
    socket: Socket,
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
    pub(crate) group: usize,
    pub(crate) ce_at_warmup: u32,
}

impl BulkReceiver {
    /// One that reads all there is, pauses, and waits for more. Without a pause the thread is in the kernel all the time: that
    /// reads with every packet, as a program would that was woken by each, but without a system call for each.
    pub(crate) fn start(socket: Socket, group: usize, pause: Duration) -> Result<Self, LabError> {
        let own = socket.set_nonblocking(false).and_then(|()| socket.try_clone());
        let failed = |error| cannot("cannot start a receiver", error);
        let own = own.map_err(failed)?;
        let until_full = if pause.is_zero() { libc::MSG_WAITALL } else { 0 };
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let read = move || {
            let mut sink: Vec<u8> = Vec::with_capacity(READ_BYTES);
            // It ends with the connection; how that ended the sender knows.
            while own
                // What is read with MSG_TRUNC is not copied (tcp(7)): the buffer is only an address.
                .recv_with_flags(sink.spare_capacity_mut(), libc::MSG_TRUNC | until_full)
                .is_ok_and(|read| read > 0)
                && !ends.load(Ordering::Relaxed)
            {
                // Who was told that it is over is not asleep for long.
                let mut left = pause;
                while !left.is_zero() && !ends.load(Ordering::Relaxed) {
                    let nap = left.min(NAP);
                    thread::sleep(nap);
                    left -= nap;
                }
            }
            let _ = own.shutdown(Shutdown::Write);
        };
        let thread = thread::Builder::new().name("receiver".to_owned()).spawn(read);
        let thread = thread.map_err(failed)?;
        Ok(Self { socket, thread, is_over, group, ce_at_warmup: 0 })
    }

    /// Segments that arrived with CE, where the kernel counts them.
    pub(crate) fn received_ce(&self) -> Result<Option<u32>, LabError> {
        Ok(info(&self.socket)?.received_ce)
    }
}

/// All receivers. They end together: each may be asleep.
#[derive(Debug, Default)]
pub(crate) struct Receivers(pub(crate) Vec<BulkReceiver>);

impl Drop for Receivers {
    fn drop(&mut self) {
        for receiver in &self.0 {
            receiver.is_over.store(true, Ordering::Relaxed);
            // The network may be gone, so that nobody else can end the connection.
            let _ = receiver.socket.shutdown(Shutdown::Both);
        }
        for receiver in self.0.drain(..) {
            let _ = receiver.thread.join();
        }
    }
}

/// Asks, waits for the answer, pauses, asks again.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) socket: Socket,
    pub(crate) interval: Duration,
    asked: Option<Duration>,
    /// Bytes of the answer that are missing.
    missing: usize,
    ever: bool,
    pub(crate) retransmits_at_warmup: u32,
}

impl Probe {
    pub(crate) fn open(
        namespace: &Namespace,
        to: SocketAddrV4,
        opening: Opening,
        interval: Duration,
    ) -> Result<Self, LabError> {
        let socket = connect(namespace, to, opening)?;
        socket.set_tcp_nodelay(true).map_err(|error| cannot("TCP_NODELAY", error))?;
        Ok(Self {
            socket,
            interval,
            asked: None,
            missing: 0,
            ever: false,
            retransmits_at_warmup: 0,
        })
    }

    /// Asks, if it is connected.
    pub(crate) fn ask(&mut self, now: Duration) -> Result<(), LabError> {
        match (&self.socket).write(&[0; PROBE_BYTES]) {
            Ok(_) => {
                (self.asked, self.missing, self.ever) = (Some(now), PROBE_BYTES, true);
                Ok(())
            }
            Err(error) if would_block(&error) || error.kind() == ErrorKind::NotConnected => Ok(()),
            Err(error) => Err(cannot("a probe broke", error)),
        }
    }

    /// The socket is ready: it is connected, or the answer has come. Says how long that took.
    pub(crate) fn ready(&mut self, now: Duration) -> Result<Option<Duration>, LabError> {
        if !self.ever {
            self.ask(now)?;
            return Ok(None);
        }
        let mut bytes = [0; PROBE_BYTES];
        match (&self.socket).read(&mut bytes) {
            Ok(count) => {
                self.missing = self.missing.saturating_sub(count);
                let asked = if self.missing == 0 { self.asked.take() } else { None };
                Ok(asked.map(|asked| now - asked))
            }
            Err(error) if would_block(&error) => Ok(None),
            Err(error) => Err(cannot("a probe broke", error)),
        }
    }

    pub(crate) fn info(&self) -> Result<TcpInfo, LabError> {
        info(&self.socket)
    }
}

/// Answers what is asked.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) socket: Socket,
}

impl Responder {
    pub(crate) fn of(socket: Socket) -> Result<Self, LabError> {
        socket.set_tcp_nodelay(true).map_err(|error| cannot("TCP_NODELAY", error))?;
        Ok(Self { socket })
    }

    pub(crate) fn answer(&mut self) -> Result<(), LabError> {
        let mut bytes = [0; PROBE_BYTES];
        match (&self.socket).read(&mut bytes) {
            Ok(0) => Ok(()),
            Ok(count) => {
                (&self.socket).write_all(&bytes[..count]).map_err(|error| cannot("answer", error))
            }
            Err(error) if would_block(&error) => Ok(()),
            Err(error) => Err(cannot("the probe's other end broke", error)),
        }
    }
}

/// Asks for answers of a given size: both ends of a connection that the answering one opens, as senders do.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Where the answers come from.
    pub(crate) server: Socket,
    /// Who asks, once it has accepted the connection.
    client: Option<Socket>,
    pub(crate) interval: Duration,
    size: usize,
    /// Bytes of answers that are to be written.
    left: usize,
    asked: Option<Duration>,
    /// Bytes of the answer that are missing.
    missing: usize,
    pub(crate) retransmits_at_warmup: u32,
}

impl Exchange {
    pub(crate) fn open(
        namespace: &Namespace,
        to: SocketAddrV4,
        opening: Opening,
        (Bytes(size), interval): (Bytes, Duration),
    ) -> Result<Self, LabError> {
        let server = connect(namespace, to, opening)?;
        server.set_tcp_nodelay(true).map_err(|error| cannot("TCP_NODELAY", error))?;
        Ok(Self {
            server,
            client: None,
            interval,
            size: size as usize,
            left: 0,
            asked: None,
            missing: 0,
            retransmits_at_warmup: 0,
        })
    }

    /// The connection has reached the end that asks.
    pub(crate) fn accepted(&mut self, client: Socket, now: Duration) -> Result<(), LabError> {
        client.set_tcp_nodelay(true).map_err(|error| cannot("TCP_NODELAY", error))?;
        self.client = Some(client);
        self.ask(now)
    }

    /// Asks, if it can.
    pub(crate) fn ask(&mut self, now: Duration) -> Result<(), LabError> {
        let Some(mut client) = self.client.as_ref() else { return Ok(()) };
        match client.write(&[0; PROBE_BYTES]) {
            Ok(_) => (self.asked, self.missing) = (Some(now), self.size),
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(cannot("a question could not be asked", error)),
        }
        Ok(())
    }

    /// The answering end has something to read, or room to write.
    pub(crate) fn answer(&mut self) -> Result<(), LabError> {
        let mut bytes = [0; PROBE_BYTES];
        match (&self.server).read(&mut bytes) {
            // It is so small that it comes in one piece.
            Ok(count) if count > 0 => self.left += self.size,
            Ok(_) => {}
            Err(error) if would_block(&error) || error.kind() == ErrorKind::NotConnected => {}
            Err(error) => return Err(cannot("an answer broke", error)),
        }
        while self.left > 0 {
            match self.server.send(&CHUNK[..self.left.min(CHUNK.len())]) {
                Ok(written) => self.left -= written,
                Err(error) if would_block(&error) => break,
                Err(error) => return Err(cannot("an answer broke", error)),
            }
        }
        Ok(())
    }

    /// Part of the answer has come. Says how long it took if that was the last.
    pub(crate) fn read(&mut self, now: Duration) -> Result<Option<Duration>, LabError> {
        let Some(client) = &self.client else { return Ok(None) };
        let mut sink: Vec<u8> = Vec::with_capacity(CHUNK.len());
        // What is read with MSG_TRUNC is not copied (tcp(7)): the buffer is only an address.
        match client.recv_with_flags(sink.spare_capacity_mut(), libc::MSG_TRUNC) {
            Ok(count) => self.missing = self.missing.saturating_sub(count),
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(cannot("an answer broke", error)),
        }
        let asked = if self.missing == 0 { self.asked.take() } else { None };
        Ok(asked.map(|asked| now - asked))
    }

    pub(crate) fn info(&self) -> Result<TcpInfo, LabError> {
        info(&self.server)
    }
}

/// Sends ICMP echo requests, whatever is answered.
#[derive(Debug)]
pub(crate) struct Ping {
    pub(crate) socket: Socket,
    pub(crate) interval: Duration,
    /// Times count from the experiment's start.
    pub(crate) echoes: Echoes,
}

impl Ping {
    pub(crate) fn open(namespace: &Namespace, interval: Duration) -> Result<Self, LabError> {
        let open = || -> io::Result<Socket> {
            // The kernel fills in the identifier and the checksum of such a socket (icmp(7)).
            // In a user namespace only groups may be named that are there.
            let own = rustix::process::getegid().as_raw();
            std::fs::write(PING_GROUPS, "0 2147483647")
                .or_else(|_| std::fs::write(PING_GROUPS, format!("{own} {own}")))?;
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
            socket.set_nonblocking(true)?;
            socket.connect(&SockAddr::from(SocketAddr::from((RECEIVER, 0))))?;
            Ok(socket)
        };
        let socket = namespace.inside(open)?.map_err(|error| cannot("cannot ping", error))?;
        Ok(Self { socket, interval, echoes: Echoes::default() })
    }

    pub(crate) fn send(&mut self, now: Duration) -> Result<(), LabError> {
        let mut bytes = [0; PING_BYTES];
        bytes[0] = ECHO_REQUEST;
        let number = self.echoes.send(Instant::ZERO + now) as u16;
        bytes[6..8].copy_from_slice(&number.to_be_bytes());
        match (&self.socket).write(&bytes) {
            Ok(_) => Ok(()),
            Err(error) if would_block(&error) || error.raw_os_error() == Some(libc::ENOBUFS) => {
                Ok(())
            }
            Err(error) => Err(cannot("cannot ping", error)),
        }
    }

    /// Takes an answer, if one waits, and says how long it took.
    pub(crate) fn take(&mut self, now: Duration) -> Result<Option<Duration>, LabError> {
        let mut bytes = [0; PING_BYTES];
        match (&self.socket).read(&mut bytes) {
            Ok(count) if count >= 8 && bytes[0] == ECHO_REPLY => {
                let number = u16::from_be_bytes([bytes[6], bytes[7]]);
                // The number has wrapped around since, if more than 65536 were sent.
                let newest = self.echoes.len().saturating_sub(1);
                let behind = usize::from((newest as u16).wrapping_sub(number));
                let number = newest.checked_sub(behind);
                Ok(number.and_then(|number| self.echoes.answer(number, Instant::ZERO + now)))
            }
            Ok(_) => Ok(None),
            Err(error) if would_block(&error) => Ok(None),
            Err(error) => Err(cannot("cannot read an answer to a ping", error)),
        }
    }
}
