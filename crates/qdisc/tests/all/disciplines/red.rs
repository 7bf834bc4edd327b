//! `red`: what the average does, and what it means for packets.

use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn};

use super::*;

/// A weight of 2⁻⁶ (`tc -d` says `ewma 6`).
const LINE: &str = "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 bandwidth 10mbit";

fn frame(id: u32, ecn: Ecn) -> Frame {
    Frame { length: 1000, ecn, ..full(id, 0) }
}

fn early(bench: &Bench) -> (u64, u64) {
    match bench.discipline.stats(Instant::ZERO).own {
        OwnStats::Red(stats) => (stats.early, stats.marked),
        other => panic!("{other:?}"),
    }
}

/// The average as the paper has it: a sixty-fourth of the queue at each arrival.
#[test]
fn nothing_is_dropped_before_the_average_is_above_min_and_all_is_above_max() {
    let mut bench = Bench::new(LINE);
    let (mut average, mut backlog) = (0.0_f64, 0.0_f64);
    for id in 0..200 {
        average += if id == 0 { 0.0 } else { (backlog - average) / 64.0 };
        let before = bench.dropped.len();
        bench.put(0, frame(id, Ecn::NotEct));
        let lost = bench.dropped.len() > before;
        assert!(!lost || average > 4_990.0, "{id} {average}");
        assert!(lost || average < 15_010.0, "{id} {average}");
        backlog += if lost { 0.0 } else { 1000.0 };
    }
    assert!(average > 15_000.0 && bench.dropped.len() > 20, "{average}");
    assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Congested));
    assert_eq!(early(&bench).0, bench.dropped.len() as u64);
    assert_eq!(bench.discipline.stats(Instant::ZERO).counters.overlimits, early(&bench).0);
}

#[test]
fn the_average_falls_only_if_the_empty_queue_is_asked() {
    let mut bench = Bench::new(LINE);
    (0..200).for_each(|id| bench.put(0, frame(id, Ecn::NotEct)));
    let waiting = bench.discipline.len();
    assert_eq!(bench.ids(1, waiting).len(), waiting);
    // As behind a shaper, which knows that there is nothing to ask for.
    bench.put(10 * SECOND, frame(0, Ecn::NotEct));
    assert!(bench.discipline.is_empty());
    assert!(bench.take(10 * SECOND).is_none());
    bench.put(20 * SECOND, frame(0, Ecn::NotEct));
    assert_eq!(bench.discipline.len(), 1);
}

#[test]
fn marks_and_what_cannot_be_marked() {
    for (words, ecn, drops, marks) in [
        ("ecn", Ecn::Ect0, false, true),
        ("ecn", Ecn::NotEct, true, false),
        ("ecn nodrop", Ecn::NotEct, false, false),
        ("ecn nodrop", Ecn::Ect1, false, true),
        ("", Ecn::Ect0, true, false),
    ] {
        let mut bench = Bench::new(&format!("{} {words}", LINE.replace("60000", "600000")));
        (0..200).for_each(|id| bench.put(0, frame(id, ecn)));
        assert_eq!(!bench.dropped.is_empty(), drops, "{words}");
        assert_eq!(early(&bench).1 > 0, marks, "{words}");
    }
    // Above max, `harddrop` drops what could be marked.
    let mut bench = Bench::new(&format!("{LINE} ecn harddrop"));
    (0..200).for_each(|id| bench.put(0, frame(id, Ecn::Ect0)));
    let (dropped, marked) = early(&bench);
    assert!(dropped > 20 && marked > 0, "{dropped} {marked}");
}

/// In steady state a packet is hit about once in 1/p, and at most twice that apart (the paper's section 7).
#[test]
fn drops_are_spread_evenly() {
    let line = "red limit 200000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1";
    let mut bench = Bench::new(line);
    let (mut gaps, mut gap) = (Vec::new(), 0);
    for step in 0..200_000_u32 {
        let before = bench.dropped.len();
        bench.put(u64::from(step) * MICROSECOND, frame(step, Ecn::NotEct));
        gap += 1;
        if bench.dropped.len() > before {
            gaps.push(gap);
            gap = 0;
        }
        // A queue of ten packets: half way between the thresholds.
        while bench.discipline.len() > 10 {
            bench.take(u64::from(step) * MICROSECOND);
        }
    }
    let gaps = &gaps[10..];
    let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
    // p = 0.1 × (10000 - 5000) / 10000, uniform from 1 to 1/p.
    assert!((mean - 10.5).abs() < 1.0, "{mean}");
    assert!(*gaps.iter().max().unwrap() <= 22, "{:?}", gaps.iter().max());
}

/// Adaptive RED keeps the average in the middle by another probability.
#[test]
fn the_probability_adapts() {
    let mut bench = Bench::new(&format!("{LINE} adaptive"));
    assert_eq!(bench.discipline.next_timer(), Instant::from_nanos(510 * MILLISECOND));
    bench.discipline.on_timer(Instant::from_nanos(510 * MILLISECOND));
    assert_eq!(bench.discipline.next_timer(), Instant::from_nanos(1_020 * MILLISECOND));
    assert_eq!(Bench::new(LINE).discipline.next_timer(), Instant::NEVER);
}
