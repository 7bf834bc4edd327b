//! A UDP relay on tokio whose queue is DualPI2: what a VPN, a proxy or a tunnel would do with its own bottleneck. Datagrams come in at one
//! socket and leave at a rate; what waits is marked or dropped by the engine, and ECN fields go through.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use dualpi2::{Config, DualPi2, Ecn, Packet, SplitMix64};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

/// A datagram that waits.
struct Datagram {
    payload: Vec<u8>,
    ecn: Ecn,
}

/// What a datagram has on the wire beside its payload: UDP, IPv4 and Ethernet.
const HEADERS: usize = 8 + 20 + 14;
const MTU: u32 = 1514;

impl Packet for Datagram {
    fn length(&self) -> u32 {
        (self.payload.len() + HEADERS) as u32
    }

    fn memory(&self) -> u32 {
        (self.payload.capacity() + size_of::<Self>()) as u32
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// What the relay has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Datagrams that came in.
    pub received: u64,
    /// Those that left.
    pub sent: u64,
    /// Of these, those that the queue marked.
    pub marked: u64,
    /// Those that the queue dropped.
    pub dropped: u64,
}

/// The largest that one reading may give: several datagrams, if the kernel put them together.
const READ: usize = 64 * 1024;

/// Forwards what comes to `from` on to `target`, at so many bits a second, until nothing has come for `idle` and nothing waits.
///
/// # Errors
/// If a socket fails, or the rate is 0.
pub async fn relay(
    from: UdpSocket,
    target: SocketAddr,
    bits_per_second: u64,
    idle: Duration,
) -> io::Result<Done> {
    let ns_per_byte = 8_000_000_000_u64.checked_div(bits_per_second).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "a rate of 0 bits per second")
    })?;
    let state = UdpSocketState::new((&from).into())?;
    let begun = Instant::now();
    // The engine reads no clock: this is the one.
    let now = || begun.elapsed().as_nanos() as u64;
    let mut queue = DualPi2::new(Config::for_mtu(MTU), MTU, SplitMix64::new(1), 0)
        .map_err(|error| io::Error::other(error.to_string()))?;
    let (mut done, mut free_ns, mut last_ns) = (Done::default(), 0, 0);
    let mut buffer = vec![0; READ];
    loop {
        let mut now_ns = now();
        // Without a timer of its own, before whatever else happens now.
        queue.poll(now_ns);
        while free_ns <= now_ns {
            let mut lost = 0;
            let departure = queue.dequeue(now_ns, &mut |_| lost += 1);
            done.dropped += lost;
            let Some(departure) = departure else { break };
            let Datagram { payload, ecn } = &departure.packet;
            let transmit = Transmit {
                destination: target,
                ecn: EcnCodepoint::from_bits(ecn.bits()),
                contents: payload,
                segment_size: None,
                src_ip: None,
            };
            from.async_io(Interest::WRITABLE, || state.try_send((&from).into(), &transmit)).await?;
            done.sent += 1;
            done.marked += u64::from(departure.marked_by_step || departure.marked_by_probability);
            free_ns = free_ns.max(now_ns) + u64::from(departure.packet.length()) * ns_per_byte;
            now_ns = now();
        }
        // When the link is free again; else when to give up.
        let idle_ns = last_ns + idle.as_nanos() as u64;
        if queue.is_empty() && now_ns >= idle_ns {
            return Ok(done);
        }
        let wake_ns = if queue.is_empty() { idle_ns } else { free_ns };
        let mut meta = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(&mut buffer)];
        tokio::select! {
            () = sleep_until(begun + Duration::from_nanos(wake_ns)) => {}
            count = from.async_io(Interest::READABLE, || {
                state.recv((&from).into(), &mut slices, &mut meta)
            }) => {
                count?;
                let (now_ns, [meta]) = (now(), meta);
                last_ns = now_ns;
                for payload in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    let ecn = Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8));
                    let datagram = Datagram { payload: payload.to_vec(), ecn };
                    done.received += 1;
                    queue.enqueue(now_ns, datagram, &mut |_| done.dropped += 1);
                }
            }
        }
    }
}
