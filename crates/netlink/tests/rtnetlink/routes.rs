//! One more route beside the one in use.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use dualq_netlink::{Monitor, Place, Route};

use crate::{device, in_namespace, spec};

#[test]
fn a_route_with_a_smaller_mtu_comes_and_goes() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        netlink.add_address(link.index, Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
        let peer = netlink.link("d1").unwrap();
        for index in [link.index, peer.index] {
            netlink.set_up(index).unwrap();
        }
        let via = Ipv4Addr::new(10, 0, 0, 2);
        netlink.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), via)).unwrap();

        let to = IpAddr::from([192, 0, 2, 1]);
        let used = netlink.way_to(to).unwrap();
        assert_eq!((used.gateway, used.source), (Some(via.into()), Some([10, 0, 0, 1].into())));
        assert_eq!(netlink.routes(to, 32).unwrap(), []);
        let (via, source, mtu) = (used.gateway, used.source, Some(1400));
        let route =
            Route { to, prefix: 32, via, link: Some(used.link.index), source, mtu, metric: None };
        netlink.add_route(&route).unwrap();
        assert_eq!(netlink.routes(to, 32).unwrap(), [route]);
        assert_eq!(netlink.way_to(to).unwrap().mtu, Some(1400));
        let twice = netlink.add_route(&route).unwrap_err().to_string();
        assert!(twice.starts_with("cannot add route to 192.0.2.1/32 via 10.0.0.2: "), "{twice}");
        netlink.delete_route(&route).unwrap();
        assert_eq!(netlink.routes(to, 32).unwrap(), []);
        // The way there is the other one again, and removing twice is no error.
        assert_eq!(netlink.way_to(to).unwrap(), used);
        netlink.delete_route(&route).unwrap();
    });
}

/// Of several to one destination, each by its metric: one without is removed, and one with stays, in both families.
#[test]
fn routes_of_one_destination_are_told_apart_by_their_metrics() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let peer = netlink.link("d1").unwrap();
        for index in [link.index, peer.index] {
            netlink.set_up(index).unwrap();
        }
        let both = [("192.0.2.1", 32), ("2001:db8::", 32)];
        // The kernels that `dualq kernel build` makes have IPv4 alone.
        let has_v6 = Path::new("/proc/net/if_inet6").exists();
        for (to, prefix) in both.into_iter().take(if has_v6 { 2 } else { 1 }) {
            let to: IpAddr = to.parse().unwrap();
            let usual = Route {
                to,
                prefix,
                via: None,
                link: Some(link.index),
                source: None,
                mtu: Some(1400),
                metric: None,
            };
            let others = [7, 2000].map(|metric| Route { metric: Some(metric), ..usual });
            for route in [others[0], usual, others[1]] {
                netlink.add_route(&route).unwrap();
            }
            let mut found = netlink.routes(to, prefix).unwrap();
            found.sort_by_key(|route| route.metric);
            assert_eq!(found, [usual, others[0], others[1]]);
            netlink.delete_route(&usual).unwrap();
            let mut found = netlink.routes(to, prefix).unwrap();
            found.sort_by_key(|route| route.metric);
            assert_eq!(found, others);
            netlink.delete_route(&others[1]).unwrap();
            assert_eq!(netlink.routes(to, prefix).unwrap(), [others[0]]);
        }
    });
}

#[test]
fn who_listens_hears_of_routes_and_queues_only() {
    in_namespace(|mut netlink| {
        let (long, short) = (Duration::from_secs(10), Duration::from_millis(100));
        let monitor = Monitor::open().unwrap();
        let link = device(&mut netlink);
        let peer = netlink.link("d1").unwrap();
        for index in [link.index, peer.index] {
            netlink.set_up(index).unwrap();
        }
        netlink.add_address(link.index, Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
        // IPv6 gives the device some of its own, a moment later too.
        assert!(monitor.wait(long).unwrap());
        while monitor.wait(Duration::from_secs(3)).unwrap() {}

        let route = Route::via(([192, 0, 2, 1], 32), [10, 0, 0, 2]);
        netlink.add_route(&route).unwrap();
        assert!(monitor.wait(long).unwrap(), "it came");
        assert!(!monitor.wait(short).unwrap(), "once");
        netlink.delete_route(&route).unwrap();
        assert!(monitor.wait(long).unwrap(), "it went");
        netlink.add_qdisc(&Place::root(link.index), &spec("htb rate 50mbit")).unwrap();
        assert!(monitor.wait(long).unwrap(), "a queue and a class came");
        assert!(!monitor.wait(short).unwrap(), "both were heard");
        // More than its socket holds is an event like any other.
        for number in 0..4000_u32 {
            let to = Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + number);
            netlink.add_route(&Route::via((to, 32), [10, 0, 0, 2])).unwrap();
        }
        assert!(monitor.wait(long).unwrap(), "many came");
        assert!(!monitor.wait(short).unwrap(), "all of them were heard");
    });
}
