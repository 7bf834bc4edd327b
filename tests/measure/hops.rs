//! From which hop on the ECN field is changed, across routers, of which the second gets what a switch before it has changed.

use dualq_measure::figures::{Codepoint, Fate};
use dualq_measure::{Direction, EcnFate, Hop, Place};
use etherparse::{IpEcn, IpNumber, Ipv4Header};

use super::handshakes::measured;
use super::network::Network;
use super::switch::{self, Carrier};

const BOTH: Place = Place {
    after: Some(Hop {
        number: 1,
        address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 1, 2)),
    }),
    before: Hop { number: 2, address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 2, 2)) },
};

/// Does something to the ECN field of datagrams of one end; those without one any more are lost.
struct OfDatagrams([u8; 4], fn(IpEcn) -> Option<IpEcn>);

const A: [u8; 4] = [10, 9, 1, 1];
const B: [u8; 4] = [10, 9, 3, 2];

impl Carrier for OfDatagrams {
    fn carry(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (mut ip, rest) = Ipv4Header::from_slice(packet).unwrap();
        if ip.protocol == IpNumber::UDP && ip.source == self.0 {
            ip.ecn = (self.1)(ip.ecn)?;
        }
        Some([&ip.to_bytes(), rest].concat())
    }
}

fn across(from: [u8; 4], what: fn(IpEcn) -> Option<IpEcn>) -> Option<(Vec<EcnFate>, String)> {
    switch::behind(
        || OfDatagrams(from, what),
        |network: &Network| {
            let (measured, text) = measured(network);
            (measured.ecn, text)
        },
    )
}

fn up(fates: &[EcnFate], sent: Codepoint) -> (Fate, Option<Place>) {
    of(fates, Direction::Upload, sent)
}

fn of(fates: &[EcnFate], way: Direction, sent: Codepoint) -> (Fate, Option<Place>) {
    let fate = fates.iter().find(|fate| (fate.direction, fate.sent) == (way, sent));
    fate.map(|fate| (fate.fate, fate.place)).unwrap()
}

#[test]
fn a_value_that_is_changed_behind_the_first_router_is_placed_there() {
    let Some((fates, text)) =
        across(A, |ecn| Some(if ecn == IpEcn::ONE { IpEcn::ZERO } else { ecn }))
    else {
        return;
    };
    assert_eq!(up(&fates, Codepoint::Ect1), (Fate::Bleached, Some(BOTH)));
    for other in [Codepoint::NotEct, Codepoint::Ect0, Codepoint::Ce] {
        assert_eq!(up(&fates, other), (Fate::Passes, None));
    }
    let said = "ECT(1) up: bleached after hop 1 (10.9.1.2), before hop 2 (10.9.2.2)";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_value_that_vanishes_behind_the_first_router_is_placed_there() {
    let Some((fates, _)) = across(A, |ecn| (ecn != IpEcn::TWO).then_some(ecn)) else { return };
    assert_eq!(up(&fates, Codepoint::Ect0), (Fate::BlackHole, Some(BOTH)));
    assert_eq!(up(&fates, Codepoint::Ect1), (Fate::Passes, None));
}

/// What came through there comes from behind, and asks no router on the way.
#[test]
fn a_value_that_is_changed_on_the_way_down_is_found_and_not_placed() {
    let Some((fates, text)) = across(B, |_| Some(IpEcn::ZERO)) else { return };
    for sent in [Codepoint::Ect1, Codepoint::Ect0, Codepoint::Ce] {
        assert_eq!(of(&fates, Direction::Download, sent), (Fate::Bleached, None));
        assert_eq!(up(&fates, sent), (Fate::Passes, None));
    }
    assert!(text.contains("ECT(1) down: bleached"), "{text}");
    assert!(!text.contains("bleached after hop"), "{text}");
}
