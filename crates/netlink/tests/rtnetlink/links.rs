//! Devices, and packets between them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use dualq_netlink::{Netlink, Place, ReceiveOffload, Route, SegmentationOffload, VethEnd};
use dualq_qdisc::show::OwnStats;
use nix::sched::{CloneFlags, unshare};

use crate::{device, end, has, in_namespace, is_virtual_time, root, skip, spec, wait_for};

#[test]
fn segmentation_offload_is_switched() {
    in_namespace(|mut netlink| {
        device(&mut netlink);
        for on in [false, true, false] {
            netlink.set_segmentation_offload("d0", on).unwrap();
            let offload = netlink.segmentation_offload("d0").unwrap();
            assert_eq!(offload, SegmentationOffload { tso: on, gso: on });
        }
        // On veth devices alone it is off unless it is asked for.
        for (name, gro) in [("d0", false), ("lo", true)] {
            let offloads = netlink.offloads(name).unwrap();
            assert_eq!((offloads.gro, offloads.lro), (gro, false), "{name}");
        }
        for on in [true, false] {
            netlink.set_receive_offload("d0", ReceiveOffload::Gro, on).unwrap();
            assert_eq!(netlink.offloads("d0").unwrap().gro, on);
        }
        // It has none that could be switched on.
        let fixed = netlink.set_receive_offload("d0", ReceiveOffload::Lro, true).unwrap_err();
        assert_eq!(fixed.to_string(), "cannot turn rx-lro of d0 on: the device does not allow it");
        let index = netlink.link("d0").unwrap().index;
        for segs in [1, 8, 65535] {
            netlink.set_gso_max_segs(index, segs).unwrap();
            assert_eq!(netlink.link("d0").unwrap().gso_max_segs, Some(segs));
        }
        assert!(netlink.set_gso_max_segs(index, 65536).is_err());
        assert!(netlink.set_gso_max_segs(9999, 1).is_err());
        // The other end is as it was.
        assert_eq!(
            netlink.segmentation_offload("d1").unwrap(),
            SegmentationOffload { tso: true, gso: true }
        );
    });
}

#[test]
fn connections_tell_their_congestion_control() {
    in_namespace(|mut netlink| {
        let loopback = netlink.link("lo").unwrap();
        netlink.set_up(loopback.index).unwrap();
        assert_eq!(netlink.connections().unwrap(), []);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(b"ping").unwrap();
        other.read_exact(&mut [0; 4]).unwrap();
        let connections = netlink.connections().unwrap();
        assert_eq!(connections.len(), 2);
        assert_ne!(connections[0].cookie, connections[1].cookie);
        let mut acked: Vec<u64> =
            connections.iter().map(|connection| connection.sent.acked_bytes).collect();
        acked.sort_unstable();
        // The SYN of who connected is acknowledged too.
        assert_eq!(acked, [0, 5]);
        let sender = connections.iter().find(|connection| connection.sent.segments > 0).unwrap();
        assert_eq!((sender.sent.segments, sender.sent.retransmitted), (1, 0));
        assert!(sender.sent.delivered > 0 && sender.sent.delivered_ce == 0);
        assert!(connections.iter().all(|connection| !connection.leaves_the_machine()));
        let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        for connection in connections {
            assert_eq!(connection.remote, Ipv4Addr::LOCALHOST);
            assert_eq!(connection.local, Ipv4Addr::LOCALHOST);
            assert_eq!(connection.congestion_control.as_deref(), Some(default.trim()));
            assert!(connection.min_rtt.is_some_and(|time| time < Duration::from_secs(1)));
            // In virtual time a round trip at loopback may take none, which the kernel tells as it tells that there was none.
            let rtt = connection.rtt.or(is_virtual_time().then_some(Duration::ZERO));
            assert!(rtt.is_some_and(|time| time < Duration::from_secs(1)));
        }
    });
}

/// Runs something in a network namespace of its own, which lives as long as what comes of it.
fn elsewhere<T: Send + 'static>(make: impl FnOnce() -> T + Send + 'static) -> T {
    let there = move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        make()
    };
    thread::spawn(there).join().unwrap()
}

fn proc_net(file: &str) -> String {
    fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap()
}

#[test]
fn packets_between_two_namespaces_are_counted() {
    in_namespace(|mut here| {
        let (namespace, mut there, receiver) = elsewhere(|| {
            let mut netlink = Netlink::open().unwrap();
            let loopback = netlink.link("lo").unwrap();
            netlink.set_up(loopback.index).unwrap();
            let receiver = UdpSocket::bind("0.0.0.0:7").unwrap();
            (File::open("/proc/thread-self/ns/net").unwrap(), netlink, receiver)
        });
        let mac = |last| [2, 0, 0, 0, 0, last];
        let one = VethEnd { mtu: 9000, ..end("a", 1) };
        let other = VethEnd { namespace: Some(namespace.as_fd()), ..end("b", 2) };
        here.add_veth(&one, &other).unwrap();
        let (a, b) = (here.link("a").unwrap(), there.link("b").unwrap());
        assert!(here.link("b").is_err() && there.link("a").is_err());
        assert_eq!(
            (a.mac, a.mtu, a.up, a.kind.as_deref()),
            (Some(mac(1)), 9000, false, Some("veth"))
        );
        assert_eq!((b.mac, b.mtu, b.tx_queues), (Some(mac(2)), 1500, 1));
        assert_eq!((a.tx_queue_length, a.device().max_frame), (1000, 9014));

        let (at_a, at_b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        for (netlink, link, own, peer, last) in
            [(&mut here, &a, at_a, at_b, 2), (&mut there, &b, at_b, at_a, 1)]
        {
            netlink.add_address(link.index, own, 24).unwrap();
            netlink.set_up(link.index).unwrap();
            netlink.add_neighbour(link.index, peer, mac(last)).unwrap();
        }
        here.add_route(&Route::via(([10, 9, 0, 0], 16), at_b)).unwrap();
        here.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), at_b)).unwrap();
        wait_for(&mut here, "a");
        assert!(here.link("a").unwrap().up);
        let names: Vec<_> = here.links().unwrap().into_iter().map(|link| link.name).collect();
        assert_eq!(names, ["lo", "a"]);
        // Destination, gateway, flags (up, gateway): in the machine's byte order, written in hexadecimal.
        let word = |address: Ipv4Addr| format!("{:08X}", u32::from_ne_bytes(address.octets()));
        for destination in [Ipv4Addr::new(10, 9, 0, 0), Ipv4Addr::UNSPECIFIED] {
            let line = format!("a\t{}\t{}\t0003", word(destination), word(at_b));
            assert!(proc_net("route").contains(&line), "{}", proc_net("route"));
        }
        // Complete and permanent.
        let arp = proc_net("arp");
        let neighbour: Vec<_> = arp.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(neighbour[..4], ["10.0.0.2", "0x1", "0x6", "02:00:00:00:00:02"]);

        let line = "tbf rate 1gbit burst 100kb limit 1mb leaf dualpi2";
        let has_dualpi2 = has(&mut here, &a, "dualpi2");
        let line =
            if has_dualpi2 { line } else { "tbf rate 1gbit burst 100kb limit 1mb leaf pfifo" };
        here.add_qdisc(&Place::root(a.index), &spec(line)).unwrap();
        let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
        let timeout = Some(Duration::from_secs(5));
        receiver.set_read_timeout(timeout).unwrap();
        for number in 0..10 {
            sender.send_to(&[number; 100], (at_b, 7)).unwrap();
            let mut packet = [0; 200];
            let (length, from) = receiver.recv_from(&mut packet).unwrap();
            assert_eq!((length, packet[0], from.ip()), (100, number, at_a.into()));
        }
        let queue = root(&mut here, &a);
        // There may be a few of IPv6's own.
        assert!((10..20).contains(&queue.counters.sent_packets), "{queue:?}");
        assert!(queue.counters.sent_bytes >= 10 * 142, "{queue:?}");
        let stats = queue.stats.unwrap();
        let leaf = stats.own.leaf().unwrap();
        assert_eq!(leaf.counters.sent_packets, stats.counters.sent_packets);
        assert_eq!(leaf.counters.sent_bytes, stats.counters.sent_bytes);
        if let OwnStats::Dualpi2(own) = &leaf.own {
            assert_eq!(own.packets_in_classic + own.packets_in_low_latency, own.sent_packets);
        } else {
            assert!(!has_dualpi2);
        }

        there.delete_link("b").unwrap();
        assert!(here.link("a").is_err());
        // Both ends elsewhere, and an end here whose peer comes first.
        here.add_veth(&VethEnd { name: "c", ..other }, &VethEnd { name: "d", ..other }).unwrap();
        here.add_veth(&VethEnd { name: "e", ..other }, &end("f", 3)).unwrap();
        for name in ["c", "d", "e"] {
            there.link(name).unwrap();
        }
        here.link("f").unwrap();
    });
}

#[test]
fn dummies_come_and_go() {
    in_namespace(|mut netlink| {
        if let Err(error) = netlink.add_dummy("x") {
            return skip(&error.to_string());
        }
        let link = netlink.link("x").unwrap();
        assert_eq!((link.kind.as_deref(), link.up), (Some("dummy"), false));
        netlink.set_up(link.index).unwrap();
        wait_for(&mut netlink, "x");
        netlink.delete_link("x").unwrap();
        assert!(netlink.link("x").is_err());
    });
}

#[test]
fn the_way_to_an_address() {
    in_namespace(|mut netlink| {
        let nowhere = netlink.way_to(Ipv4Addr::new(192, 0, 2, 1).into()).unwrap_err();
        assert!(nowhere.to_string().starts_with("cannot find a way to 192.0.2.1: "), "{nowhere}");

        let link = device(&mut netlink);
        netlink.set_up(link.index).unwrap();
        netlink.add_address(link.index, Ipv4Addr::new(192, 0, 2, 1), 24).unwrap();
        let router = Ipv4Addr::new(192, 0, 2, 254);
        netlink.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), router)).unwrap();
        let neighbour = netlink.way_to(Ipv4Addr::new(192, 0, 2, 7).into()).unwrap();
        assert_eq!((neighbour.link.name.as_str(), neighbour.gateway), ("d0", None));
        let far = netlink.way_to(Ipv4Addr::new(198, 51, 100, 1).into()).unwrap();
        assert_eq!((far.link.mtu, far.gateway, far.mtu), (1500, Some(router.into()), None));
    });
}

#[test]
fn the_way_to_an_address_of_one_link() {
    in_namespace(|mut netlink| {
        if !Path::new("/proc/sys/net/ipv6").exists() {
            return skip("this kernel has no IPv6");
        }
        let link = device(&mut netlink);
        let other = netlink.link("d1").unwrap();
        netlink.set_up(link.index).unwrap();
        netlink.set_up(other.index).unwrap();
        // Both interfaces have a route to addresses of their link.
        let local = |last| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last);
        for (last, index) in [(1, link.index), (2, other.index)] {
            netlink.add_address(index, local(last), 64).unwrap();
        }
        for index in [link.index, other.index] {
            let way = netlink.way_to_socket(SocketAddrV6::new(local(7), 0, 0, index).into());
            assert_eq!(way.unwrap().link.index, index);
        }
    });
}
