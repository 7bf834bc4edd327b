//! What logs tell of a sender.

use super::Sender;
use crate::cc::{CongestionControl as _, State};
use crate::scoreboard::{LOST, RETRANSMITTED, SACKED};

impl Sender {
    /// What congestion avoidance is doing, in one word: recovery's states, then those that the congestion control has of its own.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        match (self.recovery.state, self.control.phase()) {
            (State::Loss, _) => "loss",
            (State::Recovery, _) => "recovery",
            (State::Cwr, _) => "cwr",
            (_, Some(phase)) => phase,
            _ if self.window.in_slow_start() => "slow_start",
            _ => "congestion_avoidance",
        }
    }

    /// The smallest round-trip time of the last minutes in microseconds; `None` before the first measurement.
    #[must_use]
    pub fn min_rtt_us(&self) -> Option<u64> {
        Some(self.rtt.min_us).filter(|min_us| *min_us < u64::MAX)
    }

    /// Segments deemed lost so far, each as often as it was.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.rate.lost
    }

    /// What is deemed lost and was not sent again since: from one place in the stream to another.
    pub fn losses(&self) -> impl Iterator<Item = (u64, u64)> {
        let outstanding = (self.board.first..self.board.next).map(|number| self.board.get(number));
        let lost =
            outstanding.filter(|segment| segment.has(LOST) && !segment.has(SACKED | RETRANSMITTED));
        lost.map(|segment| (segment.start(), segment.end))
    }
}
