//! How long packets spend in the queue, seen from outside of it: a packet socket on the router notes when one arrives and when
//! it leaves. Packets are sampled by their IP identification, so that a fast link costs no more than a slow one.

use std::collections::HashMap;
use std::time::Duration;

use dualq_units::{Ecn, Rate};
use socket2::SockFilter;

use crate::LabError;
use crate::capture::{Capture, Captured};
use crate::dumbbell::{Dumbbell, RECEIVER};

/// About so many packets a second are looked at.
const SAMPLES_PER_SECOND: u64 = 2000;
/// A full frame on the wire.
const FRAME_BITS: u64 = 12_000;
/// Knuth's multiplicative hash for 16 bits: aggregates advance the identification by many at a time, always as many.
const HASH: u32 = 40_503;
/// The IP header, the ports and TCP's sequence number.
const SNAP_BYTES: usize = 28;
/// Aggregates count with their full size until they are read.
const BUFFER_BYTES: usize = 256 << 20;
/// Dropped packets never leave; those that arrived so long ago are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
const MOST_WAITING: usize = 100_000;

// Classic BPF (include/uapi/linux/bpf_common.h), as far as it is needed.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const JUMP_IF_EQUAL: u16 = 0x15;
const MULTIPLY: u16 = 0x24;
const AND: u16 = 0x54;
const SHIFT_RIGHT: u16 = 0x74;
const RETURN: u16 = 0x06;

/// What tells a packet from all others of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    source: u32,
    port: u16,
    identification: u16,
    sequence: u32,
}

/// A packet that passed the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// When it left, on the system's clock.
    pub(crate) left: Duration,
    /// How long it was inside.
    pub(crate) sojourn: Duration,
    /// Its ECN bits when it arrived.
    pub(crate) ecn: Ecn,
}

/// The observer of the router's queue.
#[derive(Debug)]
pub(crate) struct Taps {
    capture: Capture<SNAP_BYTES>,
    waiting: HashMap<Identity, (Duration, Ecn)>,
}

impl Taps {
    /// Looks at the packets that cross the router towards the receiver.
    pub(crate) fn open(dumbbell: &Dumbbell, rate: Rate) -> Result<Self, LabError> {
        let capture = Capture::open(dumbbell, &filter(rate), BUFFER_BYTES)?;
        Ok(Self { capture, waiting: HashMap::new() })
    }

    /// Reads what was noted since the last call, and tells what left the queue.
    pub(crate) fn read(&mut self, passed: &mut impl FnMut(Passed)) -> Result<(), LabError> {
        let mut latest = Duration::ZERO;
        let Self { capture, waiting } = self;
        capture.read(&mut |Captured { at, leaves, bytes }| {
            let Some(bytes) = bytes.first_chunk() else { return };
            latest = at;
            let (identity, ecn) = identify(bytes);
            if !leaves {
                waiting.insert(identity, (at, ecn));
            } else if let Some((arrived, ecn)) = waiting.remove(&identity) {
                passed(Passed { left: at, sojourn: at.saturating_sub(arrived), ecn });
            }
        })?;
        if self.waiting.len() > MOST_WAITING {
            let oldest = latest.saturating_sub(FORGOTTEN_AFTER);
            self.waiting.retain(|_, (arrived, _)| *arrived > oldest);
        }
        Ok(())
    }
}

/// Takes about [`SAMPLES_PER_SECOND`] of the IPv4 packets that go to the receiver.
fn filter(rate: Rate) -> [SockFilter; 9] {
    let per_second = rate.as_bits_per_second() / FRAME_BITS;
    let bits = (per_second / SAMPLES_PER_SECOND).checked_ilog2().map_or(0, |log| log + 1).min(15);
    let step = |code, value| SockFilter::new(code, 0, 0, value);
    let unless = |value, skip| SockFilter::new(JUMP_IF_EQUAL, 0, skip, value);
    [
        step(LOAD_WORD, 16),
        unless(u32::from(RECEIVER), 6),
        step(LOAD_HALF, 4),
        step(MULTIPLY, HASH),
        step(AND, 0xffff),
        step(SHIFT_RIGHT, 16 - bits),
        unless(0, 1),
        step(RETURN, SNAP_BYTES as u32),
        step(RETURN, 0),
    ]
}

fn identify(bytes: &[u8; SNAP_BYTES]) -> (Identity, Ecn) {
    let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
    let identity = Identity {
        source: u32_at(12),
        port: u16_at(20),
        identification: u16_at(4),
        sequence: u32_at(24),
    };
    (identity, Ecn::from_bits(bytes[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_told_by_its_sender_and_place_in_the_stream() {
        let mut bytes = [0; SNAP_BYTES];
        bytes[1] = 0b10;
        bytes[4..6].copy_from_slice(&[0x12, 0x34]);
        bytes[12..16].copy_from_slice(&[10, 1, 0, 1]);
        bytes[20..22].copy_from_slice(&[0x13, 0x89]);
        bytes[24..28].copy_from_slice(&[1, 2, 3, 4]);
        let (identity, ecn) = identify(&bytes);
        assert_eq!(ecn, Ecn::Ect0);
        let expected = Identity {
            source: 0x0a01_0001,
            port: 5001,
            identification: 0x1234,
            sequence: 0x0102_0304,
        };
        assert_eq!(identity, expected);
    }
}
