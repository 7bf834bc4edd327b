//! What arrives, taken to an ifb: beside what tc(8) shows and makes.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use dualq_netlink::{Arriving, Handle, Link, Netlink, NetlinkError, Place};

use crate::{device, in_namespace, skip, spec, wait_for};

/// An ifb that is up; says so if this kernel has none.
fn ifb(netlink: &mut Netlink) -> Option<Link> {
    if let Err(error) = netlink.add_ifb("i0") {
        skip(&format!("this kernel has no ifb: {error}"));
        return None;
    }
    let link = netlink.link("i0").unwrap();
    netlink.set_up(link.index).unwrap();
    Some(link)
}

/// Whether this kernel has all that a redirection takes; says so if not.
fn redirect(netlink: &mut Netlink, link: &Link, to: &Link) -> bool {
    netlink.add_ingress(link.index).unwrap();
    match netlink.redirect(link.index, to.index) {
        Err(NetlinkError::Refused { errno: 2 | 95, message, .. }) => {
            skip(&format!("this kernel has no matchall, or no mirred: {message}"));
            false
        }
        result => {
            result.unwrap();
            true
        }
    }
}

/// What tc says, without what counts; `None` where there is none.
fn tc(words: &str) -> Option<String> {
    match Command::new("tc").args(words.split(' ')).output() {
        Err(error) => {
            skip(&format!("there is no program tc: {error}"));
            None
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "tc {words}: {said}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

#[test]
fn what_arrives_is_queued_and_then_received() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let Some(to) = ifb(&mut netlink) else { return };
        assert_eq!(netlink.arriving(link.index).unwrap(), Arriving::Plain);
        if !redirect(&mut netlink, &link, &to) {
            return;
        }
        assert_eq!(netlink.arriving(link.index).unwrap(), Arriving::Redirected { to: to.index });
        let place = Place { handle: Handle::qdisc(0xd0), ..Place::root(to.index) };
        netlink.replace_qdisc(&place, &spec("tbf rate 1mbit burst 10kb latency 50ms")).unwrap();
        let other = netlink.link("d1").unwrap().index;
        netlink.add_address(other, Ipv4Addr::new(10, 0, 0, 2), 24).unwrap();
        for index in [link.index, other] {
            netlink.set_up(index).unwrap();
        }
        wait_for(&mut netlink, "d1");
        // The question for its address arrives at d0.
        let socket = UdpSocket::bind("10.0.0.2:0").unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let _ = socket.send_to(b"?", "10.0.0.77:9");
            let queued = netlink.qdiscs(to.index).unwrap()[0].counters.sent_packets;
            if queued > 0 {
                break;
            }
            assert!(Instant::now() < deadline, "nothing comes through the ifb");
            thread::sleep(Duration::from_millis(10));
        }
        netlink.delete_ingress(link.index).unwrap();
        netlink.delete_link("i0").unwrap();
        assert_eq!(netlink.arriving(link.index).unwrap(), Arriving::Plain);
        assert!(matches!(netlink.link("i0"), Err(NetlinkError::NoLink { .. })));
    });
}

#[test]
fn tc_shows_what_was_made_and_makes_what_is_read() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let Some(to) = ifb(&mut netlink) else { return };
        if !redirect(&mut netlink, &link, &to) {
            return;
        }
        let Some(ours) = tc("filter show dev d0 ingress") else { return };
        netlink.delete_ingress(link.index).unwrap();
        tc("qdisc add dev d0 ingress");
        assert_eq!(netlink.arriving(link.index).unwrap(), Arriving::Unfiltered);
        let words = "protocol all prio 1 matchall action mirred egress redirect dev i0";
        tc(&format!("filter add dev d0 ingress {words}"));
        assert_eq!(netlink.arriving(link.index).unwrap(), Arriving::Redirected { to: to.index });
        // The kernel counts actions on.
        let plain = |text: &str| {
            let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("index "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(plain(&ours), plain(&tc("filter show dev d0 ingress").unwrap()));
        assert!(ours.contains("Egress Redirect to device i0"), "{ours}");
    });
}

#[test]
fn what_others_do_with_what_arrives_is_told() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let Some(to) = ifb(&mut netlink) else { return };
        if !redirect(&mut netlink, &link, &to) || tc("-V").is_none() {
            return;
        }
        let by = |netlink: &mut Netlink| match netlink.arriving(link.index).unwrap() {
            Arriving::Sorted { by } => by,
            other => panic!("{other:?}"),
        };
        tc(
            "filter add dev d0 ingress protocol ip prio 9 matchall action mirred egress mirror dev i0",
        );
        assert_eq!(by(&mut netlink), "an ingress with filters (matchall)");
        netlink.delete_ingress(link.index).unwrap();
        // Of IPv4 only, or a copy: that is not all that arrives.
        for words in [
            "protocol ip prio 1 matchall action mirred egress redirect dev i0",
            "protocol all prio 1 matchall action mirred egress mirror dev i0",
            "protocol all prio 1 matchall action mirred egress mirror dev i0 pipe action mirred egress redirect dev i0",
        ] {
            tc("qdisc add dev d0 ingress");
            tc(&format!("filter add dev d0 ingress {words}"));
            assert_eq!(by(&mut netlink), "an ingress with filters (matchall)", "{words}");
            netlink.delete_ingress(link.index).unwrap();
        }
        tc("qdisc add dev d0 clsact");
        assert_eq!(by(&mut netlink), "a clsact with no filters");
        tc(
            "filter add dev d0 egress protocol all prio 1 matchall action mirred egress mirror dev i0",
        );
        assert_eq!(by(&mut netlink), "a clsact with filters (matchall)");
        assert!(netlink.add_ingress(link.index).is_err(), "there is one already");
    });
}
