//! CSV traces: one line a packet, whole numbers only.
//!
//! Written for speed rather than with a CSV library: the format has no quotes, and a library's record buffers would take
//! longer than the queue that the packets go through.

use std::io::Read;

use dualq_qdisc::{Class, Ecn};
use dualq_units::Instant;
use dualq_units::bounded::BYTE_ORDER_MARK;

use super::{Cut, TraceError};
use crate::Arrival;
use crate::packet::GSO_HEADERS;

/// The first line of a trace. `t_ns` counts from the start of the queue; `len` and `truesize` are bytes on the wire and in
/// memory; `ecn` is the two bits; `class` is -1 or the minor number that the packet's priority names under the qdisc's
/// handle; `gso_size` is 0 or the payload of one segment.
pub const HEADER: &str = "t_ns,len,truesize,ecn,class,gso_size";

const FIELDS: [&str; 6] = ["t_ns", "len", "truesize", "ecn", "class", "gso_size"];
const BUFFER: usize = 1 << 18;
/// No line of six numbers is longer; leading zeros are no excuse.
const LONGEST_LINE: usize = 256;

/// The kernel counts the segments of an aggregate in 16 bits.
const MOST_SEGMENTS: u64 = 65_535;

/// Reads a CSV trace.
pub(super) struct CsvReader<R> {
    stream: R,
    /// Whether the stream ended too early.
    cut: Cut,
    buffer: Vec<u8>,
    /// What of the buffer is not yet taken.
    start: usize,
    end: usize,
    at_end: bool,
    /// Whether the last line was left out.
    is_cut: bool,
    line: u64,
    previous: Instant,
}

impl<R: Read> CsvReader<R> {
    /// Begins to read a trace.
    ///
    /// # Errors
    /// If the stream cannot be read, or does not begin with [`HEADER`].
    pub(super) fn new(stream: R, cut: Cut) -> Result<Self, TraceError> {
        let mut reader = Self {
            stream,
            cut,
            is_cut: false,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            at_end: false,
            line: 0,
            previous: Instant::ZERO,
        };
        reader.fill()?;
        if reader.buffered().starts_with(BYTE_ORDER_MARK) {
            reader.start += BYTE_ORDER_MARK.len();
        }
        reader.skip_comments()?;
        reader.line += 1;
        let line = reader.buffered().split(|byte| *byte == b'\n').next().unwrap_or_default();
        let length = line.len();
        let text = String::from_utf8_lossy(&line[..length.min(80)]).trim().to_owned();
        if text != HEADER {
            return Err(reader.fault(format!("expected the header {HEADER}, found {text:?}")));
        }
        reader.start = (reader.start + length + 1).min(reader.end);
        Ok(reader)
    }

    /// The next arrival; `None` at the end.
    ///
    /// # Errors
    /// If the stream cannot be read, or a line is wrong.
    #[inline]
    pub(super) fn next_arrival(&mut self) -> Result<Option<Arrival>, TraceError> {
        if self.end - self.start < LONGEST_LINE {
            self.fill()?;
        }
        match self.buffered() {
            [] => return Ok(None),
            [b'#' | b'\n' | b'\r', ..] => {
                self.skip_comments()?;
                if self.buffered().is_empty() {
                    return Ok(None);
                }
            }
            _ => {}
        }
        self.line += 1;
        let line = self.buffered();
        let mut cursor = 0;
        let numbers = numbers(line, &mut cursor);
        if cursor == line.len() || numbers.is_none() {
            // What has no line end may be the beginning of something longer.
            let is_last = self.at_end && !line.contains(&b'\n') && line.len() <= LONGEST_LINE;
            if is_last && (numbers.is_none() || self.cut.is_set()) {
                self.is_cut = true;
                self.start = self.end;
                return Ok(None);
            }
        }
        let Some(fields) = numbers else {
            return Err(self.explain());
        };
        let [at, length, memory, ecn, gso_size] = fields.unsigned;
        let at = Instant::from_nanos(at);
        if at < self.previous || !plausible(&fields) {
            return Err(self.explain());
        }
        self.previous = at;
        self.start += cursor;
        Ok(Some(Arrival {
            at,
            length: length as u32,
            memory: memory as u32,
            ecn: Ecn::from_bits(ecn as u8),
            class: fields.class.and_then(Class::from_minor),
            gso_size: gso_size as u32,
            flow: 0,
        }))
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let notice =
            || format!("the trace ends in the middle of line {}; it was left out", self.line);
        self.is_cut.then(notice).into_iter().collect()
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Fills the buffer behind what is left in it.
    #[cold]
    fn fill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while !self.at_end && self.end < self.buffer.len() {
            let read = self.stream.read(&mut self.buffer[self.end..])?;
            self.end += read;
            self.at_end = read == 0;
        }
        Ok(())
    }

    /// Passes over empty lines and those that begin with `#`. Afterwards a whole line is in the buffer, if there is one.
    #[cold]
    fn skip_comments(&mut self) -> Result<(), TraceError> {
        loop {
            if self.end - self.start < LONGEST_LINE {
                self.fill()?;
            }
            match self.buffered() {
                [b'#', ..] => loop {
                    if let Some(length) = self.buffered().iter().position(|byte| *byte == b'\n') {
                        self.start += length + 1;
                        break;
                    }
                    self.start = self.end;
                    self.fill()?;
                    if self.buffered().is_empty() {
                        break;
                    }
                },
                [b'\r', b'\n', ..] => self.start += 2,
                [b'\n', ..] => self.start += 1,
                _ => return Ok(()),
            }
            self.line += 1;
        }
    }

    fn fault(&self, fault: String) -> TraceError {
        TraceError::Line { line: self.line, fault }
    }

    /// Looks at a line that was refused once more, slowly, for what is wrong with it.
    #[cold]
    fn explain(&self) -> TraceError {
        let line = self.buffered();
        let length = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        if length > LONGEST_LINE {
            return self.fault(format!("longer than {LONGEST_LINE} bytes; expected {HEADER}"));
        }
        let text = String::from_utf8_lossy(&line[..length]);
        let words: Vec<&str> = text.trim_end_matches('\r').split(',').collect();
        if words.len() != FIELDS.len() {
            let count = words.len();
            return self.fault(format!("{count} fields instead of 6; expected {HEADER}"));
        }
        for (name, word) in FIELDS.iter().zip(&words) {
            let (least, most) = match *name {
                "t_ns" => (0, i128::from(u64::MAX / 2)),
                "len" => (1, i128::from(u32::MAX)),
                "ecn" => (0, 3),
                "class" => (-1, i128::from(u16::MAX)),
                _ => (0, i128::from(u32::MAX)),
            };
            match word.parse::<i128>() {
                Ok(value) if (least..=most).contains(&value) && !word.starts_with('+') => {}
                Ok(0) if *name == "len" => {
                    return self.fault("len is 0; a packet has at least 1 byte".to_owned());
                }
                _ => {
                    let what = format!("{name} is {word:?}; expected {least} to {most}");
                    return self.fault(what);
                }
            }
        }
        let at = words[0].parse().unwrap_or(0);
        let before = self.previous.as_nanos();
        if at < before {
            return self.fault(format!("time goes backwards: t_ns is {at} after {before}"));
        }
        let (length, gso_size) = (words[1], words[5]);
        self.fault(format!(
            "gso_size is {gso_size} and len {length}; an aggregate is longer than its headers, {GSO_HEADERS} bytes, and \
             has at most {MOST_SEGMENTS} segments"
        ))
    }
}

struct Fields {
    /// All but `class`.
    unsigned: [u64; 5],
    /// `None` for -1.
    class: Option<u16>,
}

/// The six numbers of a line; `cursor` moves on to the next line.
#[inline]
fn numbers(line: &[u8], cursor: &mut usize) -> Option<Fields> {
    let at = number(line, cursor, b',')?;
    let length = number(line, cursor, b',')?;
    let memory = number(line, cursor, b',')?;
    let ecn = number(line, cursor, b',')?;
    let class = if line.get(*cursor..*cursor + 3) == Some(b"-1,") {
        *cursor += 3;
        None
    } else {
        Some(u16::try_from(number(line, cursor, b',')?).ok()?)
    };
    let gso_size = number(line, cursor, b'\n')?;
    Some(Fields { unsigned: [at, length, memory, ecn, gso_size], class })
}

/// Decimal digits up to `end`, which is passed over too. The end of the line may also be the end of the trace.
#[inline]
fn number(line: &[u8], cursor: &mut usize, end: u8) -> Option<u64> {
    let begin = *cursor;
    let mut value = 0_u64;
    let mut at = begin;
    loop {
        let byte = line.get(at).copied();
        let digit = byte.unwrap_or(b'\n').wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    // 19 digits cannot overflow.
    if at == begin || at - begin > 19 {
        return None;
    }
    match line.get(at) {
        Some(b'\r') if end == b'\n' && matches!(line.get(at + 1), Some(b'\n') | None) => at += 2,
        Some(byte) if *byte == end => at += 1,
        None if end == b'\n' => {}
        _ => return None,
    }
    *cursor = at.min(line.len());
    Some(value)
}

/// Into how many segments an aggregate comes apart.
fn segments(length: u64, gso_size: u64) -> u64 {
    length.saturating_sub(GSO_HEADERS.into()).div_ceil(gso_size)
}

#[inline]
fn plausible(fields: &Fields) -> bool {
    let [at, length, memory, ecn, gso_size] = fields.unsigned;
    let most = u64::from(u32::MAX);
    (at <= u64::MAX / 2)
        & (length >= 1)
        & (length <= most)
        & (memory <= most)
        & (ecn <= 3)
        & (gso_size <= most)
        & ((gso_size == 0) || (1..=MOST_SEGMENTS).contains(&segments(length, gso_size)))
}
