//! Any text, as a plan for a host.

#![no_main]

use dualq_host::Plan;
use dualq_host::plan::What;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Plan::read(text) {
        Err(error) => assert!(!error.to_string().contains('\n')),
        Ok(plan) => {
            assert_eq!(Plan::read(&plan.write()).as_ref(), Ok(&plan));
            for change in &plan.changes {
                match &change.what {
                    // It comes to stand between single quotes.
                    What::Qdisc { after, .. } => assert!(!after.text().contains('\'')),
                    What::File { path, after, .. } => {
                        assert!(path.starts_with("/etc/") && !path.contains("/../"));
                        // What is a comment to dualq is one to a shell.
                        assert!(after.chars().all(|c| c.is_ascii() || c == '§'));
                    }
                    _ => {}
                }
            }
        }
    }
});
