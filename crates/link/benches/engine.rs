//! What a packet costs a direction without I/O, beside the yardstick of copying it: small packets, which come one by one, and aggregates,
//! which leave in pieces. `cargo bench -p dualq-link --bench engine`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dualq_link::{Engine, Options};
use dualq_scenario::Passage;
use dualq_units::Instant;

/// The header of virtio, of IPv4 and of UDP, and `payload` bytes.
fn datagram(payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 10];
    let length = (28 + payload) as u16;
    let mut header = vec![0x45, 1];
    header.extend(length.to_be_bytes());
    header.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    header.extend([0, 9, 0, 9]);
    header.extend((8 + payload as u16).to_be_bytes());
    header.extend([0, 0]);
    frame.extend(header);
    frame.resize(frame.len() + payload, 0);
    frame
}

/// An aggregate of so many segments of TCP over IPv4, whose ECN field is ECT(1).
fn aggregate(segments: usize) -> Vec<u8> {
    let mut frame = vec![1, 1];
    for number in [52_u16, 1448, 20, 16] {
        frame.extend(number.to_ne_bytes());
    }
    let length = (52 + 1448 * segments) as u16;
    frame.extend([0x45, 1]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let mut tcp = [0; 32];
    (tcp[12], tcp[13]) = (0x80, 0x10);
    frame.extend(tcp);
    frame.resize(10 + usize::from(length), 7);
    frame
}

fn passage(qdisc: &str) -> Passage {
    let bottleneck = Some(("10gbit".parse().expect("a rate"), qdisc.parse().expect("a qdisc")));
    Passage { bottleneck, mtu: 1500, ..Passage::default() }
}

const BATCH: usize = 256;

fn engine(criterion: &mut Criterion) {
    for (name, frame, packets) in
        [("small packets", datagram(18), 1), ("aggregates of 44", aggregate(44), 44)]
    {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements((BATCH * packets) as u64));
        group.bench_function("copied, the yardstick", |bench| {
            let mut to = vec![0; 1 << 17];
            bench.iter(|| {
                for _ in 0..BATCH {
                    to[..frame.len()].copy_from_slice(black_box(&frame));
                    black_box(&mut to);
                }
            });
        });
        for qdisc in ["dualpi2", "fq_codel", "pfifo"] {
            let mut now = Instant::ZERO + Duration::from_secs(1);
            let mut engine = Engine::new(&passage(qdisc), &Options::default(), now, None);
            let mut bytes = engine.buffer();
            // So long the link takes for a frame, so that what comes leaves.
            let wire = (frame.len() + 14 + 66 * packets) as u64;
            let time = Duration::from_nanos(wire * 8 / 10 + 1);
            group.bench_function(qdisc, |bench| {
                bench.iter(|| {
                    for _ in 0..BATCH {
                        now = now + time;
                        bytes.extend_from_slice(&frame);
                        engine.enter(now, &mut bytes);
                        engine.write(
                            || now,
                            |pieces| {
                                black_box(pieces);
                                true
                            },
                        );
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, engine);
criterion_main!(benches);
