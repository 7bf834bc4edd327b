use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn, Qdisc, grammar, kinds::netem::Stats};
use dualq_units::Instant;

use super::{Bench, Frame, MICROSECOND, MILLISECOND, SPOILT, full};

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
        delays.push(departure.sojourn_ns);
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
    let mut bench = Bench::new("netem delay 10ms leaf htb rate 50mbit burst 1514b cburst 1514b");
    // A byte takes 160 ns.
    let departures = [0, 0, 1, 2].map(|packets| 10 * MILLISECOND + packets * 1514 * 160);
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), departures);
    assert_eq!(bench.discipline.stats(Instant::ZERO).counters.sent_packets, 4);
    // And the other way around.
    let mut bench = Bench::new("htb rate 50mbit burst 1514b cburst 1514b leaf netem delay 10ms");
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), departures);
}

/// The delays of many packets, in milliseconds, in their order.
fn delays(line: &str) -> Vec<f64> {
    let mut bench = Bench::new(line);
    for id in 0..20_000 {
        bench.put(u64::from(id) * MICROSECOND, full(id, 1));
    }
    let (mut now, mut delays) = (0, vec![0.0; 20_000]);
    while let Some((at, departure)) = bench.next(now) {
        now = at;
        delays[departure.packet.id as usize] = departure.sojourn().as_secs_f64() * 1e3;
    }
    delays
}

fn moments(of: &[f64]) -> (f64, f64, f64) {
    let n = of.len() as f64;
    let mean = of.iter().sum::<f64>() / n;
    let about = |power| of.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    let deviation = about(2).sqrt();
    (mean, deviation, about(3) / deviation.powi(3))
}

/// The jitter is a distribution's deviation; Pareto's tail is on one side. The figures are those of the tables (tc's: a mean of -3, -274
/// and -207 in units of 1/8192, and a deviation of 8192, 6713 and 6831).
#[test]
fn distributions_have_their_mean_deviation_and_skewness() {
    for (name, mean, deviation, skewed) in [
        ("normal", 50.0, 5.0, false),
        ("pareto", 49.833, 4.1, true),
        ("paretonormal", 49.874, 4.17, true),
    ] {
        let delays = delays(&format!("netem delay 50ms 5ms distribution {name} limit 30000"));
        let (m, d, skewness) = moments(&delays);
        assert!((m - mean).abs() < 0.15, "{name}: mean {m}");
        assert!((d - deviation).abs() < 0.15, "{name}: deviation {d}");
        assert_eq!(skewness > 1.0, skewed, "{name}: skewness {skewness}");
    }
}

#[test]
fn some_packets_are_sent_twice() {
    let mut bench = Bench::new("netem duplicate 10% limit 20000");
    for id in 0..10_000 {
        bench.put(0, full(id, 1));
    }
    let left = bench.ids(0, 20_000);
    let twice = left.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(left.len(), 10_000 + twice);
    assert_eq!(stats(&bench).duplicated, twice as u64);
    assert!((900..1100).contains(&twice), "{twice}");
}

/// A bit anywhere is wrong; six bytes are an address that nobody looks at.
#[test]
fn some_packets_are_spoilt() {
    for (length, right) in [(66, 0.88..0.94), (1514, 0.99..1.0)] {
        let mut bench = Bench::new("netem corrupt 20% limit 20000");
        for id in 0..10_000 {
            bench.put(0, Frame { length, ..full(id, 1) });
        }
        let departures = std::iter::from_fn(|| bench.take(0));
        let spoilt = departures.filter(|it| it.packet.flow == SPOILT).count() as f64;
        let own = stats(&bench);
        assert!((1_850..2_150).contains(&own.corrupted), "{}", own.corrupted);
        let share = spoilt / own.corrupted as f64;
        assert!(right.contains(&share), "{length}: {share}");
    }
}

/// The first packet of an aggregate is spoilt, and each of the others comes anew.
#[test]
fn what_is_left_of_an_aggregate_has_dice_of_its_own() {
    let mut bench = Bench::new("netem corrupt 20% limit 40000");
    for id in 0..10_000 {
        bench.put(0, Frame { length: 4 * 1514, ..full(id, 1) });
    }
    let departures = std::iter::from_fn(|| bench.take(0)).count();
    let own = stats(&bench);
    // Of 2,000 aggregates three packets each are left, of which a fifth is spoilt.
    assert_eq!((departures - 10_000) % 3, 0);
    assert!((1_850..2_150).contains(&((departures - 10_000) / 3)), "{departures}");
    assert!((3_000..3_400).contains(&own.corrupted), "{}", own.corrupted);
}

/// Each fifth packet may pass by the others, and with certainty does.
#[test]
fn reordered_packets_have_no_delay() {
    let mut bench = Bench::new("netem delay 10ms reorder 100% gap 5");
    for id in 0..15 {
        bench.put(MILLISECOND, full(id, 1));
    }
    assert_eq!(bench.ids(MILLISECOND, 15), [14, 9, 4]);
    assert_eq!(stats(&bench).reordered, 3);
    assert_eq!(bench.ids(11 * MILLISECOND, 15), [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]);
}

/// 1514 bytes and 20 are 32 cells of 48, each with 5 more: 1696 bytes.
#[test]
fn cells_take_their_time() {
    let mut bench = Bench::new("netem rate 13568kbit 20 48 5");
    for id in 0..3 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [1, 2, 3].map(|at| at * MILLISECOND));
    let mut shorter = Bench::new("netem rate 11952kbit -20");
    shorter.put(0, full(0, 1));
    assert_eq!(shorter.departures(0), [MILLISECOND]);
}

/// A slot lets pass what came before it, and no more than fits.
#[test]
fn packets_leave_in_slots() {
    let mut bench = Bench::new("netem slot 4ms packets 2");
    for (id, at) in [1, 1, 1, 2, 2].into_iter().enumerate() {
        bench.put(at * MILLISECOND, full(id as u32, 1));
    }
    // The first slot began with the discipline, before there were packets: they ask for another one.
    let mut left = Vec::new();
    let mut now = 2 * MILLISECOND;
    while let Some((at, departure)) = bench.next(now) {
        now = at;
        left.push((at / MILLISECOND, departure.packet.id));
    }
    assert_eq!(left, [(6, 0), (6, 1), (10, 2), (10, 3), (14, 4)]);
}

/// A rate of less than a byte a second is none, and what each packet has more then says nothing.
#[test]
fn a_rate_that_is_none_has_no_overhead() {
    let parsed = grammar::parse("netem rate 1 7").unwrap();
    assert_eq!(parsed.spec.to_string(), "netem");
    assert_eq!(grammar::parse("netem").unwrap().spec, parsed.spec);
}
