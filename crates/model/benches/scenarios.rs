//! Data packets a second, for each shipped scenario and for one flow through PIE.
//!
//! `cargo bench -p dualq-model`: criterion's `elem/s` are data packets, aggregates counted by segment, on one core.

use std::fs;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dualq_model::simulate;
use dualq_scenario::{Scenario, Sweep};

fn data_packets(scenarios: &[Scenario]) -> u64 {
    let run = |scenario| simulate(scenario, 1).expect("it is right").data_packets;
    scenarios.iter().map(run).sum()
}

fn scenarios_of(sweep: &str) -> Vec<Scenario> {
    let sweep = Sweep::parse(sweep).expect("it is right");
    sweep.variants().into_iter().map(|variant| variant.scenario).collect()
}

fn measure(criterion: &mut Criterion, name: &str, scenarios: &[Scenario]) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).throughput(Throughput::Elements(data_packets(scenarios)));
    group.bench_function("data packets", |bencher| bencher.iter(|| data_packets(scenarios)));
    group.finish();
}

fn shipped(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for name in ["narrow-vps", "ten-flows", "coexistence", "lossy-lan"] {
        let path = folder.join(name).with_extension("toml");
        let sweep = fs::read_to_string(path).expect("it is shipped");
        measure(criterion, name, &scenarios_of(&sweep));
    }
}

/// What ns-3 was measured at: 60 s of one flow at 50 Mbit/s and 48.33 ms.
fn one_flow(criterion: &mut Criterion) {
    for cc in ["bbr", "cubic"] {
        let sweep = format!(
            "duration = '60s'\n[link]\nrate = '50mbit'\nrtt = '48.33ms'\nqdisc = 'pie'\n\
             [sender]\ngso = false\n[[flow]]\ncc = '{cc}'\n"
        );
        measure(criterion, &format!("60 s of one {cc} flow through pie"), &scenarios_of(&sweep));
    }
}

/// What a congestion control costs a packet, beside the one that it follows: Prague beside CUBIC, version 3 of BBR beside version 1. At
/// most 1.3 times as much is asked. Through the queue that marks for Prague, on a link that each of them fills.
fn controls(criterion: &mut Criterion) {
    for cc in ["cubic", "prague", "bbr", "bbr3"] {
        let sweep = format!(
            "duration = '60s'\n[link]\nrate = '50mbit'\nrtt = '20ms'\nqdisc = 'dualpi2'\n\
             [sender]\ngso = false\n[[flow]]\ncc = '{cc}'\n"
        );
        measure(
            criterion,
            &format!("60 s of one {cc} flow through dualpi2"),
            &scenarios_of(&sweep),
        );
    }
}

/// What a packet costs should not depend on how many flows there are: each gets 1 Mbit/s. Groups start together and their
/// flows 50 ms apart, so that all are there within five seconds.
fn many_flows(criterion: &mut Criterion) {
    for qdisc in ["pie limit 10000", "dualpi2", "fq", "fq_codel"] {
        let kind = qdisc.split(' ').next().expect("a kind");
        for (groups, count, rate, seconds) in
            [(1, 10, "10mbit", 600), (10, 100, "1gbit", 15), (100, 100, "10gbit", 10)]
        {
            let flows = format!("[[flow]]\ncc = 'cubic'\ncount = {count}\n").repeat(groups);
            let sweep = format!(
                "duration = '{seconds}s'\nwarmup = '1s'\n[link]\nrate = '{rate}'\nrtt = '20ms'\n\
                 qdisc = '{qdisc}'\n[sender]\ngso = false\n{flows}"
            );
            let name = format!("{} cubic flows of 1 Mbit/s through {kind}", groups * count);
            measure(criterion, &name, &scenarios_of(&sweep));
        }
    }
}

/// The same flow in one direction and in both, of a line that is as fast in either: twice the packets, and so at most 2.2 times the
/// time is asked.
fn both_directions(criterion: &mut Criterion) {
    for qdisc in ["pie", "fq_codel", "dualpi2"] {
        let one = format!(
            "duration = '60s'\n[link]\nrate = '50mbit'\nrtt = '40ms'\nqdisc = '{qdisc}'\n\
             [link.up]\nrate = '50mbit'\n[[flow]]\ncc = 'cubic'\n"
        );
        let both = format!("{one}[[flow]]\ncc = 'cubic'\ndirection = 'up'\n");
        for (name, sweep) in [("one direction", one), ("both directions", both)] {
            measure(
                criterion,
                &format!("60 s of cubic through {qdisc}, {name}"),
                &scenarios_of(&sweep),
            );
        }
    }
}

criterion_group!(benches, shipped, one_flow, controls, many_flows, both_directions);
criterion_main!(benches);
