//! What the path does to the ECN field, each way: by datagrams of each value, to which the server says how they arrived, and by answers of
//! each value.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use dualq_mtu::probe::{EcnHop, ecn_by_hop};

use super::probes::Datagrams;
use crate::figures::{Codepoint, Fate};
use crate::measurement::{Direction, EcnFate, Hop, Place};

/// Datagrams of each value, each way.
const EACH: u64 = 10;
/// They are so far apart.
const INTERVAL: Duration = Duration::from_millis(5);
/// After the last one an answer may take so long.
const GRACE: Duration = Duration::from_secs(1);

/// What became of each value, up and down; nothing if no datagram is answered at all.
pub(super) fn fates(datagrams: &mut Datagrams) -> Vec<EcnFate> {
    // By number: whether it went up with the value, or its answer is to come down with it.
    let mut open = BTreeMap::new();
    let mut arrived = [[[0; 4]; 4]; 2];
    let mut take = |open: &mut BTreeMap<u64, (usize, Codepoint)>, answer: super::probes::Answer| {
        let Some((way, codepoint)) = open.remove(&answer.datagram.number) else { return };
        let Some(echoed) = answer.datagram.echoed else { return };
        let seen = [echoed.arrived_ecn, answer.ecn][way];
        arrived[way][usize::from(codepoint.bits())][usize::from(seen)] += 1;
    };
    for _ in 0..EACH {
        for way in 0..2 {
            for codepoint in Codepoint::ALL {
                let due = Instant::now() + INTERVAL;
                let bits = codepoint.bits();
                let number = datagrams.ask([bits, 0][way], [0, bits][way]);
                open.insert(number, (way, codepoint));
                while let Some(left) = due.checked_duration_since(Instant::now()) {
                    if let Some(answer) = datagrams.answer(left) {
                        take(&mut open, answer);
                    }
                }
            }
        }
    }
    let end = Instant::now() + GRACE;
    while !open.is_empty()
        && let Some(left) = end.checked_duration_since(Instant::now())
    {
        if let Some(answer) = datagrams.answer(left) {
            take(&mut open, answer);
        }
    }
    let ways = [Direction::Upload, Direction::Download];
    if arrived.as_flattened().as_flattened().iter().all(|count| *count == 0) {
        return Vec::new();
    }
    let fate = |way: usize, codepoint: Codepoint| {
        let own = arrived[way][usize::from(codepoint.bits())];
        let others = arrived[way][0].iter().sum();
        EcnFate {
            direction: ways[way],
            sent: codepoint,
            datagrams: EACH,
            arrived: own,
            fate: Fate::of(codepoint, EACH, own, others),
            place: None,
        }
    };
    (0..2).flat_map(|way| Codepoint::ALL.map(|codepoint| fate(way, codepoint))).collect()
}

/// Finds out from which hop on values are changed or lost on the way up, if any are, as far as routers tell. With IPv4 it takes a raw socket to
/// read what they quote; where that may not be, or a router sends nothing, nothing is known.
pub(super) fn place(fates: &mut [EcnFate], to: IpAddr) {
    let is_wrong = |fate: &&mut EcnFate| {
        fate.direction == Direction::Upload
            && matches!(fate.fate, Fate::Bleached | Fate::Mangled | Fate::BlackHole)
    };
    let mut wrong: Vec<&mut EcnFate> = fates.iter_mut().filter(is_wrong).collect();
    if wrong.is_empty() {
        return;
    }
    // What is not answered is compared with what has nothing in the field.
    let mut values: Vec<u8> = wrong.iter().map(|fate| fate.sent.bits()).collect();
    values.extend(values.iter().all(|value| *value != 0).then_some(0));
    let Ok(hops) = ecn_by_hop(to, &values, GRACE) else { return };
    for fate in &mut wrong {
        fate.place = place_of(fate, &hops);
    }
}

fn place_of(fate: &EcnFate, hops: &[EcnHop]) -> Option<Place> {
    let value = fate.sent.bits();
    let is_whole = |hop: &EcnHop| match hop.arrived.get(&value) {
        Some(arrived) => arrived.map(|arrived| arrived == value),
        // Only where others are answered is one missing.
        None => (fate.fate == Fate::BlackHole && hop.arrived.contains_key(&0)).then_some(false),
    };
    let at = hops.iter().position(|hop| is_whole(hop) == Some(false))?;
    let named = |hop: &EcnHop| Hop { number: hop.number, address: hop.by };
    let after = hops[..at].iter().rev().find(|hop| is_whole(hop) == Some(true));
    Some(Place { after: after.map(named), before: named(&hops[at]) })
}
