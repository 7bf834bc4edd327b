//! Explicit congestion notification between two hosts: which way of it they agree on (`handshake.rs`), and what Accurate ECN's
//! counters tell (`counters.rs`; RFC 9768).

mod counters;
mod handshake;

pub(crate) use counters::{Delivered, Progress, Received};
pub use counters::{EcnBytes, OPTION_BYTES};
pub(crate) use handshake::{answer, grant, third_ace};

use dualq_units::Ecn;

/// How a connection uses ECN: what a host asks for or grants, what both agreed on, and what a congestion control is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnStyle {
    /// Not at all.
    Off,
    /// As RFC 3168: a mark counts once a round trip, and is echoed until that was noticed.
    #[default]
    Classic,
    /// As DCTCP (RFC 8257): all packets are ECN-capable, and each mark is echoed and counted.
    Dctcp,
    /// Accurate ECN (RFC 9768): all packets are ECN-capable, and marked packets and bytes are counted at the receiver and told.
    Accurate,
}

/// When a host sends the option of Accurate ECN (RFC 9768 §3.2.3.3; Linux: `tcp_ecn_option`, `enum tcp_accecn_option`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnOption {
    /// Never.
    Disabled,
    /// After a change of what arrives, and some times a round trip.
    Minimum,
    /// With every packet that has room for it.
    #[default]
    Full,
}

/// The flags AE, CWR and ECE of a TCP header: three flags in a handshake and with classic ECN, the field ACE with Accurate ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnFlags(u8);

/// It is a count: no part of an aggregate has other flags than the rest.
const COUNT: u8 = 0b1000;

impl EcnFlags {
    /// None.
    pub const NONE: Self = Self(0);
    /// The echo of a mark; in the answer to a SYN, that classic ECN is granted.
    pub const ECE: Self = Self(0b001);
    /// The window was reduced.
    pub const CWR: Self = Self(0b010);
    /// What a SYN has that asks for classic ECN.
    pub const ASKS_CLASSIC: Self = Self(0b011);
    /// What a SYN has that asks for Accurate ECN.
    pub const ASKS_ACCURATE: Self = Self(0b111);

    /// Of the three bits AE, CWR and ECE.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b111)
    }

    /// The field ACE: a count of marked packets, of which three bits travel.
    #[must_use]
    #[inline]
    pub(crate) const fn count(packets: u32) -> Self {
        Self(COUNT | (packets & 0b111) as u8)
    }

    /// The three bits AE, CWR and ECE.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0 & 0b111
    }

    /// Whether ECE is set.
    #[must_use]
    #[inline]
    pub const fn ece(self) -> bool {
        self.0 & Self::ECE.0 != 0
    }

    /// Whether CWR is set.
    #[must_use]
    #[inline]
    pub const fn cwr(self) -> bool {
        self.0 & Self::CWR.0 != 0
    }

    /// With what a header says too that also acknowledges: an echo, or a count in place of all else.
    #[must_use]
    #[inline]
    pub const fn with(self, echo: Self) -> Self {
        if echo.0 & COUNT != 0 { echo } else { Self(self.0 | echo.0) }
    }

    /// What the later parts of an aggregate have: CWR is the first one's, a count is all parts'.
    #[must_use]
    #[inline]
    pub const fn of_rest(self) -> Self {
        if self.0 & COUNT != 0 { self } else { Self(self.0 & !Self::CWR.0) }
    }
}

/// The place of an ECN field among three counters: ECT(0), CE, ECT(1), as the option's first order has them.
pub(crate) const fn place(ecn: Ecn) -> Option<usize> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(0),
        Ecn::Ce => Some(1),
        Ecn::Ect1 => Some(2),
    }
}
