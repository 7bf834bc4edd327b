//! What sources send: letters, the same at the same place of every stream, so that parts of it can be told.

use std::io::{self, Write};

const LETTERS: u64 = 26;
/// Whole alphabets, and enough for one system call.
const BUFFER_BYTES: usize = 26 * 5041;

/// The byte at a place.
pub(crate) const fn at(place: u64) -> u8 {
    b'a' + (place % LETTERS) as u8
}

/// Alphabets to send from.
pub(crate) struct Letters(Vec<u8>);

impl Letters {
    pub(crate) fn new() -> Self {
        Self((0..BUFFER_BYTES as u64).map(at).collect())
    }

    /// Writes the bytes from a place on, `count` of them.
    pub(crate) fn write(&self, to: &mut impl Write, from: u64, count: u64) -> io::Result<()> {
        let (mut place, end) = (from, from.saturating_add(count));
        while place < end {
            let start = (place % LETTERS) as usize;
            let length =
                (self.0.len() - start).min(usize::try_from(end - place).unwrap_or(usize::MAX));
            let written = to.write(&self.0[start..start + length])?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            place += written as u64;
        }
        Ok(())
    }
}
