//! A packet on its way through the bottleneck.

use dualq_tcp::Data;
use dualq_units::Ecn;

use crate::queues::Frame;

/// Data of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The connection's number.
    pub(crate) connection: u32,
    pub(crate) data: Data,
}

impl Frame for Packet {
    #[inline]
    fn length(&self) -> u32 {
        self.data.wire_bytes()
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.data.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.data.ecn = Ecn::Ce;
    }

    #[inline]
    fn flow(&self) -> u32 {
        self.connection
    }

    #[inline]
    fn segments(&self) -> u32 {
        self.data.segments.into()
    }

    #[inline]
    fn split_first(&mut self) -> Self {
        Self { connection: self.connection, data: self.data.split_first() }
    }
}
