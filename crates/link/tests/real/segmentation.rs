//! What is cut out of an aggregate, beside what the kernel makes of it where a device wants single packets with all sums made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::time::Duration;

use dualq_link::{Engine, Options, Tun, TunOptions};
use dualq_netlink::{Netlink, Route};
use dualq_scenario::Passage;
use dualq_units::Instant;
use etherparse::Ipv4Header;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::ioctl::{IntegerSetter, ioctl, opcode};

use crate::can_run;
use crate::frames::{DESTINATION, DESTINATION_V6, Made, Transport, VNET_BYTES, tcp};
use crate::pair::Namespace;

const TUNSETOFFLOAD: rustix::ioctl::Opcode = opcode::write::<u32>(b'T', 208);

/// A router between two devices, of which the second takes no aggregates and makes no sums.
struct Router {
    from: Tun,
    to: Tun,
}

impl Router {
    fn new() -> Self {
        let namespace = Namespace::new();
        for (key, value) in [
            ("ipv4/ip_forward", "1"),
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/rp_filter", "0"),
            ("ipv6/conf/all/forwarding", "1"),
            ("ipv6/conf/default/addr_gen_mode", "1"),
        ] {
            namespace.sysctl(&format!("net/{key}"), value);
        }
        let device = |name: &str, host: u8| {
            let v6 = Ipv6Addr::new(0xfd00, host.into(), 0, 0, 0, 0, 0, 1);
            let addresses = vec![(IpAddr::from([192, 0, 2, host]), 32), (v6.into(), 64)];
            let options = TunOptions { name: name.to_owned(), mtu: 1500, addresses };
            namespace.inside(|| Tun::open(&options)).unwrap()
        };
        let (from, to) = (device("from", 1), device("to", 2));
        namespace.inside(|| {
            let mut netlink = Netlink::open().unwrap();
            for (to_host, prefix) in [
                (Ipv4Addr::from(DESTINATION).into(), 32),
                (Ipv6Addr::from(DESTINATION_V6).into(), 128),
            ] {
                let link = Some(to.index());
                let route = Route {
                    to: to_host,
                    prefix,
                    via: None,
                    link,
                    source: None,
                    mtu: None,
                    metric: None,
                };
                netlink.add_route(&route).unwrap();
            }
        });
        no_offloads(&to);
        Self { from, to }
    }

    /// What leaves when `frame` has come, as packets of IP.
    fn pass(&self, frame: &[u8], count: usize) -> Vec<Vec<u8>> {
        rustix::io::write(self.from.as_fd(), frame).unwrap();
        let mut packets = Vec::new();
        while packets.len() < count {
            let mut fds = [PollFd::new(&self.to, PollFlags::IN)];
            let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
            assert_ne!(poll(&mut fds, Some(&patience)).unwrap(), 0, "{} of {count}", packets.len());
            let mut bytes = vec![0; 1 << 16];
            let read = rustix::io::read(self.to.as_fd(), &mut bytes).unwrap();
            let packet = &bytes[VNET_BYTES..read];
            // The router has something to say of its own too, such as which groups it listens to (RFC 3810).
            if packet.get(16..20) != Some(&DESTINATION)
                && packet.get(24..40) != Some(&DESTINATION_V6)
            {
                continue;
            }
            assert_eq!(bytes[..2], [0, 0], "a whole packet with all sums");
            packets.push(packet.to_vec());
        }
        packets
    }
}

#[allow(unsafe_code)]
fn no_offloads(tun: &Tun) {
    // SAFETY: TUNSETOFFLOAD takes a number, and touches no memory.
    unsafe { ioctl(tun.as_fd(), IntegerSetter::<TUNSETOFFLOAD>::new_usize(0)) }.unwrap();
}

/// What the link makes of a frame, on a link so slow that each segment leaves by itself, with the sums made that it leaves to others.
fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let bottleneck = Some(("64kbit".parse().unwrap(), "pfifo".parse().unwrap()));
    let passage = Passage { bottleneck, mtu: 1500, ..Passage::default() };
    let options = Options { split: true, ..Options::default() };
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let mut engine = Engine::new(&passage, &options, now, None);
    // The first time what may leave at once does, and the rate has no burst left.
    let [_, frames] = [(); 2].map(|()| {
        assert!(engine.enter(now, &mut frame.to_vec()));
        all(&mut engine, &mut now)
    });
    frames.iter().map(|frame| summed(frame)).collect()
}

/// All that is written from now on; the clock goes to when each is due.
fn all(engine: &mut Engine, now: &mut Instant) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let time = *now;
        engine.write(
            || time,
            |pieces| {
                frames.push(pieces.concat());
                true
            },
        );
        if engine.next_due() == Instant::NEVER {
            return frames;
        }
        *now = engine.next_due().max(time);
        engine.advance(*now);
    }
}

/// The packet of a frame with the sum that is to be made.
fn summed(frame: &[u8]) -> Vec<u8> {
    let number = |at: usize| usize::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
    assert_eq!(frame[..2], [1, 0], "one packet, whose sum is to be made");
    let (start, offset) = (number(6), number(8));
    let mut packet = frame[VNET_BYTES..].to_vec();
    let words = packet[start..].chunks(2);
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    // UDP's zero says that there is none.
    let sum = match !(sum as u16) {
        0 if offset == 6 => 0xffff,
        sum => sum,
    };
    packet[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// As it was before a router passed it on.
fn unrouted(mut packet: Vec<u8>, hops: u8) -> Vec<u8> {
    if packet[0] >> 4 == 6 {
        assert_eq!(packet[7], hops);
        packet[7] += 1;
        return packet;
    }
    let (mut header, rest) = Ipv4Header::from_slice(&packet).unwrap();
    assert_eq!(
        (header.time_to_live, header.header_checksum),
        (hops, header.calc_header_checksum())
    );
    header.time_to_live += 1;
    header.header_checksum = header.calc_header_checksum();
    [header.to_bytes().as_slice(), rest].concat()
}

#[test]
fn segments_are_the_kernels_to_the_bit() {
    const HOPS: u8 = 60;
    if !can_run() {
        return;
    }
    let router = Router::new();
    let mut compared = 0;
    for v6 in [false, true] {
        for flags in 0..16 {
            let mut header = tcp(u32::MAX - 5000);
            [header.fin, header.psh, header.cwr, header.ece] =
                [1, 2, 4, 8].map(|bit| flags & bit != 0);
            let udp = Transport::Udp { source: 7, destination: 9000 + flags };
            for transport in [Transport::Tcp(header), udp] {
                let payload =
                    (0..3000 + usize::from(flags) * 701).map(|at| (at * 7 + at / 251) as u8);
                let made = Made {
                    v6,
                    ecn: (flags % 4) as u8,
                    identification: u16::MAX - flags / 2,
                    transport,
                    payload: payload.collect(),
                    gso_size: 1000 + flags * 25,
                };
                let frame = made.bytes();
                let own = cut(&frame);
                let kernels = router.pass(&frame, own.len());
                for (own, kernels) in own.into_iter().zip(kernels) {
                    assert_eq!(own, unrouted(kernels, HOPS - 1), "{made:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 400, "{compared}");
}
