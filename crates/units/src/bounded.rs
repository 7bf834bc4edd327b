//! Files of anybody's, read whole and within bounds: a device that never ends would take all memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// How much of a text is looked at before all else is read.
const FIRST: u64 = 64 << 10;

/// The mark of the order of bytes, in UTF-8, which editors on Windows put before a text: it says nothing, and no grammar has it.
pub const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text of a file.
///
/// # Errors
/// If it cannot be read, is no UTF-8, or is longer than that.
pub fn text(path: &Path, longest: u64) -> io::Result<String> {
    text_of(File::open(path)?, longest)
}

/// The bytes of a file that is no text.
///
/// # Errors
/// If it cannot be read, or is longer than that.
pub fn bytes(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    rest(File::open(path)?, Vec::new(), longest)
}

/// All of a text that is read from somewhere, without a [`BYTE_ORDER_MARK`] before it.
///
/// # Errors
/// If it cannot be read, is no UTF-8, or is longer than that.
pub fn text_of(mut input: impl io::Read, longest: u64) -> io::Result<String> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    // What is no text shows it soon: then none of the memory is taken that the longest text would have.
    let mut begins = Vec::new();
    input.by_ref().take(longest.min(FIRST)).read_to_end(&mut begins)?;
    if begins.contains(&0) {
        return Err(invalid("it is no text"));
    }
    let mut bytes = rest(input, begins, longest)?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|_| invalid("stream did not contain valid UTF-8"))
}

/// What is read already, and the rest.
fn rest(input: impl io::Read, mut bytes: Vec<u8>, longest: u64) -> io::Result<Vec<u8>> {
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
        let error = text(Path::new("/dev/zero"), 1 << 30).unwrap_err();
        assert_eq!(error.to_string(), "it is no text");
        let error = bytes(Path::new("/dev/zero"), 1024).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1024 bytes");
        let error = text_of(io::repeat(b'a'), 3 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 3 MiB");
        assert_eq!(text_of("abc".as_bytes(), 3).unwrap(), "abc");
        let error = text_of(&b"\xff"[..], 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_mark_before_a_text_is_none_of_it() {
        assert_eq!(text_of("\u{feff}a\u{feff}".as_bytes(), 9).unwrap(), "a\u{feff}");
        assert_eq!(text_of("\u{feff}".as_bytes(), 9).unwrap(), "");
    }
}
