use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{Ecn, Qdisc, kinds::fq::Stats};
use dualq_units::{Instant, Rate};

use super::{Bench, Frame, MICROSECOND, MILLISECOND, SECOND, full};

fn stats(bench: &Bench) -> Stats {
    match bench.discipline.stats(Instant::ZERO).own {
        OwnStats::Fq(own) => own,
        other => panic!("not fq: {other:?}"),
    }
}

/// So many packets pass by the flows; what comes while they wait takes turns.
const FAST: u32 = 8;
const FAST_IDS: u32 = 10_000;

fn occupy(bench: &mut Bench, now: u64) {
    for id in 0..FAST {
        bench.put(now, full(FAST_IDS + id, 77));
    }
}

fn release(bench: &mut Bench, now: u64) {
    for id in 0..FAST {
        assert_eq!(bench.take(now).unwrap().packet.id, FAST_IDS + id);
    }
}

/// Linux: `fq_fastpath_check`.
#[test]
fn eight_packets_pass_by_the_flows() {
    let mut bench = Bench::new("fq quantum 1514 initial_quantum 1514");
    // What is held back is in nobody's way.
    let departure = Some(Instant::from_nanos(SECOND));
    bench.put(0, Frame { departure, ..full(90, 9) });
    assert_eq!(bench.take(0), None);
    for id in 0..8 {
        bench.put(0, full(id, 1));
    }
    bench.put(0, full(8, 2));
    assert_eq!(stats(&bench).flows, 2, "the one that is held back, and the ninth's");
    assert_eq!(stats(&bench).band_packets, [0, 2, 0], "the limit is for the flows");
    // One leaves, but the ninth waits with the flows: nobody passes by any more, and it is served after the eight.
    assert_eq!(bench.ids(0, 1), [0]);
    bench.put(0, full(10, 1));
    bench.put(0, full(11, 1));
    assert_eq!(bench.ids(0, 10), [1, 2, 3, 4, 5, 6, 7, 8, 10, 11]);
    // Again there is nothing but what is held back, until it is due.
    bench.put(1, full(12, 1));
    assert_eq!(stats(&bench).band_packets, [0, 1, 0]);
    bench.put(SECOND, full(13, 1));
    assert_eq!(stats(&bench).band_packets, [0, 2, 0]);
    assert_eq!(bench.ids(SECOND, 3)[0], 12);
    // A rate for each flow holds for all packets.
    let mut bench = Bench::new("fq maxrate 500kbit");
    bench.put(0, full(1, 1));
    assert_eq!(stats(&bench).band_packets, [0, 1, 0]);
}

#[test]
fn a_flow_is_paced_by_departure_times() {
    let mut bench = Bench::new("fq");
    for (id, at) in [(1, 5), (2, 3), (3, 9)] {
        let departure = Some(Instant::from_nanos(at * MILLISECOND));
        bench.put(0, Frame { departure, ..full(id, 1) });
    }
    assert_eq!(bench.take(0), None);
    // In the order of their times, each as late as a timer may be.
    let slack = 10 * MICROSECOND;
    let (at, first) = bench.next(0).unwrap();
    assert_eq!((at, first.packet.id), (3 * MILLISECOND + slack, 2));
    assert_eq!(bench.next(at).unwrap().0, 5 * MILLISECOND + slack);
    // A link that asks in between gets it on time.
    assert_eq!(bench.take(9 * MILLISECOND - 1), None);
    assert_eq!(bench.take(9 * MILLISECOND).unwrap().packet.id, 3);
    assert_eq!(stats(&bench).throttled, 3);
}

#[test]
fn a_rate_spaces_quanta_and_slow_rates_packets() {
    // 10 Mbit/s: a quantum of 3028 bytes lasts 2.4224 ms. The first ten packets are the new flow's credit.
    let mut bench = Bench::new("fq timer_slack 0");
    let rate = Some(Rate::from_mbit(10));
    occupy(&mut bench, 0);
    for id in 0..16 {
        bench.put(0, Frame { rate, ..full(id, 1) });
    }
    release(&mut bench, 0);
    let pause = 2_422_400;
    let mut expected = vec![0; 10];
    expected.extend([1, 1, 2, 2, 3, 3].map(|quanta| quanta * pause));
    assert_eq!(bench.departures(0), expected);

    // 500 kbit/s is below the threshold: each packet by itself, 24.224 ms.
    let mut bench = Bench::new("fq timer_slack 0 maxrate 500kbit");
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [0, 1, 2, 3].map(|number| number * 24_224 * MICROSECOND));

    // Without pacing they go at once.
    let mut bench = Bench::new("fq nopacing maxrate 500kbit");
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [0; 4]);
}

#[test]
fn flows_take_turns_by_bytes() {
    let mut bench = Bench::new("fq quantum 1514 initial_quantum 1514");
    occupy(&mut bench, 0);
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    for id in 10..18 {
        bench.put(0, Frame { length: 757, ..full(id, 2) });
    }
    release(&mut bench, 0);
    // A full packet of one for two halves of the other.
    assert_eq!(bench.ids(0, 12), [0, 10, 11, 1, 12, 13, 2, 14, 15, 3, 16, 17]);
    // One that comes back goes before those that had their turn.
    assert_eq!(bench.take(0), None);
    occupy(&mut bench, 1);
    for id in 0..4 {
        bench.put(1, full(id, 1));
    }
    release(&mut bench, 1);
    assert_eq!(bench.ids(1, 2), [0, 1]);
    bench.put(1, full(20, 2));
    assert_eq!(bench.ids(1, 2), [20, 2]);
}

/// `fq_enqueue` lists a flow before it knows its band, and a new one's is the first: in the kernel of the world `kernel` a SYN waits for
/// 197 kB of others.
#[test]
fn what_nobody_knew_waits_until_the_other_bands_have_used_their_credit() {
    let mut bench = Bench::new("fq weights 65536 65536 65536");
    occupy(&mut bench, 0);
    for id in 0..100 {
        bench.put(0, full(id, 1));
    }
    release(&mut bench, 0);
    // That held for the first flow too, but then nothing else was there.
    assert_eq!(bench.ids(0, 11), (0..=10).collect::<Vec<_>>());
    bench.put(0, full(1000, 2));
    let served = bench.ids(0, 60);
    // One of 65,536 bytes was from its own band.
    let before = served.iter().position(|id| *id == 1000);
    assert_eq!(before, Some(65_536_usize.div_ceil(1514) - 1));
    // Now it is known.
    bench.put(0, full(1001, 2));
    assert!(bench.ids(0, 3).contains(&1001));
}

#[test]
fn bands_share_by_weight() {
    let mut bench = Bench::new("fq flow_limit 1000 weights 131072 65536 65536");
    occupy(&mut bench, 0);
    for id in 0..400 {
        bench.put(0, Frame { priority: 6, ..full(id, 1) });
        bench.put(0, Frame { priority: 0, ..full(1000 + id, 2) });
    }
    release(&mut bench, 0);
    // What a flow begins with is served from the first band, whatever its own.
    let first: Vec<u32> = (0..10).chain(1000..1010).collect();
    assert_eq!(bench.ids(0, 20), first);
    let served = bench.ids(0, 390);
    let interactive = served.iter().filter(|id| **id < 1000).count();
    assert!((255..=265).contains(&interactive), "{interactive} of 390, not two thirds");
}

#[test]
fn limits_and_horizon() {
    let mut bench = Bench::new("fq limit 5 flow_limit 3 horizon 1s");
    occupy(&mut bench, 0);
    for id in 0..4 {
        bench.put(0, full(id, 1));
    }
    assert_eq!((bench.dropped.len(), stats(&bench).flows_plimit), (1, 1));
    for id in 4..7 {
        bench.put(0, full(id, 2));
    }
    assert_eq!((bench.dropped.len(), stats(&bench).band_drops), (2, [0, 1, 0]));
    // The limit counts for each band.
    bench.put(0, Frame { priority: 2, ..full(8, 3) });
    assert_eq!(bench.dropped.len(), 2);

    let late = Frame { departure: Some(Instant::from_nanos(3 * SECOND)), ..full(1, 1) };
    let mut bench = Bench::new("fq horizon 1s");
    bench.put(0, late);
    assert_eq!((bench.dropped.len(), stats(&bench).horizon_drops), (1, 1));
    let mut bench = Bench::new("fq horizon 1s horizon_cap timer_slack 0");
    bench.put(0, late);
    assert_eq!((bench.departures(0), stats(&bench).horizon_caps), (vec![SECOND], 1));
}

#[test]
fn what_leaves_late_is_marked() {
    let mut bench = Bench::new("fq ce_threshold 4ms");
    occupy(&mut bench, 0);
    for (id, ecn) in [(1, Ecn::Ect0), (2, Ecn::NotEct)] {
        bench.put(0, Frame { ecn, ..full(id, 1) });
    }
    release(&mut bench, 0);
    let departure = bench.take(5 * MILLISECOND).unwrap();
    assert_eq!((departure.packet.ecn, departure.marked_by_step), (Ecn::Ce, true));
    assert_eq!(bench.take(5 * MILLISECOND).unwrap().packet.ecn, Ecn::NotEct);
    assert_eq!(stats(&bench).ce_mark, 1);
}

#[test]
fn idle_flows_get_a_quantum_back_and_are_forgotten_in_the_end() {
    let mut bench = Bench::new("fq");
    occupy(&mut bench, 0);
    for flow in 0..100 {
        bench.put(0, full(flow, flow));
    }
    release(&mut bench, 0);
    assert_eq!(bench.departures(0).len(), 100);
    assert_eq!((stats(&bench).flows, stats(&bench).inactive), (100, 100));
    // Each keeps its place until it is its turn again, and somebody asks: those before the last two are passed now.
    occupy(&mut bench, SECOND);
    bench.put(SECOND, full(98, 98));
    release(&mut bench, SECOND);
    bench.take(SECOND);
    // Each new flow has up to eight old ones forgotten.
    for flow in 100..113 {
        occupy(&mut bench, 5 * SECOND);
        bench.put(5 * SECOND, full(flow, flow));
        release(&mut bench, 5 * SECOND);
        bench.take(5 * SECOND);
    }
    assert_eq!((stats(&bench).gc, stats(&bench).flows), (98, 15));
}
