//! Datagrams as packets on a path.

use bytes::BytesMut;
use dualq_qdisc::{Ecn, FlowPacket};
use quinn_proto::EcnCodepoint;

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;

/// The smallest IP packet that a link must take for QUIC to cross it (RFC 9000 §14).
pub(crate) const LEAST_MTU: u32 = 1200 + 20 + 8;

/// A UDP datagram, and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) flow: u32,
    /// Whether queues cannot tell whose it is.
    pub(crate) tunnel: bool,
    pub(crate) ecn: Ecn,
    pub(crate) payload: BytesMut,
}

impl Datagram {
    pub(crate) fn new(flow: u32, ecn: Option<EcnCodepoint>, payload: &[u8]) -> Self {
        let ecn = match ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        Self { flow, tunnel: false, ecn, payload: payload.into() }
    }

    /// The field as quinn has it.
    pub(crate) const fn codepoint(&self) -> Option<EcnCodepoint> {
        match self.ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        }
    }
}

impl dualq_qdisc::Packet for Datagram {
    fn length(&self) -> u32 {
        u32::try_from(self.payload.len() + HEADERS).unwrap_or(u32::MAX)
    }

    fn memory(&self) -> u32 {
        self.length()
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

impl FlowPacket for Datagram {
    fn flow(&self) -> u32 {
        if self.tunnel { 0 } else { self.flow }
    }
}

impl dualq_net::Packet for Datagram {
    fn clear_ecn(&mut self) {
        self.ecn = Ecn::NotEct;
    }
}
