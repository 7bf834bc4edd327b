use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn, Qdisc, kinds::netem::Stats};
use dualq_units::Instant;

use super::{Bench, Frame, MICROSECOND, MILLISECOND, full};

fn stats(bench: &Bench) -> Stats {
    match bench.discipline.stats(Instant::ZERO).own {
        OwnStats::Netem(own) => own,
        other => panic!("not netem: {other:?}"),
    }
}

#[test]
fn every_packet_is_delayed_alike() {
    let mut bench = Bench::new("netem delay 20ms");
    for id in 0..3 {
        bench.put(u64::from(id) * MILLISECOND, full(id, 1));
    }
    assert_eq!(bench.take(20 * MILLISECOND - 1), None);
    assert_eq!(bench.departures(0), [20, 21, 22].map(|at| at * MILLISECOND));
    assert_eq!((stats(&bench).delayed, stats(&bench).reordered), (3, 0));
}

#[test]
fn jitter_is_uniform_and_reorders() {
    let mut bench = Bench::new("netem delay 20ms 5ms limit 20000");
    for id in 0..10_000 {
        bench.put(u64::from(id) * MICROSECOND, full(id, 1));
    }
    let (mut now, mut delays, mut overtaken, mut last) = (0, Vec::new(), 0, 0);
    while let Some((at, departure)) = bench.next(now) {
        now = at;
        delays.push(departure.sojourn.as_nanos() as u64);
        overtaken += u64::from(departure.packet.id < last);
        last = last.max(departure.packet.id);
    }
    delays.sort_unstable();
    assert_eq!(delays.len(), 10_000);
    assert!(delays[0] >= 15 * MILLISECOND && delays[9_999] < 25 * MILLISECOND);
    for (tenth, delay) in delays.chunks(1000).enumerate() {
        let expected = 15.5 + tenth as f64;
        let mean = delay.iter().sum::<u64>() as f64 / 1e9;
        assert!((mean - expected).abs() < 0.15, "tenth {tenth}: {mean} ms");
    }
    assert!(overtaken > 5000 && stats(&bench).reordered > 5000);
}

#[test]
fn packets_are_lost_at_random() {
    let lost = |line: &str| {
        let mut bench = Bench::new(line);
        for id in 0..100_000 {
            bench.put(0, Frame { ecn: Ecn::Ect0, ..full(id, 1) });
            bench.take(0);
        }
        assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Random));
        let own = stats(&bench);
        assert_eq!(own.dropped, bench.dropped.len() as u64);
        (own.dropped, own.ecn_marked)
    };
    let (dropped, _) = lost("netem loss 1%");
    assert!((900..1100).contains(&dropped), "{dropped}");
    let (dropped, marked) = lost("netem loss 1% ecn");
    assert!(dropped == 0 && (900..1100).contains(&marked), "{dropped} {marked}");
    assert_eq!(lost("netem loss 0%"), (0, 0));
    assert_eq!(lost("netem loss 100%").0, 100_000);
    // A seed makes the dice its own.
    assert_eq!(lost("netem loss 5% seed 3"), lost("netem loss 5% seed 3"));
    assert_ne!(lost("netem loss 5% seed 3"), lost("netem loss 5% seed 4"));
}

#[test]
fn a_rate_spaces_packets_and_comes_on_top_of_a_delay() {
    // 1514 bytes take a millisecond.
    let mut bench = Bench::new("netem rate 12112kbit");
    for id in 0..3 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [1, 2, 3].map(|at| at * MILLISECOND));
    let mut bench = Bench::new("netem rate 12112kbit delay 10ms");
    for id in 0..3 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [11, 12, 13].map(|at| at * MILLISECOND));
}

#[test]
fn the_limit_counts_what_is_under_way() {
    let mut bench = Bench::new("netem delay 10ms limit 2");
    for id in 0..3 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.dropped[0].reason, DropReason::Overlimit);
    assert_eq!(bench.discipline.len(), 2);
}

#[test]
fn what_arrives_goes_through_the_leaf() {
    let mut bench = Bench::new("netem delay 10ms leaf htb rate 12112kbit burst 1514b cburst 1514b");
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [10, 10, 11, 12].map(|at| at * MILLISECOND));
    assert_eq!(bench.discipline.stats(Instant::ZERO).counters.sent_packets, 4);
    // And the other way around.
    let mut bench = Bench::new("htb rate 12112kbit burst 1514b cburst 1514b leaf netem delay 10ms");
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [10, 10, 11, 12].map(|at| at * MILLISECOND));
}
