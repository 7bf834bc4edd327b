//! Any text, as a machine's files and as saved facts.

#![no_main]

use dualq_host::{Facts, doctor, facts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (settings, wrong) = facts::settings("file", text);
    let lines = text.lines().count();
    assert!(settings.len() + wrong.len() <= lines);
    for setting in settings {
        assert!(!setting.key.is_empty() && !setting.value.contains('\n'));
        // What was read is read again from the line that it stands for.
        let again = facts::settings("file", &format!("{}={}", setting.key, setting.value)).0;
        assert!(again.len() <= 1);
    }
    assert!(facts::blocked("file", text).len() <= lines);

    match Facts::parse("file", text) {
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        Ok(facts) => {
            for rate in [None, Some(dualq_units::Rate::from_mbit(50))] {
                let findings = doctor::findings(&facts, rate);
                assert!(findings.is_sorted_by_key(|finding| finding.harm));
            }
        }
    }
});
