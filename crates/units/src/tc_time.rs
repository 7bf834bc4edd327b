//! Spans of time in tc's words: `15ms`, `500us`, `1.5s`; a bare number is in microseconds.

use std::time::Duration;

use crate::ParseUnitError;
use crate::number::{c_unsigned, format_g, strtod};

const EXPECTED: &str = "a number and s, ms or us, such as 15ms; a bare number is in microseconds";

/// Reads a time as tc's options take it: whole microseconds, cut, in 32 bits that wrap around (4294.967295s is the most
/// that tc can say).
///
/// # Errors
/// If the word is not a number with one of tc's units, or is negative. A time that is too long is no error: tc wraps it.
pub fn parse_micros(word: &str) -> Result<u32, ParseUnitError> {
    let micros = fractional_micros(word, &["s", "ms", "us"])?;
    if micros < 0.0 { Err(error(word)) } else { Ok(c_unsigned(micros)) }
}

/// Reads a time for dualq's own use, to the nanosecond: tc's words, and `ns`.
///
/// # Errors
/// If the word is not a number with a unit, or is negative, not finite or longer than about 584 years.
pub fn parse(word: &str) -> Result<Duration, ParseUnitError> {
    nanos(word, &["s", "ms", "us", "ns"]).ok_or_else(|| error(word))
}

/// Reads a time as those options of tc take it that are of nanoseconds: as [`parse`], but a bare number is in nanoseconds.
///
/// # Errors
/// As there.
pub fn parse_nanos(word: &str) -> Result<Duration, ParseUnitError> {
    match strtod(word) {
        Some((_, "")) => parse(&format!("{word}ns")),
        _ => parse(word),
    }
    .map_err(|_| error(word))
}

/// Reads a time where no word of tc is meant: as [`parse`], and `m` or `min` and `h`.
///
/// # Errors
/// As there.
pub fn parse_span(word: &str) -> Result<Duration, ParseUnitError> {
    let expected =
        "a number and h, min, s, ms or us, such as 90s; a bare number is in microseconds";
    let error = ParseUnitError { word: word.to_owned(), quantity: "time", expected };
    nanos(word, &["s", "ms", "us", "ns", "m", "min", "h"]).ok_or(error)
}

fn nanos(word: &str, units: &[&str]) -> Option<Duration> {
    if let Some(nanos) = decimal_nanos(word) {
        return u64::try_from(nanos).ok().map(Duration::from_nanos);
    }
    let nanos = fractional_micros(word, units).ok()? * 1e3;
    if nanos >= 0.0 && nanos < u64::MAX as f64 {
        Some(Duration::from_nanos(nanos.round() as u64))
    } else {
        None
    }
}

/// A unit by its short name: tc also writes `msec` and `msecs`.
fn short_unit(unit: &str) -> String {
    let unit = unit.to_ascii_lowercase();
    let long = unit.strip_suffix("secs").or_else(|| unit.strip_suffix("sec"));
    long.map_or(unit.clone(), |prefix| format!("{prefix}s"))
}

fn fractional_micros(word: &str, units: &[&str]) -> Result<f64, ParseUnitError> {
    let (number, unit) = strtod(word).ok_or_else(|| error(word))?;
    let unit = short_unit(unit);
    if unit.is_empty() {
        return Ok(number);
    }
    if !units.contains(&unit.as_str()) {
        return Err(error(word));
    }
    Ok(match unit.as_str() {
        "h" => number * 3600e6,
        "m" | "min" => number * 60e6,
        "s" => number * 1e6,
        "ms" => number * 1e3,
        "ns" => number / 1e3,
        _ => number,
    })
}

/// The nanoseconds of a plain decimal such as `48.33ms`, to the nearest; `None` if it is written otherwise. Doubles do not
/// hold the nanoseconds of a month.
fn decimal_nanos(word: &str) -> Option<u128> {
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = word.split_at(end);
    let scale: u128 = match short_unit(unit).as_str() {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = u128::from(fraction.parse::<u64>().ok()?) * scale;
    Some(u128::from(whole) * scale + (fraction + parts / 2) / parts)
}

fn error(word: &str) -> ParseUnitError {
    ParseUnitError { word: word.to_owned(), quantity: "time", expected: EXPECTED }
}

/// A number of microseconds as tc shows it: three significant digits in the largest unit that fits, `16.7ms`.
#[must_use]
pub fn format_micros(micros: u32) -> String {
    let value = f64::from(micros);
    if micros >= 1_000_000 {
        format!("{}s", format_g(value / 1e6, 3))
    } else if micros >= 1_000 {
        format!("{}ms", format_g(value / 1e3, 3))
    } else {
        format!("{micros}us")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tc_times() {
        for (word, micros) in [
            ("15ms", 15_000),
            ("1.5ms", 1_500),
            ("20000", 20_000),
            ("1S", 1_000_000),
            ("2sec", 2_000_000),
            ("3MSECS", 3_000),
            ("7usec", 7),
            ("0.9us", 0),
            ("5000s", 705_032_704),
            ("-0", 0),
            ("inf", 0),
        ] {
            assert_eq!(parse_micros(word), Ok(micros), "{word}");
        }
        for word in ["", "5m", "xms", "ms", "5 ms", "5ns", "5sec2", "-1us", "-0.5us"] {
            assert!(parse_micros(word).is_err(), "{word}");
        }
    }

    #[test]
    fn reads_times_to_the_nanosecond() {
        assert_eq!(parse("48.33ms"), Ok(Duration::from_nanos(48_330_000)));
        assert_eq!(parse("5ns"), Ok(Duration::from_nanos(5)));
        assert_eq!(parse("100"), Ok(Duration::from_micros(100)));
        for word in ["-1ms", "inf", "nan", "1e30s"] {
            assert!(parse(word).is_err(), "{word}");
        }
    }

    #[test]
    fn minutes_and_hours_are_for_people_only() {
        for (word, seconds) in [("1h", 3600), ("1.5min", 90), ("2m", 120), ("90s", 90)] {
            assert_eq!(parse_span(word), Ok(Duration::from_secs(seconds)), "{word}");
        }
        for word in ["-1h", "h", "1d", "1 h"] {
            assert!(parse_span(word).is_err(), "{word}");
        }
        for word in ["1h", "1.5min", "2m"] {
            assert!(parse(word).is_err() && parse_micros(word).is_err(), "{word}");
        }
    }

    #[test]
    fn shows_times_as_tc() {
        assert_eq!(format_micros(500), "500us");
        assert_eq!(format_micros(16_666), "16.7ms");
        assert_eq!(format_micros(2_000_000), "2s");
        assert_eq!(format_micros(u32::MAX), "4.29e+03s");
    }
}
