//! The receive buffer and the window made of it, which grows with what the program reads (Linux: dynamic right-sizing,
//! `tcp_rcv_space_adjust` and `tcp_grow_window`). Payload bytes are counted, not kernel memory.

use dualq_units::Bytes;

/// The payload that fits into the initial buffer of 128 KiB.
const INITIAL_SPACE: u64 = 65_536;
/// The window scale option of connections whose buffer may grow to tens of megabytes.
const WINDOW_SCALE: u32 = 11;

/// Round trips below this make the buffer grow carefully (Linux: `tcp_rcvbuf_low_rtt`).
const SHORT_RTT_US: u64 = 1_000;

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
    /// The smoothed round-trip time as the receiver sees it, in eighths of a microsecond.
    rtt_eighth_us: u64,
    /// The timestamp that the last measurement was taken from.
    last_echo_ms: u32,
    /// A window's worth of data ends here, and when it began.
    window_seq: u64,
    window_start_ns: u64,
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
            rtt_eighth_us: 0,
            last_echo_ms: 0,
            window_seq: 0,
            window_start_ns: 0,
        }
    }

    /// The round-trip time in microseconds; 0 before the first measurement.
    #[inline]
    pub(super) const fn rtt_us(&self) -> u64 {
        self.rtt_eighth_us >> 3
    }

    /// A full segment echoes the timestamp of an acknowledgement: the time since then, in whole milliseconds. Data that
    /// wait to be read would blur it.
    #[inline]
    pub(super) fn measure_echo(&mut self, now_ns: u64, echo_ms: u32, nothing_waits: bool) {
        if echo_ms == self.last_echo_ms {
            return;
        }
        self.last_echo_ms = echo_ms;
        let sample_ms = ((now_ns / 1_000_000) as u32).saturating_sub(echo_ms);
        let sample_us = u64::from(sample_ms) * 1_000;
        if sample_us == 0 {
            return;
        }
        if self.rtt_eighth_us == 0 || sample_us << 3 < self.rtt_eighth_us {
            self.rtt_eighth_us = sample_us << 3;
        } else if nothing_waits {
            self.rtt_eighth_us = self.rtt_eighth_us - (self.rtt_eighth_us >> 3) + sample_us;
        }
    }

    /// No window's worth of data comes in less than a round trip: the least time of these counts, where a millisecond is
    /// too coarse.
    #[inline]
    pub(super) fn measure_window(&mut self, now_ns: u64, edge: u64, window: u64) {
        if edge < self.window_seq {
            return;
        }
        if self.window_seq > 0 {
            let sample_us = (now_ns.saturating_sub(self.window_start_ns) / 1_000).max(1);
            if self.rtt_eighth_us == 0 || sample_us << 3 < self.rtt_eighth_us {
                self.rtt_eighth_us = sample_us << 3;
            }
        }
        self.window_seq = edge + window;
        self.window_start_ns = now_ns;
    }

    /// A packet of `payload` bytes arrived: more may be offered.
    #[inline]
    pub(super) fn grow_threshold(&mut self, held: u64, mss: u32, payload: u32) {
        let room = self.space.saturating_sub(held);
        if self.threshold < room {
            let growth = 2 * u64::from(mss.max(payload));
            self.threshold = (self.threshold + growth).min(room);
        }
    }

    /// The program has read up to `end`; the buffer grows to twice what it reads in a round trip. `beyond` bytes past the
    /// edge wait behind a gap.
    pub(super) fn read(&mut self, now_ns: u64, end: u64, beyond: u64) {
        self.read_end = end;
        let elapsed_us = now_ns.saturating_sub(self.measure_start_ns) / 1_000;
        if self.rtt_eighth_us == 0 || elapsed_us < self.rtt_us() {
            return;
        }
        let copied = end - self.measure_seq;
        if copied > self.measured {
            let base = 2 * copied;
            // While the sender speeds up it shall find room to double; on short paths little by little.
            let growth = if self.rtt_us() < SHORT_RTT_US {
                base * self.rtt_us() / SHORT_RTT_US
            } else {
                base.saturating_mul(copied - self.measured) / self.measured.max(1)
            };
            let wanted = base.saturating_add(growth.saturating_mul(2)).saturating_add(beyond);
            self.space = self.space.max(wanted.min(self.max_space));
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
