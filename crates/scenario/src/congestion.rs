//! The names of congestion controls.

use std::fmt;
use std::str::FromStr;

use dualq_tcp::{Algorithm, EcnStyle};

use crate::words::{Word, known};

/// A congestion control that a scenario can ask for: one that `dualq-tcp` has, or that was registered there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CongestionControl(Algorithm);

impl CongestionControl {
    /// All of them but those that another crate registered.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Algorithm::ALL.iter().copied().map(Self).collect()
    }

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name()
    }

    /// The implementation of it in `dualq-tcp`.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        self.0
    }

    /// The ECN that it is made for; [`EcnStyle::Classic`] where it leaves that to the connection.
    #[must_use]
    pub fn ecn_style(self) -> EcnStyle {
        self.0.ecn_style()
    }

    /// Whether it is of no use without ECN, so that its flows ask for ECN unless told otherwise.
    #[must_use]
    pub fn needs_ecn(self) -> bool {
        matches!(self.ecn_style(), EcnStyle::Dctcp | EcnStyle::Accurate)
    }
}

impl From<Algorithm> for CongestionControl {
    fn from(algorithm: Algorithm) -> Self {
        Self(algorithm)
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
        match Algorithm::from_name(name) {
            Some(algorithm) => Ok(Self(algorithm)),
            None => known("congestion control", name, &Self::all(), Self::name),
        }
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
