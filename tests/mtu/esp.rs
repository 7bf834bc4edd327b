//! A tunnel between the routers that carries each packet as IPsec's ESP does: all headers, padding and check values in their
//! place and size, over a link of 1500 bytes. Only that nothing is encrypted, which takes no room.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tests_skipped::is_root;

use crate::HOSTS;
use crate::network::{Network, again_as_root};
use crate::switch::{self, Carrier};

const IPPROTO_ESP: i32 = 50;

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
}

/// A tunnel, and the two ends of its outer path.
struct Tunnel {
    association: Association,
    ends: [Socket; 2],
}

impl Tunnel {
    fn of(association: Association) -> Self {
        let (kind, protocol, port) = if association.nat_t {
            (Type::DGRAM, Protocol::UDP, 4500)
        } else {
            (Type::RAW, Protocol::from(IPPROTO_ESP), 0)
        };
        let address =
            |last| SockAddr::from(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), port)));
        let ends = [(1, 2), (2, 1)].map(|(own, other)| {
            let socket = Socket::new(Domain::IPV4, kind, Some(protocol)).unwrap();
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE).unwrap();
            socket.bind(&address(own)).unwrap();
            socket.connect(&address(other)).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            socket
        });
        Self { association, ends }
    }
}

impl Carrier for Tunnel {
    fn carry(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let [one, other] = &self.ends;
        // What does not fit is lost here, and nobody is told.
        one.send(&self.association.seal(packet)).ok()?;
        let mut sealed = [0; 4096];
        let length = (&mut &*other).read(&mut sealed).unwrap();
        let header = if self.association.nat_t { 0 } else { 20 };
        Some(self.association.open(&sealed[header..length]).to_vec())
    }
}

#[test]
fn what_esp_takes_is_found_and_named() {
    // Its networks are built in threads, which are no tests that could be run anew.
    if !is_root() {
        return again_as_root();
    }
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
                let survey = |network: &Network| network.survey(&[HOSTS[0], "--timeout", "300ms"]);
                let surveyed = switch::behind(|| Tunnel::of(association), survey);
                let Some((survey, status)) = surveyed else { return };
                assert_eq!((&survey["verdict"], status), (&"black-hole".into(), 1), "{survey:#}");
                assert_eq!(survey["path_mtu"], mtu, "{name}");
                let explained = survey["explanations"].to_string();
                assert!(explained.contains(name), "{explained}");
            });
        }
    });
}
