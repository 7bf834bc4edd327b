//! RACK's loss detection (RFC 8985 §6): a packet is lost if one that was sent sufficiently later has arrived.

use std::collections::VecDeque;

use dualq_units::hint::unlikely;
use prefetch_index::prefetch_index;

use crate::scoreboard::{
    EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED, SETTLED, Scoreboard, Segment,
};
use crate::tick::micros_between;

/// Segments that may overtake one another before a loss is assumed (RFC 5681: three duplicate ACKs), and how many at most
/// where they are seen to (Linux: `tcp_reordering`, `tcp_max_reordering`).
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;
const MAX_REORDERING: u32 = 300;
/// Round trips with recovery for which a widened reordering window is kept.
const WINDOW_PERSISTENCE: u8 = 16;

/// RACK's state: the newest delivered packet, and what was sent in the order of sending.
// In the order in which it is written, as [`Sender`](crate::Sender) is: what each acknowledgement needs, then what those need that tell of gaps.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    sent_ns: u64,
    end: u64,
    /// When the one was sent, and when it was found to have arrived, that was delivered last: it tells the round trip.
    last_sent_ns: u64,
    last_arrived_ns: u64,
    /// How many segments were seen to overtake another, and whether any was.
    pub(crate) reordering: u32,
    /// The reordering window, in quarters of the smallest RTT.
    window_steps: u32,
    window_persistence: u8,
    /// Something was delivered since the last look.
    pub(crate) advanced: bool,
    reordering_seen: bool,
    /// A duplicate was reported, and the reordering window not widened yet.
    duplicate_seen: bool,
    /// First transmissions below this number are settled.
    cursor: u64,
    /// Retransmissions, by number and time.
    retransmissions: VecDeque<(u64, u64)>,
    window_changed_at: u64,
    /// First transmissions below this number were sent before what was delivered last, and the last of them that may be late is that one. Kept
    /// while some may be.
    sent_before: u64,
    last_waiting: u64,
}

/// What [`Rack::detect`] needs to know of the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) now_ns: u64,
    pub(crate) in_recovery: bool,
    pub(crate) min_rtt_us: u64,
    pub(crate) srtt_eighth_us: u64,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self { reordering: DUPLICATE_THRESHOLD, window_steps: 1, ..Self::default() }
    }

    /// A segment was delivered.
    #[inline]
    pub(crate) fn deliver(&mut self, segment: &Segment, now_ns: u64, min_rtt_us: u64) {
        let sent_ns = segment.stamp.sent_ns;
        if unlikely(segment.has(EVER_RETRANSMITTED)) && micros_between(sent_ns, now_ns) < min_rtt_us
        {
            // The original, not the retransmission, was delivered.
            return;
        }
        self.advanced = true;
        (self.last_sent_ns, self.last_arrived_ns) = (sent_ns, now_ns);
        if segment.is_newer(self.sent_ns, self.end) {
            (self.sent_ns, self.end) = (sent_ns, segment.end);
        }
    }

    /// A segment was sent again.
    pub(crate) fn retransmit(&mut self, number: u64, sent_ns: u64) {
        self.retransmissions.push_back((number, sent_ns));
    }

    /// Segments have other numbers than before.
    pub(crate) fn renumber(&mut self, board: &Scoreboard) {
        let sent_again = (board.first..board.next)
            .filter(|number| board.get(*number).has(RETRANSMITTED))
            .map(|number| (number, board.get(number).stamp.sent_ns));
        self.retransmissions = sent_again.collect();
        self.retransmissions.make_contiguous().sort_by_key(|(_, sent_ns)| *sent_ns);
        self.restart(board);
    }

    /// Verdicts were taken back: everything is to be looked at anew.
    pub(crate) fn restart(&mut self, board: &Scoreboard) {
        self.cursor = board.first;
        (self.sent_before, self.last_waiting) = (board.first, board.first);
        self.advanced = true;
    }

    /// What lies `distance` bytes below something that arrived before has arrived, without being sent again: so much do
    /// packets overtake one another (Linux: `tcp_check_sack_reordering`).
    pub(crate) fn see_reordering(&mut self, distance: u64, mss: u32) {
        let segments = u32::try_from(distance.div_ceil(u64::from(mss))).unwrap_or(u32::MAX);
        self.reordering = self.reordering.max(segments.min(MAX_REORDERING));
        self.reordering_seen = true;
    }

    /// A timeout after many duplicates: packets do not overtake one another that much.
    pub(crate) fn forget_reordering(&mut self) {
        self.reordering = self.reordering.min(DUPLICATE_THRESHOLD);
    }

    /// A duplicate was reported: where packets are reordered, what was sent again may only have been late.
    pub(crate) fn see_duplicate(&mut self) {
        self.duplicate_seen |= self.reordering_seen;
    }

    /// Whether the reordering window stays what it is, whatever else is delivered.
    #[inline]
    pub(crate) const fn keeps_window(&self) -> bool {
        !self.duplicate_seen && self.window_steps == 1
    }

    /// After duplicates the reordering window widens, at most once a round trip. An acknowledgement that delivers nothing
    /// leaves that to the next one (Linux: `tcp_rack_update_reo_wnd`).
    pub(crate) fn adapt_window(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        let duplicate = std::mem::take(&mut self.duplicate_seen);
        if duplicate && prior_delivered >= self.window_changed_at {
            self.window_steps = (self.window_steps + 1).min(255);
            self.window_changed_at = delivered;
            self.window_persistence = WINDOW_PERSISTENCE;
        } else if self.window_persistence == 0 {
            self.window_steps = 1;
        }
    }

    /// A recovery has ended.
    pub(crate) fn end_recovery(&mut self) {
        self.window_persistence = self.window_persistence.saturating_sub(1);
    }

    /// A recovery turned out to be unnecessary.
    pub(crate) fn recovery_was_spurious(&mut self) {
        self.window_persistence = (self.window_persistence + 1).min(WINDOW_PERSISTENCE);
    }

    /// Asks for what the next look begins with.
    #[inline]
    pub(crate) fn read_ahead(&self, board: &Scoreboard) {
        board.read_segments_ahead(self.cursor);
        prefetch_index(self.retransmissions.as_slices().0, 0);
    }

    fn window_us(&self, view: &View, board: &Scoreboard) -> u64 {
        let hasty = view.in_recovery || board.sacked_out >= self.reordering;
        if hasty && !self.reordering_seen {
            return 0;
        }
        let quarter = view.min_rtt_us.min(1 << 40) / 4;
        (quarter * u64::from(self.window_steps)).min(view.srtt_eighth_us >> 3)
    }

    /// How much longer to wait for a packet sent at `sent_ns`; zero or less if it is late.
    fn remaining_us(&self, now_ns: u64, sent_ns: u64, window_us: u64) -> i64 {
        let rtt_us = micros_between(self.last_sent_ns, self.last_arrived_ns);
        let elapsed_us = micros_between(sent_ns, now_ns);
        (rtt_us + window_us) as i64 - elapsed_us as i64
    }

    /// Whether a packet is late enough for a timeout to deem it lost.
    pub(crate) fn is_late(&self, now_ns: u64, sent_ns: u64) -> bool {
        self.remaining_us(now_ns, sent_ns, 0) <= 0
    }

    /// Marks what is lost. Returns how many packets were, and how long to wait until all others are that may be: as long as for the one
    /// that was sent last.
    pub(crate) fn detect(&mut self, view: &View, board: &mut Scoreboard) -> (u32, Option<u64>) {
        let window_us = self.window_us(view, board);
        let mut lost = 0;
        let mut wait_us = 0;

        self.cursor = self.cursor.max(board.first);
        while self.cursor < board.next {
            let segment = board.get(self.cursor);
            if may_be_late(segment) {
                if (segment.stamp.sent_ns, segment.end) >= (self.sent_ns, self.end) {
                    break;
                }
                if self.remaining_us(view.now_ns, segment.stamp.sent_ns, window_us) > 0 {
                    wait_us = self.longest_wait_us(view.now_ns, window_us, board);
                    break;
                }
                lost += u32::from(board.mark_lost(self.cursor));
                board.get_mut(self.cursor).flags |= SETTLED;
            }
            self.cursor += 1;
        }

        while let Some(&(number, sent_ns)) = self.retransmissions.front() {
            if number >= board.first {
                let segment = board.get(number);
                // Deemed lost already, unless its retransmission is out; one of a loss probe is not counted as such.
                let settled =
                    segment.has(SACKED) || (segment.has(LOST) && !segment.has(RETRANSMITTED));
                let current = !settled && segment.stamp.sent_ns == sent_ns;
                if current {
                    if (sent_ns, segment.end) >= (self.sent_ns, self.end) {
                        break;
                    }
                    if self.remaining_us(view.now_ns, sent_ns, window_us) > 0 {
                        wait_us = wait_us.max(self.longest_wait_for_again_us(
                            view.now_ns,
                            window_us,
                            board,
                        ));
                        break;
                    }
                    lost += u32::from(board.mark_lost(number));
                }
            }
            self.retransmissions.pop_front();
        }

        (lost, (wait_us > 0).then_some(wait_us as u64))
    }

    /// How long the last of those waits that were sent once and before what was delivered last; the one at the cursor waits (Linux:
    /// `tcp_rack_detect_loss`). They were sent in the order of their numbers, so nobody is looked at twice but for those that have arrived since.
    #[cold]
    fn longest_wait_us(&mut self, now_ns: u64, window_us: u64, board: &Scoreboard) -> i64 {
        self.sent_before = self.sent_before.max(self.cursor);
        self.last_waiting = self.last_waiting.max(self.cursor);
        while self.sent_before < board.next {
            let segment = board.get(self.sent_before);
            if may_be_late(segment) {
                if (segment.stamp.sent_ns, segment.end) >= (self.sent_ns, self.end) {
                    break;
                }
                self.last_waiting = self.sent_before;
            }
            self.sent_before += 1;
        }
        while !may_be_late(board.get(self.last_waiting)) {
            self.last_waiting -= 1;
        }
        let segment = board.get(self.last_waiting);
        self.remaining_us(now_ns, segment.stamp.sent_ns, window_us)
    }

    /// The same of those that were sent again, which are in the order in which they were.
    #[cold]
    fn longest_wait_for_again_us(&self, now_ns: u64, window_us: u64, board: &Scoreboard) -> i64 {
        let sent_before =
            self.retransmissions.partition_point(|&(_, sent_ns)| sent_ns <= self.sent_ns);
        let last = self.retransmissions.range(..sent_before).rev().find(|&&(number, sent_ns)| {
            number >= board.first && {
                let segment = board.get(number);
                let settled =
                    segment.has(SACKED) || (segment.has(LOST) && !segment.has(RETRANSMITTED));
                !settled
                    && segment.stamp.sent_ns == sent_ns
                    && (sent_ns, segment.end) < (self.sent_ns, self.end)
            }
        });
        last.map_or(0, |&(_, sent_ns)| self.remaining_us(now_ns, sent_ns, window_us))
    }
}

/// Whether it was sent once, and nothing is known of it yet.
#[inline]
fn may_be_late(segment: &Segment) -> bool {
    !segment.has(SACKED | LOST | EVER_RETRANSMITTED | SETTLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many segments of ten bytes, the first one sent after 1 ms.
    fn sent_each_millisecond(count: u64) -> Scoreboard {
        let mut board = Scoreboard::new();
        for number in 1..=count {
            let mut segment = Segment::new(number * 10, Default::default(), 10, (0, 0));
            segment.stamp.sent_ns = number * 1_000_000;
            board.push(segment);
        }
        board
    }

    #[test]
    fn a_duplicate_that_comes_with_nothing_else_counts_with_the_next_delivery() {
        let mut rack = Rack::new();
        rack.see_duplicate();
        rack.adapt_window(5, 10);
        assert_eq!(rack.window_steps, 1, "nothing was ever reordered");
        rack.see_reordering(10_000, 1_000);
        rack.see_duplicate();
        rack.adapt_window(0, 11);
        assert_eq!(rack.window_steps, 1);
        rack.adapt_window(6, 12);
        assert_eq!(rack.window_steps, 2);
        // Once a round trip.
        rack.see_duplicate();
        rack.adapt_window(11, 14);
        rack.adapt_window(12, 15);
        assert_eq!(rack.window_steps, 2);
    }

    /// Linux: `tcp_rack_detect_loss`, which takes the longest.
    #[test]
    fn the_wait_is_that_of_the_last_packet_that_may_be_late() {
        let (mut board, mut rack) = (sent_each_millisecond(5), Rack::new());
        let view = |now_ms: u64| View {
            now_ns: now_ms * 1_000_000,
            in_recovery: false,
            min_rtt_us: 10_000,
            srtt_eighth_us: 80_000,
        };
        // The third and the fifth have arrived, 10 ms after they were sent; 2.5 ms more for the others, from when these were.
        for (number, now_ms, wait_us) in [(2, 13, 1_500), (4, 15, 1_500)] {
            board.get_mut(number).flags |= SACKED;
            rack.deliver(&board.get(number).clone(), view(now_ms).now_ns, 10_000);
            assert_eq!(rack.detect(&view(now_ms), &mut board).1, Some(wait_us), "{number}");
        }
        // What waits longest arrives, and nothing is left that was sent before.
        board.get_mut(3).flags |= SACKED;
        assert_eq!(rack.detect(&view(15), &mut board), (0, None));
        // One that was sent again has the same time from then on.
        for (number, sent_ms) in [(0, 16), (1, 17)] {
            board.get_mut(number).flags |= EVER_RETRANSMITTED | RETRANSMITTED;
            board.get_mut(number).stamp.sent_ns = sent_ms * 1_000_000;
            rack.retransmit(number, sent_ms * 1_000_000);
        }
        let mut late = Segment::new(60, Default::default(), 10, (0, 0));
        late.stamp.sent_ns = 18_000_000;
        rack.deliver(&late, view(28).now_ns, 10_000);
        assert_eq!(rack.detect(&view(28), &mut board).1, Some(1_500));
    }

    #[test]
    fn a_verdict_that_was_taken_back_is_not_found_again() {
        let (mut board, mut rack) = (sent_each_millisecond(3), Rack::new());
        let view = View {
            now_ns: 100_000_000,
            in_recovery: true,
            min_rtt_us: 10_000,
            srtt_eighth_us: 80_000,
        };
        rack.deliver(&board.get(2).clone(), view.now_ns, 10_000);
        assert_eq!(rack.detect(&view, &mut board), (2, None));
        board.unmark_lost();
        rack.restart(&board);
        assert_eq!(rack.detect(&view, &mut board), (0, None));
        // A timeout's are.
        board.mark_lost(0);
        board.unmark_lost();
        board.get_mut(0).flags &= !SETTLED;
        rack.restart(&board);
        assert_eq!(rack.detect(&view, &mut board), (1, None));
    }
}
