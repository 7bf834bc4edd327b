use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn, Qdisc, kinds::codel::Stats};
use dualq_units::Instant;

use super::{Bench, Frame, MILLISECOND, full};

fn stats(bench: &Bench, now: u64) -> Stats {
    match bench.discipline.stats(Instant::from_nanos(now)).own {
        OwnStats::Codel(own) => own,
        other => panic!("not codel: {other:?}"),
    }
}

/// Keeps `backlog` packets waiting, of which one leaves each millisecond until `end`. When were packets dropped?
fn overload(bench: &mut Bench, from: u64, end: u64, backlog: usize, ecn: Ecn) -> Vec<u64> {
    let mut times = Vec::new();
    for millisecond in from..end {
        let now = millisecond * MILLISECOND;
        while bench.discipline.len() < backlog {
            bench.put(now, Frame { ecn, ..full(0, 1) });
        }
        let before = bench.dropped.len();
        let departure = bench.take(now).unwrap();
        let events = bench.dropped.len() - before;
        times.extend(std::iter::repeat_n(millisecond, events));
        if departure.marked_by_probability {
            times.push(millisecond);
        }
    }
    times
}

/// Where drops are by Linux's law, on a link that looks once a millisecond: interval/√count after one another, the root by
/// one step of Newton's method a drop, which begins too steeply: 100, 50, 56 ms rather than the RFC's 100, 71, 58 ms.
fn schedule(first: u64, drops: usize) -> Vec<u64> {
    let (mut at, mut root, mut times) = (first as f64, 1.0, vec![first]);
    for count in 1..drops as u32 {
        if count > 1 {
            root *= (3.0 - f64::from(count) * root * root) / 2.0;
        }
        at += 99.999 * root;
        times.push(at.ceil() as u64);
    }
    times
}

#[test]
fn drops_come_faster_by_the_square_root() {
    let mut bench = Bench::new("codel");
    let times = overload(&mut bench, 0, 1000, 50, Ecn::NotEct);
    // The delay passes 5 ms at once; an interval later the first packet goes.
    assert!((105..=110).contains(&times[0]), "{}", times[0]);
    let expected = schedule(times[0], times.len());
    for (number, (seen, exact)) in times.iter().zip(&expected).enumerate() {
        assert!(seen.abs_diff(*exact) <= 1, "drop {number}: {seen} ms, not {exact} ms");
    }
    let last = times.len() - 1;
    let (pause, root) = (times[last] - times[last - 1], (last as f64).sqrt());
    assert!((pause as f64 - 99.999 / root).abs() < 2.0, "{pause} ms before drop {last}");
    assert!(times.len() > 15 && bench.dropped.iter().all(|d| d.reason == DropReason::Congested));
    let stats = stats(&bench, 999 * MILLISECOND);
    assert_eq!((stats.count as usize, stats.dropping), (times.len(), true));
    assert!(stats.drop_next_us.abs() < 100_000 && stats.ldelay.as_millis() >= 5);
}

#[test]
fn dropping_goes_on_where_it_ended_if_that_was_not_long_ago() {
    let pause = |milliseconds: u64| {
        let mut bench = Bench::new("codel");
        let first = overload(&mut bench, 0, 1000, 50, Ecn::NotEct).len() as u32;
        while bench.take(1000 * MILLISECOND).is_some() {}
        let from = 1000 + milliseconds;
        overload(&mut bench, from, from + 115, 50, Ecn::NotEct);
        (first, stats(&bench, from * MILLISECOND).lastcount)
    };
    let (first, resumed) = pause(200);
    assert!(resumed + 3 >= first, "{resumed} after {first}");
    assert_eq!(pause(2000).1, 1);
}

#[test]
fn a_short_queue_and_a_short_delay_are_left_alone() {
    // One frame waits, however long: there is nothing that could be shorter.
    let mut bench = Bench::new("codel");
    for millisecond in 0..1000 {
        bench.put(millisecond * MILLISECOND, full(0, 1));
        if millisecond >= 20 && millisecond % 20 == 0 {
            while bench.discipline.len() > 2 {
                bench.take(millisecond * MILLISECOND);
            }
        }
    }
    assert!(bench.dropped.is_empty());
    // 4 ms are below the target.
    let mut bench = Bench::new("codel");
    assert!(overload(&mut bench, 0, 1000, 5, Ecn::NotEct).is_empty());
    // The limit holds all the same.
    let mut bench = Bench::new("codel limit 3");
    for id in 0..5 {
        bench.put(0, full(id, 1));
    }
    assert_eq!((bench.dropped.len(), stats(&bench, 0).drop_overlimit), (2, 2));
    assert_eq!(bench.dropped[0].reason, DropReason::Overlimit);
}

#[test]
fn ecn_marks_instead_of_dropping() {
    let mut bench = Bench::new("codel ecn");
    let marks = overload(&mut bench, 0, 1000, 50, Ecn::Ect0);
    assert!(bench.dropped.is_empty());
    let mut other = Bench::new("codel");
    let drops = overload(&mut other, 0, 1000, 50, Ecn::Ect0);
    assert_eq!((marks[0], marks.len() as u64), (drops[0], stats(&bench, 0).ecn_mark));
    // Not-ECT packets are dropped even so.
    let mut bench = Bench::new("codel ecn");
    overload(&mut bench, 0, 1000, 50, Ecn::NotEct);
    assert!(bench.dropped.len() > 15);
}

#[test]
fn ce_threshold_marks_by_delay_alone() {
    let mut bench = Bench::new("codel ce_threshold 1ms");
    for id in 0..3 {
        bench.put(0, Frame { ecn: Ecn::Ect1, ..full(id, 1) });
    }
    assert_eq!(bench.take(MILLISECOND / 2).unwrap().packet.ecn, Ecn::Ect1);
    let late = bench.take(2 * MILLISECOND).unwrap();
    assert_eq!((late.packet.ecn, late.marked_by_step), (Ecn::Ce, true));
    assert_eq!(stats(&bench, 0).ce_mark, 1);
}
