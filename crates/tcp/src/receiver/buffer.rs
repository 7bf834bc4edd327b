//! The receive buffer and the window made of it, which grows with what the program reads (Linux: dynamic right-sizing,
//! `tcp_rcv_space_adjust` and `tcp_grow_window`).
//!
//! The buffer is kernel memory: a packet takes more of it than its payload. What share of the memory is payload is guessed
//! from the first full segment that arrives, and windows are made with that guess (Linux: `scaling_ratio`).

use std::collections::VecDeque;

use dualq_units::Bytes;
use dualq_units::hint::{likely, unlikely};

use super::reassembly::Reassembly;
use crate::control::Control;
use crate::packet::{Data, MAX_PIECES};
use crate::tick::{Tick, micros_between};

/// The buffer at the start (Linux: `tcp_rmem`'s default).
const INITIAL_MEMORY: u64 = 128 << 10;
/// The least that programs get (Linux: `SOCK_MIN_RCVBUF`).
const SHORTEST_MEMORY: u64 = 2304;
/// Shares of memory are counted in 256ths; half until the first full segment.
const RATIO_SHIFT: u32 = 8;
const INITIAL_RATIO: u64 = 128;
const MAX_RATIO: u64 = 255;
pub(super) const PACKET_OVERHEAD: u64 = crate::PACKET_OVERHEAD as u64;
/// The peer's segments are taken to be so long until one arrives (Linux: `TCP_MSS_DEFAULT`).
const SHORTEST_SEGMENT: u32 = 536;
/// Nobody's full segments are shorter (Linux: `TCP_MIN_MSS`).
const SHORTEST_PEER_SEGMENT: u32 = 88;
/// What timestamps take of a segment.
const TIMESTAMPS: u32 = 12;
/// The window grows with packets of at least so many bytes.
const SHORTEST_GROWING: u32 = 128;
/// Segments of a sender's first window (Linux: `TCP_INIT_CWND`).
const INITIAL_SEGMENTS: u64 = 10;
/// The window scale option of connections whose buffer may grow to tens of megabytes: of 64 MiB, as much as is left of 16 bits
/// (RFC 7323 §2.2; Linux: `tcp_select_initial_window`).
pub const WINDOW_SCALE: u32 = 11;
const MOST_SCALE: u32 = 14;
const WINDOW_BITS: u32 = 16;

/// Round trips below this make the buffer grow carefully (Linux: `tcp_rcvbuf_low_rtt`).
const SHORT_RTT_US: u64 = 1_000;

/// A packet that waits behind a gap, or several that became one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    start: u64,
    end: u64,
    memory: u64,
    pieces: u64,
}

/// Where a packet is to wait: its place among others, and whether it becomes part of the one before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceBeyond {
    index: usize,
    pieces: u64,
    pub(super) joins: bool,
}

/// Space for data that have arrived and are not yet read.
// In the order in which it is written, as [`Receiver`](super::Receiver) is.
#[repr(C)]
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    /// Memory of what waits to be read, and of what waits behind a gap.
    unread_memory: u64,
    beyond_memory: u64,
    /// Of what waits until a program has read, and still counts while it is taken in (Linux: `sk_backlog.len`, which `tcp_space` subtracts).
    pub(super) waiting_memory: u64,
    /// Bytes of memory.
    memory: u64,
    /// What the program has read so far.
    pub(super) read_end: u64,
    /// What full segments are taken to be long (Linux: `rcv_mss`), and the last one if it was shorter; else 0.
    segment: u32,
    short_segment: u32,
    /// The timestamp that the last measurement was taken from.
    last_echo_ms: u32,
    /// The window scale option; 0 where the whole buffer can be told without.
    pub(super) scale: u32,
    /// Pieces in the last packet that waits to be read; 0 if nothing can be added to it.
    pieces: u64,
    /// The smoothed round-trip time as the receiver sees it, in eighths of a microsecond.
    pub(super) rtt_eighth_us: u64,
    /// Where the packet ends that the program reads next.
    first_end: u64,
    /// The share of memory that is payload.
    ratio: u64,
    /// With so much memory in use there was no room to offer more. There is none with more than that either, as long as the buffer is what it was.
    full_at: u64,
    /// The most that is offered: rises as data arrive.
    threshold: u64,
    /// The window never exceeds this, and this never what of the whole memory may be payload (Linux: `window_clamp`).
    clamp: u64,
    /// When a packet arrived last.
    arrived_ns: u64,
    /// A window's worth of data ends here, and when it began.
    window_seq: u64,
    /// What is read in a round trip is measured since then, in whole microseconds of the clock.
    measure_start_us: u64,
    pub(super) measure_seq: u64,
    window_start_ns: u64,
    /// The most that any connection's may grow to (Linux: `tcp_rmem`), also where this one's never grows.
    most_of_all: u64,
    measured: u64,
    /// The most memory that there may be.
    max_memory: u64,
    /// What waits behind a gap, in the order of the stream.
    beyond: VecDeque<Waiting>,
}

impl Buffer {
    /// A buffer that grows to `memory` bytes.
    pub(super) fn new(memory: Bytes, mss: u32) -> Self {
        let memory = memory.0.max(INITIAL_MEMORY);
        Self::of(INITIAL_MEMORY, (memory, memory), mss)
    }

    /// A buffer of which a program asked for so many bytes, and has twice as many (Linux: `SO_RCVBUF`), where others grow to `most` bytes.
    pub(super) fn fixed(asked: Bytes, most: Bytes, mss: u32) -> Self {
        let memory = asked.0.saturating_mul(2).max(SHORTEST_MEMORY);
        Self::of(memory, (memory, most.0), mss)
    }

    fn of(memory: u64, (max_memory, most_of_all): (u64, u64), mss: u32) -> Self {
        let mut buffer = Self {
            memory,
            max_memory,
            most_of_all,
            ratio: INITIAL_RATIO,
            segment: SHORTEST_SEGMENT.min(mss),
            short_segment: 0,
            unread_memory: 0,
            beyond_memory: 0,
            waiting_memory: 0,
            pieces: 0,
            beyond: VecDeque::new(),
            scale: 0,
            clamp: 0,
            threshold: 0,
            full_at: u64::MAX,
            read_end: 0,
            first_end: 0,
            measure_start_us: 0,
            measure_seq: 0,
            measured: 0,
            arrived_ns: 0,
            rtt_eighth_us: 0,
            last_echo_ms: 0,
            window_seq: 0,
            window_start_ns: 0,
        };
        // One segment of the space is reserved.
        let (space, mss) = (buffer.payload_in(memory), u64::from(mss));
        // A buffer of its own size may be told without a scale (Linux: `tcp_select_initial_window`).
        let most = if memory < max_memory { max_memory } else { buffer.payload_in(memory) };
        buffer.scale = most.max(1).ilog2().saturating_sub(WINDOW_BITS - 1).min(MOST_SCALE);
        buffer.clamp = if space > 2 * mss { (space - mss).max(2 * mss) } else { space };
        buffer.threshold = buffer.initial_window(mss as u32).min(buffer.clamp);
        buffer.measured = buffer.threshold.min(INITIAL_SEGMENTS * mss);
        buffer
    }

    /// The window before anything has come: whole segments. The answer to a SYN cannot tell more than 16 bits of it (Linux:
    /// `tcp_select_initial_window`, `tcp_make_synack`).
    pub(super) const fn initial_window(&self, mss: u32) -> u64 {
        let (space, mss) = (self.payload_in(self.memory), mss as u64);
        if space > mss { space - space % mss } else { space }
    }

    /// What of `memory` may be payload.
    #[inline]
    const fn payload_in(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> RATIO_SHIFT
    }

    /// The memory in use.
    #[inline]
    const fn held(&self) -> u64 {
        self.unread_memory + self.beyond_memory + self.waiting_memory
    }

    /// The payload that still fits in.
    #[inline]
    const fn room(&self) -> u64 {
        self.payload_in(self.memory.saturating_sub(self.held()))
    }

    /// The longest segment so far: an acknowledgement is due after more than this.
    #[inline]
    pub(super) const fn segment(&self) -> u32 {
        self.segment
    }

    /// Whether nothing waits to be read.
    #[inline]
    pub(super) const fn is_read(&self, edge: u64) -> bool {
        self.read_end >= edge
    }

    /// The round-trip time in microseconds; 0 before the first measurement.
    #[inline]
    pub(super) const fn rtt_us(&self) -> u64 {
        self.rtt_eighth_us >> 3
    }

    /// A segment echoes the timestamp of an acknowledgement: the time since then, in whole milliseconds. Data that wait to
    /// be read would blur it, and short ones may have waited themselves.
    #[inline(always)]
    pub(super) fn measure_echo(&mut self, (tick, now_ns): (Tick, u64), data: &Data, edge: u64) {
        if data.echo_ms == self.last_echo_ms {
            return;
        }
        self.last_echo_ms = data.echo_ms;
        if data.echo_ms == 0 || data.bytes() < self.segment {
            return;
        }
        let sample_ms = tick.millisecond(now_ns).saturating_sub(data.echo_ms);
        let sample_us = u64::from(sample_ms) * 1_000;
        if sample_us == 0 {
            return;
        }
        if self.rtt_eighth_us == 0 || sample_us << 3 < self.rtt_eighth_us {
            self.rtt_eighth_us = sample_us << 3;
        } else if self.read_end == edge {
            self.rtt_eighth_us = self.rtt_eighth_us - (self.rtt_eighth_us >> 3) + sample_us;
        }
    }

    /// What echoed this timestamp first measured nothing.
    pub(super) const fn see_echo(&mut self, echo_ms: u32) {
        self.last_echo_ms = echo_ms;
    }

    /// No window's worth of data comes in less than a round trip: the least time of these counts, where a millisecond is
    /// too coarse.
    #[inline]
    pub(super) fn measure_window(&mut self, now_ns: u64, edge: u64, window: u64) {
        if edge >= self.window_seq {
            self.window_has_come(now_ns, edge, window);
        }
    }

    /// Once in a window.
    #[cold]
    fn window_has_come(&mut self, now_ns: u64, edge: u64, window: u64) {
        if self.window_seq > 0 {
            let sample_us = micros_between(self.window_start_ns, now_ns).max(1);
            if self.rtt_eighth_us == 0 || sample_us << 3 < self.rtt_eighth_us {
                self.rtt_eighth_us = sample_us << 3;
            }
        }
        self.window_seq = edge + window;
        self.window_start_ns = now_ns;
    }

    /// The connection is there: from now on it is measured what the program reads in a round trip (Linux: `tcp_init_buffer_space`).
    pub(super) const fn open(&mut self, now_ns: u64) {
        self.measure_start_us = now_ns / 1_000;
    }

    /// A packet arrived that is kept. If there is less memory than that, the buffer grows (Linux: `tcp_clamp_window`).
    #[inline]
    pub(super) fn arrived(&mut self, now_ns: u64) {
        self.arrived_ns = now_ns;
        let held = self.unread_memory + self.beyond_memory;
        if unlikely(held > self.memory) {
            self.memory = held.min(self.max_memory);
            self.full_at = u64::MAX;
        }
    }

    /// The packet continued the stream. Returns whether it is the end of what somebody wrote.
    #[inline(always)]
    pub(super) fn hold(&mut self, data: &Data, pieces: u64) -> bool {
        let payload = u64::from(data.payload);
        let waits = self.read_end < data.seq;
        let first = !waits || self.first_end == data.seq;
        let joins = waits && self.pieces > 0 && self.pieces + pieces <= MAX_PIECES;
        if joins {
            self.pieces += pieces;
            self.unread_memory += payload;
        } else {
            self.unread_memory += payload + PACKET_OVERHEAD;
            self.pieces = pieces;
        }
        if first && (joins || !waits) {
            self.first_end = data.end();
        }
        self.measure_segment(data)
    }

    /// The stream ends at `edge` now, for the packet closed a gap: what waited behind that joins it, as far as there is room for its pieces
    /// (Linux: `tcp_ofo_queue`).
    pub(super) fn join(&mut self, data: &Data, edge: u64) {
        let mut end = data.end();
        while let Some(next) = self.beyond.front().copied()
            && next.start <= edge
        {
            self.beyond.pop_front();
            self.beyond_memory -= next.memory;
            if next.end <= end {
                continue;
            }
            if next.start == end && self.pieces + next.pieces <= MAX_PIECES {
                self.pieces += next.pieces;
                self.unread_memory += next.memory - PACKET_OVERHEAD;
                if self.first_end == end {
                    self.first_end = next.end;
                }
            } else {
                self.pieces = next.pieces;
                self.unread_memory += next.memory;
            }
            end = next.end;
        }
    }

    /// Where a packet is to wait that left a gap.
    pub(super) fn place_beyond(&self, data: &Data, pieces: u64) -> PlaceBeyond {
        let index = match self.beyond.back() {
            // Mostly it is behind all others.
            Some(last) if last.start < data.seq => self.beyond.len(),
            _ => self.beyond.partition_point(|waiting| waiting.start < data.seq),
        };
        let before = index.checked_sub(1).and_then(|before| self.beyond.get(before));
        let joins = before
            .is_some_and(|before| before.end == data.seq && before.pieces + pieces <= MAX_PIECES);
        PlaceBeyond { index, pieces, joins }
    }

    /// The packet waits there.
    pub(super) fn hold_beyond(&mut self, data: &Data, place: PlaceBeyond) {
        let PlaceBeyond { index, pieces, joins } = place;
        let payload = u64::from(data.payload);
        let behind = if joins {
            let before = &mut self.beyond[index - 1];
            before.end = data.end();
            before.pieces += pieces;
            before.memory += payload;
            self.beyond_memory += payload;
            index
        } else {
            let memory = payload + PACKET_OVERHEAD;
            self.beyond.insert(index, Waiting { start: data.seq, end: data.end(), memory, pieces });
            self.beyond_memory += memory;
            index + 1
        };
        // What is in it too is not needed any more.
        while self.beyond.get(behind).is_some_and(|waiting| waiting.end <= data.end()) {
            let covered = self.beyond.remove(behind);
            self.beyond_memory -= covered.map_or(0, |covered| covered.memory);
        }
    }

    /// The last data behind a gap end `reach` bytes past the edge: the buffer grows by that.
    pub(super) fn reach_beyond(&mut self, reach: u64) {
        self.grow(self.measured, reach);
    }

    /// The first full segment tells what share of memory is payload. Where two that follow each other are shorter and alike, that
    /// is what full ones are from now on, with the options that not all have. Returns whether this one seems to be the end of what
    /// somebody wrote: short, or said to be it (Linux: `tcp_measure_rcv_mss`).
    #[inline(always)]
    pub(super) fn measure_segment(&mut self, data: &Data) -> bool {
        let segment = if data.segments > 1 { data.mss.into() } else { data.bytes() };
        let before = std::mem::take(&mut self.short_segment);
        if segment == self.segment {
            return data.has(Control::PUSH);
        }
        self.measure_other_segment(data, segment, before)
    }

    /// The same of one that is not as long as others.
    #[cold]
    fn measure_other_segment(&mut self, data: &Data, segment: u32, before: u32) -> bool {
        if segment < self.segment {
            let least =
                if data.has(Control::PUSH) { SHORTEST_SEGMENT } else { SHORTEST_PEER_SEGMENT };
            let with_options = segment + u32::from(data.options);
            // Both sides have the TCP header, this one with its timestamps.
            if with_options + TIMESTAMPS >= least {
                self.short_segment = with_options;
                if with_options == before {
                    self.segment = with_options;
                    return false;
                }
            }
            return true;
        }
        self.segment = segment;
        let payload = u64::from(data.payload);
        let ratio = ((payload << RATIO_SHIFT) / (payload + PACKET_OVERHEAD)).clamp(1, MAX_RATIO);
        if ratio != self.ratio {
            self.ratio = ratio;
            self.resize(self.memory);
            self.measured = self.measured.min(self.clamp);
        }
        data.has(Control::PUSH)
    }

    /// A packet of `payload` bytes continued the stream: more may be offered. Returns whether it is.
    #[inline(always)]
    pub(super) fn grow_threshold(&mut self, mss: u32, payload: u32) -> bool {
        payload >= SHORTEST_GROWING && self.raise_threshold(2 * mss, payload)
    }

    /// The same of one that left a gap, however short: part of another or, with memory of its own, alone. Then no more is offered for a short one
    /// than there is room for in such (Linux: `tcp_grow_window`, `__tcp_grow_window`).
    pub(super) fn grow_threshold_beyond(&mut self, mss: u32, payload: u32, joins: bool) -> bool {
        let whole = self.payload_in(u64::from(payload) + PACKET_OVERHEAD);
        if joins || whole <= payload.into() {
            return self.raise_threshold(2 * mss, payload);
        }
        let (mut part, mut most) = (whole / 2, self.payload_in(self.most_of_all) / 2);
        while self.threshold <= most {
            if part <= payload.into() {
                return self.raise_threshold(2 * self.segment, payload);
            }
            (part, most) = (part / 2, most / 2);
        }
        false
    }

    #[inline(always)]
    fn raise_threshold(&mut self, growth: u32, payload: u32) -> bool {
        let held = self.held();
        if likely(held >= self.full_at) {
            return false;
        }
        let room = self.clamp.min(self.room());
        if self.threshold >= room {
            self.full_at = held;
            return false;
        }
        let growth = u64::from(growth).max(2 * u64::from(payload));
        self.threshold = (self.threshold + growth).min(room);
        true
    }

    /// The program has read up to `end` of `stream`; the buffer grows to twice what it reads in a round trip, and by what waits behind a gap.
    ///
    /// That is looked at after each packet that is read, but with the time of the last arrival: so only after the first of
    /// several. Those that then wait behind it count as not yet read, and what a program that reads seldom finds does not
    /// let the buffer grow.
    #[inline]
    pub(super) fn read(&mut self, end: u64, stream: &Reassembly) {
        let read_end = std::mem::replace(&mut self.read_end, end);
        self.unread_memory = 0;
        self.pieces = 0;
        // The clock tells whole microseconds (Linux: `tcp_stamp_us_delta`): their product instead of a quotient for each packet.
        let over_ns = (self.measure_start_us + self.rtt_us()) * 1_000;
        if self.rtt_eighth_us > 0 && self.arrived_ns >= over_ns {
            self.round_trip_is_over(read_end, end, stream);
        }
    }

    /// Once in a round trip.
    #[cold]
    fn round_trip_is_over(&mut self, read_end: u64, end: u64, stream: &Reassembly) {
        let first_end = self.first_end.clamp(read_end, end);
        let copied = (first_end - self.measure_seq).saturating_sub(end - first_end);
        if copied > self.measured {
            self.grow(copied, stream.reach());
        }
        self.measure_seq = first_end;
        self.measure_start_us = self.arrived_ns / 1_000;
    }

    /// The same where the program's call ends within the last packet, which holds all of its memory until the rest is read too.
    pub(super) fn read_part(&mut self, end: u64, stream: &Reassembly) {
        let (memory, pieces, whole_end) = (self.unread_memory, self.pieces, self.first_end);
        let passed = whole_end.saturating_sub(self.read_end);
        self.read(end, stream);
        let freed = if whole_end <= end { passed + PACKET_OVERHEAD } else { 0 };
        (self.unread_memory, self.pieces) = (memory.saturating_sub(freed), pieces);
    }

    /// Makes room for twice what is read in a round trip, and for more while that grows (Linux: `tcp_rcvbuf_grow`).
    fn grow(&mut self, copied: u64, reach: u64) {
        let base = 2 * copied;
        // While the sender speeds up it shall find room to double; on short paths little by little.
        let growth = if self.rtt_us() < SHORT_RTT_US {
            base * self.rtt_us() / SHORT_RTT_US
        } else {
            (2 * base).saturating_mul(copied - self.measured) / self.measured.max(1)
        };
        self.measured = copied;
        let window = base.saturating_add(growth).saturating_add(reach);
        let memory = (window.saturating_mul(1 << RATIO_SHIFT) / self.ratio).min(self.max_memory);
        if memory > self.memory {
            self.resize(memory);
        }
    }

    /// The buffer has so much memory, or a share of it is payload now as was not before.
    const fn resize(&mut self, memory: u64) {
        self.memory = memory;
        self.clamp = self.payload_in(memory);
        self.full_at = u64::MAX;
    }

    /// The window to offer now, after one of `current` bytes (Linux: `__tcp_select_window`).
    #[inline]
    pub(super) fn window(&self, current: u64) -> u64 {
        let full = self.clamp;
        let mut free = self.room();
        if unlikely(free < full / 2) {
            free &= !(self.unit() - 1);
            let all = self.payload_in(self.memory);
            if free < all / 16 || free < full.min(self.segment.into()) {
                return 0;
            }
        }
        let free = free.min(self.threshold);
        if self.scale > 0 {
            return self.scaled(free);
        }
        self.whole_segments(free, full, current)
    }

    /// Whether the [window](Self::window) to offer now is no smaller than the `current` one. None is wider than what there is room for, which is seen first.
    #[inline]
    pub(super) fn offers_still(&self, current: u64) -> bool {
        self.room() + self.unit() > current && self.window(current) >= current
    }

    /// What is told of a window, which may be wider: 16 bits, scaled (Linux: `tcp_select_window`, which keeps the wider one as `rcv_wnd`).
    #[inline]
    pub(super) fn told(&self, window: u64) -> u64 {
        window.min(u64::from(u16::MAX) << self.scale)
    }

    /// No [window](Self::window) is wider now.
    #[inline]
    pub(super) fn widest_window(&self) -> u64 {
        self.scaled(self.threshold)
    }

    /// A window that is not scaled is a multiple of the peer's segments, and stays what it is while that is near.
    #[cold]
    fn whole_segments(&self, free: u64, full: u64, current: u64) -> u64 {
        let segment = full.min(self.segment.into()).max(1);
        if current + segment <= free || current > free {
            free - free % segment
        } else if segment == full && free > current + full / 2 {
            free
        } else {
            current
        }
    }

    /// What windows are told in.
    #[inline]
    const fn unit(&self) -> u64 {
        1 << self.scale
    }

    /// A window as the option for large windows can tell it, but for its [bits](Self::told).
    #[inline]
    pub(super) const fn scaled(&self, window: u64) -> u64 {
        (window + (self.unit() - 1)) & !(self.unit() - 1)
    }

    /// Whether so little is free that acknowledgements should not hurry.
    #[inline]
    pub(super) const fn is_tight(&self) -> bool {
        self.room() < self.clamp / 2
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Ecn;

    use super::*;
    use crate::packet::pieces;

    fn pieces_of(data: &Data) -> u64 {
        pieces(data.seq, data.end())
    }

    fn packet(seq: u64, payload: u32) -> Data {
        Data {
            seq,
            payload,
            segments: 2,
            mss: 1_228,
            timestamp_ms: 0,
            echo_ms: 0,
            ecn: Ecn::NotEct,
            flags: crate::EcnFlags::NONE,
            options: 0,
            control: Control::PUSH,
        }
    }

    /// As in the world `kernel` in `wild-777-14`: a round trip of 31,703 µs is over 31,702.6 µs later, if whole ones of the clock's lie between.
    #[test]
    fn a_round_trip_is_over_by_the_clocks_whole_microseconds() {
        for (start_ns, grows) in [(36_509_749, true), (36_509_049, false)] {
            let mut buffer = Buffer::new(Bytes(1 << 20), 8_948);
            buffer.open(start_ns);
            buffer.rtt_eighth_us = 31_703 << 3;
            buffer.first_end = 62_636;
            buffer.arrived_ns = start_ns + 31_702_624;
            let before = buffer.memory;
            buffer.read(62_636, &Reassembly::default());
            assert_eq!(buffer.memory > before, grows, "{start_ns}");
        }
    }

    /// A fixed buffer of 60,974 bytes is told without a scale, though twice as much memory holds more (Linux: `tcp_select_window`).
    #[test]
    fn no_window_is_wider_than_sixteen_bits_tell() {
        let mut buffer = Buffer::fixed(Bytes(60_974), Bytes(64 << 20), 1_448);
        assert_eq!(buffer.scale, 0);
        buffer.threshold = u64::MAX;
        // What packets have shown of their overhead leaves more room than that.
        buffer.ratio = 200;
        assert!(buffer.room() > 65_535);
        let window = buffer.window(65_160);
        assert!(window > 65_535);
        assert_eq!(buffer.told(window), 65_535);
    }

    /// Linux: `__tcp_grow_window`. As in the world `kernel` in `d-receivers-9`, at 525.66 ms: what any buffer may have counts, not what this one has.
    #[test]
    fn what_waits_behind_a_gap_lets_the_window_of_a_fixed_buffer_grow_too() {
        let mut buffer = Buffer::fixed(Bytes(78_719), Bytes(64 << 20), 1_228);
        buffer.measure_segment(&packet(0, 2_456));
        buffer.threshold = 82_404;
        assert!(buffer.grow_threshold_beyond(1_228, 1_228, false));
        assert_eq!(buffer.threshold, 84_860);
    }

    /// A question is acknowledged by itself before its answer comes, and then the answer measures nothing; the next one does.
    #[test]
    fn an_echo_that_an_acknowledgement_brought_measures_nothing() {
        let tick = Tick::new(Duration::from_millis(4)).starting_at(Duration::from_millis(500));
        let answer = |seq, echo_ms| Data { echo_ms, ..packet(seq, 2_456) };
        let mut buffer = Buffer::new(Bytes(1 << 20), 1_228);
        buffer.see_echo(501);
        buffer.measure_echo((tick, 2_400_000), &answer(0, 501), 0);
        assert_eq!(buffer.rtt_us(), 0);
        buffer.measure_echo((tick, 4_400_000), &answer(2_456, 502), 0);
        assert_eq!(buffer.rtt_us(), 2_000);
    }

    /// As in the world `kernel` (`sk_rmem_alloc` in `wild-2-42`): 3352, 5808 and 8264 bytes.
    #[test]
    fn packets_that_wait_share_their_overhead() {
        let mut buffer = Buffer::new(Bytes(64 << 20), 1_228);
        for (number, memory) in (0..).zip([3_352, 5_808, 8_264]) {
            let data = packet(number * 2_456, 2_456);
            buffer.hold(&data, pieces_of(&data));
            assert_eq!(buffer.unread_memory, memory);
        }
        // Seventeen pieces are one packet, the next one is another; the fourteenth lies in two.
        for number in 3..18 {
            let data = packet(number * 2_456, 2_456);
            buffer.hold(&data, pieces_of(&data));
        }
        assert_eq!(buffer.unread_memory, 18 * 2_456 + 2 * PACKET_OVERHEAD);
        assert_eq!(buffer.first_end, 16 * 2_456);
    }

    /// Linux: `skb_page_frag_refill`, `skb_try_coalesce`. So the first of them that is read has 16 segments in `wild-2-102`.
    #[test]
    fn a_segment_in_two_pieces_counts_twice() {
        let full = |number: u64| packet(number * 1_448, 1_448);
        let mut buffer = Buffer::new(Bytes(64 << 20), 1_448);
        for number in 10..30 {
            let data = full(number);
            buffer.read_end = 10 * 1_448;
            buffer.hold(&data, pieces_of(&data));
        }
        // The 23rd lies on both sides of 32 kB.
        assert_eq!((pieces_of(&full(21)), pieces_of(&full(22)), pieces_of(&full(23))), (1, 2, 1));
        assert_eq!(buffer.first_end, 26 * 1_448);
        assert_eq!(pieces_of(&packet(0, 65_160)), 2);
        assert_eq!(pieces_of(&packet(32_000, 65_160)), 3);
    }

    /// The packet that fills a gap, and what waited behind it, are read as one (`wild-2-86`).
    #[test]
    fn what_waited_behind_a_gap_joins_what_fills_it() {
        let mut buffer = Buffer::new(Bytes(64 << 20), 1_228);
        let place = buffer.place_beyond(&packet(2_456, 2_456), 1);
        buffer.hold_beyond(&packet(2_456, 2_456), place);
        assert_eq!(buffer.beyond_memory, 3_352);
        buffer.hold(&packet(0, 2_456), 1);
        buffer.join(&packet(0, 2_456), 4_912);
        assert_eq!((buffer.unread_memory, buffer.first_end), (5_808, 4_912));
    }

    /// Linux: `tcp_grow_window`. As in the world `kernel` in `exact-34`, where 16 bytes at the end of a buffer let the window grow.
    #[test]
    fn what_waits_behind_a_gap_lets_the_window_grow_however_short_it_is() {
        let grown = |payload, joins: Option<bool>, threshold| {
            let mut buffer = Buffer::new(Bytes(64 << 20), 1_448);
            (buffer.segment, buffer.ratio) = (1_448, 158);
            (buffer.memory, buffer.clamp, buffer.threshold) = (32 << 20, 20 << 20, threshold);
            match joins {
                None => buffer.grow_threshold(1_448, payload),
                Some(joins) => buffer.grow_threshold_beyond(1_448, payload, joins),
            };
            buffer.threshold - threshold
        };
        // What continues the stream, alone and as part of another; and the same of a window that memory of so short ones would not hold.
        let all = [None, Some(false), Some(true)];
        assert_eq!(all.map(|joins| grown(1_448, joins, 1 << 20)), [2_896; 3]);
        assert_eq!(all.map(|joins| grown(16, joins, 500_000)), [0, 2_896, 2_896]);
        assert_eq!(all.map(|joins| grown(16, joins, 1 << 20)), [0, 0, 2_896]);
        assert_eq!(all.map(|joins| grown(200, joins, 1 << 20)), [2_896; 3]);
    }

    /// Linux: `tcp_ooo_try_coalesce`, `tcp_ofo_queue`: behind a gap a packet becomes part of the one before it, and what fills the gap
    /// takes in all that follows.
    #[test]
    fn packets_behind_a_gap_become_one_and_join_what_fills_it() {
        let mut buffer = Buffer::new(Bytes(64 << 20), 8_948);
        let number = |number: u64| packet(number * 8_948, 8_948);
        for (at, joins) in [(2, false), (4, false), (3, true)] {
            let place = buffer.place_beyond(&number(at), 1);
            assert_eq!(place.joins, joins);
            buffer.hold_beyond(&number(at), place);
        }
        assert_eq!(buffer.beyond_memory, 3 * 8_948 + 2 * PACKET_OVERHEAD);
        buffer.read_end = 8_948;
        buffer.hold(&number(1), 1);
        buffer.join(&number(1), 5 * 8_948);
        assert_eq!((buffer.beyond_memory, buffer.beyond.len()), (0, 0));
        assert_eq!(buffer.unread_memory, 4 * 8_948 + PACKET_OVERHEAD);
        assert_eq!(buffer.first_end, 5 * 8_948);
    }
}
