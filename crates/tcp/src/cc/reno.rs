//! NewReno's window (RFC 5681 §3.1, RFC 6582), as in Linux's `tcp_cong.c`.
//!
//! Parameters: none. The window grows by a packet for each acknowledged one in slow start, by a packet a window in
//! congestion avoidance, and halves on loss.

use super::about::About;
use super::{CongestionControl, Context, MIN_SSTHRESH, Window};

/// What there is to say of it.
pub(super) const ABOUT: About = About {
    title: "NewReno",
    what: "The window grows by a packet for each acknowledged one in slow start, then by a packet a \
        round trip, and halves on loss.",
    reacts_to: "Loss: halves the window. With ECN a CE mark does the same, once a round trip; its \
        packets then are ECT(0). Not to delay.",
    source: "RFC 5681, RFC 6582, RFC 3168; Linux net/ipv4/tcp_cong.c",
    not_for: "Not for long fast paths, which it takes minutes to fill again after a loss. It is the \
        baseline of papers and what prague and dctcp become without ECN.",
    constants: &[],
};

/// Reno's state: none beyond the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

/// Reno's growth, which DCTCP shares.
#[inline]
pub(super) fn grow(window: &mut Window, context: &Context, mut acked: u32) {
    if !context.cwnd_limited {
        return;
    }
    if window.in_slow_start() {
        acked = window.slow_start(acked);
        if acked == 0 {
            return;
        }
    }
    window.additive_increase(window.cwnd, acked);
}

impl CongestionControl for Reno {
    fn ssthresh(&mut self, window: &Window, _context: &Context) -> u32 {
        (window.cwnd / 2).max(MIN_SSTHRESH)
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, context: &Context, acked: u32) {
        grow(window, context, acked);
    }

    fn needs_ack_events(&self) -> bool {
        false
    }

    fn needs_rtt(&self, _window: &Window, _rtt_us: u64) -> bool {
        false
    }

    fn needs_samples(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::test_support::{context, window};

    #[test]
    fn slow_start_doubles_then_one_packet_a_window() {
        let mut reno = Reno;
        let mut path = window(10);
        reno.increase(&mut path, &context(), 10);
        assert_eq!(path.cwnd, 20);
        path.ssthresh = 20;
        reno.increase(&mut path, &context(), 20);
        assert_eq!(path.cwnd, 21);
        assert_eq!(reno.ssthresh(&path, &context()), 10);
    }

    #[test]
    fn an_idle_window_does_not_grow() {
        let mut path = window(10);
        let unused = Context { cwnd_limited: false, ..context() };
        Reno.increase(&mut path, &unused, 10);
        assert_eq!(path.cwnd, 10);
    }
}
