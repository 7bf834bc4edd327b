//! DCTCP (RFC 8257), as in Linux's `tcp_dctcp.c`.
//!
//! Parameters: g = 1/16 (RFC 8257 §3.3), α starts at 1. Every packet is ECT(0), a SYN too.
//! A connection without ECN gets Reno instead.

use super::about::{About, Constant, share};
use super::{CongestionControl, Context, EcnStyle, Event, MIN_SSTHRESH, State, Window, reno};

/// α of 1, in units of 1/1024.
const MAX_ALPHA: u32 = 1024;
/// g = 2⁻⁴, the weight of a new observation.
const SHIFT_G: u32 = 4;

/// What there is to say of it.
pub(super) const ABOUT: About = About {
    title: "DCTCP, data center TCP",
    what: "Reno's growth, but the window sinks by half the share of marked packets, alpha, once a \
        round trip: little where few are marked. Its receiver echoes each mark as it comes.",
    reacts_to: "ECN: the share of CE marks. All its packets are ECT(0), so that dualpi2 has them in the \
        classic queue unless it is any_ect. Loss: halves the window. Not to delay. Without ECN \
        it is Reno.",
    source: "RFC 8257; Linux net/ipv4/tcp_dctcp.c",
    not_for: "Not over the Internet: beside classic flows in a queue that marks both alike it takes \
        nearly all. For L4S networks there is prague, which sends ECT(1).",
    constants: &[
        Constant::new(
            "dctcp_shift_g",
            || format!("{SHIFT_G} (g = 1/{})", 1 << SHIFT_G),
            "the weight of a round trip's share of marks in alpha",
        ),
        Constant::new(
            "dctcp_alpha_on_init",
            || share(MAX_ALPHA.into(), MAX_ALPHA.into()),
            "alpha before anything is known",
        ),
    ],
};

/// DCTCP's state.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    /// The estimated fraction of marked packets, in units of 1/1024.
    alpha: u32,
    /// The observation window ends when this byte is acknowledged.
    next_seq: u64,
    delivered: u64,
    delivered_ce: u64,
    /// The window before the last reduction.
    loss_cwnd: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { alpha: MAX_ALPHA, next_seq: 0, delivered: 0, delivered_ce: 0, loss_cwnd: 0 }
    }
}

impl Dctcp {
    fn start_observation(&mut self, context: &Context) {
        self.next_seq = context.snd_nxt;
        self.delivered = context.delivered;
        self.delivered_ce = context.delivered_ce;
    }

    fn halve(&mut self, window: &mut Window) {
        self.loss_cwnd = window.cwnd;
        window.ssthresh = (window.cwnd / 2).max(MIN_SSTHRESH);
    }
}

impl CongestionControl for Dctcp {
    fn start(&mut self, _window: &mut Window, context: &Context) {
        self.start_observation(context);
    }

    fn ssthresh(&mut self, window: &Window, _context: &Context) -> u32 {
        self.loss_cwnd = window.cwnd;
        // cwnd = cwnd * (1 - α / 2) (RFC 8257 §3.3, step 9)
        let reduction = (u64::from(window.cwnd) * u64::from(self.alpha)) >> 11;
        (window.cwnd - reduction as u32).max(MIN_SSTHRESH)
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, context: &Context, acked: u32) {
        reno::grow(window, context, acked);
    }

    #[inline]
    fn on_ack_event(&mut self, _window: &mut Window, context: &Context) {
        if context.snd_una < self.next_seq {
            return;
        }
        // α = (1 - g) α + g M (RFC 8257 §3.3, step 5); what is too small to shrink goes to zero.
        let marked = context.delivered_ce - self.delivered_ce;
        let delivered = (context.delivered - self.delivered).max(1);
        let decay = self.alpha >> SHIFT_G;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        let share = (marked << (10 - SHIFT_G)) / delivered;
        self.alpha = (self.alpha + share as u32).min(MAX_ALPHA);
        self.start_observation(context);
    }

    fn on_state(&mut self, window: &mut Window, context: &Context, next: State) {
        // Loss is no less than it is for Reno (RFC 8257 §3.5).
        if next == State::Recovery && context.state != State::Recovery {
            self.halve(window);
        }
    }

    fn on_event(&mut self, window: &mut Window, _context: &Context, event: Event) {
        if event == Event::Loss {
            self.halve(window);
        }
    }

    fn undo(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.cwnd.max(self.loss_cwnd)
    }

    fn needs_rtt(&self, _window: &Window, _rtt_us: u64) -> bool {
        false
    }

    fn needs_samples(&self) -> bool {
        false
    }

    fn ecn_style(&self) -> EcnStyle {
        EcnStyle::Dctcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::test_support::{context, window};

    #[test]
    fn alpha_follows_the_marked_fraction() {
        let mut dctcp = Dctcp::default();
        let mut path = window(100);
        let mut seen = context();
        for round in 1..200 {
            seen.delivered = round * 100;
            seen.delivered_ce = round * 25;
            seen.snd_una = round;
            seen.snd_nxt = round + 1;
            dctcp.on_ack_event(&mut path, &seen);
        }
        // A quarter of the packets: 256/1024, and what a decay rounded down leaves.
        assert!((256..=272).contains(&dctcp.alpha), "{}", dctcp.alpha);
        assert_eq!(dctcp.ssthresh(&path, &seen), 100 - (100 * dctcp.alpha) / 2048);
    }

    #[test]
    fn loss_halves_the_window() {
        let mut dctcp = Dctcp { alpha: 0, ..Dctcp::default() };
        let mut path = window(100);
        dctcp.on_state(&mut path, &context(), State::Recovery);
        assert_eq!(path.ssthresh, 50);
    }
}
