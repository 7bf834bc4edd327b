use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn, Qdisc, kinds::fq_codel::Stats};
use dualq_units::Instant;

use super::{Bench, Frame, MILLISECOND, full};

fn stats(bench: &Bench) -> Stats {
    match bench.discipline.stats(Instant::ZERO).own {
        OwnStats::FqCodel(own) => own,
        other => panic!("not fq_codel: {other:?}"),
    }
}

#[test]
fn new_flows_go_first_and_old_ones_take_turns() {
    let mut bench = Bench::new("fq_codel");
    for id in 0..4 {
        bench.put(0, full(10 + id, 1));
        bench.put(0, full(20 + id, 2));
    }
    assert_eq!((stats(&bench).new_flows_len, stats(&bench).old_flows_len), (2, 0));
    assert_eq!(bench.ids(0, 4), [10, 20, 11, 21]);
    assert_eq!((stats(&bench).new_flows_len, stats(&bench).old_flows_len), (0, 2));
    bench.put(0, Frame { length: 100, ..full(30, 3) });
    assert_eq!(bench.ids(0, 2), [30, 12]);
    // The sparse flow makes a pass among the old ones before it comes to rest: its next packet is not new yet.
    bench.put(0, Frame { length: 100, ..full(31, 3) });
    assert_eq!(stats(&bench).new_flows_len, 0);
    assert_eq!(bench.ids(0, 9), [31, 22, 13, 23]);
    assert_eq!(stats(&bench).new_flow_count, 3);
    bench.put(0, full(32, 3));
    assert_eq!((stats(&bench).new_flow_count, stats(&bench).new_flows_len), (4, 1));
}

#[test]
fn bytes_are_shared_not_packets() {
    let mut bench = Bench::new("fq_codel quantum 300");
    for id in 0..100 {
        bench.put(0, full(id, 1));
        for small in 0..10 {
            bench.put(0, Frame { length: 150, ..full(1000 + 10 * id + small, 2) });
        }
    }
    let (mut large, mut small) = (0, 0);
    for _ in 0..500 {
        let packet = bench.take(0).unwrap().packet;
        *(if packet.flow == 1 { &mut large } else { &mut small }) += packet.length;
    }
    assert!(large.abs_diff(small) < 3028, "{large} bytes and {small}");
}

#[test]
fn only_the_flow_that_builds_a_queue_is_dropped_from() {
    let mut bench = Bench::new("fq_codel");
    for millisecond in 0..2000 {
        let now = millisecond * MILLISECOND;
        while bench.discipline.len() < 100 {
            bench.put(now, full(0, 1));
        }
        // One small packet in ten: its flow waits for at most one other's turn.
        if millisecond % 10 == 0 {
            bench.put(now, Frame { length: 100, ..full(1, 2) });
            let (at, first) = (now, bench.take(now).unwrap());
            if first.packet.flow == 1 {
                assert_eq!(bench.take(at).unwrap().packet.flow, 2, "at {millisecond} ms");
            }
        } else {
            bench.take(now);
        }
    }
    assert!(bench.dropped.len() > 20);
    assert!(bench.dropped.iter().all(|lost| lost.packet.flow == 1));
    assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Congested));
}

#[test]
fn what_exceeds_a_limit_goes_from_the_head_of_the_longest_queue_in_batches() {
    let mut bench = Bench::new("fq_codel limit 100 drop_batch 8");
    bench.put(0, full(1000, 2));
    for id in 0..100 {
        bench.put(0, full(id, 1));
    }
    let dropped: Vec<u32> = bench.dropped.iter().map(|lost| lost.packet.id).collect();
    assert_eq!(dropped, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((stats(&bench).drop_overlimit, bench.discipline.len()), (8, 93));
    // No more than half of the queue.
    let mut bench = Bench::new("fq_codel limit 10");
    for id in 0..11 {
        bench.put(0, full(id, 1));
    }
    assert_eq!((bench.dropped.len(), bench.discipline.len()), (6, 5));
    // Memory counts as well: each of these takes 2282 bytes.
    let mut bench = Bench::new("fq_codel memory_limit 22820b");
    for id in 0..11 {
        bench.put(0, full(id, 1));
    }
    assert_eq!((bench.dropped.len() as u64, stats(&bench).drop_overmemory), (6, 6));
    assert_eq!(stats(&bench).memory_used, 5 * 2282);
}

#[test]
fn ecn_is_the_default() {
    let marked = |line: &str| {
        let mut bench = Bench::new(line);
        let mut marks = 0;
        for millisecond in 0..500 {
            while bench.discipline.len() < 50 {
                let packet = Frame { ecn: Ecn::Ect0, ..full(0, 1) };
                bench.put(millisecond * MILLISECOND, packet);
            }
            let departure = bench.take(millisecond * MILLISECOND).unwrap();
            marks += usize::from(departure.packet.ecn == Ecn::Ce);
        }
        (marks, bench.dropped.len())
    };
    let (marks, drops) = marked("fq_codel");
    assert!(marks >= 5 && drops == 0, "{marks} marks, {drops} drops");
    assert_eq!(marked("fq_codel noecn"), (0, marks));
}

/// The threshold is for those that the selector names: here ECT(1), which stays itself until it is marked.
#[test]
fn a_selector_names_whom_the_threshold_is_for() {
    for (selector, marked) in [("", [true, true]), (" ce_threshold_selector 1/3", [true, false])] {
        let mut bench = Bench::new(&format!("fq_codel ce_threshold 1ms{selector}"));
        for (id, ecn) in [(0, Ecn::Ect1), (1, Ecn::Ect0)] {
            bench.put(0, Frame { ecn, ..full(id, id) });
        }
        let found = [0, 1].map(|_| bench.take(2 * MILLISECOND).unwrap().marked_by_step);
        assert_eq!(found, marked, "{selector}");
    }
}
