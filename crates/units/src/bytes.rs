use std::fmt;
use std::str::FromStr;

use crate::ParseUnitError;
use crate::number::{strtod, whole};

/// A number of bytes. Parses tc's sizes, where `k`, `m` and `g` are powers of 1024 and `kbit`, `mbit` and `gbit` an eighth
/// of them; prints as tc does, rounding sizes that are close to a whole `Kb`, `Mb` or `Gb`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const KILO: u64 = 1 << 10;
const MEGA: u64 = 1 << 20;
const GIGA: u64 = 1 << 30;

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(word: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError {
            word: word.to_owned(),
            quantity: "size",
            expected: "a number and b, kb, mb or gb (powers of 1024), such as 64kb",
        };
        let (number, unit) = strtod(word).ok_or_else(error)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => KILO,
            "m" | "mb" => MEGA,
            "g" | "gb" => GIGA,
            "kbit" => KILO / 8,
            "mbit" => MEGA / 8,
            "gbit" => GIGA / 8,
            _ => return Err(error()),
        };
        if let Some(whole) = whole(word, unit) {
            return whole.checked_mul(scale).map(Self).ok_or_else(error);
        }
        let bytes = number * scale as f64;
        if bytes >= 0.0 && bytes < u64::MAX as f64 { Ok(Self(bytes as u64)) } else { Err(error()) }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = |unit: u64, slack: u64| {
            let whole = (self.0 as f64 / unit as f64).round_ties_even() as u64;
            let close = whole.saturating_mul(unit).abs_diff(self.0) < slack;
            (self.0 >= unit && close).then_some(whole)
        };
        if let Some(whole) = near(GIGA, 1024) {
            write!(f, "{whole}Gb")
        } else if let Some(whole) = near(MEGA, 1024) {
            write!(f, "{whole}Mb")
        } else if let Some(whole) = near(KILO, 16) {
            write!(f, "{whole}Kb")
        } else {
            write!(f, "{}b", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tc_sizes() {
        for (word, bytes) in [
            ("100000", 100_000),
            ("64kb", 65_536),
            ("1.5K", 1_536),
            ("32Mb", 33_554_432),
            ("8kbit", 1_024),
            ("1gbit", 134_217_728),
            ("0", 0),
            ("12b", 12),
        ] {
            assert_eq!(word.parse(), Ok(Bytes(bytes)), "{word}");
        }
        for word in ["", "kb", "-1", "1x", "inf", "nan", "1p"] {
            assert!(word.parse::<Bytes>().is_err(), "{word}");
        }
    }

    #[test]
    fn shows_sizes_as_tc() {
        for (bytes, text) in [
            (100_000, "100000b"),
            (10_240, "10Kb"),
            (10_230, "10Kb"),
            (33_554_432, "32Mb"),
            (1_073_741_824, "1Gb"),
            (0, "0b"),
            (u64::MAX, "17179869184Gb"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
