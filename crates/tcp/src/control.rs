//! What is yes or no of a packet.

/// The control bits of a TCP header (RFC 9293 §3.1), and what else is yes or no of a packet: one byte, which travels as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control(u8);

impl Control {
    /// Nothing is said.
    pub const NONE: Self = Self(0);
    /// A connection request, or the answer to one.
    pub const SYN: Self = Self(1 << 0);
    /// Nothing follows: the last of the places of data is no byte; an acknowledgement takes the only place in its stream.
    pub const FIN: Self = Self(1 << 1);
    /// Of data: nothing follows for now (PSH).
    pub const PUSH: Self = Self(1 << 2);
    /// Nobody is there any more (RST). It says nothing else.
    pub const RESET: Self = Self(1 << 3);
    /// Data that were cut from an aggregate on the way: their memory is their own, not the sender's.
    pub const CUT: Self = Self(1 << 4);
    /// The first block of an acknowledgement tells of a duplicate (RFC 2883).
    pub const DSACK: Self = Self(1 << 5);
    /// A packet of the half that sends acknowledges FIN of the other end: the place of [`DSACK`](Self::DSACK), which only acknowledgements have.
    pub const HEARD_FIN: Self = Self(1 << 5);
    /// An acknowledgement has a cookie of Fast Open for the next SYN.
    pub const COOKIE: Self = Self(1 << 6);
    /// An acknowledgement comes with data of the other half.
    pub const WITH_DATA: Self = Self(1 << 7);

    /// These if `is_so`, else none.
    #[must_use]
    #[inline]
    pub const fn when(self, is_so: bool) -> Self {
        if is_so { self } else { Self::NONE }
    }

    /// Whether it has one of `others`.
    #[must_use]
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// These and `others`.
    #[must_use]
    #[inline]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These but for `others`.
    #[must_use]
    #[inline]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}
