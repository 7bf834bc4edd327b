//! Lines out of a stream of bytes.

/// No line of a client is longer, in bytes. What a server reports of a phase may be.
pub const LONGEST_LINE: usize = 4096;

/// The other end sends what is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A line has no end.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// It is no text.
    #[error("a line is no text")]
    NoText,
}

/// Collects bytes until there is a line.
#[derive(Debug)]
pub struct LineReader {
    bytes: Vec<u8>,
    /// So many of them have no end of a line: a line that comes in many parts is not searched anew with each.
    searched: usize,
    most: usize,
}

impl LineReader {
    /// One that takes lines of up to so many bytes.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), searched: 0, most }
    }

    /// More bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line, if all of it is there.
    ///
    /// # Errors
    /// If it is longer than allowed, or no text.
    pub fn next_line(&mut self) -> Result<Option<String>, LineError> {
        let end = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = end.map(|behind| self.searched + behind);
        self.searched = end.unwrap_or(self.bytes.len());
        match end {
            Some(end) if end <= self.most => {
                let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
                self.searched = 0;
                line.pop();
                String::from_utf8(line).map(Some).map_err(|_| LineError::NoText)
            }
            None if self.bytes.len() <= self.most => Ok(None),
            _ => Err(LineError::TooLong(self.most)),
        }
    }

    /// What came behind the last line: the connection is no longer one of lines.
    #[must_use]
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_were_cut() {
        let mut reader = LineReader::new(8);
        reader.push(b"ab");
        assert_eq!(reader.next_line(), Ok(None));
        reader.push(b"c\nd\n12345678\nrest");
        for line in ["abc", "d", "12345678"] {
            assert_eq!(reader.next_line(), Ok(Some(line.to_owned())));
        }
        assert_eq!(reader.next_line(), Ok(None));
        assert_eq!(reader.into_rest(), b"rest");
    }

    #[test]
    fn what_is_no_line_is_refused_before_it_fills_the_memory() {
        let mut reader = LineReader::new(8);
        reader.push(b"123456789");
        assert_eq!(reader.next_line(), Err(LineError::TooLong(8)));
        let mut reader = LineReader::new(8);
        reader.push(b"\xff\n");
        assert_eq!(reader.next_line(), Err(LineError::NoText));
    }
}
