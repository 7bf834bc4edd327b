//! The way in: text of anybody's, whole and within bounds.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// No scenario, trace or measurement is longer; a device that never ends would take all memory.
pub(crate) const LONGEST: u64 = 100 << 20;

/// What came of a sweep of 100,000 scenarios is 650 MB as one document; longer ones would hardly fit into memory once they are read.
pub(crate) const LONGEST_RESULT: u64 = 1 << 30;

/// How much of a text is looked at before all else is read.
const FIRST: u64 = 64 << 10;

/// The text of a file, `-` being standard input.
///
/// # Errors
/// If it cannot be read, is no UTF-8, or is longer than that.
pub(crate) fn text_or_stdin(path: &Path, longest: u64) -> io::Result<String> {
    match path == Path::new("-") {
        true => within(io::stdin().lock(), longest),
        false => text(path, longest),
    }
}

/// The text of a file.
///
/// # Errors
/// If it cannot be read, is no UTF-8, or is longer than that.
pub(crate) fn text(path: &Path, longest: u64) -> io::Result<String> {
    within(File::open(path)?, longest)
}

/// The bytes of a file that is no text.
///
/// # Errors
/// If it cannot be read, or is longer than that.
pub(crate) fn bytes(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    bounded(File::open(path)?, Vec::new(), longest)
}

fn within(mut input: impl io::Read, longest: u64) -> io::Result<String> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    // What is no text shows it soon: then none of the memory is taken that the longest text would have.
    let mut begins = Vec::new();
    input.by_ref().take(longest.min(FIRST)).read_to_end(&mut begins)?;
    if begins.contains(&0) {
        return Err(invalid("it is no text"));
    }
    let bytes = bounded(input, begins, longest)?;
    String::from_utf8(bytes).map_err(|_| invalid("stream did not contain valid UTF-8"))
}

/// What is read already, and the rest.
fn bounded(input: impl io::Read, mut bytes: Vec<u8>, longest: u64) -> io::Result<Vec<u8>> {
    let left = longest - bytes.len() as u64;
    if input.take(left + 1).read_to_end(&mut bytes)? as u64 > left {
        let most = match longest >> 20 {
            0 => format!("{longest} bytes"),
            mebibytes => format!("{mebibytes} MiB"),
        };
        let message = format!("it is longer than {most}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let error = text(Path::new("/dev/zero"), LONGEST_RESULT).unwrap_err();
        assert_eq!(error.to_string(), "it is no text");
        let error = bytes(Path::new("/dev/zero"), 1024).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1024 bytes");
        let error = within(io::repeat(b'a'), 3 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 3 MiB");
        assert_eq!(within("abc".as_bytes(), 3).unwrap(), "abc");
        let error = within(&b"\xff"[..], 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
