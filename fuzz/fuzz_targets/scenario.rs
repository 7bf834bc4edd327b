//! Any text, as the JSON of a scenario or as a scenario file; what comes out of it is simulated if that takes little.

#![no_main]

use dualq_scenario::{Scenario, Sweep, UdpGroup};
use libfuzzer_sys::fuzz_target;

/// A run of more packets, samples or flows than this takes too long here.
const MOST: u128 = 3_000;

fn is_small(scenario: &Scenario) -> bool {
    let nanos = scenario.duration.as_nanos();
    let packets =
        u128::from(scenario.link.highest_rate().as_bits_per_second()) * nanos / 4_000_000_000_000;
    let probes = scenario.probe.iter().map(|probe| nanos / probe.interval.as_nanos()).sum::<u128>();
    let flows = scenario.flow.iter().map(|group| u128::from(group.count)).sum::<u128>();
    let udp = |group: &UdpGroup| nanos / group.interval.as_nanos() * u128::from(group.count);
    let datagrams = scenario.udp.iter().map(udp).sum::<u128>();
    let intervals = nanos / scenario.interval.as_nanos();
    let updates = nanos / 1_000_000;
    packets + probes + datagrams + flows * 10 + intervals + updates <= MOST
}

fn run(scenario: &Scenario) {
    let text = serde_json::to_string(scenario).expect("it can be written");
    let again: Scenario = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(again, *scenario);
    if is_small(scenario) {
        let outcome = dualq_model::simulate(scenario, 1);
        assert_eq!(outcome.is_ok(), dualq_model::check(scenario).is_ok());
    }
}

fuzz_target!(|text: &str| {
    if text.trim_start().starts_with('{') {
        match serde_json::from_str::<Scenario>(text) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(scenario) => run(&scenario),
        }
        return;
    }
    match Sweep::parse(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(sweep) => {
            for variant in sweep.variants().iter().take(3) {
                run(&variant.scenario);
            }
        }
    }
});
