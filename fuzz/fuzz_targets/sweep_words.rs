//! Any text, as what varies in a sweep, as an aim, and as when a mean is known.

#![no_main]

use std::sync::OnceLock;

use dualq_scenario::{Scenario, Sweep};
use dualq_sweep::{Aim, Axis, Sampling, Shard, Space, Until};
use libfuzzer_sys::fuzz_target;

const SOURCE: &str = "duration = '2s'\nwarmup = '1s'\n[link]\nrate = '10mbit'\nrtt = '20ms'\nqdisc = 'pie'\n[[flow]]\ncc = 'cubic'\n[[probe]]\n";

fn scenario() -> &'static Scenario {
    static SCENARIO: OnceLock<Scenario> = OnceLock::new();
    SCENARIO.get_or_init(|| Sweep::parse(SOURCE).expect("it is one").variants().remove(0).scenario)
}

fuzz_target!(|text: &str| {
    let Some(line) = text.lines().next() else { return };
    let one_line =
        |said: String| assert!(!said.is_empty() && said.lines().count() == 1, "{said:?}");
    match Axis::parse(line) {
        Err(error) => one_line(error.to_string()),
        Ok(axis) => {
            let sampling = Sampling::Latin { count: 3, seed: 1 };
            let space = Space { vary: vec![axis], sampling, ..Space::of(SOURCE) };
            match space.scenarios() {
                Err(error) => one_line(error.to_string()),
                Ok(scenarios) => assert!(!scenarios.is_empty()),
            }
        }
    }
    if let Err(error) = Aim::parse(line, &[scenario()]) {
        one_line(error.to_string());
    }
    if let Err(error) = Until::parse(line, &[scenario()]) {
        one_line(error.to_string());
    }
    let _ = line.parse::<Shard>();
});
