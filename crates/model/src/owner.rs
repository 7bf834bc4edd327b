//! Whose a packet is.

/// A connection, and the host that opened it, which has a group of the scenario to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    const NUMBER_BITS: u32 = 24;
    /// Where a tunnel hides who it is.
    const TUNNEL: usize = 0xff;

    /// Of more hosts than eight bits tell apart, some are taken for one.
    pub(crate) const fn new(number: u32, group: usize) -> Self {
        Self(number | ((group % Self::TUNNEL) as u32) << Self::NUMBER_BITS)
    }

    /// Inside a tunnel.
    pub(crate) const fn hidden(number: u32) -> Self {
        Self(number | (Self::TUNNEL as u32) << Self::NUMBER_BITS)
    }

    /// The connection's number.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }

    pub(crate) const fn host(self) -> u32 {
        self.0 >> Self::NUMBER_BITS
    }

    pub(crate) const fn is_hidden(self) -> bool {
        self.host() == Self::TUNNEL as u32
    }
}
