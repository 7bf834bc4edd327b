//! What passes a device, as a capture has it, counted.

use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use etherparse::{LaxPacketHeaders, NetHeaders, TransportHeader};
use nix::libc;
use nix::sys::socket::{GetSockOpt as _, LinkAddr, recvfrom, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::pair::Namespace;

/// Headers, before which the kernel tells of aggregates (`struct virtio_net_hdr`).
const BYTES: usize = 1 << 16;
const VNET_BYTES: usize = 10;
const TICK: Duration = Duration::from_millis(20);
const ETH_P_ALL: u16 = 3;

nix::setsockopt_impl!(VnetHeaders, libc::SOL_PACKET, libc::PACKET_VNET_HDR, bool, sockopt::SetBool);

#[derive(Clone, Copy)]
struct VnetHeaders;

#[derive(Clone, Copy)]
struct Statistics;

nix::getsockopt_impl!(
    Statistics,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    [u32; 2],
    sockopt::GetStruct<[u32; 2]>
);

/// Packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Each segment of an aggregate is one.
    pub(crate) packets: u64,
    /// Those with CE.
    pub(crate) ce: u64,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recorded {
    /// What this host sent.
    pub(crate) out: Passed,
    /// What came to it.
    pub(crate) came: Passed,
    /// What the recorder missed, because it was too slow.
    pub(crate) missed: u32,
}

/// Records until it is stopped.
pub(crate) struct Recorder {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Recorded>,
}

impl Recorder {
    /// Of all devices of a namespace; loopback is silent.
    pub(crate) fn start(namespace: &Namespace) -> Self {
        let all = Protocol::from(i32::from(ETH_P_ALL.to_be()));
        let socket = namespace.inside(|| Socket::new(Domain::PACKET, Type::RAW, Some(all)));
        let socket = socket.unwrap();
        setsockopt(&socket, VnetHeaders, &true).unwrap();
        socket.set_recv_buffer_size(16 << 20).unwrap();
        socket.set_read_timeout(Some(TICK)).unwrap();
        let over = Arc::new(AtomicBool::default());
        let ends = Arc::clone(&over);
        Self { over, thread: thread::spawn(move || record(&socket, &ends)) }
    }

    /// What passed until now.
    pub(crate) fn stop(self) -> Recorded {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn record(socket: &Socket, over: &AtomicBool) -> Recorded {
    let mut recorded = Recorded::default();
    let mut bytes = vec![0; BYTES];
    loop {
        match recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut bytes) {
            Ok((length, Some(from))) => {
                let is_out = from.pkttype() == libc::PACKET_OUTGOING;
                let passed = if is_out { &mut recorded.out } else { &mut recorded.came };
                passed.count(&bytes[..length.min(BYTES)]);
            }
            // All that came before has been read.
            _ if over.load(Ordering::Relaxed) => break,
            _ => {}
        }
    }
    recorded.missed = Statistics.get(socket).unwrap()[1];
    recorded
}

impl Passed {
    fn count(&mut self, frame: &[u8]) {
        let (vnet, packet) = frame.split_at(VNET_BYTES);
        let segment = usize::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
        let headers = LaxPacketHeaders::from_ip(packet).unwrap();
        let (ecn, length) = match headers.net.as_ref().unwrap() {
            NetHeaders::Ipv4(ip, _) => (ip.ecn.value(), usize::from(ip.payload_len().unwrap())),
            NetHeaders::Ipv6(ip, _) => (ip.traffic_class & 0b11, usize::from(ip.payload_length)),
            NetHeaders::Arp(_) => return,
        };
        let packets = match &headers.transport {
            Some(TransportHeader::Tcp(tcp)) if segment > 0 => {
                (length - tcp.header_len()).div_ceil(segment)
            }
            _ => 1,
        };
        self.packets += packets as u64;
        self.ce += if ecn == 0b11 { packets as u64 } else { 0 };
    }
}
