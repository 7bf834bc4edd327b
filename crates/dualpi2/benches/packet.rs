//! What a packet costs: enqueue and dequeue together, beside a bare ring buffer that decides nothing.
//!
//! `cargo bench -p dualpi2`. Traffic is a mix of Not-ECT, ECT(0) and ECT(1); about a tenth of the classic rolls succeed,
//! twice that of the L4S ones; time moves on by one frame at 1 Gbit/s per packet.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dualpi2::{Change, Config, DualPi2, Ecn, Gain, Packet, SplitMix64};

const MTU: u32 = 1514;
const FRAME_NS: u64 = 12_112;
const BATCH: usize = 1000;

#[derive(Clone, Copy)]
struct Frame {
    length: u32,
    memory: u32,
    ecn: Ecn,
}

impl Packet for Frame {
    fn length(&self) -> u32 {
        self.length
    }
    fn memory(&self) -> u32 {
        self.memory
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// A fixed, shuffled mix, so that no branch predictor can learn it from a short period.
fn mix() -> Vec<Frame> {
    let mut state = 1_u64;
    (0..1 << 16)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ect1][(state >> 62) as usize];
            Frame { length: MTU, memory: MTU + 768, ecn }
        })
        .collect()
}

/// A queue in which marking goes on, and which the controller does not move while it is measured.
fn marking_queue(mix: &[Frame]) -> (DualPi2<Frame>, u64) {
    let config = Config { target: Duration::from_micros(1), ..Config::for_mtu(MTU) };
    let mut queue = DualPi2::new(config, MTU, SplitMix64::new(1), 0).expect("valid");
    let mut now = 0;
    queue.reserve(20_000);
    while queue.stats(now).probability < u32::MAX / 10 {
        for frame in &mix[..40] {
            queue.enqueue(now, *frame, &mut |_| ());
        }
        now += 16_000_000;
        queue.poll(now);
        while queue.dequeue(now, &mut |_| ()).is_some() {}
    }
    let still = Change {
        alpha: Some(Gain::MIN),
        beta: Some(Gain::MIN),
        tupdate: Some(Duration::from_secs(4)),
        limit: Some(20_000),
        ..Change::default()
    };
    queue.change(&still, &mut |_| ()).expect("valid");
    queue.poll(now + 16_000_000);
    (queue, now + 16_000_000)
}

fn packet_cost(criterion: &mut Criterion) {
    let mix = mix();
    let mask = mix.len() - 1;
    let mut group = criterion.benchmark_group("enqueue+dequeue");
    group.throughput(Throughput::Elements(BATCH as u64));
    for queued in [1, 100, 10_000] {
        group.bench_function(BenchmarkId::new("bare ring", queued), |bencher| {
            let mut ring = VecDeque::with_capacity(20_000);
            let mut cursor = 0;
            let mut step = |packets| {
                for _ in 0..packets {
                    cursor = (cursor + 1) & mask;
                    ring.push_back((mix[cursor], 0_u64));
                    while ring.len() > queued {
                        black_box(&ring.pop_front());
                    }
                }
            };
            step(queued);
            bencher.iter(|| step(BATCH));
        });
        group.bench_function(BenchmarkId::new("dualpi2", queued), |bencher| {
            let (mut queue, mut now) = marking_queue(&mix);
            let (mut cursor, mut lost) = (0, 0_u64);
            let mut step = |packets| {
                for _ in 0..packets {
                    cursor = (cursor + 1) & mask;
                    now += FRAME_NS;
                    queue.poll(now);
                    queue.enqueue(now, mix[cursor], &mut |_| lost += 1);
                    while queue.len() > queued {
                        black_box(&queue.dequeue(now, &mut |_| lost += 1));
                    }
                }
            };
            step(queued + 20 * BATCH);
            bencher.iter(|| step(BATCH));
            let stats = queue.stats(now);
            assert!(queued == 1 || (stats.ecn_marks > 0 && lost > 0), "marking was not active");
        });
    }
    group.finish();
}

criterion_group!(benches, packet_cost);
criterion_main!(benches);
