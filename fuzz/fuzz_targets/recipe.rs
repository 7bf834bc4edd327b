//! Any text, as a recipe for a machine of which little is known.

#![no_main]

use dualq_host::Facts;
use dualq_host::facts::Os;
use dualq_host::recipe::{Recipe, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let recipe = Recipe::read("-", text);
    for os in [Os::Linux, Os::FreeBsd] {
        let facts = Facts { os, ..Facts::default() };
        let findings = check(&recipe, &facts, None);
        assert_eq!(findings.len(), recipe.steps.len());
        for finding in findings {
            assert!((1..=text.lines().count()).contains(&(finding.step.line as usize)));
            assert!(!finding.why.is_empty() && !finding.source.is_empty());
        }
    }
});
