//! A letter for bufferbloat, by the scale of DSLReports' speed test.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A grade on DSLReports' scale (<https://www.dslreports.com/faq/17930>): by how much the round-trip time grows under load, the mean of
/// download and upload. There is no E.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grade {
    /// Less than 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// More.
    F,
}

impl Grade {
    /// The name of the scale.
    pub const SCALE: &'static str = "DSLReports";

    /// The grade of round trips that are longer by so many milliseconds under load, in each direction that was loaded.
    #[must_use]
    pub fn of(increases_ms: &[f64]) -> Option<Self> {
        if increases_ms.is_empty() {
            return None;
        }
        let mean = increases_ms.iter().sum::<f64>() / increases_ms.len() as f64;
        let bounds = [
            (5.0, Self::APlus),
            (30.0, Self::A),
            (60.0, Self::B),
            (200.0, Self::C),
            (400.0, Self::D),
        ];
        Some(
            bounds.into_iter().find(|(bound, _)| mean < *bound).map_or(Self::F, |(_, grade)| grade),
        )
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_the_page() {
        let grades = [
            (0.0, "A+"),
            (4.9, "A+"),
            (5.0, "A"),
            (30.0, "B"),
            (60.0, "C"),
            (200.0, "D"),
            (400.0, "F"),
        ];
        for (increase_ms, grade) in grades {
            assert_eq!(Grade::of(&[increase_ms]).unwrap().to_string(), grade);
        }
        // The mean of both directions counts.
        assert_eq!(Grade::of(&[2.0, 100.0]), Some(Grade::B));
        assert_eq!(Grade::of(&[]), None);
    }
}
