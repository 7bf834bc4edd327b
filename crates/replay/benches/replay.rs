//! What a packet of a CSV trace costs from file to outcome, beside reading it alone.
//!
//! `cargo bench -p dualq-replay`

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dualq_qdisc::grammar;
use dualq_replay::{EventLog, Replay, Settings, trace};
use dualq_units::Rate;

const PACKETS: u64 = 300_000;

/// 75 Mbit/s offered to a link of 70 Mbit/s: there is a queue, and the AQM works.
fn csv() -> String {
    let mut text = format!("{}\n", trace::HEADER);
    let (mut now, mut state) = (0, 1_u64);
    for _ in 0..PACKETS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now += (state >> 40) % 240_000;
        let length = [1514, 1514, 1514, 66, 600][(state >> 33) as usize % 5];
        let ecn = [0, 1, 2, 1][(state >> 62) as usize];
        text += &format!("{now},{length},{},{ecn},-1,0\n", length + 768);
    }
    text
}

fn replay(criterion: &mut Criterion) {
    let text = csv();
    let settings = Settings { rate: Rate::from_mbit(70), mtu: 1500, seed: Settings::DEFAULT_SEED };
    let mut group = criterion.benchmark_group("csv trace");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(20);
    group.bench_function("read only", |bencher| {
        bencher.iter(|| {
            let mut arrivals = trace::read(text.as_bytes(), 1500).expect("a trace");
            let mut bytes = 0;
            while let Some(arrival) = arrivals.next_arrival().expect("it is right") {
                bytes += u64::from(arrival.length);
            }
            bytes
        });
    });
    for qdisc in ["pfifo", "dualpi2"] {
        let specs = [grammar::parse(qdisc).expect("it is right").spec];
        group.bench_function(format!("through {qdisc}"), |bencher| {
            bencher.iter(|| {
                let mut replay = Replay::new(&specs, &settings, None::<EventLog<Vec<u8>>>);
                let mut arrivals = trace::read(text.as_bytes(), 1500).expect("a trace");
                while let Some(arrival) = arrivals.next_arrival().expect("it is right") {
                    replay.arrive(&arrival);
                }
                replay.finish().expect("nothing is written").0[0].total.packets_out
            });
        });
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
