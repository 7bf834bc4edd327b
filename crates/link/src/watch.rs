//! Who looks at single packets of a link.

use std::time::Duration;

use dualq_net::Lost;
use dualq_units::Instant;

use crate::cut;
use crate::packet::Packet;
use crate::vnet::VNET_BYTES;

/// Sees packets, of one direction, from the thread that moves them: what takes long here makes the link late.
pub trait Watch: Send {
    /// Something happened to a packet.
    fn packet(&mut self, at: Instant, seen: Seen, packet: &Packet);
}

/// What happened to a packet. An aggregate is one packet here until something takes it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It came to the link.
    Came,
    /// It came to the bottleneck's queue, which may drop it.
    Queued,
    /// It left that queue for the wire.
    Sent {
        /// So long it was there.
        sojourn: Duration,
        /// Whether that queue marked it.
        marked: bool,
    },
    /// It left the queue of an element.
    Passed {
        /// Which, in the order in which packets meet them, from 0 on.
        number: usize,
        /// So long it was there.
        sojourn: Duration,
    },
    /// It was lost.
    Lost(Lost),
    /// It left the link, at this time of the path's own clock; it may be written a little later.
    Left,
}

impl Packet {
    /// Puts the packet's first `most` bytes, from the header of IP on and as they would be written now, behind what is in `bytes`. A
    /// checksum of TCP or UDP may not be made yet, as where the network card does that. Returns how many bytes the whole packet has.
    pub fn write_to(&self, bytes: &mut Vec<u8>, most: usize) -> usize {
        let written = cut::write(self);
        let [head, payload] = written.pieces();
        let head = &head[VNET_BYTES..];
        bytes.extend_from_slice(&head[..head.len().min(most)]);
        bytes.extend_from_slice(&payload[..payload.len().min(most.saturating_sub(head.len()))]);
        head.len() + payload.len()
    }
}
