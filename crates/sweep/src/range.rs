//! Numbers between two ends, in the words of what they are: rates, times, percentages, counts.

use std::time::Duration;

use dualq_units::{Exact, Rate, tc_time};

/// What lies between two ends: `1mbit..1gbit`, and `1mbit..1gbit:log` where each decade is as likely as the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    kind: Kind,
    least: f64,
    most: f64,
    log: bool,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Percent,
    Rate,
    Time,
}

const KINDS: [Kind; 4] = [Kind::Count, Kind::Percent, Kind::Rate, Kind::Time];

impl Kind {
    fn read(self, word: &str) -> Option<f64> {
        let read = match self {
            Self::Count => word.parse::<u64>().ok()? as f64,
            Self::Percent => word.strip_suffix('%')?.parse().ok()?,
            Self::Rate => word.parse::<Rate>().ok()?.as_bits_per_second() as f64,
            Self::Time => tc_time::parse_span(word).ok()?.as_secs_f64(),
        };
        Some(read).filter(|read: &f64| read.is_finite() && *read >= 0.0)
    }

    /// As it is read, with four digits that count: more would say less to whoever reads them.
    fn write(self, number: f64) -> String {
        match self {
            Self::Count => format!("{:.0}", number.round()),
            Self::Percent => format!("{}%", four_digits(number)),
            Self::Rate => {
                Exact(Rate::from_bits_per_second(four_digits(number).round() as u64)).to_string()
            }
            Self::Time => {
                let nanos = four_digits(number * 1e9).round();
                Exact(Duration::from_nanos(nanos as u64)).to_string()
            }
        }
    }
}

/// Rounded to four digits.
fn four_digits(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

impl Range {
    /// Reads `LEAST..MOST` or `LEAST..MOST:log`; none if the word is no range.
    pub(crate) fn read(word: &str) -> Option<Result<Self, String>> {
        let (ends, log) = match word.strip_suffix(":log") {
            Some(ends) => (ends, true),
            None => (word, false),
        };
        let (least, most) = ends.split_once("..")?;
        let (least, most) = (least.trim(), most.trim());
        let both = |kind: &Kind| Some((*kind, kind.read(least)?, kind.read(most)?));
        Some(match KINDS.iter().find_map(both) {
            None => Err(format!(
                "{word:?} is no range; give two rates, times, percentages or whole numbers, such as 1mbit..1gbit or 5ms..50ms:log"
            )),
            Some((_, least, most)) if least >= most => {
                Err(format!("{word:?}: the first end is to be the smaller one"))
            }
            Some((_, least, _)) if log && least <= 0.0 => {
                Err(format!("{word:?}: there is no logarithm of 0; begin above it"))
            }
            Some((kind, least, most)) => Ok(Self { kind, least, most, log }),
        })
    }

    /// Whether each value is a whole number, as likely as the next.
    pub(crate) fn is_of_whole_numbers(&self) -> bool {
        self.kind == Kind::Count && !self.log
    }

    /// What is so far between the ends, from 0 to 1.
    pub(crate) fn at(&self, share: f64) -> String {
        let Self { kind, least, most, log } = *self;
        let number = match (log, kind) {
            (true, _) => (least.ln() + share * (most.ln() - least.ln())).exp(),
            // Each whole number is as likely as the next, both ends too.
            (false, Kind::Count) => (least + share * (most - least + 1.0)).floor().min(most),
            (false, _) => least + share * (most - least),
        };
        kind.write(number.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(word: &str, share: f64) -> String {
        Range::read(word).unwrap().unwrap().at(share)
    }

    #[test]
    fn ends_are_what_was_given_and_the_middle_lies_between() {
        let expected = [
            ("1mbit..1gbit", ["1Mbit", "500500Kbit", "1Gbit"]),
            ("1mbit..1gbit:log", ["1Mbit", "31620Kbit", "1Gbit"]),
            ("5ms..50ms", ["5ms", "27.5ms", "50ms"]),
            ("0%..2.5%", ["0%", "1.25%", "2.5%"]),
            ("1..4", ["1", "3", "4"]),
        ];
        for (word, values) in expected {
            assert_eq!([0.0, 0.5, 1.0].map(|share| at(word, share)), values, "{word}");
        }
        // Every whole number has its share.
        assert_eq!(
            [0.1, 0.3, 0.6, 0.8, 0.99].map(|share| at("1..4", share)),
            ["1", "2", "3", "4", "4"]
        );
        assert_eq!(at("10ms..20ms", 1.0 / 3.0), "13.33ms");
    }

    #[test]
    fn what_is_no_range_is_told() {
        assert_eq!(Range::read("10mbit"), None);
        for word in ["1mbit..5ms", "..", "5ms..", "20ms..10ms", "3..3", "0..5:log", "x..y", "1..-2"]
        {
            assert!(Range::read(word).unwrap().is_err(), "{word}");
        }
    }
}
