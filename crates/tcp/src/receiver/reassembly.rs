//! What has arrived: the edge of the unbroken stream, and the islands beyond it.

use std::collections::VecDeque;

use crate::packet::SackBlock;

/// Blocks that are remembered for reports (Linux: `TCP_NUM_SACKS`).
const REPORTED: usize = 4;

/// What became of arriving bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// They continue the stream.
    InOrder,
    /// They leave a gap before them.
    Beyond,
    /// All of them are in an island already.
    Duplicate,
    /// All of them are part of the stream already.
    Old,
}

/// The stream as received so far.
// In the order in which it is written, as [`Receiver`](super::Receiver) is: behind what only gaps need of the buffer comes what only they need of this.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// What is reported, the newest first (Linux: `selective_acks`). A block grows by what arrives and by what stands beside
    /// it here, not by an island that was forgotten: it can be less than its island, and two blocks can be of one.
    blocks: [SackBlock; REPORTED],
    islands: VecDeque<SackBlock>,
    /// Everything before this offset has arrived.
    pub(super) next: u64,
    block_count: usize,
}

impl Reassembly {
    #[inline]
    pub(super) fn has_islands(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Whether what begins at `start` continues a stream without gaps, and nothing of it has come before.
    #[inline]
    pub(super) fn is_next(&self, start: u64) -> bool {
        (start == self.next) & !self.has_islands()
    }

    /// It does, and ends at `end`.
    #[inline]
    pub(super) const fn reach_to(&mut self, end: u64) {
        self.next = end;
    }

    /// How far beyond the stream's edge the last island reaches.
    pub(super) fn reach(&self) -> u64 {
        self.islands.back().map_or(0, |island| island.end - self.next)
    }

    /// What of the bytes from `start` to `end` has arrived before: the first run of them (Linux: `tcp_dsack_extend`).
    pub(super) fn overlap(&self, start: u64, end: u64) -> Option<SackBlock> {
        // Mostly it is behind all that has.
        if start >= self.next && self.islands.back().is_none_or(|last| last.end <= start) {
            return None;
        }
        let mut found: Option<SackBlock> = None;
        if start < self.next {
            found = Some(SackBlock { start, end: end.min(self.next) });
        }
        let from = self.islands.partition_point(|island| island.end <= start);
        for island in self.islands.iter().skip(from).take_while(|island| island.start < end) {
            let part = SackBlock { start: island.start.max(start), end: island.end.min(end) };
            match &mut found {
                None => found = Some(part),
                Some(known) if known.end == part.start => known.end = part.end,
                Some(_) => break,
            }
        }
        found
    }

    /// The place among the reported blocks of the one that the bytes from `start` to `end` touch; their number if none does.
    fn rank(&self, start: u64, end: u64) -> usize {
        let touches = |block: &SackBlock| touch(*block, SackBlock { start, end });
        self.blocks[..self.block_count].iter().position(touches).unwrap_or(self.block_count)
    }

    /// The reported block that the bytes from `start` to `end` touch reaches over them, where it stands. Returns its place, or how many there are if none
    /// does (Linux: `tcp_sack_extend`).
    pub(super) fn extend(&mut self, start: u64, end: u64) -> usize {
        let rank = self.rank(start, end);
        if let Some(block) = self.blocks[..self.block_count].get_mut(rank) {
            *block = joined(*block, SackBlock { start, end });
        }
        rank
    }

    /// Takes the bytes from `start` to `end`.
    pub(super) fn take(&mut self, start: u64, end: u64) -> Arrival {
        if end <= self.next {
            return Arrival::Old;
        }
        if start <= self.next {
            self.reach_to(end);
            if !self.islands.is_empty() {
                self.absorb();
            }
            return Arrival::InOrder;
        }
        self.take_beyond(start, end)
    }

    /// The stream's edge has moved: islands that it reaches are part of it now.
    fn absorb(&mut self) {
        while let Some(island) = self.islands.front().copied() {
            if island.start > self.next {
                break;
            }
            self.next = self.next.max(island.end);
            self.islands.pop_front();
        }
        let next = self.next;
        self.forget(0, |block| block.start <= next);
    }

    fn take_beyond(&mut self, start: u64, end: u64) -> Arrival {
        self.note(start, end);
        // Mostly the last island grows.
        if let Some(last) = self.islands.back_mut()
            && last.end == start
        {
            last.end = end;
            return Arrival::Beyond;
        }
        self.take_into_islands(start, end)
    }

    /// They make another island, grow one before the last, or fill a gap between two.
    #[cold]
    fn take_into_islands(&mut self, start: u64, end: u64) -> Arrival {
        let index = match self.islands.back() {
            Some(last) if last.end < start => self.islands.len(),
            None => 0,
            _ => self.islands.partition_point(|island| island.end < start),
        };
        if let Some(island) = self.islands.get(index)
            && island.start <= start
            && end <= island.end
        {
            return Arrival::Duplicate;
        }
        let mut merged = SackBlock { start, end };
        while let Some(island) = self.islands.get(index).copied() {
            if island.start > merged.end {
                break;
            }
            merged.start = merged.start.min(island.start);
            merged.end = merged.end.max(island.end);
            self.islands.remove(index);
        }
        self.islands.insert(index, merged);
        Arrival::Beyond
    }

    /// Puts the block that the bytes from `start` to `end` touch, or a new one, before the others (Linux:
    /// `tcp_sack_new_ofo_skb`).
    fn note(&mut self, start: u64, end: u64) {
        let block = SackBlock { start, end };
        // Mostly that is the first one already.
        if self.block_count > 0 && touch(self.blocks[0], block) {
            self.blocks[0] = joined(block, self.blocks[0]);
        } else {
            self.put_first(block);
        }
        // Linux `tcp_sack_maybe_coalesce`: what the first one reaches now is part of it.
        let mut first = self.blocks[0];
        self.forget(1, |block| {
            let reached = touch(*block, first);
            if reached {
                first = joined(first, *block);
            }
            reached
        });
        self.blocks[0] = first;
    }

    /// The same of another one than the first.
    #[cold]
    fn put_first(&mut self, mut block: SackBlock) {
        let rank = self.rank(block.start, block.end);
        if rank < self.block_count {
            block = joined(block, self.blocks[rank]);
        } else {
            self.block_count = (rank + 1).min(REPORTED);
        }
        let moved = rank.min(REPORTED - 1);
        self.blocks.copy_within(..moved, 1);
        self.blocks[0] = block;
    }

    /// Takes the blocks from the place `from` on that are `gone` out of the report.
    fn forget(&mut self, from: usize, mut gone: impl FnMut(&SackBlock) -> bool) {
        let mut kept = from;
        for index in from..self.block_count {
            if !gone(&self.blocks[index]) {
                self.blocks[kept] = self.blocks[index];
                kept += 1;
            }
        }
        self.block_count = kept;
    }

    /// How many blocks there are to report.
    pub(super) const fn reported(&self) -> usize {
        self.block_count
    }

    /// Writes the blocks that changed last to `blocks`, the newest first; returns how many.
    pub(super) fn report(&self, blocks: &mut [SackBlock]) -> usize {
        let count = self.block_count.min(blocks.len());
        blocks[..count].copy_from_slice(&self.blocks[..count]);
        count
    }
}

const fn touch(one: SackBlock, other: SackBlock) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn joined(one: SackBlock, other: SackBlock) -> SackBlock {
    SackBlock { start: one.start.min(other.start), end: one.end.max(other.end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn islands_merge_and_are_absorbed() {
        let mut stream = Reassembly::default();
        assert_eq!(stream.take(0, 10), Arrival::InOrder);
        assert_eq!(stream.take(20, 30), Arrival::Beyond);
        assert_eq!(stream.take(40, 50), Arrival::Beyond);
        assert_eq!(stream.take(40, 50), Arrival::Duplicate);
        let mut blocks = [SackBlock::default(); 3];
        assert_eq!(stream.report(&mut blocks), 2);
        assert_eq!(blocks[0], SackBlock { start: 40, end: 50 });
        assert_eq!(blocks[1], SackBlock { start: 20, end: 30 });
        assert_eq!(stream.take(30, 40), Arrival::Beyond);
        assert_eq!(stream.report(&mut blocks), 1);
        assert_eq!(blocks[0], SackBlock { start: 20, end: 50 });
        assert_eq!(stream.take(10, 20), Arrival::InOrder);
        assert_eq!((stream.next, stream.has_islands()), (50, false));
        assert!(!stream.has_islands());
        assert_eq!(stream.take(0, 50), Arrival::Old);
    }

    #[test]
    fn what_arrives_twice_is_known_in_part_too() {
        let mut stream = Reassembly::default();
        assert_eq!(stream.overlap(0, 10), None);
        stream.take(0, 10);
        for (start, end) in [(20, 30), (40, 50), (60, 70)] {
            assert_eq!(stream.overlap(start, end), None);
            stream.take(start, end);
        }
        let block = |start, end| Some(SackBlock { start, end });
        assert_eq!(stream.overlap(0, 5), block(0, 5));
        assert_eq!(stream.overlap(5, 15), block(5, 10));
        assert_eq!(stream.overlap(10, 25), block(20, 25));
        assert_eq!(stream.overlap(22, 28), block(22, 28));
        assert_eq!(
            stream.overlap(25, 45),
            block(25, 30),
            "what does not touch the first part is not told"
        );
    }

    #[test]
    fn the_newest_islands_have_the_lowest_rank() {
        let mut stream = Reassembly::default();
        for start in [20, 40, 60] {
            stream.take(start, start + 10);
        }
        assert_eq!(stream.rank(70, 80), 0);
        assert_eq!(stream.rank(30, 35), 2);
        assert_eq!(stream.rank(42, 44), 1, "a duplicate");
        assert_eq!(stream.rank(80, 90), 3, "a new one");
    }

    /// As Linux's array of four does: an island that fell out of it is not joined to what comes beside it.
    #[test]
    fn a_forgotten_island_is_not_reported_with_what_touches_it() {
        let mut stream = Reassembly::default();
        for start in [20, 40, 60, 80, 100] {
            stream.take(start, start + 10);
        }
        assert_eq!(stream.rank(30, 35), 4, "the island at 20 is forgotten");
        stream.take(30, 35);
        let mut blocks = [SackBlock::default(); REPORTED];
        assert_eq!(stream.report(&mut blocks), 4);
        let block = |start, end| SackBlock { start, end };
        assert_eq!(blocks, [block(30, 35), block(100, 110), block(80, 90), block(60, 70)]);
        stream.take(35, 60);
        assert_eq!(stream.report(&mut blocks), 3, "what stands beside it in the report is joined");
        assert_eq!(blocks[..3], [block(30, 70), block(100, 110), block(80, 90)]);
        stream.take(0, 20);
        assert_eq!(stream.next, 70, "the islands are whole all the same");
        assert_eq!(stream.report(&mut blocks), 2);
    }
}
