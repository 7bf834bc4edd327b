//! Any bytes as frames of a TUN device, through a link that takes aggregates apart.

#![no_main]

use std::time::Duration;

use dualq_link::{Engine, Options};
use dualq_scenario::{Element, Passage};
use dualq_units::Instant;
use libfuzzer_sys::fuzz_target;

/// The length of a frame in front of it, in two bytes.
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        bytes = rest;
        Some(frame.to_vec())
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let qdisc = ["dualpi2", "cake", "fq_codel", "pfifo"][usize::from(choice & 3)];
    let bottleneck = Some(("1gbit".parse().expect("a rate"), qdisc.parse().expect("a qdisc")));
    let behind = vec![Element::Mtu { mtu: 1400, icmp: true }];
    let passage = Passage { bottleneck, behind, mtu: 1500, ..Passage::default() };
    let options = Options { split: choice & 4 > 0, ..Options::default() };
    let start = Instant::ZERO + Duration::from_secs(1);
    let [mut engine, mut back] = [0, 1].map(|_| Engine::new(&passage, &options, start, None));
    for mut frame in frames(bytes) {
        engine.enter(start, &mut frame);
    }
    let (mut now, mut packets) = (start, 0);
    loop {
        engine.advance(now);
        engine.write(
            || now,
            |pieces| {
                let frame = pieces.concat();
                packets += 1;
                // What is written can be read again, and is not more than it was.
                assert!(frame.len() > 10, "{frame:?}");
                assert!(back.enter(start, &mut frame.clone()));
                true
            },
        );
        for message in engine.take_messages() {
            back.enter_message(start, &message);
        }
        if engine.next_due() == Instant::NEVER {
            break;
        }
        now = engine.next_due().max(now);
    }
    let end = engine.snapshot();
    assert!(end.figures.left.packets >= packets);
    assert_eq!(end.inside, 0);
    let lost = end.figures.lost.total() - end.figures.lost.no_room;
    assert_eq!(end.figures.came.packets, end.figures.left.packets + lost);
});
