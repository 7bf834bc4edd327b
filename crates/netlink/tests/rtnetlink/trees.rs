//! Queue disciplines put back, byte for byte.

use dualq_netlink::{Handle, Netlink, NetlinkError, Node, Place};

use crate::{device, has, in_namespace, skip, spec};

const OTHER: &str = "bfifo limit 77777";

/// Puts something else there, and then again what was.
fn put_back(netlink: &mut Netlink, link: u32) -> (Vec<Node>, Vec<Node>) {
    let before = netlink.tree(link).unwrap();
    let stage = netlink.link("d1").unwrap().index;
    let learnt = netlink.learn(stage, &before).unwrap().unwrap_or_else(|| panic!("{before:?}"));
    let place = Place { handle: Handle::qdisc(0xd0), ..Place::root(link) };
    netlink.replace_qdisc(&place, &spec(OTHER)).unwrap();
    assert_ne!(netlink.tree(link).unwrap(), before);
    for node in &learnt {
        netlink.perform(&node.request(link)).unwrap_or_else(|error| panic!("{node:?}: {error}"));
    }
    (before, netlink.tree(link).unwrap())
}

#[test]
fn every_kind_is_put_back_as_it_was() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place { handle: Handle::qdisc(0x8001), ..Place::root(link.index) };
        for line in [
            "dualpi2",
            "dualpi2 limit 100 step_thresh 5p no_split_gso overflow drop_enqueue any_ect",
            "pfifo limit 10",
            "bfifo limit 100000",
            "pfifo_fast",
            "codel limit 100 target 4ms interval 30ms ce_threshold 1ms ecn",
            "fq_codel limit 100 flows 8 quantum 300 target 5ms memory_limit 4mb noecn",
            "pie limit 100 target 20ms tupdate 40ms alpha 1 beta 32 ecn bytemode",
            "fq limit 7 flow_limit 8 buckets 512 quantum 2000 maxrate 10mbit nopacing",
            "tbf rate 10mbit burst 10kb limit 10000 peakrate 20mbit mtu 1540",
            "tbf rate 40gbit burst 100200 limit 1mb leaf dualpi2 target 5ms",
            "htb rate 50mbit",
            "htb rate 50mbit ceil 100mbit burst 10001 cburst 20kb leaf dualpi2 max_rtt 100ms",
            "htb rate 40gbit leaf netem seed 1 delay 1ms leaf pfifo limit 3",
            "netem seed 18446744073709551615 limit 5000 delay 48.33ms loss 1% ecn rate 10mbit",
        ] {
            match netlink.replace_qdisc(&place, &spec(line)) {
                Err(error @ NetlinkError::NoSuchKind { .. }) => {
                    skip(&error.to_string());
                    // What is outside may be there.
                    let _ = netlink.delete_qdisc(&place);
                    continue;
                }
                result => result.unwrap(),
            }
            let (before, after) = put_back(&mut netlink, link.index);
            assert_eq!(after, before, "{line}");
            netlink.delete_qdisc(&place).unwrap();
        }
    });
}

#[test]
fn kinds_that_dualq_has_no_words_for_are_put_back_too() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        for kind in ["cake", "fq_pie", "hhf"] {
            if !has(&mut netlink, &link, kind) {
                continue;
            }
            netlink.add_qdisc_kind(&Place::root(link.index), kind).unwrap();
            let (before, after) = put_back(&mut netlink, link.index);
            assert_eq!(after, before, "{kind}");
            netlink.delete_qdisc(&Place::root(link.index)).unwrap();
        }
    });
}

#[test]
fn requests_follow_one_another_from_the_outside_in() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !has(&mut netlink, &link, "htb") {
            return;
        }
        let place = Place::root(link.index);
        let requests = Netlink::replacement(&place, &spec("htb rate 1mbit leaf pfifo")).unwrap();
        let shown: Vec<String> = requests.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["qdisc htb default 1 in root", "class htb rate 1Mbit in 1:", "qdisc pfifo in 1:1"]
        );
        // After each of them there is a tree that is part of the whole.
        for (done, request) in requests.iter().enumerate() {
            netlink.perform(request).unwrap();
            let tree = netlink.tree(link.index).unwrap();
            assert_eq!(tree.len(), done + 1);
            assert_eq!((tree[0].kind.as_str(), tree[0].parent), ("htb", Handle::ROOT));
        }
        let tree = netlink.tree(link.index).unwrap();
        assert!(tree[1].class && tree[1].handle == Handle::class(1, 1));
        assert_eq!(tree[2].parent, Handle::class(1, 1));
        assert!(!netlink.has_filters(link.index, Handle::qdisc(1)).unwrap());
    });
}
