/// The ECN field of an IP header (RFC 3168 §5; RFC 9331 §2 gives ECT(1) to L4S).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be told by a drop.
    #[default]
    NotEct = 0b00,
    /// ECT(1): the sender's congestion control is scalable (L4S).
    Ect1 = 0b01,
    /// ECT(0): ECN-capable, classic.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// Whether a queue may set CE instead of dropping.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// What the two lowest bits of an IP header's second byte say.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The field as two bits, 0 to 3.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }
}
