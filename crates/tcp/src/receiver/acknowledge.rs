//! Acknowledgements: at once, later or with others, and what they say (Linux: `__tcp_ack_snd_check`, `tcp_event_data_recv`).

use dualq_units::hint::unlikely;

use super::{MAX_QUICK_ACKS, Moment, Receiver};
use crate::control::Control;
use crate::ecn::{EcnBytes, EcnFlags, EcnOption, EcnStyle};
use crate::packet::{Ack, MAX_SACK_BLOCKS, SackBlock};
use crate::rtt::{RTO_INITIAL_US, RTO_MIN_US};
use crate::tick::TIMER_LATENCY_NS;

/// The longest delay where no write seems to have ended, before what is known of the round trip shortens it.
const UNPUSHED_ACK_DELAY_US: u64 = 500_000;
/// The delay of compressed SACKs: a third of the round trip, 1 ms at most, 44 in a row (Linux: `tcp_comp_sack_*`).
const MAX_COMPRESSION_NS: u64 = 1_000_000;
const COMPRESSION_RTT_PERCENT: u64 = 33;
/// How much later it may end (Linux: `tcp_comp_sack_slack_ns`); with nothing else to wake for, it does.
const COMPRESSION_SLACK_NS: u64 = 10_000 + TIMER_LATENCY_NS;
const MAX_COMPRESSED: u32 = 44;
const DUPLICATES_BEFORE_COMPRESSION: u32 = 3;

impl Receiver {
    /// How long an acknowledgement may wait follows from how often data come, in jiffies (Linux: `tcp_event_data_recv`).
    #[inline(always)]
    pub(super) fn adapt_delay(&mut self, jiffy: u32) {
        let gap = jiffy.wrapping_sub(self.last_arrival);
        self.last_arrival = jiffy;
        let shortest = self.min_ack_delay;
        if self.ack_delay > 0 && gap <= shortest / 2 {
            self.ack_delay = self.ack_delay / 2 + shortest / 2;
        } else {
            self.adapt_delay_after(gap);
        }
    }

    /// The same after a pause, or of the first data.
    #[cold]
    fn adapt_delay_after(&mut self, gap: u32) {
        if self.ack_delay == 0 {
            self.hurry(MAX_QUICK_ACKS);
            self.ack_delay = self.min_ack_delay;
        } else if gap < self.ack_delay {
            let delay = self.ack_delay / 2 + gap;
            self.ack_delay = delay.min(self.own_timeout()).min(self.max_ack_delay);
        } else if gap > self.own_timeout() {
            // So long a silence was a timeout: the sender's window is small.
            self.hurry(MAX_QUICK_ACKS);
        }
    }

    /// An acknowledgement waited in vain: the next one may wait longer, or not for what this end sends (Linux: `tcp_delack_timer_handler`).
    pub(super) fn waited_in_vain(&mut self) {
        if std::mem::take(&mut self.converses) {
            self.ack_delay = self.min_ack_delay;
            return;
        }
        self.ack_delay = (2 * self.ack_delay).min(self.own_timeout()).min(self.max_ack_delay);
    }

    /// The retransmission timeout of this side: where it sends no data, it follows from the handshake.
    pub(super) fn own_timeout(&self) -> u32 {
        if self.handshake.timeout > 0 {
            return self.handshake.timeout;
        }
        let timeout_us = match self.handshake.rtt_us {
            Some(rtt_us) => rtt_us + (2 * rtt_us).max(RTO_MIN_US),
            None => RTO_INITIAL_US,
        };
        self.config.tick.jiffies_in(timeout_us)
    }

    /// The next acknowledgements do not wait (Linux: `tcp_incr_quickack`).
    pub(super) fn hurry(&mut self, most: u32) {
        let by_window = (self.window / u64::from(2 * self.buffer.segment())) as u32;
        // Two where the window has no room for a pair of segments, and one where it has for one pair.
        let by_window = if by_window == 0 { 2 } else { by_window };
        self.quick = self.quick.max(by_window.min(most));
    }

    /// The same after something unusual (Linux: `tcp_enter_quickack_mode`).
    pub(super) fn answer_quickly(&mut self, most: u32) {
        self.hurry(most);
        self.converses = false;
        self.ack_delay = self.min_ack_delay;
    }

    /// Acknowledge now, later, or with others (Linux: `__tcp_ack_snd_check`).
    #[inline(always)]
    pub(super) fn decide(&mut self, at: Moment, out: &mut impl FnMut(Ack)) {
        let unacked = self.stream.next - self.acked;
        let several = unacked > u64::from(self.buffer.segment());
        if unlikely(self.quick > 0) && several && self.buffer.is_tight() {
            self.quick = 0;
        }
        // What came behind a gap finds all read that could be (Linux: less than `sk_rcvlowat` waits).
        if (several && (self.buffer.offers_still(self.window) || self.has_read_all()))
            || (self.quick > 0 && !self.converses)
            || self.ack_now
        {
            // Once for all that waited, when all of it has been taken in (Linux: `tcp_backlog_ack_defer`).
            if unlikely(self.is_reading()) {
                self.deferred = true;
            } else {
                self.send(at.now_ns, out);
            }
        } else if unlikely(self.stream.has_islands()) {
            self.compress(at.now_ns, out);
        } else {
            self.delay(at, out);
        }
    }

    /// Acknowledges later (Linux: `tcp_send_delayed_ack`).
    #[inline(always)]
    fn delay(&mut self, at: Moment, out: &mut impl FnMut(Ack)) {
        let tick = self.config.tick;
        let mut delay = self.ack_delay;
        if unlikely(delay > self.min_ack_delay) {
            delay = self.shortened(delay);
        }
        let delay = delay.min(self.longest_wait);
        let runs = self.ack_timer_ns != u64::MAX;
        if runs && self.ack_timer_ns <= tick.expiry_from(at.jiffy, delay / 4) {
            return self.send(at.now_ns, out);
        }
        let expiry_ns = tick.expiry_from(at.jiffy, delay);
        if expiry_ns < self.ack_timer_ns {
            self.ack_wheel.start_until(expiry_ns, delay);
            self.ack_timer_ns = expiry_ns;
        }
    }

    /// Where data come seldom.
    #[cold]
    fn shortened(&self, delay: u32) -> u32 {
        let tick = self.config.tick;
        let longest = if self.pushed || self.converses {
            self.max_ack_delay
        } else {
            tick.jiffies_in(UNPUSHED_ACK_DELAY_US)
        };
        let by_rtt = self
            .handshake
            .rtt_us
            .map_or(u32::MAX, |us| tick.jiffies_in(us).max(self.min_ack_delay));
        delay.min(longest).min(by_rtt)
    }

    #[inline(never)]
    fn compress(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        if self.compressed >= MAX_COMPRESSED {
            return self.send(now_ns, out);
        }
        if self.compressed_at != self.stream.next {
            self.compressed_at = self.stream.next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES_BEFORE_COMPRESSION {
            self.duplicates += 1;
            return self.send(now_ns, out);
        }
        self.compressed += 1;
        if self.compression_timer_ns == u64::MAX {
            let rtt_us = self.handshake.rtt_us.unwrap_or(u64::MAX).min(self.buffer.rtt_us());
            let share_ns = rtt_us * 1_000 * COMPRESSION_RTT_PERCENT / 100;
            self.compression_timer_ns =
                now_ns + share_ns.min(MAX_COMPRESSION_NS) + COMPRESSION_SLACK_NS;
            // The timer of an acknowledgement that has left runs on, and sends what it finds held back (Linux: `tcp_delack_timer_handler`;
            // `inet_csk_clear_xmit_timer` stops no timer).
            let left_ns = self.ack_wheel.runs_out().as_nanos();
            if left_ns > now_ns {
                self.compression_timer_ns = self.compression_timer_ns.min(left_ns);
            }
        }
    }

    #[inline]
    pub(super) fn send(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        self.send_up_to(now_ns, self.stream.next, out);
    }

    pub(super) fn send_up_to(&mut self, now_ns: u64, edge: u64, out: &mut impl FnMut(Ack)) {
        if unlikely(self.quick > 0) && self.buffer.is_tight() {
            self.quick = 0;
        }
        let ack = self.without_blocks(now_ns, edge);
        if edge == self.stream.next {
            // What acknowledges nothing new does not count (Linux: `tcp_dec_quickack_mode`).
            if unlikely(self.quick > 0) && self.scheduled {
                self.quick -= 1;
                if self.quick == 0 {
                    self.ack_delay = self.min_ack_delay;
                }
            }
            self.scheduled = false;
        }
        self.ack_now = false;
        self.pushed = false;
        self.ack_timer_ns = self.farewell.due_ns;
        self.compression_timer_ns = u64::MAX;
        self.compressed = 0;
        match ack.block_count {
            0 => out(ack),
            _ => self.send_blocks(ack, out),
        }
    }

    #[inline(never)]
    fn send_blocks(&mut self, mut ack: Ack, out: &mut impl FnMut(Ack)) {
        self.tell_blocks(&mut ack.blocks);
        out(ack);
    }

    /// The option of the answer to a SYN: that there is one, as nothing has come that could be counted.
    pub(super) fn offered_option(&self) -> Option<EcnBytes> {
        let offers =
            self.ecn == EcnStyle::Accurate && self.config.ecn_option != EcnOption::Disabled;
        offers.then(|| self.received.counts())
    }

    pub(super) fn ack(&mut self, now_ns: u64, edge: u64) -> Ack {
        let mut ack = self.without_blocks(now_ns, edge);
        self.tell_blocks(&mut ack.blocks);
        ack
    }

    /// An acknowledgement whose blocks, of which most have none, are still to be [told](Self::tell_blocks).
    #[inline(always)]
    fn without_blocks(&mut self, now_ns: u64, edge: u64) -> Ack {
        let dsack = self.duplicate.is_some();
        let mut count = (usize::from(dsack) + self.stream.reported()).min(MAX_SACK_BLOCKS);
        let mut option = None;
        if self.option_seen {
            (count, option) = self.tell_option(now_ns, count);
        }
        let flags = match self.ecn {
            EcnStyle::Accurate => self.received.field(),
            _ if self.echo => EcnFlags::ECE,
            _ => EcnFlags::NONE,
        };
        // What was offered is never taken back. It counts from where the stream is now, though less may be acknowledged (Linux: `tcp_select_window`).
        let offered = self.offered();
        let window = self.buffer.window(self.window);
        self.window = if window < offered { self.buffer.scaled(offered) } else { window };
        self.acked = self.stream.next;
        Ack {
            ack: edge,
            window: self.buffer.told(self.window),
            block_count: count as u8,
            control: Control::DSACK.when(dsack),
            flags,
            option,
            ecn: self.ack_ecn(),
            echo_ms: self.echo_ms,
            timestamp_ms: self.config.tick.millisecond(now_ns),
            ..Ack::default()
        }
    }

    /// The option of Accurate ECN, if it is due and leaves room for blocks, of which there are as many as are told then.
    #[inline(never)]
    fn tell_option(&mut self, now_ns: u64, blocks: usize) -> (usize, Option<EcnBytes>) {
        let srtt_us = self.handshake.rtt_us.unwrap_or(0);
        let is_due = self.received.is_option_due(self.config.ecn_option, now_ns, srtt_us);
        match self.received.beside(blocks).filter(|_| is_due) {
            Some(blocks) => (blocks, Some(self.received.tell(now_ns))),
            None => (blocks, None),
        }
    }

    /// What came twice, and what changed last.
    fn tell_blocks(&mut self, blocks: &mut [SackBlock; MAX_SACK_BLOCKS]) {
        let duplicate = self.duplicate.take();
        blocks[0] = duplicate.unwrap_or_default();
        self.stream.report(&mut blocks[usize::from(duplicate.is_some())..]);
    }
}

#[cfg(test)]
mod tests {
    use dualq_units::Instant;

    use super::*;
    use crate::receiver::ReceiverConfig;
    use crate::receiver::tests::data;

    /// As in the world `kernel` in `exact-20261228` (Linux: `__tcp_ack_snd_check`).
    #[test]
    fn what_comes_behind_a_gap_finds_all_read_and_is_no_duplicate_if_more_than_a_segment_waited() {
        for (waited, duplicates) in [(1_448, 1), (1_449, 0)] {
            let mut receiver = Receiver::new(ReceiverConfig::default());
            let at = Instant::from_nanos(20_000_000);
            for seq in [0, 1_448] {
                receiver.on_data(at, &data(seq, 10), &mut |_| ());
            }
            receiver.stream.take(4_344, 5_792);
            (receiver.window, receiver.quick) = (1 << 20, 0);
            receiver.acked = receiver.stream.next - waited;
            let mut acks = 0;
            receiver.decide(Moment { now_ns: at.as_nanos(), jiffy: 2 }, &mut |_| acks += 1);
            assert_eq!((acks, receiver.duplicates), (1, duplicates), "{waited}");
        }
    }

    /// Linux: `tcp_incr_quickack`.
    #[test]
    fn a_small_window_makes_few_quick_acknowledgements() {
        for (window, quick) in [(1_448, 2), (3_000, 1), (9_000, 3), (100_000, MAX_QUICK_ACKS)] {
            let mut receiver = Receiver::new(ReceiverConfig::default());
            receiver.on_data(Instant::from_nanos(20_000_000), &data(0, 10), &mut |_| ());
            (receiver.window, receiver.quick) = (window, 0);
            receiver.hurry(MAX_QUICK_ACKS);
            assert_eq!(receiver.quick, quick, "{window}");
        }
    }
}
