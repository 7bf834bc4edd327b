//! TCP small queues: what may wait in the queue of the sender's own interface, and what goes on when something has left it (Linux:
//! `tcp_small_queue_check`, `tcp_wfree`).

use super::Sender;
use super::transmit::{PACING_SHIFT, PACKET_OVERHEAD};

/// Kernel memory that a packet with payload holds.
#[inline]
const fn memory(payload: u32) -> u64 {
    payload as u64 + PACKET_OVERHEAD
}

impl Sender {
    /// More arrives at this instant, before any program runs: the next [`transmit`](Self::transmit) sends, and finds nothing new written (Linux:
    /// `net_rx_action`, in a softirq). What leaves then holds its memory until all [has arrived](Self::all_has_arrived).
    pub const fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// What leaves the queue of the sender's interface now does so with a timer that lets other packets arrive: these are looked at before, and until
    /// [all has arrived](Self::all_has_arrived) it holds its memory, and what it takes to be cut into so many more segments (Linux: `net_tx_action`, behind
    /// which packets wait for `process_backlog` as they left, and `skb_orphan` there).
    #[cold]
    pub const fn hold(&mut self, more: u64) {
        self.is_held = true;
        self.backlog += more * PACKET_OVERHEAD;
    }

    /// All that comes at this instant has. Returns how often [`transmit`](Self::transmit) is to be called: for what a small queue held back, for a program
    /// that was [interrupted](Self::interrupt) as it would have written, or for both, the program first if it `writes_first`.
    pub fn all_has_arrived(&mut self, writes_first: bool) -> u32 {
        self.is_held = false;
        let goes_on = std::mem::take(&mut self.backlog) > 0 && std::mem::take(&mut self.throttled);
        self.writes_first = writes_first && self.waits_to_write && goes_on;
        if self.writes_first { 2 } else { u32::from(self.waits_to_write || goes_on) }
    }

    /// A packet of `payload` bytes has left the queue of the sender's interface. Returns whether more waited for that at any
    /// time since the last one left: then [`transmit`](Self::transmit) is to be called (Linux: `tcp_wfree`), if not
    /// [more arrives](Self::interrupt).
    #[inline]
    pub fn on_departure(&mut self, payload: u32) -> bool {
        // What carries no payload counts for nothing (Linux: `skb_set_tcp_pure_ack`).
        let memory = if payload > 0 { memory(payload) } else { 0 };
        self.queued = self.queued.saturating_sub(memory);
        if self.is_held {
            self.backlog += memory;
            return false;
        }
        std::mem::take(&mut self.throttled)
    }

    /// TCP small queues: about two aggregates or a millisecond may wait in the sender's own queue, or what is the only packet
    /// under way (Linux: `tcp_small_queue_check`, in whose count of bytes is one for the socket: two packets as long as the next
    /// are enough).
    #[inline]
    pub(super) fn small_queue_is_full(&mut self, payload: u32, shift: u32) -> bool {
        let limit = (2 * memory(payload)).max(self.window.pacing_rate >> PACING_SHIFT) << shift;
        let held = if self.is_writing {
            self.queued - self.leaving
        } else {
            self.queued + self.cut_apart + self.backlog
        };
        let full = held >= limit && self.board.last_packet > self.board.first;
        if full {
            self.throttled = true;
        }
        full
    }

    /// A packet of `payload` bytes enters the queue of the sender's interface. What need not wait there is handed on, but holds its memory until
    /// the next host looks at it, which is after all that an acknowledgement or a timer lets leave (Linux: `NET_RX_SOFTIRQ`, `skb_orphan`):
    /// more of it if it was cut into its segments on the way (`tcp_gso_segment`).
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        now_ns: u64,
        departure_ns: u64,
        (payload, segments): (u32, u32),
    ) {
        self.queued += memory(payload);
        if departure_ns <= now_ns {
            self.leaving += memory(payload);
            if !self.config.gso {
                self.cut_apart += u64::from(segments - 1) * PACKET_OVERHEAD;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dualq_units::Instant;

    use super::*;
    use crate::sender::{Handshake, SenderConfig};

    #[test]
    fn two_packets_as_long_as_the_next_fill_a_small_queue() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.window.pacing_rate = 1_000;
        sender.queued = 2 * memory(2_896);
        sender.board.last_packet = 2;
        assert!(sender.small_queue_is_full(2_896, 0));
        assert!(!sender.small_queue_is_full(4_344, 0));
        assert!(
            !sender.small_queue_is_full(2_896, 1),
            "what is sent again may wait in twice the number"
        );
        // Of one packet under way nobody waits for the end, however many segments it has.
        sender.board.last_packet = 0;
        sender.board.next = 40;
        assert!(!sender.small_queue_is_full(1_448, 0));
    }

    /// Linux: `tcp_gso_segment`, after which a debugger shows 44,537 bytes in `sk_wmem_alloc`.
    #[test]
    fn what_an_interface_cuts_apart_fills_a_small_queue_sooner() {
        for (gso, full) in [(true, false), (false, true)] {
            let mut sender = Sender::new(SenderConfig { gso, ..SenderConfig::default() });
            sender.window.pacing_rate = 1_000;
            sender.board.last_packet = 2;
            sender.enqueue(0, 0, (19 * 1_448, 19));
            assert_eq!(sender.queued + sender.cut_apart, if gso { 28_408 } else { 44_536 });
            assert_eq!(sender.small_queue_is_full(10 * 1_448, 0), full);
            // It is cut as it leaves.
            let mut sender = Sender::new(SenderConfig { gso, ..SenderConfig::default() });
            sender.enqueue(0, 1, (19 * 1_448, 19));
            assert_eq!(sender.queued + sender.cut_apart, 28_408);
        }
    }

    /// Linux: `tcp_wfree`, which comes when `process_backlog` has looked at all that came before.
    #[test]
    fn what_leaves_while_more_arrives_holds_its_memory_until_all_has() {
        let packet = 10 * 1_448;
        let full = |more: bool| {
            let mut sender = Sender::new(SenderConfig { gso: false, ..SenderConfig::default() });
            sender.handshake = Handshake::Established;
            sender.window.pacing_rate = 1_000;
            sender.board.last_packet = 2;
            if more {
                sender.interrupt();
            }
            sender.transmit(Instant::from_nanos(1), &mut |_| ());
            for _ in 0..2 {
                sender.enqueue(1, 1, (packet, 10));
            }
            let is_full = |sender: &mut Sender| {
                sender.is_writing = false;
                sender.small_queue_is_full(packet, 0)
            };
            assert!(is_full(&mut sender));
            let goes_on = [packet; 2].map(|payload| sender.on_departure(payload));
            sender.transmit(Instant::from_nanos(1), &mut |_| ());
            let full = is_full(&mut sender);
            let calls = sender.all_has_arrived(true);
            assert!(!is_full(&mut sender));
            (goes_on, full, calls)
        };
        assert_eq!(full(false), ([true, false], false, 0));
        assert_eq!(full(true), ([false, false], true, 1));
    }
}
