//! `fq_pie`: turns, and a controller for each flow.

use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn};

use super::*;

#[test]
fn flows_take_turns() {
    let mut bench = Bench::new("fq_pie");
    (0..4).for_each(|id| bench.put(0, full(id, 1)));
    (10..12).for_each(|id| bench.put(0, full(id, 2)));
    assert_eq!(bench.ids(1, 9), [0, 10, 1, 11, 2, 3]);
}

#[test]
fn a_full_queue_drops_what_arrives() {
    let mut bench = Bench::new("fq_pie limit 3");
    (0..5).for_each(|id| bench.put(0, full(id, id)));
    let lost: Vec<_> = bench.dropped.iter().map(|lost| (lost.packet.id, lost.reason)).collect();
    assert_eq!(lost, [(3, DropReason::Overlimit), (4, DropReason::Overlimit)]);
}

/// Who keeps a long queue loses packets; who does not, loses none though it shares the link.
#[test]
fn each_flow_has_a_controller_of_its_own() {
    for ecn in [false, true] {
        let mut bench = Bench::new(if ecn { "fq_pie ecn" } else { "fq_pie" });
        let mut id = 0;
        for step in 0..8_000_u64 {
            let now = step * MILLISECOND;
            while bench.discipline.next_timer().as_nanos() <= now {
                let due = bench.discipline.next_timer();
                bench.discipline.on_timer(due);
            }
            // Half as much again as leaves, whatever it is told, as long as its queue is short enough.
            for _ in 0..1 + step % 2 {
                if bench.discipline.len() < 60 {
                    bench.put(now, Frame { ecn: Ecn::Ect0, ..full(id, 1) });
                    id += 1;
                }
            }
            if step % 20 == 0 {
                bench.put(now, Frame { length: 100, ..full(1, 2) });
            }
            bench.take(now);
        }
        let OwnStats::FqPie(own) = bench.discipline.stats(Instant::ZERO).own else { panic!() };
        assert!(bench.dropped.iter().all(|lost| lost.packet.flow == 1));
        assert!(own.dropped > 100, "{own:?}");
        // Above a probability of 10 % marks end.
        assert_eq!(own.ecn_mark > 20, ecn, "{own:?}");
    }
}

/// Of 5000 flows, 2048 are updated at a time, in neighbouring ticks.
#[test]
fn updates_come_in_parts() {
    let mut bench = Bench::new("fq_pie flows 5000 tupdate 30ms");
    let timers: Vec<u64> = (0..7)
        .map(|_| {
            let due = bench.discipline.next_timer();
            bench.discipline.on_timer(due);
            due.as_nanos() / MILLISECOND
        })
        .collect();
    assert_eq!(timers, [510, 520, 530, 570, 580, 590, 630]);
}
