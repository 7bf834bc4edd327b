//! What becomes of packets at the queues, a record for each, for whoever draws them: how each came and how it left are put together here,
//! which takes a script longer than the simulation takes.

use std::collections::HashMap;

use dualq_scenario::{Direction, Event, Kind, Seen};

/// Not-ECT, ECT(1), ECT(0), CE (RFC 3168).
const CE: u8 = 3;

/// A packet as it is seen at queues: one of these numbers is at a time in one of them, but for copies.
type Key = (Direction, u32, Kind, u64);

/// Packets that wait, and how they came.
#[derive(Default)]
pub(crate) struct Passages {
    inside: HashMap<Key, (u64, u8)>,
}

/// What a record is of, in its last four bytes: bit by bit, and above these the number of the flow.
mod flag {
    pub(super) const MARKED: u32 = 1;
    pub(super) const DROPPED: u32 = 1 << 1;
    /// Two bits: the ECN field with which it came.
    pub(super) const ECN: u32 = 2;
    pub(super) const UP: u32 = 1 << 4;
    /// No packet at a queue, but the answer to a ping.
    pub(super) const ECHO: u32 = 1 << 5;
    pub(super) const FLOW: u32 = 8;
}

impl Passages {
    /// Takes what happens to a packet. Records have two f32 and a u32, little-endian: when it came to the queue and when it left in seconds, and
    /// the [`flag`]s; of the answer to a ping when it came back in seconds, and its round-trip time in milliseconds.
    pub(crate) fn take(&mut self, event: &Event, to: &mut Vec<u8>) {
        let key = (event.direction, event.flow, event.kind, event.seq);
        match event.seen {
            Seen::In => {
                self.inside.insert(key, (event.at_ns, event.ecn));
            }
            Seen::Out | Seen::Drop => {
                let Some((came_ns, ecn)) = self.inside.remove(&key) else { return };
                let flags = match event.seen {
                    Seen::Drop => flag::DROPPED,
                    _ if event.ecn == CE && ecn != CE => flag::MARKED,
                    _ => 0,
                };
                put([seconds(came_ns), seconds(event.at_ns)], flags | flags_of(&key, ecn), to);
            }
            // A ping's answer has for a place in a stream when it was asked.
            Seen::Ack if event.kind == Kind::Echo => {
                let took_ms = event.at_ns.saturating_sub(event.seq) as f64 / 1e6;
                let flags = flag::ECHO | event.flow << flag::FLOW;
                put([seconds(event.at_ns), took_ms], flags, to);
            }
            Seen::Ack | Seen::Sent | Seen::Arrive => {}
        }
    }

    /// Those that still wait leave at no time.
    pub(crate) fn finish(self, to: &mut Vec<u8>) {
        let mut inside: Vec<(Key, (u64, u8))> = self.inside.into_iter().collect();
        inside.sort_by_key(|((direction, flow, _, seq), (came_ns, _))| {
            (*came_ns, *direction == Direction::Up, *flow, *seq)
        });
        for (key, (came_ns, ecn)) in inside {
            put([seconds(came_ns), f64::INFINITY], flags_of(&key, ecn), to);
        }
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn flags_of((direction, flow, ..): &Key, ecn: u8) -> u32 {
    let up = if direction.is_down() { 0 } else { flag::UP };
    up | u32::from(ecn) << flag::ECN | flow << flag::FLOW
}

fn put(times: [f64; 2], flags: u32, to: &mut Vec<u8>) {
    for time in times {
        to.extend((time as f32).to_le_bytes());
    }
    to.extend(flags.to_le_bytes());
}
