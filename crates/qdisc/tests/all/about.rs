//! What there is to say of each kind is whole.

use dualq_qdisc::about::Explained;
use dualq_qdisc::grammar::{self, KINDS};

/// Each parameter has a default; a value that tc shows is one that its word takes.
#[test]
fn tables_are_whole() {
    for kind in KINDS {
        let explained = Explained::kind(kind).unwrap();
        for valued in &explained.parameters {
            let (parameter, default) = (valued.parameter, &valued.default);
            assert!(!default.is_empty(), "{kind} {:?} has no default", parameter.words);
            if !parameter.unset.is_empty() && default == parameter.unset {
                continue;
            }
            // Frames and packets are shown with a unit that is not read.
            let value = default.strip_suffix(['p', 'b', 'B']).unwrap_or(default);
            let line = match parameter.value {
                "" => format!("{kind} {default}"),
                _ if parameter.words.contains(&default.as_str()) => format!("{kind} {default}"),
                _ => format!("{kind} {} {value}", parameter.words[0]),
            };
            let parsed = grammar::parse(&line).unwrap_or_else(|error| panic!("{error}"));
            let again = Explained::spec(&parsed.spec);
            let again = again[0].parameters.iter().find(|of| of.parameter.words == parameter.words);
            assert!(again.unwrap().given.is_some() || value == "0", "{line}");
        }
    }
}
