//! A packet on its way: some segments of a frame.

use std::ops::Range;
use std::sync::Arc;

use dualq_qdisc::{Device, Ecn, FlowPacket, PureAck};

use crate::frame::Frame;
use crate::layout::Network;

/// What a packet holds of kernel memory beside its payload: the socket buffer and room for headers, as in the model.
const OVERHEAD: u32 = 896;

/// The priority that Linux gives forwarded packets of IPv4 by four bits of their DSCP (Linux: `ip_tos2prio`; tc-prio(8)).
const PRIORITIES: [u8; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];

/// A packet, or an aggregate of several, of those that one frame has. It is cheap to copy.
#[derive(Clone, Debug)]
pub struct Packet {
    frame: Arc<Frame>,
    first: u16,
    segments: u16,
    ecn: Ecn,
    /// All packets are one flow to queues.
    tunnel: bool,
    /// Which of the passage's hosts with delays of their own it is of or for, from 1; 0 for others.
    origin: u8,
    wire_bytes: u32,
}

impl Packet {
    /// All that a frame has.
    pub(crate) fn whole(frame: Arc<Frame>, tunnel: bool, origin: u8) -> Self {
        let segments = frame.layout().segments;
        let wire_bytes = wire_bytes(&frame, &(0..segments));
        Self { ecn: frame.layout().ecn, first: 0, segments, tunnel, origin, wire_bytes, frame }
    }

    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    /// Which segments of its frame it is.
    pub(crate) const fn range(&self) -> Range<u16> {
        self.first..self.first + self.segments
    }

    /// How many packets it is on the wire.
    #[must_use]
    pub const fn segment_count(&self) -> u16 {
        self.segments
    }

    /// The same with what follows it in its frame, if `next` is just that, and alike.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let fits = Arc::ptr_eq(&self.frame, &next.frame)
            && self.first + self.segments == next.first
            && self.ecn == next.ecn;
        if fits {
            self.segments += next.segments;
            self.wire_bytes += next.wire_bytes;
        }
        fits
    }

    fn part(&self, range: Range<u16>) -> Self {
        let wire_bytes = wire_bytes(&self.frame, &range);
        let segments = range.end - range.start;
        Self { first: range.start, segments, wire_bytes, ..self.clone() }
    }

    /// Takes it apart, in order.
    pub(crate) fn each(self, segment: &mut impl FnMut(Self)) {
        if self.segments == 1 {
            return segment(self);
        }
        for number in self.range() {
            segment(self.part(number..number + 1));
        }
    }
}

/// Bytes on the wire, Ethernet's header included; an aggregate counts all headers of each segment (Linux: `qdisc_pkt_len_init`).
fn wire_bytes(frame: &Frame, range: &Range<u16>) -> u32 {
    let layout = frame.layout();
    let all = frame.packet().len() as u32;
    if layout.segments == 1 {
        return all + Device::ETHERNET_HEADER;
    }
    let headers = u32::from(layout.header_bytes);
    let payload = all - headers;
    let size = u32::from(layout.segment_bytes);
    let [start, end] = [range.start, range.end].map(|at| (u32::from(at) * size).min(payload));
    let segments = u32::from(range.end - range.start);
    end - start + segments * (headers + Device::ETHERNET_HEADER)
}

impl dualq_qdisc::Packet for Packet {
    #[inline]
    fn length(&self) -> u32 {
        self.wire_bytes
    }

    #[inline]
    fn memory(&self) -> u32 {
        self.wire_bytes + OVERHEAD
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    #[inline]
    fn is_gso(&self) -> bool {
        self.segments > 1
    }

    fn split(self, segment: &mut impl FnMut(Self)) {
        self.each(segment);
    }
}

impl FlowPacket for Packet {
    #[inline]
    fn flow(&self) -> u32 {
        if self.tunnel { 0 } else { self.frame.layout().flow }
    }

    fn priority(&self) -> u32 {
        let layout = self.frame.layout();
        match layout.network {
            Network::V4 => PRIORITIES[usize::from(layout.dscp >> 1 & 0xf)].into(),
            Network::V6 | Network::Other => 0,
        }
    }

    fn dscp(&self) -> u8 {
        self.frame.layout().dscp
    }

    fn hosts(&self) -> [u32; 2] {
        if self.tunnel { [0, 0] } else { self.frame.layout().hosts }
    }

    fn segments(&self) -> (u32, u32) {
        let layout = self.frame.layout();
        if self.segments == 1 {
            return (1, self.wire_bytes);
        }
        let bytes = u32::from(layout.segment_bytes) + u32::from(layout.header_bytes);
        (self.segments.into(), bytes + Device::ETHERNET_HEADER)
    }

    fn pure_ack(&self) -> Option<PureAck> {
        if self.tunnel {
            return None;
        }
        self.frame.layout().pure_ack(self.frame.packet())
    }
}

impl dualq_net::Packet for Packet {
    fn clear_ecn(&mut self) {
        self.ecn = Ecn::NotEct;
    }

    fn ip_bytes(&self) -> u32 {
        let (_, wire_bytes) = FlowPacket::segments(self);
        wire_bytes - Device::ETHERNET_HEADER
    }

    fn origin(&self) -> u32 {
        self.origin.into()
    }
}
