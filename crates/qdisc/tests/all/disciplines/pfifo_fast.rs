use dualq_qdisc::{Device, SplitMix64, grammar};
use dualq_units::Instant;

use super::{Bench, full};

/// One whose device has a `txqueuelen` of so many packets.
fn bench(tx_queue_length: u32) -> Bench {
    let spec = grammar::parse("pfifo_fast").unwrap().spec;
    let device = Device { tx_queue_length, ..Device::ethernet(1500) };
    let discipline = spec.build(&device, SplitMix64::new(7), Instant::ZERO);
    Bench { discipline, dropped: Vec::new() }
}

/// Puts in packets until one is dropped. Returns how many there was room for.
fn fill(bench: &mut Bench) -> usize {
    let before = bench.dropped.len();
    (0..)
        .take_while(|id| {
            bench.put(0, full(*id, 1));
            bench.dropped.len() == before
        })
        .count()
}

/// Linux: `__ptr_ring_discard_one`. As the world `kernel` has it in `wild-777001-23`, where a queue of 1,000 packets drops what finds 985 to 1,000.
#[test]
fn places_become_free_sixteen_at_a_time() {
    let mut bench = bench(1_000);
    assert_eq!(fill(&mut bench), 1_000);
    let mut room = |leave| {
        bench.ids(0, leave);
        fill(&mut bench)
    };
    assert_eq!([15, 1, 16, 31, 1].map(&mut room), [0, 16, 16, 16, 16]);
    // The last places of the ring are cleared with its end.
    for _ in 64 / 16..1_000 / 16 {
        assert_eq!(room(16), 16);
    }
    assert_eq!([7, 1, 15, 1].map(&mut room), [0, 8, 0, 16]);
}

#[test]
fn places_of_a_short_ring_are_free_at_once() {
    for (size, room) in [(31, 1), (32, 0)] {
        let mut bench = bench(size);
        assert_eq!(fill(&mut bench), size as usize);
        bench.ids(0, 1);
        assert_eq!(fill(&mut bench), room, "{size}");
    }
}
