//! What a packet costs in each discipline, with ten flows and with ten thousand.
//!
//! `cargo bench -p dualq-qdisc`

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dualq_qdisc::{Device, Discipline, Ecn, FlowPacket, Packet, Qdisc, SplitMix64, grammar};
use dualq_units::Instant;

/// As small as a packet in a model is.
struct Frame {
    flow: u32,
    ecn: Ecn,
    departure: Instant,
}

impl Packet for Frame {
    fn length(&self) -> u32 {
        1514
    }
    fn memory(&self) -> u32 {
        2304
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

impl FlowPacket for Frame {
    fn flow(&self) -> u32 {
        self.flow
    }
    fn socket(&self) -> Option<u32> {
        Some(self.flow)
    }
    fn departure_time(&self) -> Option<Instant> {
        Some(self.departure)
    }
}

const PACKETS: u64 = 100_000;
/// A full-sized packet at 1 Gbit/s.
const GAP_NS: u64 = 12_112;

/// The arrivals of a link that is just not overloaded, each flow in its turn, with a queue of so many packets.
fn pass(discipline: &mut impl Qdisc<Frame>, start: &mut u64, flows: u32, waiting: usize) -> u64 {
    let mut left = 0;
    for number in 0..PACKETS {
        *start += GAP_NS;
        let now = Instant::from_nanos(*start);
        while discipline.next_timer() <= now {
            discipline.on_timer(now);
        }
        let flow = (number % u64::from(flows)) as u32;
        let departure = Instant::from_nanos(*start + (number * 7919) % 1_000_000);
        let frame = Frame { flow, ecn: Ecn::from_bits(flow as u8), departure };
        discipline.enqueue(now, frame, &mut |_| ());
        if discipline.len() > waiting {
            left += u64::from(discipline.dequeue(now, &mut |_| ()).is_some());
        }
    }
    left
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(10);
    let device = Device { tx_queue_length: 10_000, ..Device::ethernet(1500) };
    for line in [
        "dualpi2",
        "pfifo",
        "pfifo_fast",
        "codel limit 10000",
        "fq_codel",
        "fq flow_limit 10000",
        "pie limit 10000",
        "tbf rate 1gbit burst 100kb latency 1s",
        "htb rate 1gbit",
        "netem delay 100ms limit 10000",
    ] {
        for flows in [10, 10_000] {
            let spec = grammar::parse(line).expect("it is right").spec;
            let random = SplitMix64::new(1);
            let mut discipline = spec.build(&device, random, Instant::ZERO);
            let mut now = 0;
            group.bench_function(format!("{line}, {flows} flows"), |bencher| {
                bencher.iter(|| pass(&mut discipline, &mut now, flows, 9_000));
            });
        }
    }
    group.finish();
}

/// With a hundred packets that wait; the yardstick is a ring, which only keeps them.
fn short_queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet, 100 waiting");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(10);
    group.bench_function("ring", |bencher| {
        let (mut ring, mut start) = (VecDeque::with_capacity(128), 0);
        bencher.iter(|| {
            let mut left = 0;
            for number in 0..PACKETS {
                start += GAP_NS;
                let flow = (number % 10) as u32;
                let departure = Instant::from_nanos(start);
                ring.push_back(Frame { flow, ecn: Ecn::from_bits(flow as u8), departure });
                if ring.len() > 100 {
                    left += u64::from(black_box(ring.pop_front()).is_some());
                }
            }
            left
        });
    });
    for line in [
        "dualpi2",
        "pfifo",
        "pfifo_fast",
        "prio",
        "codel",
        "pie",
        "fq",
        "tbf rate 1gbit burst 100kb latency 1s",
        "htb rate 1gbit",
        "netem delay 1ms",
        "fq_codel",
        "fq_codel ce_threshold 1ms ce_threshold_selector 1/3",
        "red limit 1mb min 200kb max 600kb avpkt 1500 bandwidth 1gbit",
        "sfq limit 1000",
        "fq_pie",
        "cake besteffort flows",
        "cake",
        "cake bandwidth 2gbit",
        "cake bandwidth 2gbit diffserv8 overhead 38 mpu 84",
    ] {
        let spec = grammar::parse(line).expect("it is right").spec;
        let device = Device::ethernet(1500);
        let mut discipline: Discipline<Frame> =
            spec.build(&device, SplitMix64::new(1), Instant::ZERO);
        let mut now = 0;
        group.bench_function(line, |bencher| {
            bencher.iter(|| pass(&mut discipline, &mut now, 10, 100));
        });
    }
    group.finish();
}

criterion_group!(benches, packets, short_queues);
criterion_main!(benches);
