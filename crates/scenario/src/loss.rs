//! Rates of loss.

use std::fmt;

use crate::words::Word;

/// A probability of loss, written as percent (`0.01%`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// In units of 2⁻³².
    threshold: u64,
}

/// Why a word is no rate of loss.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossError {
    /// It is no number.
    #[error("{0:?} is not a loss rate: a percentage such as 0.1%")]
    NoNumber(String),
    /// It is more than all packets, or fewer than none.
    #[error("{0:?} is not a loss rate, which is from 0% to 100%")]
    OutOfRange(String),
}

impl Loss {
    /// No loss at all.
    pub const NONE: Self = Self { threshold: 0 };

    /// That many percent, within 0 and 100.
    #[must_use]
    pub fn from_percent(percent: f64) -> Self {
        let share = (percent / 100.0).clamp(0.0, 1.0);
        Self { threshold: (share * 4_294_967_296.0).round() as u64 }
    }

    /// That share of 2³² - 1, as netem counts probabilities.
    #[must_use]
    pub const fn from_threshold(threshold: u32) -> Self {
        Self { threshold: threshold as u64 }
    }

    /// The same as netem counts it, in units of 1/(2³² - 1).
    #[must_use]
    pub fn as_threshold(self) -> u32 {
        u32::try_from(self.threshold).unwrap_or(u32::MAX)
    }

    /// The same in units of 2⁻³².
    #[must_use]
    pub const fn threshold(self) -> u64 {
        self.threshold
    }

    /// In percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        self.threshold as f64 / 42_949_672.96
    }

    /// Whether nothing is ever lost.
    #[must_use]
    #[inline]
    pub const fn is_none(self) -> bool {
        self.threshold == 0
    }

    /// Reads a percentage, with or without its sign.
    ///
    /// # Errors
    /// If `word` is none.
    pub fn parse(word: &str) -> Result<Self, LossError> {
        let number = word.trim();
        let number = number.strip_suffix('%').unwrap_or(number);
        match number.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::from_percent(percent)),
            Ok(number) if !number.is_nan() => Err(LossError::OutOfRange(word.to_owned())),
            _ => Err(LossError::NoNumber(word.to_owned())),
        }
    }
}

impl fmt::Display for Loss {
    /// With as few digits as read back as what it was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent();
        // A unit is 2.3e-8 percent, so that eight digits tell all of them apart.
        let rounded = (0..=8).map(|digits| {
            let scale = 10_f64.powi(digits);
            (percent * scale).round() / scale
        });
        let exact = rounded.into_iter().find(|short| Self::from_percent(*short) == *self);
        write!(f, "{}%", exact.unwrap_or(percent))
    }
}

impl Word for Loss {
    fn read(word: &str) -> Result<Self, String> {
        Self::parse(word).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_short_as_possible() {
        for word in ["0%", "0.01%", "0.1%", "1.5%", "33%", "100%", "0.00001%"] {
            assert_eq!(Loss::parse(word).unwrap().to_string(), word);
        }
    }

    proptest! {
        #[test]
        fn reads_back_as_what_it_was(threshold in any::<u32>(), shift in 0..32_u32) {
            let loss = Loss::from_threshold(threshold >> shift);
            prop_assert_eq!(Loss::parse(&loss.to_string()), Ok(loss));
        }
    }
}
