//! The receive buffer and the window made of it, which grows with what the program reads (Linux: dynamic right-sizing,
//! `tcp_rcv_space_adjust` and `tcp_grow_window`). Payload bytes are counted, not kernel memory.

use dualq_units::Bytes;

/// The payload that fits into the initial buffer of 128 KiB.
const INITIAL_SPACE: u64 = 65_536;
/// The window scale option of connections whose buffer may grow to tens of megabytes.
const WINDOW_SCALE: u32 = 11;

/// Space for data that have arrived and are not yet read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    space: u64,
    max_space: u64,
    /// The most that is offered: rises as data arrive.
    threshold: u64,
    /// What the program has read so far.
    pub(super) read_end: u64,
    measure_start_ns: u64,
    measure_seq: u64,
    measured: u64,
    /// The smoothed round-trip time as the receiver sees it, in microseconds.
    pub(super) rtt_us: u64,
}

impl Buffer {
    /// A buffer that grows to hold `memory` bytes, of which half is payload.
    pub(super) fn new(memory: Bytes, mss: u32) -> Self {
        let max_space = (memory.0 / 2).max(INITIAL_SPACE);
        Self {
            space: INITIAL_SPACE,
            max_space,
            threshold: INITIAL_SPACE,
            read_end: 0,
            measure_start_ns: 0,
            measure_seq: 0,
            measured: u64::from(10 * mss),
            rtt_us: 0,
        }
    }

    /// A round trip was seen by the timestamps, in milliseconds.
    #[inline]
    pub(super) fn measure_rtt(&mut self, sample_ms: u32) {
        let sample_us = u64::from(sample_ms.max(1)) * 1_000;
        self.rtt_us = if self.rtt_us == 0 { sample_us } else { (self.rtt_us * 7 + sample_us) / 8 };
    }

    /// A segment arrived in order: more may be offered.
    #[inline]
    pub(super) fn grow_threshold(&mut self, held: u64, mss: u32) {
        let room = self.space.saturating_sub(held);
        if self.threshold < room {
            self.threshold = (self.threshold + 2 * u64::from(mss)).min(room);
        }
    }

    /// The program has read up to `end`; the buffer grows to twice what it reads in a round trip.
    pub(super) fn read(&mut self, now_ns: u64, end: u64, mss: u32) {
        self.read_end = end;
        let elapsed_us = now_ns.saturating_sub(self.measure_start_ns) / 1_000;
        if self.rtt_us == 0 || elapsed_us < self.rtt_us {
            return;
        }
        let copied = end - self.measure_seq;
        if copied > self.measured {
            let base = 2 * copied + 16 * u64::from(mss);
            let growth = base.saturating_mul(copied - self.measured) / self.measured.max(1);
            let wanted = base.saturating_add(2 * growth).min(self.max_space);
            self.space = self.space.max(wanted);
            self.measured = copied;
        }
        self.measure_seq = end;
        self.measure_start_ns = now_ns;
    }

    /// The window to offer while `held` bytes are not read.
    #[inline]
    pub(super) fn window(&self, held: u64, mss: u32) -> u64 {
        let free = self.space.saturating_sub(held);
        if free < self.space / 2 && (free < self.space / 16 || free < u64::from(mss)) {
            return 0;
        }
        let window = free.min(self.threshold);
        window.next_multiple_of(1 << WINDOW_SCALE)
    }

    /// Whether so little is free that acknowledgements should not hurry.
    #[inline]
    pub(super) const fn is_tight(&self, held: u64) -> bool {
        self.space.saturating_sub(held) < self.space / 2
    }
}
