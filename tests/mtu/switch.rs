//! The switch between the routers as a program of the test's own, which decides what becomes of each IPv4 packet. Checksums,
//! which a network card would have filled in, it fills in.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dualq_netlink::Netlink;
use etherparse::{NetHeaders, PacketHeaders};
use nix::sys::socket::{LinkAddr, MsgFlags, recvfrom, sendto};
use socket2::{Domain, Protocol, Socket, Type};

use crate::network::{Middle, Network};

const ETH_P_ALL: u16 = 3;
const ETH_P_IP: u16 = 0x0800;
/// How long a loop waits before it looks whether the test has ended.
const TICK: Duration = Duration::from_millis(50);

/// What becomes of packets: what goes on, if anything does. It is made in the switch's namespace.
pub(crate) trait Carrier {
    fn carry(&mut self, packet: &[u8]) -> Option<Vec<u8>>;
}

/// Does `work` while such a switch is between the routers.
pub(crate) fn behind<C: Carrier, T>(
    make: impl FnOnce() -> C + Send,
    work: impl FnOnce(&Network) -> T,
) -> Option<T> {
    let network = Network::build(Middle::Whole)?;
    network.ip("switch", "link set bridge0 down");
    for port in ["one", "two"] {
        network.ip("switch", &format!("link set {port} nomaster"));
        network.ip("switch", &format!("link set {port} promisc on"));
    }
    network.ip("switch", "link set lo mtu 1500");
    for (host, device) in [("a", "a0"), ("b", "b0")] {
        // Nobody behind takes aggregates of packets apart.
        let off = || Netlink::open().unwrap().set_segmentation_offload(device, false);
        network.inside(host, off).unwrap();
    }
    // The routers know each other, so that nothing but IP has to pass.
    for (router, device, own, other, address) in
        [("r1", "right", 1, 2, "10.9.2.2"), ("r2", "left", 2, 1, "10.9.2.1")]
    {
        network.ip(router, &format!("link set {device} address 02:00:00:00:09:0{own}"));
        let neighbour = format!("neigh replace {address} lladdr 02:00:00:00:09:0{other}");
        network.ip(router, &format!("{neighbour} dev {device} nud permanent"));
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = Ends(&ended);
        let tunnel = scope.spawn(|| network.inside("switch", || forward(&mut make(), &ended)));
        // Both ends speak until the tunnel knows them.
        for _ in 0..5 {
            for (node, to) in [("a", "10.9.3.2:7"), ("b", "10.9.1.1:7")] {
                network.inside(node, || {
                    UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"hello", to).unwrap();
                });
            }
            thread::sleep(TICK);
        }
        assert!(!tunnel.is_finished());
        Some(work(&network))
    })
}

/// Ends the switch when the test is over, also if it failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Carries what arrives at one port of the switch to the other.
fn forward(carrier: &mut impl Carrier, ended: &AtomicBool) {
    let all = Protocol::from(i32::from(ETH_P_ALL.to_be()));
    let ports = Socket::new(Domain::PACKET, Type::DGRAM, Some(all)).unwrap();
    ports.set_read_timeout(Some(TICK)).unwrap();
    // Who is at which port.
    let mut seen: HashMap<usize, LinkAddr> = HashMap::new();
    let mut buffer = [0; 4096];
    while !ended.load(Ordering::Relaxed) {
        let Ok((length, Some(from))) = recvfrom::<LinkAddr>(ports.as_raw_fd(), &mut buffer) else {
            continue;
        };
        let incoming = from.pkttype() != nix::libc::PACKET_OUTGOING;
        if !incoming
            || from.protocol() != ETH_P_IP.to_be()
            || from.hatype() == nix::libc::ARPHRD_LOOPBACK
        {
            continue;
        }
        seen.insert(from.ifindex(), from);
        let Some((_, to)) = seen.iter().find(|(port, _)| **port != from.ifindex()) else {
            continue;
        };
        if let Some(packet) = carrier.carry(&buffer[..length]) {
            let packet = with_checksums(&packet).unwrap_or(packet);
            let _ = sendto(ports.as_raw_fd(), &packet, to, MsgFlags::empty());
        }
    }
}

/// The packet with right checksums, if it is one whose checksums are known.
fn with_checksums(packet: &[u8]) -> Option<Vec<u8>> {
    let headers = PacketHeaders::from_ip_slice(packet).ok()?;
    let (NetHeaders::Ipv4(ip, _), mut transport) = (headers.net?, headers.transport?) else {
        return None;
    };
    let payload = headers.payload.slice();
    transport.update_checksum_ipv4(&ip, payload).ok()?;
    let mut written = Vec::with_capacity(packet.len());
    ip.write(&mut written).ok()?;
    transport.write(&mut written).ok()?;
    written.extend_from_slice(payload);
    Some(written)
}
