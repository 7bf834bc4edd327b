//! All packets of one method that are on their way, and the patience to wait for them.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::packet::{self, Kind, ProbePacket, Response, Shape};
use super::quotes::Quotes;
use crate::MtuError;
use crate::search::{Found, Refusal, Reply, SMALLEST, Search, Step};

/// Where traceroute's ports begin: nobody should listen there.
const FIRST_PORT: u16 = 33_434;
const PORTS: u16 = 90;

/// A host of Linux says "port unreachable" six times at once to the same asker, then once a second (icmp(7),
/// icmp_ratelimit).
const RATION: u32 = 6;
const RATION_REFILL: Duration = Duration::from_millis(1_050);

/// Nobody is answered faster than this: a busy host takes its time.
const LEAST_PATIENCE: Duration = Duration::from_millis(200);
/// Packets between which the network has time to breathe.
const SPACING: Duration = Duration::from_millis(2);
/// Late answers count; but nobody waits for this many.
const MOST_FLIGHTS: usize = 128;

/// One method's packets.
#[derive(Debug)]
pub(super) struct Prober {
    pub(super) kind: Kind,
    to: SocketAddr,
    /// The only UDP port that may be used, if one was given.
    port: Option<u16>,
    sent: Vec<ProbePacket>,
    number: u16,
    timeout: Duration,
    slowest: Option<Duration>,
    /// How many answers the host may still give now, and since when that is so.
    ration: u32,
    ration_since: Instant,
    /// What payloads of UDP begin with: nothing, or what the host answers.
    head: Vec<u8>,
    /// Reads what errors of IPv4 quote, where that is wanted and may be.
    quotes: Option<Quotes>,
}

/// What was learnt of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) shape: Shape,
    pub(super) response: Response,
    /// The ECN field of the packet that an error quotes, as far as that is told.
    pub(super) quoted_ecn: Option<u8>,
    pub(super) rtt: Duration,
}

impl Prober {
    pub(super) fn udp(to: SocketAddr, port: Option<u16>, timeout: Duration) -> Self {
        Self::of(Kind::Udp, to, port, timeout)
    }

    /// Echoes, by whatever socket may be had.
    ///
    /// # Errors
    /// Why there is none, and what would help.
    pub(super) fn echo(to: SocketAddr, timeout: Duration) -> Result<Self, String> {
        let Err(unprivileged) = packet::open(Kind::Ping, to.ip()) else {
            return Ok(Self::of(Kind::Ping, to, None, timeout));
        };
        if packet::open(Kind::RawPing, to.ip()).is_ok() {
            return Ok(Self::of(Kind::RawPing, to, None, timeout));
        }
        let range = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap_or_default();
        let range: Vec<&str> = range.split_whitespace().collect();
        Err(if unprivileged.kind() == io::ErrorKind::PermissionDenied {
            format!(
                "this user may not send ICMP echo: net.ipv4.ping_group_range is \"{}\"; as root: \
                 sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"",
                range.join(" ")
            )
        } else {
            format!("no socket for ICMP echo: {}", dualq_units::plain(&unprivileged))
        })
    }

    fn of(kind: Kind, to: SocketAddr, port: Option<u16>, timeout: Duration) -> Self {
        Self {
            kind,
            to,
            port,
            sent: Vec::new(),
            number: 0,
            timeout,
            slowest: None,
            ration: RATION,
            ration_since: Instant::now(),
            head: Vec::new(),
            quotes: None,
        }
    }

    /// One whose host answers datagrams that begin like that.
    pub(super) fn answered(to: SocketAddr, head: &[u8], timeout: Duration) -> Self {
        Self { head: head.to_vec(), ..Self::udp(to, Some(to.port()), timeout) }
    }

    /// One that learns what errors quote; for IPv4 that takes a raw socket.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn quoting(to: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let quotes = if to.is_ipv4() { Some(Quotes::open()?) } else { None };
        Ok(Self { quotes, ..Self::udp(to, None, timeout) })
    }

    pub(super) const fn host(&self) -> IpAddr {
        self.to.ip()
    }

    /// The address that this machine sends from. From the same one its kernel says that it has found nobody to give a packet to.
    pub(super) fn own(&self) -> Option<IpAddr> {
        let any = match self.to {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let mut to = self.to;
        to.set_port(FIRST_PORT);
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    }

    /// Sends a packet.
    pub(super) fn send(&mut self, shape: Shape) -> Result<(), MtuError> {
        self.number = self.number.wrapping_add(1);
        let mut to = self.to;
        to.set_port(self.port.unwrap_or(FIRST_PORT + self.number % PORTS));
        let packet = ProbePacket::send(self.kind, to, self.number, shape, &self.head)
            .map_err(|error| MtuError::send(self.host(), &error))?;
        if self.sent.len() >= MOST_FLIGHTS {
            self.sent.remove(0);
        }
        self.sent.push(packet);
        Ok(())
    }

    /// How long it is worth waiting for an answer.
    pub(super) fn patience(&self) -> Duration {
        let enough = |slowest: Duration| (slowest * 3 + slowest / 2).max(LEAST_PATIENCE);
        self.slowest.map_or(self.timeout, enough).min(self.timeout)
    }

    /// What arrives until `deadline`, at least one piece of news if there is any.
    pub(super) fn wait(&mut self, deadline: Instant) -> Vec<News> {
        loop {
            let news = self.look();
            let left = deadline.saturating_duration_since(Instant::now());
            if !news.is_empty() || left.is_zero() {
                return news;
            }
            let mut watched: Vec<PollFd<'_>> = self
                .sent
                .iter()
                .map(|packet| PollFd::new(packet.as_fd(), PollFlags::POLLIN))
                .collect();
            // A millisecond more, for a timeout that was cut to whole ones would be polled again and again.
            let left = left + Duration::from_millis(1);
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut watched, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return Vec::new(),
            }
        }
    }

    fn look(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        let quotes = &mut self.quotes;
        self.sent.retain(|packet| match packet.look() {
            None => true,
            Some((response, quoted)) => {
                let (shape, rtt) = (packet.shape, packet.sent.elapsed());
                let of_v4 = || quotes.as_mut()?.ecn(packet.port()?);
                news.push(News { shape, response, quoted_ecn: quoted.or_else(of_v4), rtt });
                false
            }
        });
        for piece in &news {
            // A router rejects what it tried to deliver for seconds; that tells nothing of how far away anybody is.
            if !matches!(piece.response, Response::Rejected(_)) {
                self.slowest = self.slowest.max(Some(piece.rtt));
            }
            if piece.response == Response::Reached {
                self.ration = self.ration.saturating_sub(1);
            }
        }
        news
    }

    /// Waits until the host may give so many answers, if its answers are rationed.
    fn await_ration(&mut self, answers: u32) {
        let is_rationed = self.kind == Kind::Udp && self.head.is_empty();
        // What a machine says to itself it does not ration, whichever of its addresses it is asked by.
        if !is_rationed || self.host().is_loopback() || self.own() == Some(self.host()) {
            return;
        }
        loop {
            let since = self.ration_since.elapsed();
            let refill = (since.as_millis() / RATION_REFILL.as_millis()) as u32;
            if refill > 0 {
                self.ration = (self.ration + refill).min(RATION);
                self.ration_since += RATION_REFILL * refill;
            }
            if self.ration >= answers.min(RATION) {
                return;
            }
            thread::sleep(RATION_REFILL.saturating_sub(self.ration_since.elapsed()));
        }
    }

    /// Runs a search to its end. `tick` is called now and then with the size that is being tried.
    ///
    /// # Errors
    /// If this machine cannot send, and who rejects packets if somebody does.
    pub(super) fn search(
        &mut self,
        mut search: Search,
        tick: &mut dyn FnMut(u16),
    ) -> Result<(Found, Option<IpAddr>), MtuError> {
        let mut rejected_by = None;
        loop {
            let sizes = match search.step() {
                Step::Send(sizes) => sizes,
                Step::Done(found) => return Ok((found, rejected_by)),
            };
            tick(sizes.last().copied().unwrap_or(SMALLEST));
            let small = sizes.iter().filter(|size| **size == SMALLEST).count() as u32;
            self.await_ration(small.max(1));
            for size in sizes {
                self.send(Shape::of(size))?;
                thread::sleep(SPACING);
            }
            let deadline = Instant::now() + self.patience();
            let mut answered = 0;
            while !search.round_is_complete() {
                let news = self.wait(deadline);
                if news.is_empty() {
                    break;
                }
                for News { shape: Shape { size, .. }, response, .. } in news {
                    answered += u32::from(size == SMALLEST);
                    match response {
                        Response::Reached => search.heard(size, Reply::Arrived),
                        Response::TooBig { mtu, by } => {
                            search.heard(size, Reply::TooBig(Refusal { size, mtu, by }));
                        }
                        Response::Rejected(by) => {
                            rejected_by = Some(by);
                            search.rejected();
                        }
                        Response::Expired(_) => {}
                    }
                }
            }
            if answered < small {
                // Perhaps somebody else asked that host, too, and its ration is used up.
                (self.ration, self.ration_since) = (0, Instant::now());
            }
            search.round_over();
        }
    }
}
