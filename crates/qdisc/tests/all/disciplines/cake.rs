//! `cake`: its shaper, whose turn it is, what it drops, and which acknowledgements.

use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{Config, DropReason, Ecn};

use super::*;

fn stats(bench: &Bench) -> dualq_qdisc::kinds::cake::Stats {
    match bench.discipline.stats(Instant::ZERO).own {
        OwnStats::Cake(stats) => stats,
        other => panic!("{other:?}"),
    }
}

/// 1514 bytes at 8 Mbit/s are 1514 us; what the link adds counts.
#[test]
fn packets_leave_at_the_rate() {
    for (words, micros) in [
        ("", 1514),
        ("overhead 0", 1500),
        ("overhead 38 mpu 84", 1538),
        ("atm overhead 40", 33 * 53),
        ("ptm overhead 30", 1554),
    ] {
        let mut bench = Bench::new(&format!("cake bandwidth 8mbit besteffort {words}"));
        (0..5).for_each(|id| bench.put(0, full(id, 1)));
        let departures = bench.departures(0);
        let expected: Vec<u64> = (0..5).map(|number| number * micros * MICROSECOND).collect();
        for (departure, expected) in departures.iter().zip(&expected) {
            assert!(departure.abs_diff(*expected) < 10, "{words}: {departures:?}");
        }
        assert_eq!(departures.len(), 5);
    }
}

/// What was idle has saved nothing up.
#[test]
fn there_is_no_burst_after_idle_time() {
    let mut bench = Bench::new("cake bandwidth 8mbit besteffort");
    (0..3).for_each(|id| bench.put(SECOND, full(id, 1)));
    let departures = bench.departures(SECOND);
    assert_eq!(departures[0], SECOND);
    assert!(departures[1].abs_diff(SECOND + 1514 * MICROSECOND) < 10, "{departures:?}");
}

fn served(line: &str, frames: impl Iterator<Item = Frame>, count: usize) -> Vec<Frame> {
    let mut bench = Bench::new(line);
    frames.for_each(|frame| bench.put(0, frame));
    (0..count).map(|_| bench.take(0).unwrap().packet).collect()
}

/// Host 1 has three flows, host 2 one: in mode `flows` a quarter each, else half for each host.
#[test]
fn hosts_share_before_their_flows_do() {
    let frames = || {
        let flows = [10, 11, 12, 20];
        flows.into_iter().flat_map(|flow| (0..400).map(move |id| full(id, flow)))
    };
    for (mode, share) in [
        ("flows", 0.25),
        ("dual-srchost", 0.5),
        // All go to one host, which has as many flows as any.
        ("triple-isolate", 0.25),
        ("dual-dsthost", 0.25),
        ("srchost", 0.5),
        ("dsthost", 0.25),
    ] {
        let line = format!("cake besteffort {mode} memlimit 100mb");
        let served = served(&line, frames(), 400);
        let second = served.iter().filter(|frame| frame.flow == 20).count() as f64 / 400.0;
        if mode == "dsthost" {
            // One queue, first come first served.
            assert!(second == 0.0, "{mode}: {second}");
        } else {
            assert!((second - share).abs() < 0.03, "{mode}: {second}");
        }
    }
}

/// A sparse flow goes ahead of those that take turns.
#[test]
fn sparse_flows_come_first() {
    let mut bench = Bench::new("cake besteffort flows");
    (0..40).for_each(|id| bench.put(0, full(id, 10)));
    bench.ids(0, 5);
    bench.put(0, Frame { length: 100, ..full(99, 20) });
    assert!(bench.ids(0, 2).contains(&99));
}

/// Below its share of the rate, a tin comes first; voice has a quarter, bulk a sixteenth.
#[test]
fn tins_have_their_shares() {
    let (bulk, best_effort, voice) = (8, 0, 46);
    let frames = [bulk, best_effort, voice]
        .into_iter()
        .flat_map(|dscp| (0..400).map(move |id| Frame { priority: dscp, ..full(id, dscp * 10) }));
    let mut bench = Bench::new("cake bandwidth 100mbit diffserv3 memlimit 100mb");
    frames.for_each(|frame| bench.put(0, frame));
    let (mut now, mut counts) = (0, [0_u32; 3]);
    for _ in 0..400 {
        let (at, departure) = bench.next(now).unwrap();
        now = at;
        let place =
            [bulk, best_effort, voice].iter().position(|dscp| *dscp == departure.packet.priority);
        counts[place.unwrap()] += 1;
    }
    assert!(counts[0] < 40 && counts[2].abs_diff(100) < 15, "{counts:?}");
    let names = stats(&bench).tins.iter().map(|tin| tin.threshold_rate).collect::<Vec<_>>();
    assert_eq!(names, [781_250, 12_500_000, 3_125_000]);
}

/// A queue that stays long is told by marks, or drops, and more often from one to the next.
#[test]
fn a_standing_queue_is_signalled() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut bench = Bench::new("cake bandwidth 12112kbit besteffort");
        let mut id = 0;
        let mut signals = Vec::new();
        // A packet leaves each millisecond; as many come, behind twenty that wait.
        for step in 0..3_000_u64 {
            let now = step * MILLISECOND;
            let before = bench.dropped.len();
            while bench.discipline.len() < 20 {
                bench.put(now, Frame { ecn, ..full(id, 1) });
                id += 1;
            }
            let departure = bench.take(now);
            let marked = departure.is_some_and(|departure| departure.marked_by_probability);
            if marked || bench.dropped.len() > before {
                signals.push(step);
            }
        }
        let gaps: Vec<u64> = signals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 20, "{signals:?}");
        // interval / √count: 71 ms, 58, 50, …
        for (gap, count) in gaps.iter().zip(2..12_u32) {
            let expected = 100.0 / f64::from(count).sqrt();
            assert!((*gap as f64 - expected).abs() <= 2.0, "{gap} {expected}: {gaps:?}");
        }
        assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Congested));
        assert_eq!(bench.dropped.is_empty(), ecn == Ecn::Ect0);
    }
}

/// BLUE begins where memory ends, and hits those that do not answer.
#[test]
fn who_does_not_answer_meets_blue() {
    let mut bench = Bench::new("cake bandwidth 12112kbit besteffort memlimit 200kb");
    for step in 0..4_000_u64 {
        let now = step * MILLISECOND;
        (0..4).for_each(|_| bench.put(now, Frame { ecn: Ecn::Ect0, ..full(0, 1) }));
        bench.put(now, Frame { length: 100, ecn: Ecn::Ect0, ..full(1, 2) });
        while bench.take(now).is_some() {}
    }
    let own = stats(&bench);
    assert_eq!(own.tins[0].unresponsive_flows, 1);
    let overlimit = |lost: &&Dropped<Frame>| lost.reason == DropReason::Overlimit;
    let full_queue = bench.dropped.iter().filter(overlimit).count();
    assert!(full_queue > 500 && full_queue < bench.dropped.len(), "{full_queue}");
    assert!(own.memory_used <= own.memory_limit + 2 * (1514 + 768));
}

/// However many gaps are between bursts, it tells a new rate no more than four times a second.
#[test]
fn a_rate_that_was_found_holds() {
    let mut bench = Bench::new("cake bandwidth 10mbit autorate-ingress");
    let mut found = Vec::new();
    for step in (0..4_000).filter(|step| step % 10 > 1) {
        bench.put(step * MILLISECOND, full(step as u32, 1));
        while bench.take(step * MILLISECOND).is_some() {}
        let Config::Cake(config) = bench.discipline.config() else { panic!("not cake") };
        if found.last() != Some(&config.bandwidth) {
            found.push(config.bandwidth);
        }
    }
    assert!((8..=16).contains(&found.len()), "{found:?}");
}

/// Of a flow's acknowledgements that wait, the first of two goes.
#[test]
fn acknowledgements_are_filtered() {
    let ack = |id, flow| Frame { length: ACK_BYTES, ..full(id, flow) };
    for (filter, left) in [
        ("no-ack-filter", &[1, 2, 3, 4][..]),
        ("ack-filter", &[3, 4]),
        ("ack-filter-aggressive", &[4]),
    ] {
        let mut bench = Bench::new(&format!("cake besteffort {filter}"));
        (1..=4).for_each(|id| bench.put(0, ack(id, 1)));
        assert_eq!(bench.ids(0, 9), left, "{filter}");
        assert_eq!(stats(&bench).tins[0].ack_drops, 4 - left.len() as u64);
        assert!(bench.dropped.iter().all(|lost| lost.reason == DropReason::Superseded));
    }
}
