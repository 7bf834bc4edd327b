//! Figures and metrics of looks that are made up, so that each number follows from what is written here.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use dualq_netlink::{Connection, Handle, Queue, Sent};
use dualq_qdisc::Device;
use dualq_qdisc::grammar;
use dualq_qdisc::kinds::cake::{Stats as CakeStats, TinStats};
use dualq_qdisc::show::{Counters, OwnStats, Stats};
use dualq_watch::{Figures, Look, Metrics, Place, Seen};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn seen(dev: &str, line: &str, counters: Counters, own: OwnStats) -> Seen {
    let spec = grammar::parse(line).unwrap().spec;
    let place = Place {
        dev: dev.to_owned(),
        kind: spec.kind().to_owned(),
        handle: "1:".to_owned(),
        parent: "root".to_owned(),
    };
    let queue = Queue {
        handle: Handle::qdisc(1),
        parent: Handle::ROOT,
        kind: spec.kind().to_owned(),
        config: Some(spec.configure(&Device::ethernet(1500))),
        stats: Some(Stats { counters, own }),
        counters,
        requeues: 0,
        flow_delays: Vec::new(),
    };
    Seen { place, queue }
}

fn counters(sent_bytes: u64, drops: u64, backlog_bytes: u64) -> Counters {
    let (sent_packets, backlog_packets) = (sent_bytes / 1000, backlog_bytes / 1000);
    Counters { sent_bytes, sent_packets, drops, overlimits: 0, backlog_bytes, backlog_packets }
}

fn dualpi2(marks: u64, delay: Duration) -> OwnStats {
    OwnStats::Dualpi2(dualpi2_stats(marks, delay))
}

fn dualpi2_stats(
    ecn_marks: u64,
    low_latency_delay: Duration,
) -> dualq_qdisc::kinds::dualpi2::Stats {
    dualq_qdisc::kinds::dualpi2::Stats {
        ecn_marks,
        low_latency_delay,
        classic_delay: millis(15),
        packets_in_classic: marks_of(ecn_marks),
        probability: u32::MAX / 4,
        ..Default::default()
    }
}

/// Any number will do that grows with the marks.
fn marks_of(marks: u64) -> u64 {
    10 * marks
}

fn cake(drops: u64) -> OwnStats {
    let tin = TinStats { avg_delay_us: 2500, drops, backlog_bytes: 7, ..TinStats::default() };
    OwnStats::Cake(CakeStats {
        memory_used: 0,
        memory_limit: 0,
        capacity_estimate: 0,
        min_network_size: 0,
        max_network_size: 0,
        min_adj_size: 0,
        max_adj_size: 0,
        avg_hdr_offset: 0,
        tins: vec![TinStats::default(), tin, TinStats::default()],
    })
}

fn connection(number: u8, cc: &str, rtt: (u64, u64), sent: Sent) -> Connection {
    Connection {
        cookie: [number; 8],
        local: [192, 0, 2, 1].into(),
        remote: [198, 51, 100, 1].into(),
        congestion_control: Some(cc.to_owned()),
        rtt: Some(millis(rtt.0)),
        min_rtt: Some(millis(rtt.1)),
        sent,
    }
}

fn sent(segments: u32, retransmitted: u32) -> Sent {
    let delivered = segments - retransmitted;
    Sent {
        segments,
        retransmitted,
        delivered,
        delivered_ce: delivered / 10,
        acked_bytes: u64::from(delivered) * 1000,
    }
}

/// Two looks, half a second apart.
fn looks() -> [Look; 2] {
    let at = Instant::now();
    let before = Look {
        at,
        since_1970: Duration::from_secs(1_800_000_000),
        queues: vec![
            seen("eth0", "dualpi2", counters(1_000_000, 5, 0), dualpi2(100, millis(1))),
            seen("eth1", "pfifo", counters(1_000_000, 7, 0), OwnStats::Nothing),
        ],
        connections: Ok(vec![
            connection(1, "cubic", (60, 50), sent(1000, 10)),
            connection(2, "cubic", (500, 20), sent(100, 0)),
            connection(3, "prague", (20, 20), Sent { segments: u32::MAX, ..sent(u32::MAX, 0) }),
        ]),
    };
    let now = Look {
        at: at + millis(500),
        since_1970: before.since_1970 + millis(500),
        queues: vec![
            seen("eth0", "dualpi2", counters(2_250_000, 8, 12_500), dualpi2(150, millis(2))),
            // It was replaced by one of its own kind, and has sent nothing yet.
            seen("eth1", "pfifo", counters(0, 1, 3000), OwnStats::Nothing),
            seen("eth2", "cake diffserv3", counters(5000, 0, 0), cake(3)),
        ],
        connections: Ok(vec![
            connection(1, "cubic", (80, 50), sent(1200, 20)),
            // Nothing of it arrived meanwhile: its round trip is an old one.
            connection(2, "cubic", (500, 20), sent(100, 0)),
            // It has begun to count again.
            connection(3, "prague", (21, 20), Sent { segments: 9, ..sent(u32::MAX, 0) }),
            connection(4, "cubic", (30, 25), sent(50, 0)),
        ]),
    };
    [before, now]
}

#[test]
fn what_happened_between_two_looks() {
    let [before, now] = looks();
    let figures = Figures::between(&before, &now);
    let [dualpi2, pfifo, cake] = &figures.qdiscs[..] else { panic!("{figures:?}") };
    // 1.25 MB in half a second.
    assert_eq!((dualpi2.rate_mbit, dualpi2.packets), (20.0, 1250));
    assert_eq!((dualpi2.drops, dualpi2.marks), (3, Some(50)));
    assert_eq!((dualpi2.backlog_bytes, dualpi2.drain_ms), (12_500, Some(5.0)));
    let queues = |at: usize| (dualpi2.queues[at].name.as_str(), dualpi2.queues[at].delay_ms);
    assert_eq!([queues(0), queues(1)], [("L", Some(2.0)), ("C", Some(15.0))]);
    assert_eq!(dualpi2.queues[1].packets, Some(500));
    assert!((dualpi2.probability.unwrap() - 0.25).abs() < 1e-9);
    assert_eq!((pfifo.rate_mbit, pfifo.drops, pfifo.drain_ms), (0.0, 1, None));
    assert_eq!((cake.queues[1].name.as_str(), cake.queues[1].drops), ("Best Effort", Some(3)));
    assert_eq!((cake.queues[1].delay_ms, cake.queues[1].backlog_bytes), (Some(2.5), Some(7)));

    let [cubic, prague] = &figures.tcp[..] else { panic!("{figures:?}") };
    assert_eq!((cubic.connections, cubic.active), (3, 2));
    // 190 and 50 segments that arrived, of 1000 bytes.
    assert_eq!((cubic.delivered, cubic.sent, cubic.retransmitted), (240, 250, 10));
    assert_eq!((cubic.acked_bytes, cubic.goodput_mbit), (240_000, 3.84));
    assert_eq!(cubic.delivered_ce, 24);
    let (rtt, inflation) = (cubic.rtt.unwrap(), cubic.inflation.unwrap());
    assert_eq!((rtt.p50_ms, rtt.p95_ms, rtt.max_ms), (30.0, 80.0, 80.0));
    assert_eq!((inflation.p50_ms, inflation.max_ms), (5.0, 30.0));
    assert_eq!((prague.sent, prague.active, prague.rtt), (10, 0, None));
}

#[test]
fn connections_that_cannot_be_read_are_said() {
    let [before, mut now] = looks();
    now.connections = Err("no tcp_diag".to_owned());
    let figures = Figures::between(&before, &now);
    assert_eq!((figures.tcp.len(), figures.tcp_not_read.as_deref()), (0, Some("no tcp_diag")));
    // What was counted stays, as counters do.
    let mut metrics = Metrics::default();
    let [before, then] = looks();
    metrics.add(&then, Some(&Figures::between(&before, &then)));
    metrics.add(&now, Some(&figures));
    let text = metrics.text("1");
    assert!(text.contains("dualq_tcp_sent_segments_total{cc=\"cubic\"} 250\n"), "{text}");
    assert!(text.contains("dualq_tcp_connections{cc=\"cubic\"} 0\n"), "{text}");
}

#[test]
fn metrics_of_two_looks() {
    let [before, now] = looks();
    let mut metrics = Metrics::default();
    metrics.add(&before, None);
    metrics.add(&now, Some(&Figures::between(&before, &now)));
    insta::assert_snapshot!("metrics", metrics.text("0.1.0"));
}

#[test]
fn figures_as_json() {
    let [before, now] = looks();
    let figures = Figures::between(&before, &now);
    insta::assert_snapshot!("figures", serde_json::to_string_pretty(&figures).unwrap());
}

#[test]
fn a_discipline_that_is_gone_is_forgotten() {
    let [before, mut now] = looks();
    let mut metrics = Metrics::default();
    metrics.add(&now, Some(&Figures::between(&before, &now)));
    assert!(metrics.text("1").contains("dev=\"eth2\""));
    let before = now.clone();
    now.queues.retain(|seen| seen.place.dev != "eth2");
    metrics.add(&now, Some(&Figures::between(&before, &now)));
    assert!(!metrics.text("1").contains("dev=\"eth2\""));
}
