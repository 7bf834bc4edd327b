//! A command line, word by word, with the readers of tc's values.

use std::ops::RangeInclusive;
use std::time::Duration;

use dualq_units::number::{strtod, strtof_word, strtol, strtoul};
use dualq_units::{Bytes, Rate, surprise, tc_time};

use super::{ParseError, RefusedBy};

/// Where a word stands in its line: a byte offset.
pub(crate) type Position = usize;

pub(crate) struct Words<'a> {
    line: &'a str,
    rest: &'a str,
    /// Where the word last taken begins.
    position: Position,
    /// What the author of the line may not have expected.
    pub(crate) notices: Vec<String>,
    /// How many disciplines the one that is read is inside of.
    pub(crate) depth: u32,
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self { line, rest: line, position: 0, notices: Vec::new(), depth: 0 }
    }

    pub(crate) fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        self.position = self.line.len() - rest.len();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.peek().is_none()
    }

    /// Where the word last taken stands.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The value of `option`.
    pub(crate) fn value(&mut self, option: &str, expected: &str) -> Result<&'a str, ParseError> {
        self.next().ok_or_else(|| {
            let message = format!("{option} needs a value: {expected}");
            self.refuse(RefusedBy::TcIncomplete, message)
        })
    }

    /// What is left of a value of which tc does not send a zero: `None`, and the default holds.
    pub(crate) fn unless_zero<T: Default + PartialEq>(
        &mut self,
        option: &str,
        value: T,
    ) -> Option<T> {
        let zero = value == T::default();
        if zero {
            let notice = format!("{option} 0 counts as not given, so the default holds");
            self.notices.push(notice);
        }
        (!zero).then_some(value)
    }

    /// The value behind an option of which tc does not send a zero, as `read` takes one off the words.
    pub(crate) fn nonzero<T: Default + PartialEq>(
        &mut self,
        option: &str,
        read: fn(&mut Self, &str, &str) -> Result<T, ParseError>,
        expected: &str,
    ) -> Result<Option<T>, ParseError> {
        let value = read(self, option, expected)?;
        Ok(self.unless_zero(option, value))
    }

    /// A whole number of at most 32 bits, as tc's `get_u32` with base 10.
    pub(crate) fn u32(&mut self, option: &str, expected: &str) -> Result<u32, ParseError> {
        let word = self.value(option, expected)?;
        strtoul(word, 10)
            .filter(|(_, rest)| rest.is_empty())
            .and_then(|(value, _)| u32::try_from(value).ok())
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A whole number from 0 to 255 in C's notation, as tc reads a coupling factor.
    pub(crate) fn u8(&mut self, option: &str, expected: &str) -> Result<u8, ParseError> {
        let word = self.value(option, expected)?;
        strtol(word, 0)
            .filter(|(_, rest)| rest.is_empty())
            .and_then(|(value, _)| u8::try_from(value).ok())
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A whole number of at most 32 bits in C's notation, as tc's `get_u32` with base 0.
    pub(crate) fn number(&mut self, option: &str, expected: &str) -> Result<u32, ParseError> {
        let word = self.value(option, expected)?;
        strtoul(word, 0)
            .filter(|(_, rest)| rest.is_empty())
            .and_then(|(value, _)| u32::try_from(value).ok())
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A whole number within bounds, in decimal.
    pub(crate) fn i32_within(
        &mut self,
        option: &str,
        bounds: RangeInclusive<i32>,
        expected: &str,
    ) -> Result<i32, ParseError> {
        let word = self.value(option, expected)?;
        strtol(word, 10)
            .filter(|(_, rest)| rest.is_empty())
            .and_then(|(value, _)| i32::try_from(value).ok())
            .filter(|value| bounds.contains(value))
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// The one word that may stand here.
    pub(crate) fn literal(
        &mut self,
        option: &str,
        literal: &str,
        expected: &str,
    ) -> Result<(), ParseError> {
        let word = self.value(option, expected)?;
        if word == literal { Ok(()) } else { Err(self.illegal(option, word, expected)) }
    }

    /// A rate.
    pub(crate) fn rate(&mut self, option: &str, expected: &str) -> Result<Rate, ParseError> {
        let word = self.value(option, expected)?;
        let rate = word.parse().map_err(|_| self.illegal(option, word, expected))?;
        self.tell(option, surprise::rate(word));
        Ok(rate)
    }

    /// A rate in whole bytes per second, as tc sends it.
    pub(crate) fn whole_rate(&mut self, option: &str, expected: &str) -> Result<Rate, ParseError> {
        let bits = self.rate(option, expected)?.as_bits_per_second();
        Ok(Rate::from_bits_per_second(bits / 8 * 8))
    }

    /// A size that fits 32 bits and, behind a slash, the size of a cell, a power of two. The cell was for tables that
    /// kernels no longer have.
    pub(crate) fn size_and_cell(
        &mut self,
        option: &str,
        expected: &str,
    ) -> Result<u32, ParseError> {
        let word = self.value(option, expected)?;
        let (size, cell) = word.split_once('/').map_or((word, None), |(a, b)| (a, Some(b)));
        let is_cell = |cell: &str| {
            strtol(cell, 0).is_some_and(|(value, rest)| {
                rest.is_empty() && u32::try_from(value).is_ok_and(u32::is_power_of_two)
            })
        };
        size.parse::<Bytes>()
            .ok()
            .filter(|_| cell.is_none_or(is_cell))
            .and_then(|size| u32::try_from(size.0).ok())
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// The link layer, of which dualq has one.
    pub(crate) fn ethernet_only(&mut self, option: &str) -> Result<(), ParseError> {
        let expected = "dualq's links are ethernet";
        let word = self.value(option, expected)?;
        match word {
            "ethernet" => Ok(()),
            "atm" | "adsl" => Err(self.refuse(RefusedBy::Dualq, expected.to_owned())),
            _ => Err(self.illegal(option, word, expected)),
        }
    }

    /// Refuses an option that changes what a packet counts.
    pub(crate) fn no_framing(&self, option: &str) -> ParseError {
        let message = format!("dualq counts frames as they are and has no {option}; leave it out");
        self.refuse(RefusedBy::Dualq, message)
    }

    /// A time in whole microseconds, as tc's `get_time`.
    pub(crate) fn time(&mut self, option: &str, expected: &str) -> Result<Duration, ParseError> {
        Ok(Duration::from_micros(self.micros(option, expected)?.into()))
    }

    /// A time in whole nanoseconds that fits 32 bits, a bare number in nanoseconds, as tc's `get_time64`.
    pub(crate) fn nanos(&mut self, option: &str, expected: &str) -> Result<Duration, ParseError> {
        let word = self.value(option, expected)?;
        self.tell(option, surprise::nanos(word));
        tc_time::parse_nanos(word)
            .ok()
            .filter(|time| time.as_nanos() <= u128::from(u32::MAX))
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A time in whole nanoseconds that fits 63 bits, a bare number in microseconds.
    pub(crate) fn long_nanos(
        &mut self,
        option: &str,
        expected: &str,
    ) -> Result<Duration, ParseError> {
        let word = self.value(option, expected)?;
        self.tell(option, surprise::time(word));
        self.within_63_bits(option, word, expected, tc_time::parse(word).ok())
    }

    /// The same, a bare number in nanoseconds, as tc's `get_time64`.
    pub(crate) fn bare_nanos(
        &mut self,
        option: &str,
        expected: &str,
    ) -> Result<Duration, ParseError> {
        let word = self.value(option, expected)?;
        self.tell(option, surprise::nanos(word));
        self.within_63_bits(option, word, expected, tc_time::parse_nanos(word).ok())
    }

    fn within_63_bits(
        &self,
        option: &str,
        word: &str,
        expected: &str,
        time: Option<Duration>,
    ) -> Result<Duration, ParseError> {
        time.filter(|time| time.as_nanos() <= i64::MAX as u128)
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A whole number of at most 64 bits.
    pub(crate) fn u64(&mut self, option: &str, expected: &str) -> Result<u64, ParseError> {
        let word = self.value(option, expected)?;
        strtoul(word, 10)
            .filter(|(_, rest)| rest.is_empty())
            .map(|(value, _)| value)
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A percentage from 0 to 100, the sign optional, as a fraction of 1.
    pub(crate) fn fraction(&mut self, option: &str, expected: &str) -> Result<f64, ParseError> {
        let word = self.value(option, expected)?;
        strtod(word)
            .filter(|(_, unit)| matches!(*unit, "" | "%"))
            .map(|(number, _)| number / 100.0)
            .filter(|fraction| (0.0..=1.0).contains(fraction))
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// Says what a word is that many mean otherwise.
    fn tell(&mut self, option: &str, told: Option<String>) {
        self.notices.extend(told.map(|told| format!("{option} {told}")));
    }

    /// The next word, which stays.
    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.rest.split_whitespace().next()
    }

    /// Whether a value comes next, rather than an option.
    pub(crate) fn number_follows(&self) -> bool {
        self.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Whether a value comes next that may have a sign.
    pub(crate) fn signed_number_follows(&self) -> bool {
        self.number_follows() || self.peek().is_some_and(|word| word.starts_with('-'))
    }

    /// A value of eight bits and, behind a slash, a mask of as many, in C's notation.
    pub(crate) fn bits(&mut self, option: &str, expected: &str) -> Result<(u8, u8), ParseError> {
        let word = self.value(option, expected)?;
        let byte = |text: &str| {
            strtoul(text, 0)
                .filter(|(_, rest)| rest.is_empty())
                .and_then(|(value, _)| u8::try_from(value).ok())
        };
        word.split_once('/')
            .and_then(|(value, mask)| Some((byte(value)?, byte(mask)?)))
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A number in C's notation, as tc's `get_double`, which does not look at what stands behind it.
    pub(crate) fn double(&mut self, option: &str, expected: &str) -> Result<f64, ParseError> {
        let word = self.value(option, expected)?;
        let (value, rest) = strtod(word).ok_or_else(|| self.illegal(option, word, expected))?;
        if !rest.is_empty() {
            self.notices.push(format!("{option} {word} counts as {value}, without {rest:?}"));
        }
        Ok(value)
    }

    /// A whole number with a sign that fits 32 bits, in C's notation.
    pub(crate) fn integer(&mut self, option: &str, expected: &str) -> Result<i32, ParseError> {
        let word = self.value(option, expected)?;
        strtol(word, 0)
            .filter(|(_, rest)| rest.is_empty())
            .and_then(|(value, _)| i32::try_from(value).ok())
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A whole number that tc itself bounds.
    pub(crate) fn at_most(
        &mut self,
        option: &str,
        most: u32,
        expected: &str,
    ) -> Result<u32, ParseError> {
        let number = self.number(option, expected)?;
        if number > most {
            let message = format!("{number} is no {option}: {expected}");
            return Err(self.refuse(RefusedBy::Tc, message));
        }
        Ok(number)
    }

    /// Microseconds, as tc's `get_time`.
    pub(crate) fn micros(&mut self, option: &str, expected: &str) -> Result<u32, ParseError> {
        let word = self.value(option, expected)?;
        self.wrapping_micros(option, word).ok_or_else(|| self.illegal(option, word, expected))
    }

    fn wrapping_micros(&mut self, option: &str, word: &str) -> Option<u32> {
        let micros = tc_time::parse_micros(word).ok()?;
        self.tell(option, surprise::time(word));
        if tc_time::parse(word).map_or(true, |time| time.as_micros() > u128::from(u32::MAX)) {
            let notice = format!(
                "{option} {word} is beyond tc's 4294.967295s and wraps around to {}",
                tc_time::format_micros(micros)
            );
            self.notices.push(notice);
        }
        Some(micros)
    }

    /// Microseconds, or packets if the word ends as packets do.
    pub(crate) fn micros_or_packets(
        &mut self,
        option: &str,
        expected: &str,
    ) -> Result<MicrosOrPackets, ParseError> {
        let word = self.value(option, expected)?;
        if let Some(micros) = self.wrapping_micros(option, word) {
            return Ok(MicrosOrPackets::Micros(micros));
        }
        strtoul(word, 10)
            .filter(|(_, unit)| ["p", "pkt", "pkts", "packet", "packets"].contains(unit))
            .and_then(|(value, _)| u32::try_from(value).ok())
            .map(MicrosOrPackets::Packets)
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A single-precision number from 0 to `max`, with the word it was.
    pub(crate) fn float(
        &mut self,
        option: &str,
        max: f32,
        expected: &str,
    ) -> Result<(f32, &'a str), ParseError> {
        let word = self.value(option, expected)?;
        strtof_word(word)
            // As tc compares: what is not a number is neither too small nor too large.
            .filter(|value| !(*value < 0.0 || *value > max))
            .map(|value| (value, word))
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    /// A percentage from 0 to 100, rounded to a whole one; the sign is optional. As tc's `parse_percent`, in which a sign
    /// alone stands for 0.
    pub(crate) fn percent(&mut self, option: &str, expected: &str) -> Result<u8, ParseError> {
        let word = self.value(option, expected)?;
        let (number, unit) = strtod(word).unwrap_or((0.0, word));
        let fraction = number / 100.0;
        if !(0.0..=1.0).contains(&fraction) || !matches!(unit, "" | "%") {
            return Err(self.illegal(option, word, expected));
        }
        Ok((fraction * 100.0).round_ties_even() as u8)
    }

    /// A size that fits 32 bits, as tc's `get_size`.
    pub(crate) fn size(&mut self, option: &str, expected: &str) -> Result<u32, ParseError> {
        let word = self.value(option, expected)?;
        word.parse::<Bytes>()
            .ok()
            .and_then(|size| u32::try_from(size.0).ok())
            .ok_or_else(|| self.illegal(option, word, expected))
    }

    fn illegal(&self, option: &str, word: &str, expected: &str) -> ParseError {
        self.refuse(RefusedBy::Tc, format!("{word:?} is no {option}: {expected}"))
    }

    /// Refuses the word last taken, of which tc thinks nothing ill.
    pub(crate) fn kernel_refuses(&self, option: &str, expected: &str) -> ParseError {
        self.refuse(RefusedBy::Kernel, format!("the kernel refuses this {option}: {expected}"))
    }

    /// Refuses the word last taken.
    pub(crate) fn refuse(&self, refused_by: RefusedBy, message: String) -> ParseError {
        self.refuse_at(self.position, refused_by, message)
    }

    pub(crate) fn refuse_at(
        &self,
        position: Position,
        refused_by: RefusedBy,
        message: String,
    ) -> ParseError {
        let column = self.line[..position].chars().count() + 1;
        ParseError { line: self.line.to_owned(), column, refused_by, message }
    }
}

pub(crate) enum MicrosOrPackets {
    Micros(u32),
    Packets(u32),
}
