//! Any text, as a trace of a link's rates: its steps are in the order of time and no rate is none.

#![no_main]

use std::time::Duration;

use dualq_scenario::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Trace::read(text) {
        Err(error) => assert!(error.line >= 1 && !error.to_string().is_empty()),
        Ok(trace) => {
            let end = Duration::from_secs(100);
            for repeats in [false, true] {
                let Some((first, steps)) = trace.steps(end, repeats) else { continue };
                assert!(first.as_bits_per_second() > 0);
                assert!(steps.is_sorted_by(|one, other| one.at < other.at));
                assert!(
                    steps.iter().all(|step| step.rate.as_bits_per_second() > 0 && step.at < end)
                );
            }
        }
    }
});
