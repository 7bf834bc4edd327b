//! What RFC 9332 §2.1 wants of its DualQ, with the sender that it was made for, over the whole of the shipped scenario `l4s`: 4 to 400 Mbit/s
//! and 5 to 100 ms, 25 scenarios. Where the rates are not about equal, the real Prague's on real Linux are not either (tests/data/prague):
//! docs/l4s.md says why.

use dualq_model::simulate;
use dualq_scenario::{Delays, Outcome, Scenario, Sweep};

/// A full-sized packet with its Ethernet header.
const PACKET_BITS: f64 = 1514.0 * 8.0;

/// The lowest and the highest of the real Prague's rates over CUBIC's, of three runs each: Mbit/s, ms, rates.
const RECORDED: [(f64, f64, [f64; 2]); 14] = [
    (4.0, 20.0, [0.17, 0.17]),
    (12.0, 5.0, [0.48, 0.53]),
    (12.0, 50.0, [0.41, 0.42]),
    (12.0, 100.0, [0.25, 0.31]),
    (40.0, 5.0, [0.94, 1.05]),
    (40.0, 10.0, [1.12, 1.36]),
    (40.0, 20.0, [2.26, 2.34]),
    (40.0, 50.0, [2.10, 2.22]),
    (40.0, 100.0, [1.09, 1.13]),
    (120.0, 5.0, [1.12, 1.41]),
    (120.0, 100.0, [0.30, 0.37]),
    (400.0, 5.0, [0.91, 1.38]),
    (400.0, 10.0, [1.14, 1.68]),
    (400.0, 100.0, [0.42, 0.89]),
];
/// Three runs do not show all that there can be.
const OF_RECORDED: f64 = 1.25;

/// Within what Prague's rate over CUBIC's is to be.
fn expected(rate_mbit: f64, rtt_ms: f64) -> [f64; 2] {
    let same = |one: f64, other: f64| (one - other).abs() < 0.5;
    let recorded = |of: &&(f64, f64, [f64; 2])| same(of.0, rate_mbit) && same(of.1, rtt_ms);
    if let Some((_, _, [low, high])) = RECORDED.iter().find(recorded) {
        return [low / OF_RECORDED, high * OF_RECORDED];
    }
    let packet_ms = PACKET_BITS / rate_mbit / 1e3;
    // What waits behind a classic packet is over the step of a millisecond, and Prague gives way.
    if packet_ms > 2.0 {
        [0.05, 0.5]
    } else if packet_ms > 1.0 {
        [0.4, 1.0]
    } else if same(rtt_ms, 20.0) {
        // CUBIC's round trip is 15 ms longer, Prague's counts as 5 ms longer.
        [0.5, 3.0]
    } else {
        [0.5, 2.0]
    }
}

fn holds(scenario: &Scenario) {
    let rate_mbit = scenario.link.rate.as_bits_per_second() as f64 / 1e6;
    let rtt_ms = scenario.link.rtt.as_secs_f64() * 1e3;
    let place = format!("{rate_mbit} Mbit/s, {rtt_ms} ms");
    // A single run is chance: at 400 Mbit/s and 20 ms five have ratios of 1.9 to 3.1, and at 50 ms, where CUBIC does not always fill the link either,
    // thirty have medians of 0.6 to 13.6 ms in its queue; and at 40 Mbit/s sixty have ratios of 1.3 to 2.5.
    let seeds = if rate_mbit > 30.0 && (40.0..75.0).contains(&rtt_ms) { 30 } else { 3 };
    let outcomes: Vec<_> =
        (1..=seeds).map(|seed| simulate(scenario, seed).expect("it is modelled")).collect();
    let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / seeds as f64;
    let ratio = mean(&|run| run.flow[1].total_mbit / run.flow[0].total_mbit);
    let [low, high] = expected(rate_mbit, rtt_ms);
    assert!((low..=high).contains(&ratio), "{place}: {ratio:.2}, expected {low:.2} to {high:.2}");

    let delay = |delays: Option<Delays>| delays.expect("both queues had packets");
    let scalable = delay(outcomes[0].queue.delay_ect);
    // What waited for a millisecond is marked (`step_thresh`, tc-dualpi2(8)), but nobody waits less than what is being sent, and the
    // packet before it, take.
    let most_ms = (2.0 * PACKET_BITS / rate_mbit / 1e3).max(1.0);
    assert!(scalable.p99_ms <= most_ms, "{place}: {} ms in the L queue", scalable.p99_ms);
    // Its target is 15 ms. At 100 ms CUBIC does not always fill the link.
    let least_ms = if rtt_ms < 75.0 { 7.0 } else { 0.0 };
    let waits_ms = mean(&|run| delay(run.queue.delay_not_ect).p50_ms);
    assert!((least_ms..=17.0).contains(&waits_ms), "{place}: {waits_ms} ms in the C queue");
}

#[test]
fn prague_and_cubic_share_a_dualq() {
    let sweep = Sweep::parse(include_str!("../../../scenarios/l4s.toml")).expect("it is shipped");
    let variants = sweep.variants();
    assert_eq!(variants.len(), 25);
    variants.iter().for_each(|variant| holds(&variant.scenario));
}
