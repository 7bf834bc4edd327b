//! A report that people look at: one HTML file that works from disk, with no request to anywhere.
//!
//! Everything that is shown stands in the file as JSON, and the page's own script draws it with uPlot, which is in the file too. What names
//! and texts hold is never markup: in the JSON each `<` is escaped, and the script writes text as text. A content security policy in the file
//! forbids every request.

mod apart;
mod data;
mod engine;
mod front;
mod headline;
mod row;
pub(crate) mod still;
mod thin;
mod worlds;

use crate::report::Report;
use crate::words::one_line;

pub use engine::{Engine, NoEngine};

/// The page around the data, with places for what is put in.
const PAGE: &str = include_str!("page/page.html");

const STYLES: &str =
    concat!(include_str!("vendor/uPlot.min.css"), "\n", include_str!("page/page.css"));

const LICENCE: &str = include_str!("vendor/LICENSE-uPlot");

const CHARTS: &str = include_str!("vendor/uPlot.iife.min.js");

/// The page's own script, a file for each of its parts.
const SCRIPT: &str = concat!(
    include_str!("page/elements.js"),
    include_str!("page/document.js"),
    include_str!("page/colours.js"),
    include_str!("page/rows.js"),
    include_str!("page/table.js"),
    include_str!("page/chart.js"),
    include_str!("page/time.js"),
    include_str!("page/distribution.js"),
    include_str!("page/flows.js"),
    include_str!("page/worlds.js"),
    include_str!("page/sweep.js"),
    include_str!("page/front.js"),
    include_str!("page/copy.js"),
    include_str!("page/again.js"),
    include_str!("page/module.js"),
    include_str!("page/knobs.js"),
    include_str!("page/main.js"),
);

/// What the page may do, for browsers to see to: nothing but what stands in it, no request to anywhere.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// The same of a page that has an engine, which runs in a worker.
const POLICY_WITH_ENGINE: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; img-src data:";

/// The page of one or more reports, the rows of all in one comparison. `program` is what makes it, with its version. With an engine it can
/// simulate its scenario otherwise.
///
/// # Panics
/// Never: memory takes all.
#[must_use]
pub fn write(reports: &[Report<'_>], program: &str, engine: Option<&Engine>) -> String {
    let page = data::Page::of(reports, program, engine.is_some());
    let json = json_of(&page);
    let title = markup(&page.title);
    let policy = if engine.is_some() { POLICY_WITH_ENGINE } else { POLICY };
    let puts = [
        ("{{policy}}", policy),
        ("{{title}}", title.as_str()),
        ("{{styles}}", STYLES),
        ("{{data}}", &in_script(&json)),
        ("{{engine}}", engine.map_or("", Engine::elements)),
        ("{{licence}}", LICENCE),
        ("{{charts}}", CHARTS),
        ("{{script}}", SCRIPT),
    ];
    let (mut page, mut rest) = (String::with_capacity(json.len() + 200_000), PAGE);
    for (place, text) in puts {
        let (before, behind) =
            rest.split_once(place).expect("the page has each place, in this order");
        page.push_str(before);
        page.push_str(text);
        rest = behind;
    }
    page + rest
}

/// What such a page shows, as JSON: for whoever has its script and engine already.
#[must_use]
pub fn data(reports: &[Report<'_>], program: &str) -> String {
    json_of(&data::Page::of(reports, program, true))
}

fn json_of(page: &data::Page) -> String {
    serde_json::to_string(page).expect("memory takes all, and all keys are strings")
}

/// JSON as it may stand in a script element: nothing in it ends the element or begins a comment.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Text as it may stand between tags and in an attribute.
fn markup(text: &str) -> String {
    let line = one_line(text).replace('&', "&amp;").replace('"', "&quot;");
    line.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_ends_its_element() {
        let json = serde_json::json!({ "name": "</script><!-- & \u{2028}" }).to_string();
        let escaped = in_script(&json);
        assert!(!escaped.contains(['<', '>', '&']), "{escaped}");
        let read: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read["name"], "</script><!-- & \u{2028}");
        assert_eq!(markup("<b>&\n"), "&lt;b&gt;&amp; ");
    }
}
