use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{DropReason, Ecn, Qdisc, kinds::pie::Stats};
use dualq_units::Instant;

use super::{Bench, Frame, MICROSECOND, MILLISECOND, SECOND, full};

fn stats(bench: &Bench) -> Stats {
    match bench.discipline.stats(Instant::ZERO).own {
        OwnStats::Pie(own) => own,
        other => panic!("not pie: {other:?}"),
    }
}

/// A packet leaves each millisecond until `end`, and one arrives every `gap_us`. The longest delay of each second.
fn run(bench: &mut Bench, end: u64, gap_us: u64, ecn: Ecn) -> Vec<u64> {
    let (mut arrival, mut longest) = (0, vec![0; (end / 1000 + 1) as usize]);
    for millisecond in 0..end {
        let now = millisecond * MILLISECOND;
        while arrival <= now {
            bench.put(now, Frame { ecn, ..full(0, 1) });
            arrival += gap_us * MICROSECOND;
        }
        while bench.discipline.next_timer().as_nanos() <= now {
            bench.discipline.on_timer(Instant::from_nanos(now));
        }
        if let Some(departure) = bench.take(now) {
            let second = &mut longest[(now / SECOND) as usize];
            *second = (*second).max(departure.sojourn().as_millis() as u64);
        }
    }
    longest
}

#[test]
fn the_delay_settles_near_the_target() {
    let mut bench = Bench::new("pie");
    // A quarter more than leaves: a fifth must go. The probability is above that, as it only begins to count some time
    // after each drop.
    let longest = run(&mut bench, 60_000, 800, Ecn::NotEct);
    assert!(longest[50..60].iter().all(|delay| (5..40).contains(delay)), "{longest:?}");
    let probability = stats(&bench).probability();
    assert!((0.25..0.4).contains(&probability), "{probability}");
    let share = bench.dropped.len() as f64 / 75_000.0;
    assert!((0.19..0.21).contains(&share), "{share}");
    assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Congested));
    assert_eq!(stats(&bench).dropped, bench.dropped.len() as u64);
}

#[test]
fn a_burst_passes_and_updates_begin_after_half_a_second() {
    let mut bench = Bench::new("pie");
    // Half a second or 15 ms in whole ticks of 10 ms, and the one that has begun.
    assert_eq!(bench.discipline.next_timer(), Instant::from_nanos(510 * MILLISECOND));
    run(&mut bench, 499, 500, Ecn::NotEct);
    assert!(bench.dropped.is_empty(), "nothing is dropped before the first update");
    bench.discipline.on_timer(Instant::from_nanos(510 * MILLISECOND));
    assert_eq!(bench.discipline.next_timer(), Instant::from_nanos(540 * MILLISECOND));
}

#[test]
fn ecn_marks_up_to_ten_percent() {
    let mut bench = Bench::new("pie ecn");
    // 5 % too much: marking, which this sender ignores, does not help until the probability is above 10 %.
    run(&mut bench, 20_000, 950, Ecn::Ect0);
    let own = stats(&bench);
    assert!(own.ecn_mark > 100 && own.dropped > 0, "{own:?}");
    // Who cannot be marked is dropped.
    let mut bench = Bench::new("pie ecn");
    run(&mut bench, 20_000, 950, Ecn::NotEct);
    assert_eq!(stats(&bench).ecn_mark, 0);
    assert!(stats(&bench).dropped > 100);
}

#[test]
fn the_limit_holds() {
    let mut bench = Bench::new("pie limit 3");
    for id in 0..5 {
        bench.put(0, full(id, 1));
    }
    let own = stats(&bench);
    assert_eq!((own.overlimit, own.dropped, own.pkts_in, own.maxq), (2, 2, 3, 3));
    assert_eq!(bench.dropped[0].reason, DropReason::Overlimit);
}
