//! Bulk data: blocks, whose headers carry the questions and answers that ask how long one on this very connection takes.
//!
//! A header is 16 bytes: a question's number (or answer's; 0 is none) and the length of what follows, both big-endian, and 4 bytes of 0.

/// Bytes of a header.
pub const BLOCK_HEADER_BYTES: usize = 16;
/// No block is longer, in bytes behind its header.
pub const LONGEST_BLOCK: u32 = 1 << 20;

/// The header of a block of so many bytes.
#[must_use]
pub fn block_header(number: u64, length: u32) -> [u8; BLOCK_HEADER_BYTES] {
    let mut header = [0; BLOCK_HEADER_BYTES];
    header[..8].copy_from_slice(&number.to_be_bytes());
    header[8..12].copy_from_slice(&length.to_be_bytes());
    header
}

/// Finds headers in a stream of blocks.
#[derive(Debug, Default)]
pub struct BlockReader {
    header: [u8; BLOCK_HEADER_BYTES],
    /// Of the header, so much is there.
    filled: usize,
    /// Bytes of the block that are missing.
    missing: u32,
}

impl BlockReader {
    /// Takes what has come, and tells the number of each header that is whole, where it is not 0. Says false if there is one that no
    /// block has.
    #[must_use]
    pub fn push(&mut self, mut bytes: &[u8], mut tell: impl FnMut(u64)) -> bool {
        while !bytes.is_empty() {
            if self.missing > 0 {
                let skipped = bytes.len().min(self.missing as usize);
                self.missing -= skipped as u32;
                bytes = &bytes[skipped..];
                continue;
            }
            let taken = bytes.len().min(BLOCK_HEADER_BYTES - self.filled);
            self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == BLOCK_HEADER_BYTES {
                self.filled = 0;
                let [number, rest] = [0, 8].map(|at| {
                    let field = &self.header[at..at + 8];
                    u64::from_be_bytes(field.try_into().expect("these are eight bytes"))
                });
                let length = (rest >> 32) as u32;
                if length > LONGEST_BLOCK || rest as u32 != 0 {
                    return false;
                }
                self.missing = length;
                if number != 0 {
                    tell(number);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_found_however_the_stream_is_cut(
            blocks in prop::collection::vec((0_u64..5, 0_u32..100), 0..20), cut in 1_usize..40
        ) {
            let mut stream = Vec::new();
            for (number, length) in &blocks {
                stream.extend_from_slice(&block_header(*number, *length));
                stream.resize(stream.len() + *length as usize, 0xff);
            }
            let mut reader = BlockReader::default();
            let mut found = Vec::new();
            for part in stream.chunks(cut) {
                prop_assert!(reader.push(part, |number| found.push(number)));
            }
            let sent: Vec<u64> = blocks.iter().map(|block| block.0).filter(|n| *n > 0).collect();
            prop_assert_eq!(found, sent);
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert!(!BlockReader::default().push(&block_header(1, LONGEST_BLOCK + 1), |_| {}));
        assert!(!BlockReader::default().push(b"HTTP/1.1 200 OK\r\n", |_| {}));
        assert!(BlockReader::default().push(&block_header(1, LONGEST_BLOCK), |_| {}));
    }
}
