//! Where arrivals come from: CSV traces and packet captures, plain or compressed by gzip, xz or zstd. What a stream is, is
//! told by its first bytes, not by its name. Only what is being looked at is held in memory.

mod capture;
mod csv;
mod zstd;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::CaptureReader;
use csv::CsvReader;
pub use csv::HEADER;

use crate::Arrival;
use dualq_units::plain;

/// Why a trace could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The stream itself could not be read.
    #[error("{}", describe(.0))]
    Read(#[from] io::Error),
    /// A line of a CSV trace is wrong.
    #[error("line {line}: {fault}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong, and what would be right.
        fault: String,
    },
    /// A packet of a capture is wrong.
    #[error("packet {number}: {fault}")]
    Packet {
        /// Counted from 1.
        number: u64,
        /// What is wrong, and what would be right.
        fault: String,
    },
    /// The stream as a whole is not what it should be.
    #[error("{0}")]
    Format(String),
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            format!("corrupt: {error}")
        }
        _ => format!("cannot read: {}", plain(error)),
    }
}

type Stream<'a> = Box<dyn Read + Send + 'a>;

/// A stream of arrivals, in the order of their times. It may end in the middle of a packet, as a capture does that was
/// interrupted: the arrivals before are there, and [`notices`](Self::notices) tells.
pub struct Arrivals<'a> {
    reader: Reader<'a>,
    cut: Cut,
}

enum Reader<'a> {
    Csv(CsvReader<Stream<'a>>),
    Capture(CaptureReader<'a>),
}

/// Whether compressed data ended too early.
#[derive(Clone, Default)]
struct Cut(Arc<AtomicBool>);

impl Cut {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Decompressed data, of which what was there is read before an early end.
struct Whole<'a> {
    inner: Stream<'a>,
    cut: Cut,
}

/// So much is asked of a decoder at once: what it has of a call that fails is lost.
const PIECE: usize = 1 << 10;

impl Read for Whole<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cut.is_set() {
            return Ok(0);
        }
        let piece = buffer.len().min(PIECE);
        match self.inner.read(&mut buffer[..piece]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut.0.store(true, Ordering::Relaxed);
                Ok(0)
            }
            other => other,
        }
    }
}

impl Arrivals<'_> {
    /// Only packets of the interface with this name are taken from now on: of a capture at several places, one packet may be of more
    /// than one.
    ///
    /// # Errors
    /// If the stream is no capture, and so has no interfaces.
    pub fn of_interface(mut self, name: &str) -> Result<Self, TraceError> {
        match &mut self.reader {
            Reader::Csv(_) => Err(TraceError::Format(format!(
                "a CSV trace has no interfaces, and so none that is called {name:?}"
            ))),
            Reader::Capture(reader) => {
                reader.only(name);
                Ok(self)
            }
        }
    }

    /// The next arrival; `None` at the end.
    ///
    /// # Errors
    /// If the stream cannot be read or is not what it should be. There is no going on after that.
    #[inline]
    pub fn next_arrival(&mut self) -> Result<Option<Arrival>, TraceError> {
        match &mut self.reader {
            Reader::Csv(reader) => reader.next_arrival(),
            Reader::Capture(reader) => reader.next_arrival(),
        }
    }

    /// What its user may want to know of how the stream was taken.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = match &self.reader {
            Reader::Csv(reader) => reader.notices(),
            Reader::Capture(reader) => reader.notices(),
        };
        if self.cut.is_set() {
            notices.push("the compressed data end too early; all before that was taken".to_owned());
        }
        notices
    }
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const PCAPNG: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];
const PCAP: [&[u8]; 4] = [
    &[0xa1, 0xb2, 0xc3, 0xd4],
    &[0xd4, 0xc3, 0xb2, 0xa1],
    &[0xa1, 0xb2, 0x3c, 0x4d],
    &[0x4d, 0x3c, 0xb2, 0xa1],
];

/// Reads arrivals from `stream`. In a capture, a packet longer than `mtu` and its Ethernet header is taken for an aggregate
/// (GSO).
///
/// # Errors
/// If the stream is empty, cannot be read, or is neither a trace nor a capture.
pub fn read<'a>(stream: impl Read + Send + 'a, mtu: u32) -> Result<Arrivals<'a>, TraceError> {
    let (start, stream) = peek(Box::new(stream))?;
    let cut = Cut::default();
    let whole = |inner: Stream<'a>| Box::new(Whole { inner, cut: cut.clone() });
    let decompressed: Stream<'a> = if start.starts_with(GZIP) {
        whole(Box::new(flate2::read::MultiGzDecoder::new(stream)))
    } else if start.starts_with(XZ) {
        whole(Box::new(lzma_rust2::XzReader::new(stream, true)))
    } else if start.starts_with(ZSTD) {
        whole(Box::new(zstd::Frames::new(stream)))
    } else {
        stream
    };
    let (start, stream) = peek(decompressed)?;
    if cut.is_set() && start.len() <= HEADER.len() {
        let fault = "truncated: the compressed data end before the first packet";
        return Err(TraceError::Format(fault.to_owned()));
    }
    if start.is_empty() {
        return Err(TraceError::Format(format!("empty; a trace begins with the line {HEADER}")));
    }
    let is_capture = start.starts_with(PCAPNG) || PCAP.iter().any(|magic| start.starts_with(magic));
    let reader = if is_capture {
        Reader::Capture(CaptureReader::new(stream, mtu)?)
    } else {
        Reader::Csv(CsvReader::new(stream, cut.clone())?)
    };
    Ok(Arrivals { reader, cut })
}

/// The pcap library looks for a section header, with all its options, in what the first read gives it.
const LONGEST_START: u64 = 1 << 16;

/// The first bytes of a stream, and the stream with these bytes still in it.
fn peek(mut stream: Stream<'_>) -> Result<(Vec<u8>, Stream<'_>), TraceError> {
    let mut start = Vec::new();
    stream.by_ref().take(LONGEST_START).read_to_end(&mut start)?;
    let whole = Box::new(io::Cursor::new(start.clone()).chain(stream));
    Ok((start, whole))
}
