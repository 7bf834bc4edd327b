//! Words that tc's grammar takes, and that many who write them mean otherwise.

use std::time::Duration;

use crate::number::{format_g, strtod};
use crate::{Rate, tc_time};

/// Rates below this are typing errors on any link that somebody would ask dualq about.
const LEAST_RATE: u64 = 1000;

/// Says what a rate is in tc's words where it may have been meant otherwise: `50mbps` are bytes per second, `5` is 5 bit/s.
#[must_use]
pub fn rate(word: &str) -> Option<String> {
    let rate: Rate = word.parse().ok()?;
    let (number, unit) = strtod(word)?;
    let unit = unit.to_ascii_lowercase();
    if let Some(prefix) = unit.strip_suffix("bps") {
        let meant = format!("{}{prefix}bit", format_g(number, 15));
        return Some(format!(
            "{word} is {rate}/s, for bps are bytes per second in tc's words; {meant}?"
        ));
    }
    (0 < rate.as_bits_per_second() && rate.as_bits_per_second() < LEAST_RATE).then(|| {
        format!("{word} is {} bit/s; {}mbit?", rate.as_bits_per_second(), format_g(number, 15))
    })
}

/// Says what a time is in tc's words where it may have been meant otherwise: `50` is 50 µs, and who says that of a delay means milliseconds.
#[must_use]
pub fn time(word: &str) -> Option<String> {
    bare_time(word, "microsecond", "ms")
}

/// The same of an option that takes nanoseconds.
#[must_use]
pub fn nanos(word: &str) -> Option<String> {
    bare_time(word, "nanosecond", "ms")
}

/// The same of how long something lasts: who says `60` means seconds.
#[must_use]
pub fn duration(word: &str) -> Option<String> {
    bare_time(word, "microsecond", "s")
}

fn bare_time(word: &str, is: &str, meant: &str) -> Option<String> {
    let time = tc_time::parse(word).ok()?;
    let (number, unit) = strtod(word)?;
    (unit.is_empty() && time > Duration::ZERO).then(|| {
        let plural = if time == Duration::from_micros(1) { "" } else { "s" };
        let number = format_g(number, 15);
        format!(
            "{word} is {number} {is}{plural}, for a bare number is that in tc's words; {number}{meant}?"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_a_second_are_told() {
        let told = |word| rate(word).unwrap_or_else(|| panic!("{word}"));
        assert_eq!(
            told("50mbps"),
            "50mbps is 400Mbit/s, for bps are bytes per second in tc's words; 50mbit?"
        );
        assert!(told("1.5MiBps").ends_with("; 1.5mibit?"));
        assert_eq!(told("5"), "5 is 5 bit/s; 5mbit?");
        assert_eq!(told("50bit"), "50bit is 50 bit/s; 50mbit?");
        for word in ["50mbit", "64kbit", "1gbit", "48000000", "0", "fast"] {
            assert_eq!(rate(word), None, "{word}");
        }
    }

    #[test]
    fn microseconds_are_told() {
        let expected = "50 is 50 microseconds, for a bare number is that in tc's words; 50ms?";
        assert_eq!(time("50").as_deref(), Some(expected));
        let expected = "1 is 1 microsecond, for a bare number is that in tc's words; 1s?";
        assert_eq!(duration("1").as_deref(), Some(expected));
        let expected = "2 is 2 nanoseconds, for a bare number is that in tc's words; 2ms?";
        assert_eq!(nanos("2").as_deref(), Some(expected));
        for word in ["50ms", "50us", "0", "1s", "soon"] {
            assert_eq!(time(word), None, "{word}");
        }
    }
}
