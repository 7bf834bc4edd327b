//! What travels between the endpoints. Sequence numbers are 64-bit offsets into the stream: they never wrap.

use std::time::Duration;

use dualq_units::{Ecn, Instant};

use crate::control::Control;
use crate::ecn::{EcnBytes, EcnFlags, OPTION_BYTES};

/// So much older may a packet be than what came last (Linux: `TCP_PAWS_WINDOW`).
pub(crate) const PAWS_WINDOW_MS: u32 = 1;
/// What is not expected is answered at most this often (Linux: `tcp_invalid_ratelimit`).
pub(crate) const INVALID_SPACING: Duration = Duration::from_millis(500);

/// The headers of IPv4 (20) and TCP (20) without options.
pub const PLAIN_HEADER_BYTES: u32 = 40;
/// IPv4 (20) and TCP (20) headers with the timestamps option (12): what each segment adds to its payload.
pub const HEADER_BYTES: u32 = 52;
/// Kernel memory of a packet beside its payload: the socket buffer (`sk_buff`), and room for headers.
pub const PACKET_OVERHEAD: u32 = 896;
/// How long the blocks of memory are that a sender's program writes into, one after the other (Linux: `SKB_FRAG_PAGE_ORDER`).
pub(crate) const PIECE_BYTES: u64 = 32 << 10;
/// In so many pieces of them a packet may lie (Linux: `MAX_SKB_FRAGS`): those that follow each other become one, and share that overhead, at a receiver
/// before which a router has made each its own (`ip_forward`, `skb_try_coalesce`), and at a sender that hears of their arrival (`skb_shift`).
pub(crate) const MAX_PIECES: u64 = 17;

/// An Ethernet header, which queues and shapers count as well.
pub const ETHERNET_BYTES: u32 = 14;
/// A SYN's IP packet: its options (MSS, SACK permitted, timestamps, window scale) take 20 bytes.
pub const SYN_BYTES: u32 = 60;

/// What options take of a SYN beside these if it asks for a cookie of TCP Fast Open, and of a SYN or its answer that has one, of eight
/// bytes as Linux makes them; padding included (RFC 7413 §4.1.1).
pub const COOKIE_REQUEST_BYTES: u32 = 4;
/// See [`COOKIE_REQUEST_BYTES`].
pub const COOKIE_BYTES: u32 = 12;

/// Pieces of memory in which a stream's bytes from `start` up to `end` lie, if its program writes no other: the end of one, and the beginning of the next
/// (Linux: `skb_page_frag_refill`).
#[must_use]
#[inline]
pub const fn pieces(start: u64, end: u64) -> u64 {
    1 + end.saturating_sub(1) / PIECE_BYTES - start / PIECE_BYTES
}

/// Data on their way to the receiver: one segment, or several in one aggregate (GSO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The offset of the first payload byte.
    pub seq: u64,
    /// Payload bytes, and one more with FIN, which takes a place in the stream (RFC 9293 §3.4).
    pub payload: u32,
    /// Segments in the aggregate, 1 if it is none.
    pub segments: u16,
    /// Payload of each segment but perhaps the last.
    pub mss: u16,
    /// The timestamp option's value, in milliseconds.
    pub timestamp_ms: u32,
    /// The timestamp that is echoed, in milliseconds; 0 if none arrived yet.
    pub echo_ms: u32,
    /// The IP header's ECN field.
    pub ecn: Ecn,
    /// The flags AE, CWR and ECE. CWR says that the sender has answered the last ECE.
    pub flags: EcnFlags,
    /// Bytes that TCP options take of each header beside the timestamps: those of Accurate ECN, or of Fast Open in a SYN.
    pub options: u8,
    /// SYN, FIN, PSH, and whether it was cut from an aggregate. With SYN it carries payload only with a cookie of Fast Open.
    pub control: Control,
}

impl Data {
    /// Whether it has this bit, or one of these.
    #[must_use]
    #[inline]
    pub const fn has(&self, control: Control) -> bool {
        self.control.has(control)
    }

    /// The offset after the last payload byte.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.seq.saturating_add(self.payload as u64)
    }

    /// The payload without FIN.
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> u32 {
        self.payload.saturating_sub(self.has(Control::FIN) as u32)
    }

    /// Bytes on the wire, Ethernet headers included; an aggregate counts the headers of each segment.
    #[must_use]
    #[inline]
    pub const fn wire_bytes(&self) -> u32 {
        if self.has(Control::SYN.with(Control::RESET)) {
            let bytes = if self.has(Control::SYN) { SYN_BYTES } else { PLAIN_HEADER_BYTES };
            return bytes + self.options as u32 + self.payload + ETHERNET_BYTES;
        }
        self.bytes() + self.segments as u32 * (self.header_bytes() + ETHERNET_BYTES)
    }

    /// Whether it asks for a cookie of Fast Open.
    #[must_use]
    pub const fn asks_for_cookie(&self) -> bool {
        self.has(Control::SYN) && self.options as u32 == COOKIE_REQUEST_BYTES
    }

    /// Whether it has one.
    #[must_use]
    pub const fn has_cookie(&self) -> bool {
        self.has(Control::SYN) && self.options as u32 == COOKIE_BYTES
    }

    /// Bytes of each segment's headers, of IP and TCP.
    #[must_use]
    #[inline]
    pub const fn header_bytes(&self) -> u32 {
        HEADER_BYTES + self.options as u32
    }

    /// Takes the first segment off an aggregate; the last one keeps PSH, the first CWR.
    #[must_use]
    #[inline]
    pub fn split_first(&mut self) -> Self {
        let mut first = *self;
        if self.segments > 1 {
            self.control = self.control.with(Control::CUT);
            first.control = self.control.without(Control::PUSH.with(Control::FIN));
            first.segments = 1;
            first.payload = self.mss.into();
            self.seq += u64::from(self.mss);
            self.payload -= u32::from(self.mss);
            self.segments -= 1;
            self.flags = self.flags.of_rest();
        }
        first
    }

    /// Takes up what follows, if its header is the same but for the number. Returns whether it is (Linux: `tcp_add_backlog`).
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let header = |it: &Self| (it.ecn, it.flags, it.options, it.timestamp_ms, it.echo_ms);
        if self.end() != next.seq || header(self) != header(next) {
            return false;
        }
        let Some(payload) = self.payload.checked_add(next.payload) else { return false };
        let Some(segments) = self.segments.checked_add(next.segments) else { return false };
        let longest = |it: &Self| if it.segments > 1 { it.mss } else { it.payload as u16 };
        self.mss = longest(self).max(longest(next));
        (self.payload, self.segments) = (payload, segments);
        self.control = self.control.with(next.control.without(Control::CUT));
        true
    }
}

/// A run of received bytes above the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// The offset of its first byte.
    pub start: u64,
    /// The offset after its last byte.
    pub end: u64,
}

/// How many SACK blocks fit beside timestamps.
pub const MAX_SACK_BLOCKS: usize = 3;

/// An acknowledgement on its way to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Everything before this offset has arrived.
    pub ack: u64,
    /// Bytes that the receiver takes beyond `ack`.
    pub window: u64,
    /// The SACK blocks (RFC 2018), the newest first; only the first `block_count` count.
    pub blocks: [SackBlock; MAX_SACK_BLOCKS],
    /// How many blocks there are.
    pub block_count: u8,
    /// The flags AE, CWR and ECE: an echo (RFC 3168 §6.1, or DCTCP's exact one), or a count (RFC 9768 §3.2.2).
    pub flags: EcnFlags,
    /// The option of Accurate ECN, if it has one.
    pub option: Option<EcnBytes>,
    /// The IP header's ECN field.
    pub ecn: Ecn,
    /// SYN where it answers one, FIN if nothing comes from this end, which [`Endpoint`](crate::Endpoint)s have in their data, RST, and whether it has a
    /// duplicate's block, a cookie, and data beside it.
    pub control: Control,
    /// The timestamp that is echoed, in milliseconds.
    pub echo_ms: u32,
    /// The timestamp option's value, in milliseconds.
    pub timestamp_ms: u32,
}

impl Ack {
    /// Whether it has this bit, or one of these.
    #[must_use]
    #[inline]
    pub const fn has(&self, control: Control) -> bool {
        self.control.has(control)
    }

    /// The SACK blocks, a duplicate's included.
    #[must_use]
    #[inline]
    pub fn blocks(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.block_count).min(MAX_SACK_BLOCKS)]
    }

    /// Whether it tells what data of the same end do not: it answers a SYN, or has SACK blocks.
    #[must_use]
    pub const fn is_said_alone(&self) -> bool {
        self.has(Control::SYN) || self.block_count > 0
    }

    /// Bytes of an answer to a SYN, of IP and TCP: beside a cookie the option of Accurate ECN has two of its three fields.
    #[must_use]
    pub const fn syn_bytes(cookie: bool, has_option: bool) -> u32 {
        SYN_BYTES
            + match (cookie, has_option) {
                (false, false) => 0,
                (false, true) => OPTION_BYTES,
                (true, false) => COOKIE_BYTES,
                (true, true) => COOKIE_BYTES + OPTION_BYTES - 4,
            }
    }

    /// Bytes that its options take beside the timestamps. SACK blocks take eight each, and four for their option and its padding,
    /// to which some of the option of Accurate ECN is put; beside two blocks it has two of its three fields (Linux:
    /// `tcp_options_fit_accecn`).
    #[must_use]
    #[inline]
    pub const fn option_bytes(blocks: u8, has_option: bool) -> u32 {
        let sack = if blocks > 0 { 4 + 8 * blocks as u32 } else { 0 };
        match (has_option, blocks) {
            (false, _) => sack,
            (true, 0 | 1) => sack + OPTION_BYTES,
            (true, _) => sack + OPTION_BYTES - 4,
        }
    }
}

/// Data with the earliest time at which the sender's queue may let them go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The packet.
    pub data: Data,
    /// When it may leave: what fq reads as the packet's departure time.
    pub departure: Instant,
}
