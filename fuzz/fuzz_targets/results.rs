//! Any text as a document of results, of a check or of a replay; what is one becomes a page and pictures.

#![no_main]

use dualq_report::svg::Picture;
use dualq_report::{Report, Style, agreement, csv, html, json, replayed, svg, text};
use dualq_worlds::Results;
use libfuzzer_sys::fuzz_target;

/// Nothing of a document is markup in what is made of it.
fn are_plain(pictures: &[Picture]) {
    for Picture { name, svg } in pictures {
        let elements = [
            "<svg ", "</svg>", "<text ", "<path ", "<rect ", "<style>", "</style>", "<title ",
            "</title>", "<desc ", "</desc>", "</text>", "<tspan", "</tspan>",
        ];
        let known = elements.iter().map(|element| svg.matches(element).count()).sum::<usize>();
        assert_eq!(svg.matches('<').count(), known, "{name}");
    }
}

fuzz_target!(|document: &str| {
    match agreement::Document::read(document) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(checked) => {
            are_plain(&checked.pictures());
            assert!(!checked.page("dualq").contains("<script"));
        }
    }
    match replayed::Document::read(document) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(replayed) => {
            are_plain(&replayed.pictures());
            assert!(!replayed.page("dualq").contains("<script"));
        }
    }
    match serde_json::from_str::<Results>(document) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(results) => {
            let report = Report::of(&results);
            let page = html::write(&[report.clone()], "dualq", None);
            assert_eq!(page.matches("</script>").count(), 3);
            are_plain(&svg::pictures(&report));
            assert!(!csv::series(&results).is_empty());
            let style = Style { width: Some(200), colour: true, graphs: true };
            assert!(!text::write(&report, &style).is_empty());
            let again: Results =
                serde_json::from_str(&json::write(&report)).expect("it reads back");
            assert_eq!(again, results);
        }
    }
});
