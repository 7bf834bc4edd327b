//! What is not taken in, and what is said of it.

use super::{MAX_QUICK_ACKS, Receiver};
use crate::packet::{Ack, Data, INVALID_SPACING, PAWS_WINDOW_MS, SackBlock};

impl Receiver {
    /// Whether it is older than what was acknowledged last by more than a millisecond: taken for a packet of long ago whose
    /// number comes again (RFC 7323 §5; Linux: `tcp_paws_check`). Where a queue sends retransmissions ahead, data that waited
    /// in it are lost so.
    #[inline]
    pub(super) const fn is_overtaken(&self, data: &Data) -> bool {
        (data.timestamp_ms as u64) + (PAWS_WINDOW_MS as u64) < self.echo_ms as u64
    }

    /// Drops it, and says at once what is expected (Linux: `tcp_send_dupack`).
    #[cold]
    pub(super) fn refuse(&mut self, now_ns: u64, data: &Data, out: &mut impl FnMut(Ack)) {
        if self.is_gone() {
            return self.reset(out);
        }
        if data.seq < self.stream.next {
            self.answer_quickly(MAX_QUICK_ACKS);
            self.duplicate =
                Some(SackBlock { start: data.seq, end: data.end().min(self.stream.next) });
        }
        self.send(now_ns, out);
    }

    /// The sender asks whether the window has opened.
    #[cold]
    pub(super) fn answer_window_probe(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        if !self.config.tick.is_within(self.last_probe_answer_ns, now_ns, INVALID_SPACING) {
            self.last_probe_answer_ns = Some(now_ns);
            self.send(now_ns, out);
        }
    }
}
