//! What figures are measured in.

use serde::{Deserialize, Serialize};

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Unit {
    /// 10⁶ bits a second.
    #[serde(rename = "Mbit/s")]
    Megabits,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Packets or segments.
    #[serde(rename = "count")]
    Count,
    /// A share of 1.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// How a number of this unit is labelled; counts and shares have no label.
    #[must_use]
    pub const fn symbol(self) -> Option<&'static str> {
        match self {
            Self::Megabits => Some("Mbit/s"),
            Self::Millis => Some("ms"),
            Self::Count | Self::Ratio => None,
        }
    }
}
