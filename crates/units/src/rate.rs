use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::number::{strtod, whole};
use crate::{Bytes, ParseUnitError};

/// A bit rate, in whole bits per second. Parses and prints tc's words: `50mbit` is 50,000,000 bit/s, `50mibit` uses powers
/// of 1024, `6mbps` is bytes per second, a bare number is bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits` per second.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `megabits` times 10⁶ bits per second.
    #[must_use]
    pub const fn from_mbit(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// The rate at which `size` takes `time`, rounded down; zero for no time at all.
    #[must_use]
    pub fn of(size: Bytes, time: Duration) -> Self {
        let bit_nanos = u128::from(size.0) * 8 * 1_000_000_000;
        let rate = bit_nanos.checked_div(time.as_nanos()).unwrap_or(0);
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// How long `size` occupies a link of this rate, rounded up to the nanosecond; for ever if the rate is zero.
    #[must_use]
    #[inline]
    pub fn transmission_time(self, size: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // In 64 bits while it fits: this is once a packet.
        match size.0.checked_mul(8 * 1_000_000_000) {
            Some(bit_nanos) => Duration::from_nanos(bit_nanos.div_ceil(self.0)),
            None => {
                let nanos = (u128::from(size.0) * 8 * 1_000_000_000).div_ceil(self.0.into());
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }
}

/// What tc's rate suffixes multiply by, to bits per second.
const UNITS: [(&str, u64); 19] = [
    ("", 1),
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8_000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
    ("tibps", 8 << 40),
];

impl FromStr for Rate {
    type Err = ParseUnitError;

    fn from_str(word: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError {
            word: word.to_owned(),
            quantity: "rate",
            expected: "a number and bit, kbit, mbit or gbit (powers of 1000), such as 50mbit",
        };
        let (number, suffix) = strtod(word).ok_or_else(error)?;
        let (_, scale) =
            UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(suffix)).ok_or_else(error)?;
        if let Some(whole) = whole(word, suffix) {
            return whole.checked_mul(*scale).map(Self).ok_or_else(error);
        }
        let bits = number * *scale as f64;
        if bits >= 0.0 && bits < u64::MAX as f64 { Ok(Self(bits as u64)) } else { Err(error()) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rate = self.0;
        let mut unit = "";
        for larger in ["K", "M", "G", "T"] {
            // tc keeps a rate below 1,000,000 exact rather than short.
            if rate < 1000 || (!rate.is_multiple_of(1000) && rate < 1_000_000) {
                break;
            }
            rate /= 1000;
            unit = larger;
        }
        write!(f, "{rate}{unit}bit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tc_rates() {
        for (word, bits) in [
            ("50mbit", 50_000_000),
            ("1.5Mbit", 1_500_000),
            ("128kbit", 128_000),
            ("10gbit", 10_000_000_000),
            ("1kibit", 1_024),
            ("6MBps", 48_000_000),
            ("800", 800),
            ("0", 0),
        ] {
            assert_eq!(word.parse(), Ok(Rate(bits)), "{word}");
        }
        for word in ["", "mbit", "fast", "50mb", "-1mbit", "inf", "1e40"] {
            assert!(word.parse::<Rate>().is_err(), "{word}");
        }
    }

    #[test]
    fn shows_rates_as_tc() {
        for (bits, text) in [
            (50_000_000, "50Mbit"),
            (1_500_000, "1500Kbit"),
            (10_000_000_000, "10Gbit"),
            (999, "999bit"),
            (1_001, "1001bit"),
            (123_456_789, "123456Kbit"),
        ] {
            assert_eq!(Rate(bits).to_string(), text);
        }
    }

    #[test]
    fn a_frame_takes_its_time() {
        let frame = Bytes(1514);
        let time = |rate| Rate(rate).transmission_time(frame);
        assert_eq!(time(20_000_000), Duration::from_nanos(605_600));
        assert_eq!(time(3), Duration::from_nanos(4_037_333_333_334));
        assert_eq!(
            Rate::from_mbit(1).transmission_time(Bytes(u64::MAX)),
            Duration::from_nanos(u64::MAX)
        );
        assert_eq!(time(0), Duration::MAX);
        assert_eq!(Rate::of(frame, Duration::from_nanos(605_600)), Rate(20_000_000));
    }
}
