//! Streams of UDP packets: who sends them, by the clock and whatever happens to them, and who receives them.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use dualq_namespace::Namespace;
use dualq_scenario::summary::{UDP_HEADERS, UdpRecord};
use dualq_scenario::{Scenario, UdpGroup, UdpOutcome};
use dualq_units::{Ecn, Instant};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::LabError;
use crate::clock::Began;

/// What a packet says: its stream's number in 16 bits, its own in 48, and when it was due, in nanoseconds since the start.
const SAID: usize = 16;
const NUMBER_BITS: u32 = 48;
/// So many are read with one system call.
const BATCH: usize = 64;
/// Nothing that a program's own socket holds back is a part of a scenario.
const BUFFER_BYTES: usize = 256 << 20;
/// A socket may have to tell so many times what became of earlier packets before it takes the next.
const ATTEMPTS: u32 = 4;

/// Says why a group of streams cannot be had.
pub(crate) fn refusal(scenario: &Scenario) -> Option<String> {
    let least = UDP_HEADERS + SAID as u32;
    let short = scenario.udp.iter().position(|group| group.packet < least)?;
    Some(format!(
        "udp[{short}].packet: on real Linux packets have {least} bytes at least, as each says its number and when it was sent"
    ))
}

/// A group of streams under way.
#[derive(Debug)]
pub(crate) struct UdpStreams {
    record: Arc<Mutex<UdpRecord>>,
    receiver: Socket,
    /// Packets for which the receiver had no room, up to the last that was read.
    pub(crate) unseen: u32,
}

impl UdpStreams {
    /// Makes the sockets, and starts the sender, who waits for its time.
    pub(crate) fn start(
        scenario: &Scenario,
        number: usize,
        sender: &Namespace,
        (receiver, address): (&Namespace, SocketAddrV4),
        began: Began,
    ) -> Result<Self, LabError> {
        let cannot = |error| LabError::system("cannot open a socket for UDP", error);
        let group = scenario.udp[number].clone();
        let receiver = receiver.inside(|| receiving(address))?.map_err(cannot)?;
        let open = || (0..group.count).map(|_| sending(address, group.ecn)).collect();
        let sockets: io::Result<Vec<Socket>> = sender.inside(open)?;
        let sockets = sockets.map_err(cannot)?;
        let record = Arc::new(Mutex::new(UdpRecord::new(scenario, number)));
        let (books, end) = (Arc::clone(&record), scenario.duration);
        let send = move || send_all(&group, &sockets, &books, end, began.monotonic);
        let thread = thread::Builder::new().name("udp".to_owned()).spawn(send);
        thread.map_err(|error| LabError::system("cannot start a sender of UDP", error))?;
        Ok(Self { record, receiver, unseen: 0 })
    }

    /// Reads what has come since the last call.
    pub(crate) fn read(&mut self, began: Began) -> Result<(), LabError> {
        let mut record = locked(&self.record);
        loop {
            let mut said = [[0; SAID]; BATCH];
            let mut parts: Vec<_> = said.iter_mut().map(|one| [IoSliceMut::new(one)]).collect();
            let mut headers =
                MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec, u8, u32)));
            let fd = self.receiver.as_raw_fd();
            let dont_wait = MsgFlags::MSG_DONTWAIT;
            let messages =
                match recvmmsg::<_, SockaddrIn, _>(fd, &mut headers, &mut parts, dont_wait, None) {
                    Ok(messages) => messages,
                    Err(Errno::EAGAIN) => return Ok(()),
                    Err(error) => return Err(LabError::system("cannot read UDP packets", error)),
                };
            let mut read = 0;
            for message in messages {
                read += 1;
                let cmsgs =
                    message.cmsgs().map_err(|error| LabError::system("timestamps", error))?;
                let (mut stamp, mut ce) = (None, false);
                for cmsg in cmsgs {
                    match cmsg {
                        ControlMessageOwned::ScmTimestampns(time) => {
                            stamp = Some(Duration::from(time));
                        }
                        ControlMessageOwned::Ipv4Tos(field) => {
                            ce = Ecn::from_bits(field) == Ecn::Ce;
                        }
                        ControlMessageOwned::RxqOvfl(unseen) => self.unseen = unseen,
                        _ => {}
                    }
                }
                let said = message.iovs().next().and_then(|bytes| bytes.first_chunk().copied());
                if let Some((at, said)) = stamp.zip(said) {
                    let (stream, number, due) = read_packet(said);
                    let at = Instant::ZERO + at.saturating_sub(began.real);
                    record.arrived(stream, number, due, at, ce);
                }
            }
            if read < BATCH {
                return Ok(());
            }
        }
    }

    /// What came of it in the time from the warm-up on.
    pub(crate) fn finish(&self, window: Duration) -> UdpOutcome {
        locked(&self.record).clone().finish(window)
    }
}

/// The books stay right whoever fails.
fn locked(record: &Mutex<UdpRecord>) -> MutexGuard<'_, UdpRecord> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

fn receiving(address: SocketAddrV4) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::IpRecvTos, &true)?;
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// A socket of one stream, which has a port of its own.
fn sending(to: SocketAddrV4, ecn: Ecn) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    setsockopt(&socket, sockopt::SndBufForce, &BUFFER_BYTES)?;
    setsockopt(&socket, sockopt::Ipv4Tos, &(ecn as i32))?;
    // No packet is fragmented, and none is held back for what routers said of those before it.
    set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
    socket.connect(&SockAddr::from(to))?;
    Ok(socket)
}

/// Sends all packets of a group at their times.
fn send_all(
    group: &UdpGroup,
    sockets: &[Socket],
    record: &Mutex<UdpRecord>,
    end: Duration,
    began: Duration,
) {
    // Without it the kernel wakes a thread up to 50 µs late. It can only fail where there is no such thing.
    let _ = set_timerslack(1);
    let end = group.stop.map_or(end, |stop| stop.min(end));
    let mut packet = vec![0; (group.packet - UDP_HEADERS) as usize];
    for round in 0.. {
        let since_start = group.interval.saturating_mul(round);
        for (stream, socket) in (0..).zip(sockets) {
            let due = group.start_of(stream) + since_start;
            if due >= end {
                return;
            }
            let wake_up = TimeSpec::from(began + due);
            let absolute = ClockNanosleepFlags::TIMER_ABSTIME;
            while clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &wake_up) == Err(Errno::EINTR)
            {
            }
            let due = Instant::ZERO + due;
            let number = locked(record).sent(stream as usize, due);
            packet[..SAID].copy_from_slice(&write_packet(stream, number, due));
            send(socket, &packet);
        }
    }
}

/// Sends a packet. What cannot be sent is lost.
fn send(socket: &Socket, packet: &[u8]) {
    for _ in 0..ATTEMPTS {
        match socket.send(packet) {
            // An earlier one was too long for a router: this one was not looked at.
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn write_packet(stream: u32, number: u64, due: Instant) -> [u8; SAID] {
    let first = u64::from(stream) << NUMBER_BITS | number;
    (u128::from(first) << 64 | u128::from(due.as_nanos())).to_be_bytes()
}

/// Of which stream of its group this payload is, and its number there.
pub(crate) fn whose(payload: &[u8]) -> Option<(u32, u64)> {
    let (stream, number, _) = read_packet(*payload.first_chunk()?);
    Some((stream as u32, number))
}

fn read_packet(said: [u8; SAID]) -> (usize, u64, Instant) {
    let said = u128::from_be_bytes(said);
    let first = (said >> 64) as u64;
    let number = first & ((1 << NUMBER_BITS) - 1);
    ((first >> NUMBER_BITS) as usize, number, Instant::from_nanos(said as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_read_back_as_what_they_were() {
        let due = Instant::from_nanos(39_999_999_999);
        for (stream, number) in [(0, 0), (999, 50_000_000), (65_535, (1 << 48) - 1)] {
            let read = read_packet(write_packet(stream, number, due));
            assert_eq!(read, (stream as usize, number, due));
        }
    }
}
