//! What is cut out of an aggregate, against another library's reading and checksums.

use std::time::Duration;

use dualq_link::Options;
use dualq_scenario::Passage;
use proptest::prelude::*;

use crate::frames::{Made, Read, Transport, VNET_BYTES, tcp};
use crate::{all_written, engine, passage, start, written};

fn made() -> impl Strategy<Value = Made> {
    let flags = any::<[bool; 4]>();
    let transport = prop_oneof![
        (any::<u32>(), flags).prop_map(|(sequence, [fin, psh, cwr, ece])| {
            let mut header = tcp(sequence);
            (header.fin, header.psh, header.cwr, header.ece) = (fin, psh, cwr, ece);
            Transport::Tcp(header)
        }),
        any::<[u16; 2]>().prop_map(|[source, destination]| Transport::Udp { source, destination }),
    ];
    (any::<bool>(), 0..4_u8, any::<u16>(), transport, 1..20_000_usize, 500..9000_u16).prop_map(
        |(v6, ecn, identification, transport, length, gso_size)| {
            let payload = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
            Made { v6, ecn, identification, transport, payload, gso_size }
        },
    )
}

/// What follows from the whole for the part that begins at `offset` of the payload.
fn assert_part(made: &Made, part: &Read, offset: usize, is_last: bool) {
    let segment = offset / usize::from(made.gso_size);
    if let Some(identification) = part.identification {
        assert_eq!(identification, made.identification.wrapping_add(segment as u16));
    }
    let (Transport::Tcp(whole), Some(tcp)) = (&made.transport, &part.tcp) else { return };
    assert_eq!(tcp.sequence_number, whole.sequence_number.wrapping_add(offset as u32));
    assert_eq!(tcp.acknowledgment_number, whole.acknowledgment_number);
    assert_eq!(tcp.options, whole.options);
    assert_eq!((tcp.fin, tcp.psh), (whole.fin && is_last, whole.psh && is_last));
    assert_eq!(tcp.cwr, whole.cwr && offset == 0);
    assert_eq!((tcp.ece, tcp.ack, tcp.window_size), (whole.ece, whole.ack, whole.window_size));
}

proptest! {
    /// On a slow link each segment leaves by itself.
    #[test]
    fn each_segment_is_a_packet_that_stands_alone(made in made()) {
        let mut engine = engine(&passage("pfifo", "5mbit"), &Options { split: true, ..Options::default() });
        prop_assert!(engine.enter(start(), &mut made.bytes()));
        let mut offset = 0;
        let frames = all_written(&mut engine, start());
        // Two at once, which the burst of the rate allows, are written as one.
        for (_, frame) in &frames {
            let part = Read::of(frame);
            let end = offset + part.payload.len();
            prop_assert_eq!(&part.payload, &made.payload[offset..end]);
            assert_part(&made, &part, offset, end == made.payload.len());
            prop_assert_eq!(part.ecn, made.ecn);
            if part.gso_type == 0 {
                prop_assert!(part.payload.len() <= usize::from(made.gso_size));
            } else {
                prop_assert_eq!(part.gso_size, made.gso_size);
                prop_assert!(part.payload.len() > usize::from(made.gso_size));
                // CE never in an aggregate.
                prop_assert_ne!(part.ecn, 3);
                let has_cwr = part.tcp.as_ref().is_some_and(|tcp| tcp.cwr);
                prop_assert_eq!(part.gso_type & 0x80 > 0, has_cwr);
            }
            offset = end;
        }
        prop_assert_eq!(offset, made.payload.len());
        let segments = made.payload.len().div_ceil(made.gso_size.into());
        prop_assert!(frames.len() + 2 >= segments, "{} of {}", frames.len(), segments);
    }

    /// Without a rate an aggregate passes as it came, byte by byte, unless it has CE: then its segments do, one by one.
    #[test]
    fn an_unshaped_link_passes_aggregates_as_they_are(made in made()) {
        let plain = Passage { mtu: 1500, ..Passage::default() };
        let mut engine = engine(&plain, &Options::default());
        let bytes = made.bytes();
        prop_assert!(engine.enter(start(), &mut bytes.clone()));
        let frames: Vec<_> = all_written(&mut engine, start()).into_iter().map(|(_, frame)| frame).collect();
        // Each packet of it is late or not, though all are written at once.
        let figures = engine.snapshot().figures;
        prop_assert_eq!(figures.lateness.count(), figures.left.packets);
        if made.ecn == 3 && made.payload.len() > usize::from(made.gso_size) {
            let parts: Vec<_> = frames.iter().map(|frame| Read::of(frame)).collect();
            prop_assert!(parts.iter().all(|part| part.gso_type == 0 && part.ecn == 3));
            let payload: Vec<u8> = parts.into_iter().flat_map(|part| part.payload).collect();
            prop_assert_eq!(payload, made.payload);
        } else {
            prop_assert_eq!(frames, vec![bytes]);
        }
    }

    /// What an element clears or a queue marks is seen in the header, and nothing else changes.
    #[test]
    fn bleaching_changes_the_ecn_field_only(made in made()) {
        let behind = vec![dualq_scenario::Element::Bleach];
        let mut engine = engine(&Passage { behind, mtu: 1500, ..Passage::default() }, &Options::default());
        prop_assert!(engine.enter(start(), &mut made.bytes()));
        let frames = all_written(&mut engine, start());
        prop_assert_eq!(frames.len(), 1);
        let cleared = Made { ecn: 0, ..made };
        prop_assert_eq!(&frames[0].1, &cleared.bytes());
    }

    /// Datagrams of one flow may be written together; whoever takes that apart again has those that came, in their order.
    #[test]
    fn datagrams_that_are_written_together_are_those_that_came(
        v6 in any::<bool>(),
        datagrams in proptest::collection::vec((0..2_u16, prop::sample::select(vec![1_usize, 1, 1200, 1200, 8000]), 0..4_u8), 1..150),
    ) {
        let plain = Passage { mtu: 9000, ..Passage::default() };
        let mut engine = engine(&plain, &Options::default());
        engine.join_datagrams();
        let mut came = Vec::new();
        for (number, (flow, length, ecn)) in datagrams.into_iter().enumerate() {
            let made = Made {
                v6,
                ecn: if ecn == 3 { 3 } else { 2 },
                identification: number as u16,
                transport: Transport::Udp { source: 9000 + flow, destination: 9 },
                payload: vec![number as u8; length],
                gso_size: 9000,
            };
            prop_assert!(engine.enter(start(), &mut made.bytes()));
            came.push((9000 + flow, made.ecn, made.payload));
        }
        let mut left = Vec::new();
        for frame in written(&mut engine, start()) {
            let read = Read::of(&frame);
            prop_assert!(frame.len() <= 65_535 + VNET_BYTES);
            let at = if v6 { 40 } else { 20 } + VNET_BYTES;
            let source = u16::from_be_bytes([frame[at], frame[at + 1]]);
            let size = if read.gso_type == 0 { read.payload.len() } else { read.gso_size.into() };
            let parts: Vec<_> = read.payload.chunks(size).map(|part| (source, read.ecn, part.to_vec())).collect();
            prop_assert!(parts.len() <= 64 && (read.ecn != 3 || parts.len() == 1));
            // None could have been written with those before it.
            let alike = |one: &(u16, u8, Vec<u8>), other: &(u16, u8, Vec<u8>)| one.0 == other.0 && one.1 == other.1 && one.1 != 3 && one.2.len() == other.2.len();
            if let Some(last) = left.last() && parts.len() == 1 && alike(last, &parts[0]) {
                let full = (60_000 / (size + at + 8 + 14 - VNET_BYTES)).min(64);
                let before = left.iter().rev().take_while(|one| alike(one, last)).count();
                prop_assert_eq!(before % full, 0);
            }
            left.extend(parts);
        }
        prop_assert_eq!(left, came);
        let figures = engine.snapshot().figures;
        prop_assert_eq!(figures.came, figures.left);
    }

    /// Whatever is read, something sound is written, or the same.
    #[test]
    fn nothing_breaks_it(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        made in made(),
        places in proptest::collection::vec((0..120_usize, any::<u8>()), 0..6),
    ) {
        let mut broken = made.bytes();
        let most = broken.len();
        for (place, byte) in places {
            broken[place % most] = byte;
        }
        for bytes in [bytes, broken] {
            let mut engine = engine(&passage("dualpi2", "20mbit"), &Options { split: true, ..Options::default() });
            engine.enter(start(), &mut bytes.clone());
            let frames = all_written(&mut engine, start());
            for (_, frame) in &frames {
                prop_assert!(frame.len() >= VNET_BYTES);
            }
            let end = engine.snapshot();
            prop_assert_eq!(end.figures.came.packets, end.figures.left.packets + end.figures.lost.total() - end.figures.lost.no_room);
        }
    }
}

#[test]
fn segments_that_leave_within_a_quantum_are_written_together() {
    let made = Made {
        v6: false,
        ecn: 1,
        identification: 7,
        transport: Transport::Tcp(tcp(1)),
        payload: vec![3; 30 * 1448],
        gso_size: 1448,
    };
    // A segment takes 1.21 us.
    let mut engine = engine(&passage("dualpi2 limit 10000", "10gbit"), &Options::default());
    let mut bytes = made.bytes();
    assert!(engine.enter(start(), &mut bytes));
    let first = written(&mut engine, start()).len();
    // Late by a quarter of a millisecond, it still knows what left when.
    let late = start() + Duration::from_micros(250);
    engine.advance(late);
    let frames = written(&mut engine, late);
    let sizes: Vec<usize> = frames.iter().map(|frame| Read::of(frame).payload.len()).collect();
    assert_eq!(first, 1);
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    let lateness = engine.snapshot().figures.lateness;
    assert_eq!(lateness.count(), 30);
    assert!(lateness.max() >= Duration::from_micros(245), "{lateness:?}");
}
