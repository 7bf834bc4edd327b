//! The sender's record of what is outstanding: a ring of segments, so that each event costs the same at any window.

use std::ops::Range;

use prefetch_index::prefetch_index;

use crate::packet::{MAX_PIECES, MAX_SACK_BLOCKS, SackBlock, pieces};
use crate::rate::SendStamp;

/// Selectively acknowledged.
pub(crate) const SACKED: u8 = 1;
/// Deemed lost.
pub(crate) const LOST: u8 = 2;
/// Its retransmission is in flight.
pub(crate) const RETRANSMITTED: u8 = 4;
/// Was retransmitted at some time.
pub(crate) const EVER_RETRANSMITTED: u8 = 8;
/// The application limited what was sent when it was sent last.
pub(crate) const APP_LIMITED: u8 = 16;
/// Sent as the first of its packet, the last time: what lies before it never travels with it again.
pub(crate) const FIRST_OF_PACKET: u8 = 32;

/// Room for the first segments. It grows and shrinks with what is outstanding, for the sake of ten thousand flows.
const MIN_SEGMENTS: usize = 8;

/// An acknowledgement covers two segments as a rule, looks whether it covers a third, and none ends where a line of the
/// cache does.
const READ_AHEAD: u64 = 4;

/// Deemed lost by RACK since it was sent last, which looks at nothing twice (Linux: `tcp_rack_detect_loss` takes it off
/// `tsorted_sent_queue`): if that is taken back, only a timeout finds it lost again.
pub(crate) const SETTLED: u8 = 64;

/// The program had paused behind it when it was sent first, so that it pushes.
pub(crate) const PUSHES: u8 = 128;

/// One segment that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) end: u64,
    pub(crate) stamp: SendStamp,
    pub(crate) payload: u32,
    pub(crate) flags: u8,
    /// Packets in flight when it was sent, with its own.
    in_flight: [u8; 3],
}

impl Segment {
    #[inline]
    pub(crate) const fn start(&self) -> u64 {
        self.end - self.payload as u64
    }

    #[inline]
    pub(crate) const fn new(
        end: u64,
        stamp: SendStamp,
        payload: u32,
        (flags, in_flight): (u8, u32),
    ) -> Self {
        // All four are written at once.
        let [flags, low, middle, high] = (flags as u32 | in_flight << 8).to_le_bytes();
        Self { end, stamp, payload, flags, in_flight: [low, middle, high] }
    }

    /// Packets in flight when it was sent, with its own.
    #[inline]
    pub(crate) const fn in_flight(&self) -> u32 {
        let [low, middle, high] = self.in_flight;
        u32::from_le_bytes([low, middle, high, 0])
    }

    #[inline]
    pub(crate) const fn sent_with(&mut self, in_flight: u32) {
        let [low, middle, high, _] = in_flight.to_le_bytes();
        self.in_flight = [low, middle, high];
    }

    /// Whether it was sent later than what was sent at `sent_ns` and ends at `end`; of what was sent at once, what lies behind.
    #[inline]
    pub(crate) const fn is_newer(&self, sent_ns: u64, end: u64) -> bool {
        self.stamp.sent_ns > sent_ns || (self.stamp.sent_ns == sent_ns && self.end > end)
    }

    #[inline]
    pub(crate) const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// The first of the outstanding segments, as many as an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Covered {
    pub(crate) count: u32,
    /// How many of them begin a packet.
    pub(crate) begun: u64,
    /// What any of them has.
    pub(crate) flags: u8,
}

/// Segments between the first not acknowledged and the last sent, by number.
// In the order in which it is written, as [`Sender`](crate::Sender) is.
#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// The number of the first outstanding segment.
    pub(crate) first: u64,
    /// The number that the next new segment gets.
    pub(crate) next: u64,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    ring: Vec<Segment>,
    /// Where the newest packet begins.
    pub(crate) last_packet: u64,
    /// Below this number nothing waits to be retransmitted.
    pub(crate) retransmit_from: u64,
    /// One more than the number of the highest selectively acknowledged segment.
    pub(crate) sack_end: u64,
    /// What the last acknowledgement's blocks said: no need to look at that again.
    seen: [SackBlock; MAX_SACK_BLOCKS],
    /// The packet that was made of others last: its first segment, and the one behind it.
    joined: (u64, u64),
    /// The numbers of segments that were marked as lost and not looked at since, if anybody looks.
    newly_lost: Option<Vec<u64>>,
}

impl Scoreboard {
    pub(crate) fn new() -> Self {
        Self {
            ring: Vec::new(),
            first: 0,
            next: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            retransmit_from: 0,
            last_packet: 0,
            sack_end: 0,
            seen: [SackBlock::default(); MAX_SACK_BLOCKS],
            joined: (0, 0),
            newly_lost: None,
        }
    }

    #[inline]
    pub(crate) const fn packets_out(&self) -> u32 {
        (self.next - self.first) as u32
    }

    #[inline]
    pub(crate) const fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Asks for the segments that the next acknowledgement and the next transmission look at.
    #[inline]
    pub(crate) fn read_ahead(&self) {
        self.read_segments_ahead(self.first);
        self.read_segments_ahead(self.next);
        if self.sacked_out > 0 {
            self.read_segments_ahead(self.sack_end - 1);
        }
    }

    /// Asks for a few segments from that number on.
    #[inline]
    pub(crate) fn read_segments_ahead(&self, number: u64) {
        let mask = self.ring.len().wrapping_sub(1);
        for ahead in 0..READ_AHEAD {
            prefetch_index(&self.ring, number.wrapping_add(ahead) as usize & mask);
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: u64) -> &Segment {
        &self.ring[number as usize & (self.ring.len() - 1)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut Segment {
        let mask = self.ring.len() - 1;
        &mut self.ring[number as usize & mask]
    }

    /// How many segments from `number` on are of one packet: those that were sent together, none of them acknowledged since
    /// nor sent again alone.
    #[inline]
    pub(crate) fn packet_length(&self, number: u64) -> u32 {
        let mut end = number + 1;
        while end < self.next && !self.get(end).has(SACKED | FIRST_OF_PACKET) {
            end += 1;
        }
        (end - number) as u32
    }

    /// Cuts a packet before `number`. Returns whether there is one packet more.
    #[inline]
    pub(crate) fn cut_packet(&mut self, number: u64) -> bool {
        if number >= self.next || self.get(number).has(FIRST_OF_PACKET) {
            return false;
        }
        self.get_mut(number).flags |= FIRST_OF_PACKET;
        self.last_packet = self.last_packet.max(number);
        self.joined = (0, 0);
        true
    }

    /// Appends a new segment.
    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        if self.packets_out() as usize == self.ring.len() {
            self.resize((self.ring.len() * 2).max(MIN_SEGMENTS));
        }
        let number = self.next;
        self.next += 1;
        if segment.has(FIRST_OF_PACKET) {
            self.last_packet = number;
        }
        *self.get_mut(number) = segment;
    }

    /// Appends a packet of so many new segments, of which `first` is the first; the others are as long, but for the last, which has `last`
    /// bytes.
    #[inline]
    pub(crate) fn push_packet(&mut self, first: Segment, segments: u32, last: u32) {
        while self.packets_out() as usize + segments as usize > self.ring.len() {
            self.resize((self.ring.len() * 2).max(MIN_SEGMENTS));
        }
        self.last_packet = self.next;
        self.next += u64::from(segments);
        let mask = self.ring.len() - 1;
        let place = self.last_packet as usize & mask;
        self.ring[place] = first;
        let mut end = first.end;
        for number in self.last_packet + 1..self.next {
            end += u64::from(first.payload);
            let segment = number as usize & mask;
            self.ring[segment] = self.ring[place];
            self.ring[segment].end = end;
            self.ring[segment].flags = first.flags & !FIRST_OF_PACKET;
        }
        if segments > 1 {
            let segment = self.get_mut(self.next - 1);
            segment.end = end - u64::from(first.payload) + u64::from(last);
            segment.payload = last;
        }
    }

    /// Moves what is outstanding to a ring of `size` segments.
    #[cold]
    fn resize(&mut self, size: usize) {
        let mut ring = vec![Segment::default(); size];
        let mask = ring.len() - 1;
        for number in self.first..self.next {
            ring[number as usize & mask] = *self.get(number);
        }
        self.ring = ring;
    }

    /// The first segments that end at `ack` or before.
    #[inline]
    pub(crate) fn covered(&self, ack: u64) -> Covered {
        let mut covered = Covered::default();
        for number in self.first..self.next {
            let segment = self.get(number);
            if segment.end > ack {
                break;
            }
            covered.count += 1;
            covered.begun += u64::from(segment.has(FIRST_OF_PACKET));
            covered.flags |= segment.flags;
        }
        covered
    }

    /// Takes the first segments off, at least one, which are acknowledged. What is left of the packet of the last one begins with the next segment
    /// then (Linux: `tcp_trim_head`). Returns whether nothing is left of it.
    #[inline]
    pub(crate) fn pop(&mut self, covered: Covered) -> bool {
        let end = self.first + u64::from(covered.count);
        if covered.flags & (SACKED | LOST | RETRANSMITTED) != 0 {
            self.discount(end);
        }
        self.first = end;
        let mut ends = true;
        if end < self.next {
            let head = self.get_mut(end);
            ends = head.has(FIRST_OF_PACKET);
            head.flags |= FIRST_OF_PACKET;
        } else {
            // What was counted twice no longer is (Linux: `tcp_clean_rtx_queue`).
            self.retrans_out = 0;
        }
        // A ring is walked around: its unused part would cost as much of the caches as what is in use.
        if self.ring.len() > MIN_SEGMENTS && self.packets_out() as usize <= self.ring.len() / 8 {
            self.resize((self.ring.len() / 4).max(MIN_SEGMENTS));
        }
        ends
    }

    /// What lies before `end` is out no more.
    #[cold]
    #[inline(never)]
    fn discount(&mut self, end: u64) {
        for number in self.first..end {
            let flags = self.get(number).flags;
            self.sacked_out -= u32::from(flags & SACKED != 0);
            self.lost_out -= u32::from(flags & LOST != 0);
            self.retrans_out -= u32::from(flags & RETRANSMITTED != 0);
        }
    }

    /// The number of the segment that holds the byte at `offset`, which is outstanding.
    #[inline]
    fn locate(&self, offset: u64) -> u64 {
        let front = self.get(self.first);
        // Full segments, mostly: their number follows from the distance.
        let guess = self.first + (offset - front.start()) / u64::from(front.payload.max(1));
        if guess < self.next {
            let segment = self.get(guess);
            if segment.start() <= offset && offset < segment.end {
                return guess;
            }
        }
        let (mut low, mut high) = (self.first, self.next);
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.get(middle).end <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The offset after the highest selectively acknowledged byte, or the first outstanding one.
    #[inline]
    pub(crate) fn highest_sack(&self, snd_una: u64) -> u64 {
        if self.sacked_out == 0 { snd_una } else { self.get(self.sack_end - 1).end }
    }

    /// Calls `newly` for each segment that the first `count` of `blocks` acknowledge for the first time, with its state before, and
    /// whether one behind it was acknowledged before. The other blocks are empty. Returns how many packets more there are then, or fewer.
    #[inline]
    pub(crate) fn sack(
        &mut self,
        (blocks, count): (&[SackBlock; MAX_SACK_BLOCKS], usize),
        mut newly: impl FnMut(&Segment, bool),
    ) -> i64 {
        let mut more = 0;
        let mut sorted = self.seen;
        sorted.sort_unstable_by_key(|known| known.start);
        let mut ascending = *blocks;
        let ascending = &mut ascending[..count];
        ascending.sort_unstable_by_key(|block| block.start);
        for block in ascending {
            let mut from = *block;
            // What stood in the last acknowledgement is marked; blocks grow at their ends or swallow others.
            for known in sorted {
                if known.start < from.end && known.end > from.start {
                    if known.start > from.start {
                        more += self.sack_range(from.start, known.start, &mut newly);
                    }
                    from.start = known.end.min(from.end);
                }
            }
            more += self.sack_range(from.start, from.end, &mut newly);
        }
        self.seen = *blocks;
        more
    }

    /// Shows the outstanding segments that lie in `block` as a whole, of which a second copy has arrived: no retransmission of
    /// them is under way any more (Linux: `tcp_sacktag_one`).
    pub(crate) fn arrived_twice(&mut self, block: &SackBlock, mut show: impl FnMut(&Segment)) {
        if self.first == self.next {
            return;
        }
        let start = block.start.max(self.get(self.first).start());
        if start >= block.end.min(self.get(self.next - 1).end) {
            return;
        }
        let mut number = self.locate(start);
        while number < self.next && self.get(number).end <= block.end {
            let segment = *self.get(number);
            if segment.start() >= start {
                show(&segment);
                if segment.has(RETRANSMITTED) && !segment.has(LOST) {
                    self.get_mut(number).flags &= !RETRANSMITTED;
                    self.retrans_out -= 1;
                }
            }
            number += 1;
        }
    }

    fn sack_range(&mut self, start: u64, end: u64, newly: &mut impl FnMut(&Segment, bool)) -> i64 {
        if self.first == self.next {
            return 0;
        }
        let start = start.max(self.get(self.first).start());
        let end = end.min(self.get(self.next - 1).end);
        if start >= end {
            return 0;
        }
        let mut number = self.locate(start);
        let from = number;
        while number < self.next && self.get(number).end <= end {
            let segment = self.get(number);
            let flags = segment.flags;
            if flags & SACKED == 0 {
                newly(segment, number + 1 < self.sack_end);
                let mut kept = EVER_RETRANSMITTED | APP_LIMITED | FIRST_OF_PACKET;
                // Where the verdict of loss was taken back, it is the original that arrived, and the other is still under way.
                if flags & LOST != 0 {
                    self.lost_out -= 1;
                    self.retrans_out -= u32::from(flags & RETRANSMITTED != 0);
                } else {
                    kept |= RETRANSMITTED;
                }
                self.sacked_out += 1;
                let entry = self.get_mut(number);
                entry.flags = (flags & kept) | SACKED;
                self.sack_end = self.sack_end.max(number + 1);
            }
            number += 1;
        }
        if from < number { self.shift(from, number) } else { 0 }
    }

    /// Segments from `from` up to `end` have been acknowledged selectively: they become packets of their own, or part of the one before if that
    /// was too. Returns how many packets more there are then, or fewer (Linux: `tcp_shift_skb_data`, `tcp_match_skb_to_sack`).
    fn shift(&mut self, from: u64, end: u64) -> i64 {
        let mut more = i64::from(self.cut_packet(from));
        let mut joined = false;
        let mut number = from;
        while number < end {
            let mut next = number + 1;
            while next < end && !self.get(next).has(FIRST_OF_PACKET) {
                next += 1;
            }
            more += i64::from(self.cut_packet(next));
            joined = self.join(number);
            more -= i64::from(joined);
            number = next;
        }
        // What was a hole between two is filled.
        if joined && end < self.next && self.join(end) { more - 1 } else { more }
    }

    /// Makes a packet one with the one before it, if both have arrived, none of them for a retransmission that may still be under way, and there is room
    /// for the pieces of both. Returns whether it could.
    fn join(&mut self, number: u64) -> bool {
        if number == self.first {
            return false;
        }
        let is_settled =
            |segment: &Segment| segment.flags & (SACKED | LOST | RETRANSMITTED) == SACKED;
        let (before, segment) = (self.get(number - 1), self.get(number));
        if !is_settled(before) || !is_settled(segment) {
            return false;
        }
        let (joined_start, joined_end) = self.joined;
        let mut start =
            if joined_end == number { joined_start.max(self.first) } else { number - 1 };
        while start > self.first && !self.get(start).has(FIRST_OF_PACKET) {
            start -= 1;
        }
        let mut end = number + 1;
        while end < self.next && !self.get(end).has(FIRST_OF_PACKET) {
            end += 1;
        }
        let first = self.get(start);
        let pieces = pieces(first.start(), self.get(end - 1).end);
        if first.payload != segment.payload || pieces > MAX_PIECES {
            return false;
        }
        self.get_mut(number).flags &= !FIRST_OF_PACKET;
        if self.last_packet == number {
            self.last_packet = start;
        }
        self.joined = (start, end);
        true
    }

    /// Deems lost all packets of longer segments than `mss` bytes that have not arrived (Linux: `tcp_simple_retransmit`). Returns how many segments that is news of.
    pub(crate) fn lose_longer(&mut self, mss: u32) -> u32 {
        let (mut lost, mut number) = (0, self.first);
        while number < self.next {
            let end = number + u64::from(self.packet_length(number));
            if self.get(number).payload > mss {
                lost += (number..end).map(|number| u32::from(self.mark_lost(number))).sum::<u32>();
            }
            number = end;
        }
        lost
    }

    /// How many segments from `number` on are of one packet and have had the same fate.
    pub(crate) fn run_length(&self, number: u64) -> u32 {
        let (head, end) = (self.get(number).flags, number + u64::from(self.packet_length(number)));
        let is_other =
            |next: &u64| (self.get(*next).flags ^ head) & !(FIRST_OF_PACKET | PUSHES) > 0;
        ((number + 1..end).find(is_other).unwrap_or(end) - number) as u32
    }

    /// Makes one segment of these. What lies behind it has other numbers then.
    pub(crate) fn put_together(&mut self, segments: Range<u64>) {
        let flags = segments.clone().fold(0, |flags, number| flags | self.get(number).flags);
        let first = segments.start;
        self.cut_anew(segments, (u32::MAX, u64::MAX));
        self.get_mut(first).flags |= flags & EVER_RETRANSMITTED;
    }

    /// Cuts a packet, which all of these segments are, anew into such of `mss` bytes and the rest; `fin` is the place of FIN, which has no segment of its own.
    /// What lies behind it has other numbers then.
    pub(crate) fn cut_anew(&mut self, packet: Range<u64>, (mss, fin): (u32, u64)) {
        let (head, last) = (*self.get(packet.start), *self.get(packet.end - 1));
        let behind: Vec<Segment> = (packet.end..self.next).map(|next| *self.get(next)).collect();
        self.next = packet.start;
        self.joined = (0, 0);
        let (mut start, mut flags) = (head.start(), head.flags & !PUSHES);
        while start < last.end {
            let cut = last.end.min(start + u64::from(mss));
            let end = if cut == fin { last.end } else { cut };
            let pushes = if end == last.end { last.flags & PUSHES } else { 0 };
            let payload = (end - start) as u32;
            self.push(Segment { end, payload, flags: flags | pushes, ..head });
            start = end;
            flags &= !FIRST_OF_PACKET;
        }
        for segment in behind {
            self.push(segment);
        }
        self.count_again();
    }

    /// Counts what follows from the segments' flags.
    fn count_again(&mut self) {
        let count = |flag| {
            let segments = (self.first..self.next).filter(|number| self.get(*number).has(flag));
            segments.count() as u32
        };
        let counts = (count(SACKED), count(LOST), count(RETRANSMITTED));
        let last = (self.first..self.next).rev().find(|number| self.get(*number).has(SACKED));
        (self.sacked_out, self.lost_out, self.retrans_out) = counts;
        self.sack_end = last.map_or(self.first, |number| number + 1);
        self.retransmit_from = self.first;
    }

    /// Deems a segment lost, or its retransmission. Returns whether that is news.
    ///
    /// One that was sent again and is no longer deemed lost, as that was not needed, is so by itself first: its retransmission stays out (Linux: `tcp_mark_skb_lost`).
    #[inline]
    pub(crate) fn mark_lost(&mut self, number: u64) -> bool {
        let segment = self.get_mut(number);
        let flags = segment.flags;
        if flags & SACKED != 0 || (flags & LOST != 0 && flags & RETRANSMITTED == 0) {
            return false;
        }
        if flags & LOST == 0 {
            segment.flags |= LOST;
            self.lost_out += 1;
        } else {
            segment.flags &= !RETRANSMITTED;
            self.retrans_out -= 1;
        }
        self.retransmit_from = self.retransmit_from.min(number);
        if let Some(list) = &mut self.newly_lost {
            list.push(number);
        }
        true
    }

    /// The numbers of segments that were marked as lost since the last call, in this order; from the first call on.
    pub(crate) fn newly_lost(&mut self) -> Vec<u64> {
        self.newly_lost.replace(Vec::new()).unwrap_or_default()
    }

    /// Takes back every verdict of loss.
    pub(crate) fn unmark_lost(&mut self) {
        for number in self.first..self.next {
            self.get_mut(number).flags &= !LOST;
        }
        self.lost_out = 0;
        self.retransmit_from = self.next;
    }

    /// The next segment that is lost and not retransmitted.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<u64> {
        if self.retrans_out >= self.lost_out {
            return None;
        }
        let mut number = self.retransmit_from.max(self.first);
        while number < self.next {
            let segment = self.get(number);
            if segment.has(LOST) && !segment.has(SACKED | RETRANSMITTED) {
                self.retransmit_from = number;
                return Some(number);
            }
            number += 1;
        }
        self.retransmit_from = number;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux: `tcp_tso_acked`, `tcp_trim_head`.
    #[test]
    fn a_packet_ends_with_its_last_segment_and_the_rest_of_one_begins_anew() {
        let mut board = Scoreboard::new();
        for (end, flags) in [(1, FIRST_OF_PACKET), (2, 0), (3, 0), (4, FIRST_OF_PACKET)] {
            board.push(Segment::new(end, Default::default(), 1, (flags, 0)));
        }
        let mut end = 0;
        let mut ends = || {
            end += 1;
            board.pop(board.covered(end))
        };
        assert!(!ends());
        assert_eq!([ends(), ends(), ends()], [false, true, true]);
    }

    #[test]
    fn a_retransmission_stays_out_where_the_original_was_only_late() {
        let mut board = Scoreboard::new();
        for end in [10, 20, 30] {
            board.push(Segment { end, payload: 10, ..Segment::default() });
        }
        board.mark_lost(1);
        board.get_mut(1).flags |= RETRANSMITTED | EVER_RETRANSMITTED;
        board.retrans_out = 1;
        board.unmark_lost();
        let block = SackBlock { start: 10, end: 20 };
        board.sack((&[block, SackBlock::default(), SackBlock::default()], 1), |_, _| ());
        assert_eq!((board.retrans_out, board.sacked_out, board.in_flight()), (1, 1, 3));
        let mut seen = Vec::new();
        board.arrived_twice(&block, |segment| seen.push(segment.end));
        assert_eq!((seen, board.retrans_out, board.in_flight()), (vec![20], 0, 2));
        board.arrived_twice(&block, |_| ());
        board.pop(board.covered(20));
        assert_eq!((board.retrans_out, board.sacked_out, board.in_flight()), (0, 0, 1));
    }

    /// As in the world `kernel` in `exact-20261709` (Linux: `tcp_mark_skb_lost`, after `tcp_undo_cwnd_reduction`).
    #[test]
    fn what_is_lost_again_after_a_verdict_was_taken_back_leaves_its_retransmission_out() {
        let mut board = Scoreboard::new();
        for end in [10, 20] {
            board.push(Segment { end, payload: 10, ..Segment::default() });
        }
        board.mark_lost(0);
        board.get_mut(0).flags |= RETRANSMITTED;
        board.retrans_out = 1;
        board.unmark_lost();
        assert!(board.mark_lost(0));
        assert_eq!((board.lost_out, board.retrans_out, board.in_flight()), (1, 1, 2));
        assert_eq!(board.next_lost(), None);
        // Then that is lost too.
        assert!(board.mark_lost(0));
        assert_eq!((board.retrans_out, board.in_flight(), board.next_lost()), (0, 1, Some(0)));
        // What was counted twice is forgotten with the last segment.
        board.retrans_out = 1;
        board.pop(board.covered(20));
        assert_eq!((board.lost_out, board.retrans_out), (0, 0));
    }

    /// Linux: `tcp_shift_skb_data`, `tcp_match_skb_to_sack`.
    #[test]
    fn packets_that_have_arrived_become_one_and_what_has_not_is_cut_off() {
        let mut board = Scoreboard::new();
        for end in 1..=12 {
            let flags = if end % 2 == 1 { FIRST_OF_PACKET } else { 0 };
            board.push(Segment::new(1_000 * end, Default::default(), 1_000, (flags, 0)));
        }
        let firsts = |board: &Scoreboard| -> Vec<u64> {
            (0..12).filter(|number| board.get(*number).has(FIRST_OF_PACKET)).collect()
        };
        let sack = |board: &mut Scoreboard, start: u64, end: u64| {
            let block = SackBlock { start: 1_000 * start, end: 1_000 * end };
            let blocks = [block, SackBlock::default(), SackBlock::default()];
            let more = board.sack((&blocks, 1), |_, _| ());
            (more, firsts(board))
        };
        // Behind a hole, and the next one with it; then half of one behind a hole, and what fills that hole and joins both sides.
        assert_eq!(sack(&mut board, 2, 4), (0, vec![0, 2, 4, 6, 8, 10]));
        assert_eq!(sack(&mut board, 4, 6), (-1, vec![0, 2, 6, 8, 10]));
        assert_eq!(sack(&mut board, 8, 9), (1, vec![0, 2, 6, 8, 9, 10]));
        assert_eq!(sack(&mut board, 6, 8), (-2, vec![0, 2, 9, 10]));
        // The beginning of a longer one joins, and its rest begins there.
        board.get_mut(10).flags &= !FIRST_OF_PACKET;
        assert_eq!(sack(&mut board, 9, 11), (0, vec![0, 2, 11]));
        // What was sent again and may still be under way joins nothing.
        for number in [0, 1] {
            board.get_mut(number).flags |= RETRANSMITTED;
        }
        board.retrans_out = 2;
        assert_eq!(sack(&mut board, 0, 2), (0, vec![0, 2, 11]));
    }

    /// Linux: `MAX_SKB_FRAGS`.
    #[test]
    fn as_many_pieces_as_a_packet_can_have_become_one() {
        let mut board = Scoreboard::new();
        let piece = crate::packet::PIECE_BYTES;
        for end in 1..=40 {
            let stamp = Default::default();
            board.push(Segment::new(piece * end, stamp, piece as u32, (FIRST_OF_PACKET, 0)));
        }
        let block = SackBlock { start: piece, end: 40 * piece };
        let more = board.sack((&[block, SackBlock::default(), SackBlock::default()], 1), |_, _| ());
        let firsts = (0..40).filter(|number| board.get(*number).has(FIRST_OF_PACKET));
        assert_eq!((more, firsts.collect::<Vec<_>>()), (-36, vec![0, 1, 18, 35]));
    }
}
