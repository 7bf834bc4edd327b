//! How long packets spend in the queue, seen from outside of it: a packet socket on the router notes when one arrives and when
//! it leaves. Packets are sampled by their IP identification, so that a fast link costs no more than a slow one. An aggregate that
//! stays whole counts once; one that the queue splits counts with each segment, as all of them wait.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use dualq_qdisc::{QdiscLine, Spec};
use dualq_scenario::{Direction, SEGMENT_HEADERS, Scenario};
use dualq_socket::RingPacket;
use dualq_units::{Ecn, Rate};
use socket2::SockFilter;

use crate::LabError;
use crate::capture::Capture;
use crate::network::{Bottleneck, FAR, NEAR};

/// About so many packets a second are looked at.
const SAMPLES_PER_SECOND: u64 = 5000;
/// A full frame on the wire.
const FRAME_BITS: u64 = 12_000;
/// Knuth's multiplicative hash for 16 bits: aggregates advance the identification by many at a time, always as many.
const HASH: u32 = 40_503;
/// The IP header, and TCP's up to its acknowledgement number or what a packet of UDP says of itself.
const SNAP_BYTES: usize = 36;
/// So many are there of every packet: those of a ping may have no more.
const LEAST_BYTES: usize = 28;
const UDP: u8 = 17;
/// Of a data packet's length: IP and TCP with timestamps.
const HEADERS: u32 = SEGMENT_HEADERS - 14;
/// So many are kept until they are read.
const KEPT: usize = 1 << 15;
/// Dropped packets never leave; those that arrived so long ago are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
const MOST_WAITING: usize = 100_000;

// Classic BPF (include/uapi/linux/bpf_common.h), as far as it is needed.
const LOAD_HALF: u16 = 0x28;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER: u16 = 0x25;
const STORE: u16 = 0x02;
const LOAD_X: u16 = 0x61;
const ADD: u16 = 0x04;
const ADD_X: u16 = 0x0c;
const MULTIPLY: u16 = 0x24;
const DIVIDE: u16 = 0x34;
const MODULO: u16 = 0x94;
const AND: u16 = 0x54;
const SHIFT_RIGHT: u16 = 0x74;
const RETURN: u16 = 0x06;

/// What tells a packet from all others of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    source: u32,
    port: u16,
    identification: u16,
    /// Of TCP its sequence number, of UDP the numbers of the stream and of the packet: identifications come again after 65,536 packets, and
    /// then what was dropped would be taken for what leaves if the watch had no room for its arrival.
    sequence: u64,
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

/// The observer of a router's queue.
#[derive(Debug)]
pub(crate) struct Taps {
    capture: Capture,
    sampling: Sampling,
    waiting: HashMap<Identity, (Duration, Ecn)>,
}

impl Taps {
    /// Looks at packets that cross the router of a queue that way.
    pub(crate) fn open(
        bottleneck: &Bottleneck,
        sampling: Sampling,
        direction: Direction,
    ) -> Result<Self, LabError> {
        let towards = if direction.is_down() { FAR } else { NEAR };
        let filter = sampling.filter(towards);
        let capture = Capture::open(&bottleneck.namespace, &filter, KEPT, SNAP_BYTES)?;
        Ok(Self { capture, sampling, waiting: HashMap::new() })
    }

    /// Packets that passed unseen, as there was no room for them.
    pub(crate) fn unseen(&mut self) -> Result<u64, LabError> {
        self.capture.unseen()
    }

    /// Reads what was noted since the last call, and tells what left the queue.
    pub(crate) fn read(&mut self, passed: &mut impl FnMut(Passed)) -> Result<(), LabError> {
        let mut latest = Duration::ZERO;
        let Self { capture, sampling, waiting } = self;
        capture.read(|RingPacket { at, leaves, bytes }| {
            if bytes.len() < LEAST_BYTES {
                return;
            }
            let mut begin = [0; SNAP_BYTES];
            let known = bytes.len().min(SNAP_BYTES);
            begin[..known].copy_from_slice(&bytes[..known]);
            latest = at;
            let (identity, ecn) = identify(&begin);
            if !leaves {
                for segment in sampling.segments(identity, &begin) {
                    waiting.insert(segment, (at, ecn));
                }
            } else if let Some((arrived, ecn)) = waiting.remove(&identity) {
                passed(Passed { left: at, sojourn: at.saturating_sub(arrived), ecn });
            }
        });
        if self.waiting.len() > MOST_WAITING {
            let oldest = latest.saturating_sub(FORGOTTEN_AFTER);
            self.waiting.retain(|_, (arrived, _)| *arrived > oldest);
        }
        Ok(())
    }
}

/// Which packets are looked at: about [`SAMPLES_PER_SECOND`] of the IPv4 packets that go the way of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sampling {
    /// Packets and aggregates by so many bits of a hash of their identification.
    Whole { bits: u32 },
    /// Segments whose identification is a multiple. An aggregate, which has the identification of its first segment, is looked at
    /// if it has such a segment.
    Split { every: u32, payload: u32 },
}

impl Sampling {
    /// Of a direction's bottleneck.
    pub(crate) fn of(scenario: &Scenario, direction: Direction) -> Self {
        let link = &scenario.link;
        let (rate, qdisc) = match (direction, &link.up) {
            (Direction::Up, Some(up)) => {
                let rates = up.step.iter().map(|step| step.rate).chain(up.rate);
                let highest = rates.max().unwrap_or(link.rate);
                (highest, up.qdisc.as_ref().unwrap_or(&link.qdisc))
            }
            _ => (link.highest_rate(), &link.qdisc),
        };
        Self::of_queue(scenario, rate, qdisc)
    }

    /// Of a link of that rate with that queue discipline.
    pub(crate) fn of_queue(scenario: &Scenario, rate: Rate, qdisc: &QdiscLine) -> Self {
        let per_second = rate.as_bits_per_second() / FRAME_BITS;
        let share = per_second / SAMPLES_PER_SECOND;
        let splits = qdisc.levels().any(|spec| match spec {
            Spec::Dualpi2(change) => change.split_gso != Some(false),
            Spec::Cake(options) => options.split_gso != Some(false),
            // What is longer than its burst (Linux: `tbf_segment`).
            Spec::Tbf(_) => true,
            _ => false,
        });
        if splits && scenario.sender.gso {
            // It is odd: aggregates of 2 or 32 segments begin anywhere in it.
            let every = share.min(1 << 15) as u32 | 1;
            Self::Split { every, payload: scenario.link.mtu - HEADERS }
        } else {
            Self::Whole { bits: share.checked_ilog2().map_or(0, |log| log + 1).min(15) }
        }
    }

    fn filter(self, towards: Ipv4Addr) -> Vec<SockFilter> {
        let step = |code, value| SockFilter::new(code, 0, 0, value);
        let unless = |value, skip| SockFilter::new(JUMP_IF_EQUAL, 0, skip, value);
        let (take, leave) = (step(RETURN, SNAP_BYTES as u32), step(RETURN, 0));
        // The network's 16 bits tell.
        let towards = u32::from(towards) >> 16;
        match self {
            Self::Whole { bits } => vec![
                step(LOAD_HALF, 16),
                unless(towards, 6),
                step(LOAD_HALF, 4),
                step(MULTIPLY, HASH),
                step(AND, 0xffff),
                step(SHIFT_RIGHT, 16 - bits),
                unless(0, 1),
                take,
                leave,
            ],
            Self::Split { every, payload } => vec![
                step(LOAD_HALF, 16),
                unless(towards, 11),
                step(LOAD_HALF, 4),
                step(MODULO, every),
                SockFilter::new(JUMP_IF_EQUAL, 7, 0, 0),
                // How far it is behind a multiple, and its segments, reach the next one.
                step(STORE, 0),
                step(LOAD_HALF, 2),
                step(ADD, payload - 1 - HEADERS),
                step(DIVIDE, payload),
                step(LOAD_X, 0),
                step(ADD_X, 0),
                SockFilter::new(JUMP_IF_GREATER, 0, 1, every),
                take,
                leave,
            ],
        }
    }

    /// The segments of what arrived that are looked at when they leave.
    fn segments(
        self,
        first: Identity,
        bytes: &[u8; SNAP_BYTES],
    ) -> impl Iterator<Item = Identity> + use<> {
        let length = u32::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        let (from, segments, every, payload) = match self {
            Self::Whole { .. } => (0, 1, 1, 0),
            Self::Split { every, payload } => {
                let behind = u32::from(first.identification) % every;
                let segments = length.saturating_sub(HEADERS).div_ceil(payload).max(1);
                ((every - behind) % every, segments, every, payload)
            }
        };
        (from..segments).step_by(every as usize).map(move |place| Identity {
            identification: first.identification.wrapping_add(place as u16),
            // Only TCP has aggregates.
            sequence: match place {
                0 => first.sequence,
                _ => u64::from((first.sequence as u32).wrapping_add(place * payload)),
            },
            ..first
        })
    }
}

fn identify(bytes: &[u8; SNAP_BYTES]) -> (Identity, Ecn) {
    let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
    let sequence = match bytes[9] {
        UDP => u64::from(u32_at(28)) << 32 | u64::from(u32_at(32)),
        _ => u64::from(u32_at(24)),
    };
    let identity =
        Identity { source: u32_at(12), port: u16_at(20), identification: u16_at(4), sequence };
    (identity, Ecn::from_bits(bytes[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An aggregate of so many segments of 1448 bytes with this identification.
    fn aggregate(identification: u16, segments: u16) -> [u8; SNAP_BYTES] {
        let mut bytes = [0; SNAP_BYTES];
        bytes[2..4].copy_from_slice(&(52 + segments * 1448).to_be_bytes());
        bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        bytes[16..20].copy_from_slice(&crate::network::RECEIVER.octets());
        bytes
    }

    /// The filter in this machine's words: as the kernel runs it.
    fn takes(sampling: Sampling, bytes: &[u8]) -> bool {
        let (one, other) = std::os::unix::net::UnixDatagram::pair().expect("sockets are there");
        let other = socket2::Socket::from(std::os::fd::OwnedFd::from(other));
        other.attach_filter(&sampling.filter(FAR)).expect("a filter that the kernel takes");
        other.set_nonblocking(true).expect("a socket");
        one.send(bytes).expect("it is sent or dropped");
        other.recv(&mut [std::mem::MaybeUninit::uninit(); SNAP_BYTES]).is_ok()
    }

    #[test]
    fn of_a_split_aggregate_all_segments_may_be_looked_at() {
        let sampling = Sampling::Split { every: 7, payload: 1448 };
        for (identification, segments, looked_at) in [
            (14, 1, &[14][..]),
            (15, 1, &[]),
            (15, 6, &[]),
            (15, 7, &[21]),
            (20, 16, &[21, 28, 35]),
        ] {
            let bytes = aggregate(identification, segments);
            let (first, _) = identify(&bytes);
            let found: Vec<_> = sampling.segments(first, &bytes).collect();
            let numbers: Vec<u16> = found.iter().map(|found| found.identification).collect();
            assert_eq!(numbers, looked_at, "{identification} {segments}");
            for found in &found {
                let before = u32::from(found.identification - identification);
                assert_eq!(found.sequence, u64::from(before) * 1448);
            }
            assert_eq!(takes(sampling, &bytes), !found.is_empty(), "{identification} {segments}");
        }
        let all = Sampling::Split { every: 1, payload: 1448 };
        let bytes = aggregate(9, 3);
        assert_eq!(all.segments(identify(&bytes).0, &bytes).count(), 3);
    }

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
        // UDP has no such place: its packets say their numbers.
        bytes[9] = UDP;
        bytes[28..36].copy_from_slice(&[0, 2, 0, 0, 0, 0, 1, 7]);
        assert_eq!(identify(&bytes).0, Identity { sequence: 2 << 48 | 0x107, ..expected });
    }

    #[test]
    fn queues_that_split_aggregates_are_looked_at_by_segments() {
        let splits = |qdisc: &str| {
            let sweep = format!("[link]\nqdisc = '{qdisc}'\nrate = '900mbit'\n");
            let sweep = dualq_scenario::Sweep::parse(&sweep).expect("it is right");
            let scenario = &sweep.variants()[0].scenario;
            matches!(Sampling::of(scenario, Direction::Down), Sampling::Split { .. })
        };
        for qdisc in ["dualpi2", "cake", "tbf rate 800mbit burst 25k limit 1m"] {
            assert!(splits(qdisc), "{qdisc}");
        }
        for qdisc in ["dualpi2 no_split_gso", "fq_codel"] {
            assert!(!splits(qdisc), "{qdisc}");
        }
    }
}
