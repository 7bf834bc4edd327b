//! Paths that do not carry all that an interface sends.

use dualq_measure::{Hop, Larger, LargestPacket, PathMtu, Place};

use super::handshakes::{self, output};
use super::network::{Middle, Network};
use super::switch::{self, Carrier};

/// Loses what the host of this address sends, if it is larger than that.
struct Narrow([u8; 4], usize);

impl Carrier for Narrow {
    fn carry(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        (packet[12..16] != self.0 || packet.len() <= self.1).then(|| packet.to_vec())
    }
}

const fn whole(bytes: u16) -> LargestPacket {
    LargestPacket { bytes, larger: Larger::Untried, said_by: None, place: None }
}

fn hop(number: u8, address: &str) -> Hop {
    Hop { number, address: address.parse().unwrap() }
}

/// With segments that fit, as where somebody clamps their size: TCP would hang otherwise, and nothing be measured.
fn measured(network: &Network) -> (PathMtu, String) {
    for (node, gateway) in [("a", "10.9.1.2"), ("b", "10.9.3.1")] {
        network.ip(node, &format!("route replace default via {gateway} advmss 1200"));
    }
    let (measured, text) = handshakes::measured(network);
    (measured.mtu.unwrap(), text)
}

fn across(middle: Middle) -> Option<(PathMtu, String)> {
    let network = Network::build(middle)?;
    Some(measured(&network))
}

#[test]
fn all_that_the_interface_sends_arrives_both_ways() {
    let Some((mtu, text)) = across(Middle::Whole) else { return };
    assert_eq!(mtu, PathMtu { interface_bytes: 1500, up: whole(1500), down: whole(1500) });
    assert!(text.contains("MTU: 1500 bytes up; 1500 bytes down"), "{text}");
}

#[test]
fn a_router_that_says_so_is_named() {
    let Some((mtu, text)) = across(Middle::Smaller(1438)) else { return };
    assert_eq!((mtu.up.bytes, mtu.up.larger), (1438, Larger::Refused));
    assert_eq!(mtu.up.said_by, Some("10.9.1.2".parse().unwrap()));
    assert_eq!(mtu.down, whole(1438));
    assert!(text.contains("1438 bytes up: larger packets are too big, as 10.9.1.2 says"), "{text}");
}

#[test]
fn a_black_hole_is_placed_between_routers() {
    let Some((mtu, text)) = across(Middle::Hole(1400)) else { return };
    let place = Place { after: Some(hop(1, "10.9.1.2")), before: hop(2, "10.9.2.2") };
    let vanish = LargestPacket { larger: Larger::Vanish, place: Some(place), ..whole(1400) };
    assert_eq!(mtu, PathMtu { interface_bytes: 1500, up: vanish, down: whole(1400) });
    let said = "vanish after hop 1 (10.9.1.2), before hop 2 (10.9.2.2) without a word";
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(said), "{text}");
}

#[test]
fn a_black_hole_of_one_way_is_told_from_one_of_the_other() {
    for (host, is_up) in [([10, 9, 1, 1], true), ([10, 9, 3, 2], false)] {
        let make = move || Narrow(host, 1300);
        let Some(mtu) = switch::behind(make, |network| measured(network).0) else {
            return;
        };
        assert_eq!(mtu.interface_bytes, 1500);
        if is_up {
            assert_eq!((mtu.up.bytes, mtu.up.larger), (1300, Larger::Vanish));
            assert_eq!(mtu.down, whole(1300));
        } else {
            assert_eq!(mtu.up, whole(1500));
            assert_eq!((mtu.down.bytes, mtu.down.larger), (1300, Larger::Lost));
        }
    }
}

#[test]
fn flows_that_hang_for_their_size_are_told_so() {
    let make = || Narrow([10, 9, 3, 2], 1400);
    let Some(output) = switch::behind(make, |network| output(network, "6s", "")) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{said}");
    let why = "packets over 1400 bytes do not arrive on the way down: see dualq mtu 10.9.3.2";
    assert!(said.contains(why), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
