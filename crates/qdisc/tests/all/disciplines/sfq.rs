//! `sfq`: turns, and who loses.

use dualq_qdisc::{ChangeError, DropReason};

use super::*;

fn lost(bench: &Bench) -> Vec<u32> {
    assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Overlimit));
    bench.dropped.iter().map(|lost| lost.packet.id).collect()
}

#[test]
fn flows_take_turns_and_new_ones_wait_behind() {
    let mut bench = Bench::new("sfq");
    (0..4).for_each(|id| bench.put(0, full(id, 1)));
    (10..12).for_each(|id| bench.put(0, full(id, 2)));
    assert_eq!(bench.ids(1, 2), [0, 10]);
    // Another comes to the end of the round, whose last turn is the one that has just been used up.
    bench.put(1, full(20, 3));
    assert_eq!(bench.ids(1, 9), [1, 20, 11, 2, 3]);
}

#[test]
fn turns_are_bytes() {
    let mut bench = Bench::new("sfq quantum 3028");
    (0..5).for_each(|id| bench.put(0, full(id, 1)));
    (10..15).for_each(|id| bench.put(0, Frame { length: 757, ..full(id, 2) }));
    assert_eq!(bench.ids(1, 10), [0, 1, 10, 11, 12, 13, 2, 3, 14, 4]);
}

#[test]
fn the_longest_flow_makes_room() {
    let mut bench = Bench::new("sfq limit 4");
    (0..3).for_each(|id| bench.put(0, full(id, 1)));
    (10..13).for_each(|id| bench.put(0, full(id, 2)));
    // First flow 1 has most; then flow 2, whose own packet it is.
    assert_eq!(lost(&bench), [2, 12]);
    let mut bench = Bench::new("sfq limit 4 headdrop");
    (0..3).for_each(|id| bench.put(0, full(id, 1)));
    (10..13).for_each(|id| bench.put(0, full(id, 2)));
    assert_eq!(lost(&bench), [0, 10]);
    assert_eq!(bench.ids(1, 9), [1, 11, 2, 12]);
}

#[test]
fn a_flow_has_so_many_packets() {
    let mut bench = Bench::new("sfq depth 2");
    (0..4).for_each(|id| bench.put(0, full(id, 1)));
    assert_eq!((lost(&bench), bench.ids(1, 9)), (vec![2, 3], vec![0, 1]));
    let mut bench = Bench::new("sfq depth 2 headdrop");
    (0..4).for_each(|id| bench.put(0, full(id, 1)));
    assert_eq!((lost(&bench), bench.ids(1, 9)), (vec![0, 1], vec![2, 3]));
    let mut bench = Bench::new("sfq depth 1 headdrop");
    (0..4).for_each(|id| bench.put(0, full(id, 1)));
    assert_eq!((lost(&bench), bench.ids(1, 9)), (vec![0, 1, 2], vec![3]));
}

#[test]
fn no_room_for_another_flow() {
    // A limit of packets is one of flows too.
    for line in ["sfq flows 2 divisor 1024", "sfq limit 2"] {
        let mut bench = Bench::new(line);
        (1..4).for_each(|flow| bench.put(0, full(flow, flow)));
        assert_eq!((lost(&bench), bench.ids(1, 9)), (vec![3], vec![1, 2]), "{line}");
    }
}

/// A changed hash sorts anew, and loses nothing for which there is room.
#[test]
fn the_hash_changes() {
    let mut bench = Bench::new("sfq perturb 1 limit 100 divisor 2");
    (0..20).for_each(|id| bench.put(0, full(id, id)));
    // As in the world `kernel`: 100 ticks later, and then by eights of them (`calc_wheel_index`).
    let due = SECOND + 40 * MILLISECOND;
    let mut orders = Vec::new();
    for round in 1..=5 {
        assert_eq!(bench.discipline.next_timer().as_nanos(), round * due);
        bench.discipline.on_timer(Instant::from_nanos(round * due));
        let ids = bench.ids(round * due, 30);
        assert_eq!(ids.len(), 20);
        ids.iter().for_each(|id| bench.put(round * due, full(*id, *id)));
        orders.push(ids);
    }
    orders.dedup();
    assert!(orders.len() > 1 && bench.dropped.is_empty(), "{orders:?}");
    let same = grammar::parse("sfq limit 5").unwrap().spec;
    let refused = bench.discipline.change(&same, &mut |_| ());
    assert_eq!(refused, Err(ChangeError::Fixed { kind: "sfq" }));
}

/// Whoever has little waits for a turn of each other flow, however much these have.
#[test]
fn a_sparse_flow_waits_a_round() {
    let mut bench = Bench::new("sfq");
    let mut id = 0;
    for round in 0..500_u32 {
        for flow in [1, 2] {
            while bench.discipline.len() < 20 * flow as usize {
                bench.put(0, full(id, flow));
                id += 1;
            }
        }
        bench.put(0, Frame { length: 100, ..full(1_000_000 + round, 3) });
        let left = bench.ids(0, 3);
        assert!(left.contains(&(1_000_000 + round)), "{round}: {left:?}");
    }
}

/// Three flows share a queue as seldom as chance has it, whatever they are called.
#[test]
fn flows_are_spread() {
    let mut shared = 0;
    for salt in 0..2_000_u32 {
        let mut bench = Bench::new("sfq");
        for id in 0..6 {
            bench.put(0, full(id, (id % 3) ^ salt.wrapping_mul(0x9e37_79b9)));
        }
        shared += u32::from(bench.ids(0, 6) != [0, 1, 2, 3, 4, 5]);
    }
    // 3 in 1024.
    assert!(shared < 20, "{shared}");
}
