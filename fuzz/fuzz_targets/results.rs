//! Any text as a document of results; what is one becomes a page.

#![no_main]

use dualq_report::{Report, Style, csv, html, json, text};
use dualq_worlds::Results;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|document: &str| {
    match serde_json::from_str::<Results>(document) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(results) => {
            let report = Report::of(&results);
            let page = html::write(&[report.clone()], "dualq");
            assert_eq!(page.matches("</script>").count(), 3);
            assert!(!csv::series(&results).is_empty());
            let style = Style { width: Some(200), colour: true, graphs: true };
            assert!(!text::write(&report, &style).is_empty());
            let again: Results = serde_json::from_str(&json::write(&report)).expect("it reads back");
            assert_eq!(again, results);
        }
    }
});
