//! Whose a packet is.

/// A connection, the host that opened it, which has a group of the scenario to itself, and whether the sender of its data is there or at the other
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    const NUMBER_BITS: u32 = 23;
    const ACCEPTED: u32 = 1 << Self::NUMBER_BITS;
    const HOST_SHIFT: u32 = Self::NUMBER_BITS + 1;
    /// Where a tunnel hides who it is.
    const TUNNEL: usize = 0xff;

    /// Of more hosts than eight bits tell apart, some are taken for one.
    pub(crate) const fn new(number: u32, group: usize) -> Self {
        Self(number | ((group % Self::TUNNEL) as u32) << Self::HOST_SHIFT)
    }

    /// Inside a tunnel.
    pub(crate) const fn hidden(number: u32) -> Self {
        Self(number | (Self::TUNNEL as u32) << Self::HOST_SHIFT)
    }

    /// The same, where the sender of data accepted the connection.
    pub(crate) const fn accepted(self) -> Self {
        Self(self.0 | Self::ACCEPTED)
    }

    #[inline]
    pub(crate) const fn is_accepted(self) -> bool {
        self.0 & Self::ACCEPTED > 0
    }

    /// The connection's number.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }

    pub(crate) const fn host(self) -> u32 {
        self.0 >> Self::HOST_SHIFT
    }

    pub(crate) const fn is_hidden(self) -> bool {
        self.host() == Self::TUNNEL as u32
    }
}
