//! What a path does to the ECN field.

use serde::{Deserialize, Serialize};

/// The values of the ECN field (RFC 3168 §5, RFC 9331 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codepoint {
    /// Not ECN-capable.
    NotEct,
    /// ECN-capable, and of the L queue's traffic.
    Ect1,
    /// ECN-capable.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Codepoint {
    /// All of them, in the order of their bits.
    pub const ALL: [Self; 4] = [Self::NotEct, Self::Ect1, Self::Ect0, Self::Ce];

    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// The RFCs' name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotEct => "Not-ECT",
            Self::Ect1 => "ECT(1)",
            Self::Ect0 => "ECT(0)",
            Self::Ce => "CE",
        }
    }
}

/// What became of packets that were sent with a value of the ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// They arrived as they were sent, or some with the mark that a queue may give to those that are ECN-capable.
    Passes,
    /// They arrived as if not ECN-capable.
    Bleached,
    /// They arrived as something else.
    Mangled,
    /// None arrived, while others did.
    BlackHole,
    /// Nothing is known: too few packets arrived at all.
    Unknown,
}

impl Fate {
    /// Fewer packets say nothing of what is lost.
    const FEWEST: u64 = 5;

    /// What became of `sent` packets, `arrived` being how many came with each value, in the order of `Codepoint::ALL`, and `others` how
    /// many of as many packets that were not ECN-capable. None of five lost by chance, where half of the others are lost, is one path in
    /// thirty.
    #[must_use]
    pub fn of(codepoint: Codepoint, sent: u64, arrived: [u64; 4], others: u64) -> Self {
        let total: u64 = arrived.iter().sum();
        let [bleached, .., marked] = arrived;
        let same = arrived[usize::from(codepoint.bits())];
        let may_be_marked = matches!(codepoint, Codepoint::Ect0 | Codepoint::Ect1);
        match codepoint {
            _ if total == 0 && sent >= Self::FEWEST && 2 * others >= sent => Self::BlackHole,
            _ if total == 0 => Self::Unknown,
            _ if same == total => Self::Passes,
            // All of them marked is no queue's doing.
            _ if may_be_marked && same > 0 && same + marked == total => Self::Passes,
            Codepoint::NotEct => Self::Mangled,
            _ if 2 * bleached >= total => Self::Bleached,
            _ => Self::Mangled,
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Bleached => "bleached",
            Self::Mangled => "mangled",
            Self::BlackHole => "black hole",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_told_from_what_arrives() {
        use Codepoint::{Ce, Ect0, Ect1, NotEct};
        let cases = [
            (Ect0, [0, 0, 10, 0], 10, Fate::Passes),
            (Ect1, [0, 7, 0, 3], 10, Fate::Passes),
            (Ect1, [0, 0, 0, 10], 10, Fate::Mangled),
            (Ect0, [10, 0, 0, 0], 10, Fate::Bleached),
            (Ect0, [0, 10, 0, 0], 10, Fate::Mangled),
            (Ce, [0, 0, 10, 0], 10, Fate::Mangled),
            (Ce, [10, 0, 0, 0], 10, Fate::Bleached),
            (Ect1, [0; 4], 10, Fate::BlackHole),
            (Ect1, [0; 4], 4, Fate::Unknown),
            (NotEct, [0, 0, 9, 0], 9, Fate::Mangled),
            (NotEct, [9, 0, 0, 0], 9, Fate::Passes),
        ];
        for (codepoint, arrived, others, fate) in cases {
            assert_eq!(Fate::of(codepoint, 10, arrived, others), fate, "{codepoint:?} {arrived:?}");
        }
    }
}
