//! The beginning of every connection, at both ends: lines with a deadline.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::{LineError, LineReader, ProtocolError, read, write};

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinesError {
    #[error("it closed the connection")]
    Closed,
    #[error("it sent nothing in time")]
    Late,
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Message(#[from] ProtocolError),
}

/// A connection of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: TcpStream,
    reader: LineReader,
}

impl Lines {
    pub(crate) const fn new(stream: TcpStream, longest: usize) -> Self {
        Self { stream, reader: LineReader::new(longest) }
    }

    /// The next message, until the deadline.
    pub(crate) fn next<M: DeserializeOwned>(&mut self, deadline: Instant) -> Result<M, LinesError> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(line) = self.reader.next_line()? {
                return Ok(read(&line)?);
            }
            // However slowly bytes come: the deadline is that of the message.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LinesError::Late);
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(LinesError::Closed),
                Ok(count) => self.reader.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(LinesError::Late);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Err(LinesError::Closed);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn send(
        &mut self,
        message: &impl Serialize,
        deadline: Instant,
    ) -> Result<(), LinesError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LinesError::Late);
        }
        self.stream.set_write_timeout(Some(left))?;
        match self.stream.write_all(&write(message)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(LinesError::Late),
            Err(error)
                if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) =>
            {
                Err(LinesError::Closed)
            }
            sent => Ok(sent?),
        }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The connection, which is one of bytes from now on, and what of them has come.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.reader.into_rest())
    }
}
