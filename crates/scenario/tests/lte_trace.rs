//! The shipped trace is what its example draws.

use std::fs;
use std::path::Path;

#[path = "../examples/lte_trace.rs"]
#[allow(dead_code, reason = "the example's own main")]
mod lte_trace;

#[test]
fn the_shipped_trace_is_the_examples() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lte.trace");
    assert!(fs::read_to_string(path).unwrap() == lte_trace::trace());
}
