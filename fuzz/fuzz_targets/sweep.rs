//! Any text, as a scenario file.

#![no_main]

use dualq_scenario::Sweep;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    match Sweep::parse(source) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(sweep) => {
            let variants = sweep.variants();
            assert!(!variants.is_empty());
            for variant in &variants[..variants.len().min(10)] {
                assert!(variant.scenario.warmup < variant.scenario.duration);
            }
        }
    }
});
