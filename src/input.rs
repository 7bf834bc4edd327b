//! The way in: text of anybody's, whole and within bounds.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// No scenario, trace or measurement is longer; a device that never ends would take all memory.
pub(crate) const LONGEST: u64 = 100 << 20;

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

fn within(input: impl io::Read, longest: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    if input.take(longest + 1).read_to_end(&mut bytes)? as u64 > longest {
        let most = match longest >> 20 {
            0 => format!("{longest} bytes"),
            mebibytes => format!("{mebibytes} MiB"),
        };
        let message = format!("it is longer than {most}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let error = text(Path::new("/dev/zero"), 1024).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1024 bytes");
        let error = within(io::repeat(b'a'), 3 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 3 MiB");
        assert_eq!(within("abc".as_bytes(), 3).unwrap(), "abc");
        let error = within(&b"\xff"[..], 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
