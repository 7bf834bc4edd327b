//! What has arrived: the edge of the unbroken stream, and the islands beyond it.

use std::collections::VecDeque;

use crate::packet::SackBlock;

/// Islands that are remembered for reports (Linux: `TCP_NUM_SACKS`).
const RECENT: usize = 4;

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
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// Everything before this offset has arrived.
    pub(super) next: u64,
    islands: VecDeque<SackBlock>,
    /// Where the islands start that changed last, the newest first.
    recent: [u64; RECENT],
    recent_count: usize,
}

impl Reassembly {
    #[inline]
    pub(super) fn has_islands(&self) -> bool {
        !self.islands.is_empty()
    }

    /// How far beyond the stream's edge the last island reaches.
    pub(super) fn reach(&self) -> u64 {
        self.islands.back().map_or(0, |island| island.end - self.next)
    }

    /// What of the bytes from `start` to `end` has arrived before: the first run of them (Linux: `tcp_dsack_extend`).
    pub(super) fn overlap(&self, start: u64, end: u64) -> Option<SackBlock> {
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

    /// The place among those that changed last of the island that the bytes from `start` to `end` touch; their number if it
    /// is a new one.
    pub(super) fn rank(&self, start: u64, end: u64) -> usize {
        let touches = |known: &u64| {
            let index = self.islands.partition_point(|island| island.start < *known);
            self.islands.get(index).is_some_and(|island| island.start <= end && start <= island.end)
        };
        self.recent[..self.recent_count].iter().position(touches).unwrap_or(self.recent_count)
    }

    /// Takes the bytes from `start` to `end`.
    #[inline]
    pub(super) fn take(&mut self, start: u64, end: u64) -> Arrival {
        if end <= self.next {
            return Arrival::Old;
        }
        if start <= self.next {
            self.next = end;
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
        self.forget(|start| start < next);
    }

    fn take_beyond(&mut self, start: u64, end: u64) -> Arrival {
        // Mostly the last island grows.
        let index = match self.islands.back_mut() {
            Some(last) if last.end == start => {
                last.end = end;
                let island = last.start;
                self.touch(island);
                return Arrival::Beyond;
            }
            Some(last) if last.end < start => self.islands.len(),
            None => 0,
            _ => self.islands.partition_point(|island| island.end < start),
        };
        if let Some(island) = self.islands.get(index)
            && island.start <= start
            && end <= island.end
        {
            let island = island.start;
            self.touch(island);
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
            self.forget(|start| start == island.start);
        }
        self.islands.insert(index, merged);
        self.touch(merged.start);
        Arrival::Beyond
    }

    fn forget(&mut self, gone: impl Fn(u64) -> bool) {
        let mut kept = 0;
        for index in 0..self.recent_count {
            if !gone(self.recent[index]) {
                self.recent[kept] = self.recent[index];
                kept += 1;
            }
        }
        self.recent_count = kept;
    }

    fn touch(&mut self, start: u64) {
        if self.recent_count > 0 && self.recent[0] == start {
            return;
        }
        self.forget(|known| known == start);
        self.recent_count = (self.recent_count + 1).min(RECENT);
        self.recent[..self.recent_count].rotate_right(1);
        self.recent[0] = start;
    }

    /// Writes the islands that changed last to `blocks`, the newest first; returns how many.
    pub(super) fn report(&self, blocks: &mut [SackBlock]) -> usize {
        let mut count = 0;
        for start in &self.recent[..self.recent_count] {
            if count == blocks.len() {
                break;
            }
            let index = self.islands.partition_point(|island| island.start < *start);
            if let Some(island) = self.islands.get(index) {
                blocks[count] = *island;
                count += 1;
            }
        }
        count
    }
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
}
