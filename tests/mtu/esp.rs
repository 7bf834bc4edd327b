//! A tunnel between the routers that carries each packet as IPsec's ESP does: all headers, padding and check values in their
//! place and size, over a link of 1500 bytes. Only that nothing is encrypted, which takes no room. Checksums that a real network card would have filled in
//! are missing behind it, so ICMP echo alone is answered.

use std::collections::HashMap;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{LinkAddr, MsgFlags, recvfrom, sendto};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use serde_json::Value;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::HOSTS;
use crate::network::{Ends, Middle, Network};

const IPPROTO_ESP: i32 = 50;
const ETH_P_ALL: u16 = 3;
const ETH_P_IP: u16 = 0x0800;
/// How long a loop waits before it looks whether the test has ended.
const TICK: Duration = Duration::from_millis(50);

/// What a security association decides about sizes (RFC 4303 §2).
#[derive(Clone, Copy)]
struct Association {
    nat_t: bool,
    iv: usize,
    block: usize,
    icv: usize,
}

impl Association {
    fn seal(self, packet: &[u8]) -> Vec<u8> {
        let padding = (packet.len() + 2).next_multiple_of(self.block) - packet.len() - 2;
        let header = vec![1; 8 + self.iv];
        let trailer = [padding as u8, 4];
        [&header, packet, &vec![0; padding], &trailer, &vec![0; self.icv]].concat()
    }

    fn open(self, sealed: &[u8]) -> &[u8] {
        let inside = &sealed[8 + self.iv..sealed.len() - self.icv];
        let padding = usize::from(inside[inside.len() - 2]);
        &inside[..inside.len() - 2 - padding]
    }

    /// The two ends of the outer path.
    fn sockets(self) -> [Socket; 2] {
        let kind = if self.nat_t {
            (Type::DGRAM, Protocol::UDP)
        } else {
            (Type::RAW, Protocol::from(IPPROTO_ESP))
        };
        let ends = [1, 2].map(|last| {
            SockAddr::from(SocketAddr::from((
                Ipv4Addr::new(127, 0, 0, last),
                if self.nat_t { 4500 } else { 0 },
            )))
        });
        [(0, 1), (1, 0)].map(|(own, other): (usize, usize)| {
            let socket = Socket::new(Domain::IPV4, kind.0, Some(kind.1)).unwrap();
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE).unwrap();
            socket.bind(&ends[own]).unwrap();
            socket.connect(&ends[other]).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            socket
        })
    }
}

/// Carries what arrives at one port of the switch to the other, each packet through the tunnel.
fn carry(association: Association, ended: &AtomicBool) {
    let all = Protocol::from(i32::from(ETH_P_ALL.to_be()));
    let ports = Socket::new(Domain::PACKET, Type::DGRAM, Some(all)).unwrap();
    ports.set_read_timeout(Some(TICK)).unwrap();
    let [one, other] = association.sockets();
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
        let packet = &buffer[..length];
        // What does not fit is lost here, and nobody is told.
        if one.send(&association.seal(packet)).is_err() {
            continue;
        }
        let mut sealed = [0; 4096];
        let length = (&other).read(&mut sealed).unwrap();
        let header = if association.nat_t { 0 } else { 20 };
        let _ = sendto(
            ports.as_raw_fd(),
            association.open(&sealed[header..length]),
            to,
            MsgFlags::empty(),
        );
    }
}

#[test]
fn what_esp_takes_is_found_and_named() {
    const GCM: Association = Association { nat_t: false, iv: 8, block: 4, icv: 16 };
    const CBC_SHA256: Association = Association { nat_t: false, iv: 16, block: 16, icv: 16 };
    const CBC_SHA512: Association = Association { icv: 32, ..CBC_SHA256 };
    let in_udp = |association| Association { nat_t: true, ..association };
    thread::scope(|scope| {
        for (association, mtu, name) in [
            (GCM, 1446, "tunnel over IPv4, AES-GCM"),
            (in_udp(GCM), 1438, "tunnel in UDP (NAT-T) over IPv4, AES-GCM"),
            (CBC_SHA256, 1438, "tunnel over IPv4, AES-CBC with HMAC-SHA2-256-128"),
            (
                in_udp(CBC_SHA512),
                1406,
                "tunnel in UDP (NAT-T) over IPv4, AES-CBC with HMAC-SHA2-512-256",
            ),
        ] {
            scope.spawn(move || {
                let Some((survey, status)) = survey_through(association) else { return };
                assert_eq!((&survey["verdict"], status), (&"black-hole".into(), 1), "{survey:#}");
                assert_eq!(survey["path_mtu"], mtu, "{name}");
                let explained = survey["explanations"].to_string();
                assert!(explained.contains(name), "{explained}");
            });
        }
    });
}

fn survey_through(association: Association) -> Option<(Value, i32)> {
    let network = Network::build(Middle::Whole)?;
    network.ip("switch", "link set bridge0 down");
    for port in ["one", "two"] {
        network.ip("switch", &format!("link set {port} nomaster"));
        network.ip("switch", &format!("link set {port} promisc on"));
    }
    network.ip("switch", "link set lo mtu 1500");
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
        let tunnel = scope.spawn(|| network.inside("switch", || carry(association, &ended)));
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
        Some(network.survey(&[HOSTS[0], "--timeout", "300ms"]))
    })
}
