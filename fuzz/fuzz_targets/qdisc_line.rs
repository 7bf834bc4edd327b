//! Any text, as the words of a queue discipline.

#![no_main]

use dualq_qdisc::{Device, grammar, show};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    match grammar::parse(line) {
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1);
            assert!((1..=line.chars().count() + 1).contains(&error.column()));
        }
        Ok(parsed) => {
            let config = parsed.spec.configure(&Device::ethernet(1500));
            assert!(show::text(&config).starts_with("qdisc "));
            assert!(show::json(&config).contains_key("options"));
            let again = grammar::parse(&parsed.spec.to_string()).expect("it was accepted before");
            // What was derived from round-trip times is said again in single precision.
            assert!(again.spec == parsed.spec || line.contains("_rtt"), "{line}");
        }
    }
});
