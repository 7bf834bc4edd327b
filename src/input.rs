//! The way in: text of anybody's, whole and within bounds.

use std::io;
use std::path::Path;

use dualq_units::bounded::text_of;
pub(crate) use dualq_units::bounded::{bytes, text};

/// No scenario, trace or measurement is longer; a device that never ends would take all memory.
pub(crate) const LONGEST: u64 = 100 << 20;

/// What came of a sweep of 100,000 scenarios is 650 MB as one document; longer ones would hardly fit into memory once they are read.
pub(crate) const LONGEST_RESULT: u64 = 1 << 30;

/// The text of a file, `-` being standard input.
///
/// # Errors
/// If it cannot be read, is no UTF-8, or is longer than that.
pub(crate) fn text_or_stdin(path: &Path, longest: u64) -> io::Result<String> {
    match path == Path::new("-") {
        true => text_of(io::stdin().lock(), longest),
        false => text(path, longest),
    }
}
