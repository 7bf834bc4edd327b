//! Recorded arrivals, sent again in real time through the kernel's own dualpi2, beside the engine: the same marks and drops within chance.
//! It is how a module that was built for an older kernel is proven (`bench/module/machine.sh`).

use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dualq_netlink::{Netlink, Place};
use dualq_qdisc::Ecn;
use dualq_qdisc::show::OwnStats;
use dualq_replay::{EventLog, Replay, Settings, trace};
use nix::sys::socket::{setsockopt, sockopt};

use crate::{has, in_namespace, is_virtual_time, skip, spec};

/// Recorded arrivals of single packets, with what they were recorded with, and a discipline that is set a little differently.
const TRACES: [(&str, &str, &str, &str); 4] = [
    ("defaults", "20mbit", "dualpi2", "dualpi2 coupling_factor 3"),
    ("mask_any_ect", "20mbit", "dualpi2 any_ect", "dualpi2 any_ect coupling_factor 3"),
    ("step_packets_5", "20mbit", "dualpi2 step_thresh 5p", "dualpi2 step_thresh 3p"),
    ("overload_drop", "10mbit", "dualpi2", "dualpi2 target 5ms"),
];

/// So many times through the kernel, which takes as long as the recording.
const RUNS: u64 = 8;

/// So many times through the engine, which takes no time: its spread is known well.
const SEEDS: u64 = 24;

/// So many standard errors are more than chance explains, with 24 figures: one time in some hundred that would be wrong.
const ERRORS: f64 = 4.0;

/// What a thread that sleeps may be late by.
const SLACK: Duration = Duration::from_micros(150);

/// Where the packets go: nobody is there, and the device says that they have left.
const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// An Ethernet header, one of IPv4 and one of UDP.
const HEADERS: usize = 14 + 20 + 8;

struct Packet {
    at: Duration,
    payload: usize,
    ecn: Ecn,
}

fn arrivals(name: &str) -> trace::Arrivals<'static> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/dualpi2-vectors");
    let file = File::open(vectors.join(format!("{name}.trace.csv.xz"))).unwrap();
    trace::read(file, 1500).unwrap()
}

/// What is compared, by name.
type Figures = Vec<(&'static str, f64)>;

fn figures(stats: &dualpi2::Stats) -> Figures {
    let figures = [
        ("pkts-in-c", stats.packets_in_classic),
        ("pkts-in-l", stats.packets_in_low_latency),
        ("ecn-mark", stats.ecn_marks),
        ("step-mark", stats.step_marks),
        ("drops", stats.drops),
        ("packets", stats.sent_packets),
    ];
    figures.map(|(name, count)| (name, count as f64)).to_vec()
}

/// The engine's, below a link that takes no time.
fn simulated(name: &str, line: &str, seed: NonZero<u64>) -> Figures {
    let settings = Settings { rate: "1tbit".parse().unwrap(), mtu: 1500, seed };
    let mut replay = Replay::new(&[spec(line)], &settings, None::<EventLog<Vec<u8>>>);
    let mut arrivals = arrivals(name);
    while let Some(arrival) = arrivals.next_arrival().unwrap() {
        replay.arrive(&arrival);
    }
    let outcome = replay.finish().unwrap().0.remove(0);
    let leaf = outcome.stats.own.leaf().map(|leaf| &leaf.own);
    let Some(OwnStats::Dualpi2(stats)) = leaf else { panic!("{line}") };
    figures(stats)
}

/// The kernel's.
fn real(netlink: &mut Netlink, packets: &[Packet], line: &str) -> Figures {
    let link = netlink.link("d0").unwrap();
    let sockets = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(|ecn| {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.connect((PEER, 9)).unwrap();
        setsockopt(&socket, sockopt::Ipv4Tos, &i32::from(ecn.bits())).unwrap();
        // The whole queue is charged to it.
        setsockopt(&socket, sockopt::SndBufForce, &(64 << 20)).unwrap();
        (ecn, socket)
    });
    let place = Place::root(link.index);
    netlink.add_qdisc(&place, &spec(line)).unwrap();
    let begun = Instant::now();
    for packet in packets {
        // Sleeping is late by some fifty microseconds.
        if let Some(long) = packet.at.checked_sub(begun.elapsed() + SLACK) {
            thread::sleep(long);
        }
        while begun.elapsed() < packet.at {
            std::hint::spin_loop();
        }
        let (_, socket) = sockets.iter().find(|(ecn, _)| *ecn == packet.ecn).unwrap();
        socket.send(&[0; 1500][..packet.payload]).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    let stats = loop {
        let queues = netlink.qdiscs(link.index).unwrap();
        let queue = queues.into_iter().find(|queue| queue.kind == "dualpi2").unwrap();
        let OwnStats::Dualpi2(stats) = queue.stats.unwrap().own else { panic!("{line}") };
        if stats.backlog_packets == 0 {
            break stats;
        }
        assert!(Instant::now() < deadline, "the queue does not become empty: {stats:?}");
        thread::sleep(Duration::from_millis(10));
    };
    netlink.delete_qdisc(&place).unwrap();
    figures(&stats)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The figures that are further apart than chance explains, as the engine's seeds differ.
fn apart(kernel: &[Figures], engine: &[Figures]) -> Vec<String> {
    let column = |runs: &[Figures], at: usize| -> Vec<f64> {
        runs.iter().map(|figures| figures[at].1).collect()
    };
    let mut apart = Vec::new();
    for (at, (name, _)) in kernel[0].iter().enumerate() {
        let (kernel, engine) = (column(kernel, at), column(engine, at));
        let (theirs, ours) = (mean(&kernel), mean(&engine));
        let squares = engine.iter().map(|value| (value - ours).powi(2)).sum::<f64>();
        let variance = squares / (engine.len() - 1) as f64;
        let tolerance =
            ERRORS * (variance / kernel.len() as f64 + variance / engine.len() as f64).sqrt();
        let line = format!("{name:<10} kernel {theirs:>8.1} ours {ours:>8.1} +- {tolerance:.1}");
        println!("{line}");
        if (theirs - ours).abs() > tolerance {
            apart.push(line);
        }
    }
    apart
}

#[test]
fn recorded_arrivals_meet_what_the_engine_makes_of_them() {
    in_namespace(|mut netlink| {
        if let Err(error) = netlink.add_dummy("d0") {
            return skip(&error.to_string());
        }
        let link = netlink.link("d0").unwrap();
        if !has(&mut netlink, &link, "dualpi2") || !has(&mut netlink, &link, "htb") {
            return;
        }
        if is_virtual_time() {
            return tests_skipped::skipped("here time stands still while a program waits");
        }
        // IPv6 would send packets of its own.
        let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        netlink.add_address(link.index, Ipv4Addr::new(10, 9, 0, 1), 24).unwrap();
        netlink.add_neighbour(link.index, PEER, [2, 0, 0, 0, 0, 2]).unwrap();
        netlink.set_up(link.index).unwrap();
        for (name, rate, line, other) in TRACES {
            println!("{name}:");
            let mut recorded = arrivals(name);
            let mut packets = Vec::new();
            while let Some(arrival) = recorded.next_arrival().unwrap() {
                packets.push(Packet {
                    at: Duration::from_nanos(arrival.at.as_nanos()),
                    payload: arrival.length as usize - HEADERS,
                    ecn: arrival.ecn,
                });
            }
            // A burst of htb's own is served at once, and is a part of the comparison.
            let below = |line: &str| format!("htb rate {rate} leaf {line}");
            let kernel: Vec<Figures> =
                (0..RUNS).map(|_| real(&mut netlink, &packets, &below(line))).collect();
            let engine = |line: &str| -> Vec<Figures> {
                let seeds = (1..=SEEDS).filter_map(NonZero::new);
                seeds.map(|seed| simulated(name, &below(line), seed)).collect()
            };
            let differing = apart(&kernel, &engine(line));
            assert!(differing.is_empty(), "{name}: {differing:#?}");
            // It is worth something only if it tells disciplines apart.
            println!("{name}, as if it were {other}:");
            assert!(!apart(&kernel, &engine(other)).is_empty(), "{other} is not told apart");
        }
    });
}
