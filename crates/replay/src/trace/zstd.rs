//! Zstandard (RFC 8878): frames one after the other, of which the library reads one.

use std::io::{self, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// A stream that remembers that it has come to its end, and takes a byte back.
struct Ending<R> {
    inner: R,
    first: Option<u8>,
    has_ended: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (Some(byte), [place, ..]) = (self.first, &mut *buffer) {
            *place = byte;
            self.first = None;
            return Ok(1);
        }
        let count = self.inner.read(buffer)?;
        self.has_ended |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

/// A frame that is being read.
struct Frame<R> {
    decoder: FrameDecoder,
    source: Ending<R>,
}

impl<R: Read> Read for Frame<R> {
    /// Nothing comes once the frame is over.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let step = BlockDecodingStrategy::UptoBlocks(1);
            let decoded = self.decoder.decode_blocks(&mut self.source, step);
            decoded.map_err(|error| fault(&self.source, error))?;
        }
        self.decoder.read(buffer)
    }
}

/// What frames have in them, decompressed.
pub(super) struct Frames<R: Read>(Place<R>);

enum Place<R: Read> {
    Between(Ending<R>),
    Inside(Box<Frame<R>>),
    Over,
}

impl<R: Read> Frames<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self(Place::Between(Ending { inner, first: None, has_ended: false }))
    }

    /// Goes to the next frame with data.
    fn begin(mut source: Ending<R>) -> io::Result<Place<R>> {
        loop {
            // Only at the beginning of a frame may the stream end.
            let mut first = [0];
            match source.read(&mut first) {
                Ok(0) => return Ok(Place::Over),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            source.first = Some(first[0]);
            let mut decoder = FrameDecoder::new();
            match decoder.init(&mut source) {
                Ok(()) => return Ok(Place::Inside(Box::new(Frame { decoder, source }))),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut source.by_ref().take(length), &mut io::sink())? < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(fault(&source, error)),
            }
        }
    }
}

fn fault<R>(source: &Ending<R>, error: FrameDecoderError) -> io::Error {
    let kind = if source.has_ended { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData };
    io::Error::new(kind, error)
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            match std::mem::replace(&mut self.0, Place::Over) {
                Place::Over => break,
                Place::Between(source) => self.0 = Self::begin(source)?,
                Place::Inside(mut frame) => match frame.read(buffer) {
                    Ok(0) => {
                        let (said, found) = (
                            frame.decoder.get_checksum_from_data(),
                            frame.decoder.get_calculated_checksum(),
                        );
                        if said.is_some() && said != found {
                            let fault = "the checksum of the compressed data is wrong";
                            return Err(io::Error::new(ErrorKind::InvalidData, fault));
                        }
                        self.0 = Place::Between(frame.source);
                    }
                    Ok(count) => {
                        self.0 = Place::Inside(frame);
                        return Ok(count);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(0)
    }
}
