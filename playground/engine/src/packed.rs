//! Packets as records of one size, little-endian, so that whoever draws a million of them reads no text.

use dualq_qdisc::DropReason;
use dualq_scenario::{Direction, Event, Kind, Seen};
use serde::Serialize;

/// The bytes of a record.
pub(crate) const RECORD: usize = 40;

const SEEN: [Seen; 6] = [Seen::In, Seen::Out, Seen::Ack, Seen::Drop, Seen::Sent, Seen::Arrive];
const KINDS: [Kind; 5] = [Kind::Data, Kind::Ack, Kind::Echo, Kind::Udp, Kind::Error];
const REASONS: [DropReason; 7] = [
    DropReason::Overlimit,
    DropReason::Congested,
    DropReason::Step,
    DropReason::Refused,
    DropReason::Flushed,
    DropReason::Superseded,
    DropReason::Random,
];
/// In the place of a reason where nothing was dropped.
const NONE: u8 = u8::MAX;

/// What the numbers in records stand for: places in these lists.
#[derive(Serialize)]
pub(crate) struct Words {
    record: usize,
    seen: [&'static str; SEEN.len()],
    kind: [&'static str; KINDS.len()],
    direction: [&'static str; Direction::ALL.len()],
    reason: [&'static str; REASONS.len()],
}

pub(crate) fn words() -> Words {
    Words {
        record: RECORD,
        seen: SEEN.map(Seen::name),
        kind: KINDS.map(Kind::name),
        direction: Direction::ALL.map(Direction::name),
        reason: REASONS.map(DropReason::name),
    }
}

fn place<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).map_or(NONE, |place| place as u8)
}

/// The record of a packet: when it was seen, how long it had waited (NaN if that is not known) and its place in the stream as f64; flow
/// and bytes as u32; then a byte each for where it was seen, its direction, kind, ECN field, SACK blocks and why it was dropped.
pub(crate) fn pack(event: &Event, to: &mut Vec<u8>) {
    let waited_ns = event.waited_ns.map_or(f64::NAN, |waited_ns| waited_ns as f64);
    for number in [event.at_ns as f64, waited_ns, event.seq as f64] {
        to.extend(number.to_le_bytes());
    }
    to.extend(event.flow.to_le_bytes());
    to.extend(u32::try_from(event.bytes).unwrap_or(u32::MAX).to_le_bytes());
    let seen = place(&SEEN, &event.seen);
    let reason = event.reason.map_or(NONE, |reason| place(&REASONS, &reason));
    let direction = place(&Direction::ALL, &event.direction);
    to.extend([seen, direction, place(&KINDS, &event.kind), event.ecn, event.sacks, reason, 0, 0]);
}
