//! The names of congestion controls.

use std::fmt;
use std::str::FromStr;

use dualq_tcp::{Algorithm, EcnStyle};

use crate::words::{Word, known};

/// A congestion control that a scenario can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CongestionControl {
    /// One that `dualq-tcp` has, or that was registered there.
    Algorithm(Algorithm),
    /// TCP Prague, which only some kernels have.
    Prague,
}

impl CongestionControl {
    /// All of them but those that another crate registered.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let ours = Algorithm::ALL.iter().copied().map(Self::Algorithm);
        ours.chain([Self::Prague]).collect()
    }

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Algorithm(algorithm) => algorithm.name(),
            Self::Prague => "prague",
        }
    }

    /// The implementation of it in `dualq-tcp`; `None` if only real kernels have one.
    #[must_use]
    pub const fn algorithm(self) -> Option<Algorithm> {
        match self {
            Self::Algorithm(algorithm) => Some(algorithm),
            Self::Prague => None,
        }
    }

    /// Whether it is of no use without ECN, so that its flows ask for ECN unless told otherwise.
    #[must_use]
    pub fn needs_ecn(self) -> bool {
        match self {
            Self::Algorithm(algorithm) => algorithm.ecn_style() == EcnStyle::Dctcp,
            Self::Prague => true,
        }
    }
}

impl From<Algorithm> for CongestionControl {
    fn from(algorithm: Algorithm) -> Self {
        Self::Algorithm(algorithm)
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
            Some(algorithm) => Ok(Self::Algorithm(algorithm)),
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
