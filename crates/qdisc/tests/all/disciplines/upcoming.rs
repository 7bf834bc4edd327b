//! Which packet a discipline says will leave soon.

use super::*;

/// What leaves, and what is announced then, where flows of different lengths take turns and end one after the other.
fn announcements(line: &str) -> (Vec<Frame>, Vec<Option<Frame>>) {
    let mut bench = Bench::new(line);
    let mut packets = 0;
    for round in 0..8 {
        for flow in (0..100).filter(|flow| round < 2 + flow % 7) {
            bench.put(0, full(packets, flow));
            packets += 1;
        }
    }
    let step = |_| {
        let left = bench.take(MICROSECOND)?.packet;
        Some((left, bench.discipline.upcoming().copied()))
    };
    (0..packets).filter_map(step).unzip()
}

#[test]
fn queues_announce_what_leaves_third() {
    for line in ["pfifo", "pie", "dualpi2"] {
        let (left, announced) = announcements(line);
        assert_eq!(left.len(), 495, "{line}");
        let third = (3..498).map(|index| left.get(index).copied());
        assert!(third.eq(announced), "{line}");
    }
}

#[test]
fn those_that_know_flows_announce_the_next_flow() {
    for line in ["fq", "fq_codel flows 65536"] {
        let (left, announced) = announcements(line);
        let next = |index: usize| left[index..].iter().find(|later| later.flow != left[index].flow);
        let right =
            (0..left.len()).filter(|index| announced[*index].as_ref() == next(*index)).count();
        // They are wrong about flows that have run empty.
        assert!(right * 4 >= left.len() * 3, "{line}: {right} of {}", left.len());
    }
}
