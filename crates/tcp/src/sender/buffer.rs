//! The send buffer: how much of what the program writes the kernel takes in before it is acknowledged (Linux:
//! `tcp_sndbuf_expand`, `sk_stream_write_space`).

use super::Sender;
use crate::cc::CongestionControl;

/// The fewest segments that there is room for (Linux: `TCP_INIT_CWND`).
const MIN_SEGMENTS: u32 = 10;
/// Memory of a segment beside its payload, at worst: room for headers, shared info and the socket buffer itself.
const HEADERS: u64 = 320;
const SHARED_INFO: u64 = 320;
const SOCKET_BUFFER: u64 = 256;
/// TCP options that take room of the payload: timestamps.
const OPTIONS: u64 = 12;
/// What the program writes lies in packets of this size, as near as whole segments come to it.
const PACKET: u64 = 65_535 - HEADERS;
/// Memory of such a packet beside its payload.
const PACKET_OVERHEAD: u64 = SOCKET_BUFFER + HEADERS + SHARED_INFO;

/// The send buffer. The program sleeps while it is full, and writes again when a third of it is free.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendBuffer {
    /// Bytes of memory.
    size: u64,
    /// What the program has written up to here is in the buffer, or was.
    pub(super) end: u64,
    /// Payload bytes of a full buffer, and what must be left for the program to write again.
    full: u64,
    low: u64,
}

impl Sender {
    /// The connection is there: the program writes.
    pub(super) fn open_buffer(&mut self) {
        self.expand_buffer();
        self.program_writes();
    }

    /// The program comes with more; if all before that has left, it was the program that kept the path from being filled
    /// (Linux: `tcp_rate_check_app_limited`). So it is as a connection begins.
    pub(super) fn program_writes(&mut self) {
        if self.buffer.end - self.snd_nxt < u64::from(self.mss) && self.queued == 0 {
            self.note_idleness();
        }
        self.fill_buffer();
    }

    fn expand_buffer(&mut self) {
        let mss = u64::from(self.mss);
        let segment = (mss + OPTIONS + HEADERS + SHARED_INFO).next_power_of_two() + SOCKET_BUFFER;
        let segments = self.window.cwnd.max(MIN_SEGMENTS).max(self.rack.reordering + 1);
        let wanted = u64::from(self.control.send_buffer_windows()) * u64::from(segments) * segment;
        let size = wanted.min(self.config.max_buffer.0);
        if size > self.buffer.size {
            let payload = (PACKET / mss).max(1) * mss;
            let memory = payload + PACKET_OVERHEAD;
            self.buffer.size = size;
            // The last packet may exceed the limit.
            self.buffer.full = size.div_ceil(memory) * payload;
            self.buffer.low = size * 2 / 3 * payload / memory;
        }
    }

    /// The program writes as much as there is room for.
    fn fill_buffer(&mut self) {
        let end = self.snd_una.saturating_add(self.buffer.full).min(self.write_end);
        self.buffer.end = self.buffer.end.max(end);
    }

    /// All was sent that may be: wakes the program if it waits for room and there is some. A buffer that keeps the window
    /// from being filled grows first. Returns whether there is more to send.
    #[inline]
    pub(super) fn refill_buffer(&mut self) -> bool {
        if self.buffer.end >= self.write_end {
            return false;
        }
        let may_grow = self.buffer.size < self.config.max_buffer.0;
        if may_grow && self.board.in_flight() < self.window.cwnd {
            self.expand_buffer();
        }
        if self.buffer.end - self.snd_una > self.buffer.low {
            return false;
        }
        let before = self.buffer.end;
        self.program_writes();
        self.buffer.end > before
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Instant;

    use super::*;
    use crate::packet::Ack;
    use crate::sender::SenderConfig;

    #[test]
    fn a_program_that_only_begins_limits_the_first_packets() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.write(u64::MAX);
        sender.transmit(Instant::ZERO, &mut |_| ());
        let answer = Ack { syn: true, window: 65_160, ..Ack::default() };
        sender.on_ack(Instant::ZERO + Duration::from_millis(40), &answer);
        assert!(sender.rate.is_app_limited());
    }
}
