//! What routers of a path say of packets that are too long.

use std::time::Duration;

use dualq_link::Options;
use dualq_scenario::{Element, Passage};
use dualq_units::Rate;
use etherparse::{Icmpv4Slice, Icmpv6Slice, IpNumber, Ipv4Header, Ipv6Header};

use crate::frames::{Made, Transport, tcp};
use crate::{all_written, engine, start};

fn path(icmp: bool) -> Passage {
    Passage {
        behind: vec![Element::Mtu { mtu: 1300, icmp }],
        delay: Duration::from_millis(4),
        mtu: 1500,
        ..Passage::default()
    }
}

fn made(v6: bool, payload: usize) -> Made {
    Made {
        v6,
        ecn: 2,
        identification: 9,
        transport: Transport::Tcp(tcp(1000)),
        payload: vec![1; payload],
        gso_size: 1400,
    }
}

#[test]
fn the_sender_is_told_of_each_segment_that_is_too_long() {
    for v6 in [false, true] {
        let mut engine = engine(&path(true), &Options::default());
        // Two segments that are too long, and the rest, which is not.
        assert!(engine.enter(start(), &mut made(v6, 2900).bytes()));
        assert_eq!(all_written(&mut engine, start()).len(), 1);
        let messages = engine.take_messages();
        assert_eq!((messages.len(), engine.snapshot().figures.lost.too_long), (2, 2));
        let sequence =
            |about: &[u8], at: usize| u32::from_be_bytes(about[at + 4..at + 8].try_into().unwrap());
        for (message, expected) in messages.iter().map(|it| &it.packet).zip([1000, 2400]) {
            if v6 {
                let (header, rest) = Ipv6Header::from_slice(message).unwrap();
                assert_eq!((header.source, header.destination), ([0xfe; 16], [0xfd; 16]));
                assert_eq!(header.next_header, IpNumber::IPV6_ICMP);
                assert_eq!(usize::from(header.payload_length), rest.len());
                assert!(message.len() <= 1280);
                let icmp = Icmpv6Slice::from_slice(rest).unwrap();
                assert!(icmp.is_checksum_valid(header.source, header.destination));
                assert_eq!(
                    (icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()),
                    (2, 0, 1300_u32.to_be_bytes())
                );
                assert_eq!(sequence(icmp.payload(), 40), expected);
            } else {
                let (header, rest) = Ipv4Header::from_slice(message).unwrap();
                assert_eq!((header.source, header.destination), ([10, 0, 0, 2], [10, 0, 0, 1]));
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                assert_eq!(usize::from(header.total_len), message.len());
                assert!(message.len() <= 576);
                let icmp = Icmpv4Slice::from_slice(rest).unwrap();
                assert_eq!(
                    (icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()),
                    (3, 4, [0, 0, 5, 20])
                );
                let sum = icmp.icmp_type().calc_checksum(icmp.payload());
                assert_eq!(icmp.checksum(), sum);
                assert_eq!(sequence(icmp.payload(), 20), expected);
            }
        }
    }
}

#[test]
fn a_black_hole_says_nothing() {
    let mut engine = engine(&path(false), &Options::default());
    assert!(engine.enter(start(), &mut made(false, 2900).bytes()));
    assert_eq!(all_written(&mut engine, start()).len(), 1);
    assert_eq!((engine.take_messages().len(), engine.snapshot().figures.lost.too_long), (0, 2));
}

#[test]
fn no_error_is_answered_by_an_error() {
    let mut teller = engine(&path(true), &Options::default());
    assert!(teller.enter(start(), &mut made(false, 1400).bytes()));
    let mut message = teller.take_messages().remove(0).packet;
    message.resize(1400, 0);
    let mut bytes = vec![0; 10];
    bytes.extend(message);
    let mut engine = engine(&path(true), &Options::default());
    assert!(engine.enter(start(), &mut bytes));
    assert_eq!((engine.take_messages().len(), engine.snapshot().figures.lost.too_long), (0, 1));
}

#[test]
fn a_message_takes_the_whole_way_or_none_of_it_if_senders_are_near() {
    let behind = path(true);
    let rate = Rate::from_mbit(1);
    let bottleneck = Some((rate, "pfifo".parse().unwrap()));
    let before = Passage {
        before: behind.behind.clone(),
        behind: Vec::new(),
        bottleneck: bottleneck.clone(),
        ..behind.clone()
    };
    let way = Passage { bottleneck, ..behind.clone() };
    for (told_at, is_near) in [(&behind, false), (&before, true)] {
        let mut teller = engine(told_at, &Options::default());
        assert!(teller.enter(start(), &mut made(false, 1400).bytes()));
        let message = teller.take_messages().remove(0);
        assert_eq!(message.is_near, is_near);
        let mut engine = engine(&way, &Options::default());
        // Ten packets of 1,054 bytes wait, for 8.4 ms each, but for the first, for which there are tokens.
        for _ in 0..10 {
            assert!(engine.enter(start(), &mut made(false, 1000).bytes()));
        }
        engine.enter_message(start(), &message);
        let left = all_written(&mut engine, start());
        let found = left.iter().position(|(_, frame)| frame[10..] == message.packet).unwrap();
        let took = left[found].0 - start();
        let right = match is_near {
            true => found == 0 && took == Duration::ZERO,
            false => found == 10 && took > Duration::from_millis(4 + 70),
        };
        assert!(right, "{found} {took:?}");
        assert_eq!(engine.snapshot().figures.made, 1);
    }
}
