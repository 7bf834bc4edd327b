//! The names of congestion controls.

use std::fmt;
use std::str::FromStr;

use dualq_tcp::Algorithm;

use crate::words::{Word, known};

/// A congestion control that a scenario can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CongestionControl {
    /// NewReno.
    Reno,
    /// CUBIC.
    Cubic,
    /// DCTCP.
    Dctcp,
    /// BBR version 1.
    Bbr,
    /// BBR version 3, which only some kernels have.
    Bbr3,
    /// TCP Prague, which only some kernels have.
    Prague,
}

impl CongestionControl {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Reno, Self::Cubic, Self::Dctcp, Self::Bbr, Self::Bbr3, Self::Prague];

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => Algorithm::Reno.name(),
            Self::Cubic => Algorithm::Cubic.name(),
            Self::Dctcp => Algorithm::Dctcp.name(),
            Self::Bbr => Algorithm::Bbr.name(),
            Self::Bbr3 => "bbr3",
            Self::Prague => "prague",
        }
    }

    /// The implementation of it in `dualq-tcp`; `None` if only real kernels have one.
    #[must_use]
    pub const fn algorithm(self) -> Option<Algorithm> {
        match self {
            Self::Reno => Some(Algorithm::Reno),
            Self::Cubic => Some(Algorithm::Cubic),
            Self::Dctcp => Some(Algorithm::Dctcp),
            Self::Bbr => Some(Algorithm::Bbr),
            Self::Bbr3 | Self::Prague => None,
        }
    }

    /// Whether it is of no use without ECN, so that its flows ask for ECN unless told otherwise.
    #[must_use]
    pub const fn needs_ecn(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague)
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for CongestionControl {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        known("congestion control", name, &Self::ALL, Self::name)
    }
}

impl Word for CongestionControl {
    fn read(word: &str) -> Result<Self, String> {
        word.parse()
    }

    fn write(&self) -> String {
        self.name().to_owned()
    }
}
