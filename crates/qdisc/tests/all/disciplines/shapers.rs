use dualq_qdisc::show::{self, OwnStats};
use dualq_qdisc::{DropReason, Qdisc};
use dualq_units::Instant;

use super::{Bench, Frame, SECOND, full};

/// Bytes that leave a link without a rate between `from` and `to`, with always enough packets waiting.
fn sent(bench: &mut Bench, from: u64, to: u64, length: u32) -> u64 {
    let (mut now, mut bytes) = (from, 0);
    while now < to {
        while bench.discipline.len() < 10 {
            bench.put(now, Frame { length, ..full(0, 1) });
        }
        let (at, departure) = bench.next(now).unwrap();
        now = at;
        if now < to {
            bytes += u64::from(departure.packet.length);
        }
    }
    bytes
}

#[test]
fn rates_hold_in_the_long_run() {
    for line in [
        "tbf rate 10mbit burst 10kb latency 50ms",
        "tbf rate 10mbit burst 10kb latency 50ms peakrate 20mbit mtu 1514b",
        "htb rate 10mbit",
        "htb rate 10mbit ceil 20mbit burst 15k",
        "htb rate 20mbit ceil 10mbit",
        "htb rate 10mbit leaf tbf rate 20mbit burst 10kb latency 50ms leaf fq_codel",
    ] {
        for length in [64, 700, 1514] {
            let mut bench = Bench::new(line);
            let bytes = sent(&mut bench, 0, 10 * SECOND, length);
            let more = bytes as i64 - 12_500_000;
            // The buckets were full.
            assert!((-3028..20_000).contains(&more), "{line}: {length}: {more} bytes too many");
        }
    }
}

#[test]
fn a_burst_leaves_at_once_and_then_the_rate_holds() {
    let mut bench = Bench::new("tbf rate 50mbit burst 4542b latency 500ms");
    for id in 0..6 {
        bench.put(0, full(id, 1));
    }
    // Three packets fill the bucket; a byte takes 160 ns.
    let packet = 1514 * 160;
    assert_eq!(bench.departures(0), [0, 0, 0, 1, 2, 3].map(|packets| packets * packet));

    // HTB sends while the bucket is not in debt: when one packet emptied it, a second one may still leave.
    let mut bench = Bench::new("htb rate 50mbit burst 1514b cburst 1514b");
    for id in 0..5 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.departures(0), [0, 0, 1, 2, 3].map(|packets| packets * packet));
}

#[test]
fn what_is_longer_than_the_bucket_cannot_leave() {
    let mut bench = Bench::new("tbf rate 10mbit burst 1000b latency 50ms");
    bench.put(0, full(1, 1));
    bench.put(0, Frame { length: 1000, ..full(2, 1) });
    assert_eq!(bench.dropped.len(), 1);
    assert_eq!(bench.dropped[0].reason, DropReason::Overlimit);
    assert_eq!(bench.discipline.stats(Instant::ZERO).counters.drops, 1);
    assert_eq!(bench.ids(0, 2), [2]);
}

#[test]
fn the_limit_of_tbf_is_in_bytes_and_that_of_htb_in_packets() {
    // 12,500 bytes for the latency and 3000 for the bucket.
    let mut bench = Bench::new("tbf rate 10mbit burst 3000b latency 10ms");
    for id in 0..20 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.discipline.len(), 10);
    let mut bench = Bench::new("htb rate 10mbit");
    for id in 0..1100 {
        bench.put(0, full(id, 1));
    }
    assert_eq!(bench.discipline.len(), 1000);
}

#[test]
fn the_leaf_manages_the_queue_and_is_shown() {
    let mut bench = Bench::new("htb rate 10mbit leaf codel");
    sent(&mut bench, 0, SECOND, 1514);
    let stats = bench.discipline.stats(Instant::from_nanos(SECOND));
    assert!(bench.dropped.iter().any(|lost| lost.reason == DropReason::Congested));
    assert_eq!(stats.counters.drops, bench.dropped.len() as u64);
    let OwnStats::Htb(own) = &stats.own else { panic!("not htb") };
    assert_eq!(own.lended, stats.counters.sent_packets);
    assert_eq!(own.leaf.counters.drops, stats.counters.drops);
    let config = bench.discipline.config();
    let text = show::text_with_stats(&config, &stats);
    assert!(text.contains("\nqdisc codel 2: parent 1:1 limit 1000p target 5ms"), "{text}");
    assert!(text.contains("\nclass htb 1:1 root leaf 2: prio 0 rate 10Mbit"), "{text}");
    let json = show::json_with_stats(&config, &stats);
    assert_eq!(json["leaf"]["kind"], "codel");
    assert_eq!(json["leaf"]["drops"], stats.counters.drops);
    assert_eq!(json["class"]["leaf"], "0x2");
    assert_eq!(json["class"]["stats"]["lended"], own.lended);
}

/// Linux: `tbf_dequeue`, which takes a packet out of most leaves to look at it, and `qdisc_peek_dequeued`.
#[test]
fn what_waits_for_tokens_has_waited_for_all_of_that_time() {
    for leaf in [
        "",
        "codel",
        "fq",
        "sfq",
        "fq_codel",
        "pie",
        "fq_pie",
        "cake",
        "dualpi2",
        "red limit 90000 min 9000 max 27000 avpkt 1500",
    ] {
        let leaf = if leaf.is_empty() { String::new() } else { format!(" leaf {leaf}") };
        let mut bench = Bench::new(&format!("tbf rate 10mbit burst 2048 latency 50ms{leaf}"));
        (0..3).for_each(|id| bench.put(0, full(id, 1)));
        let waited = [(); 3].map(|()| {
            let (at, departure) = bench.next(0).unwrap();
            (at, departure.sojourn_ns)
        });
        assert!(
            waited[1].0 > 0 && waited.iter().all(|(at, waited)| at == waited),
            "{leaf}: {waited:?}"
        );
    }
}

/// As in the world `kernel` below tbf: the delay is that of the packet which is looked at, before it has waited for tokens.
#[test]
fn pie_measures_what_a_shaper_looks_at() {
    let mut bench = Bench::new("tbf rate 10mbit burst 2048 latency 50ms leaf pie");
    (0..3).for_each(|id| bench.put(0, full(id, 1)));
    bench.take(0);
    let delay = |bench: &Bench, at: u64| match bench.discipline.stats(Instant::from_nanos(at)).own {
        OwnStats::Tbf(stats) => format!("{:?}", stats.leaf.own),
        other => panic!("{other:?}"),
    };
    let shown = (bench.take(0), delay(&bench, 0)).1;
    let (at, _) = bench.next(0).unwrap();
    assert_eq!(delay(&bench, at), shown, "{at}");
}
