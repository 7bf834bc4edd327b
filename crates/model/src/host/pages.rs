//! Where in the hosts' memory what programs have written lies: a packet carries as many pieces of memory as it begins in and crosses into, and
//! packets of many are kept as one at the receiver less often.

use std::collections::VecDeque;
use std::ops::Range;

use dualq_tcp::Data;

/// One process writes for all connections, into one block of memory after the other (Linux: `sk_page_frag`, of `current->task_frag`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pages {
    /// How many bytes were written to it.
    end: u64,
}

/// Bytes of a stream that lie in memory one behind the other: where they begin and end in the stream, and where in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: u64,
    end: u64,
    at: u64,
}

/// Where what a connection has written lies: its runs of bytes between which others wrote, by where in its stream and in memory they begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    runs: VecDeque<(u64, u64)>,
    /// One that a packet lay in.
    recent: Run,
}

impl Written {
    /// These places in the stream were written; those before `acknowledged` are not asked for any more.
    #[inline(never)]
    pub(crate) fn write(&mut self, places: Range<u64>, acknowledged: u64, pages: &mut Pages) {
        self.forget(acknowledged);
        self.add(places.start, places.end - places.start, pages);
    }

    /// So many bytes were written from `start` on.
    fn add(&mut self, start: u64, bytes: u64, pages: &mut Pages) {
        let follows = |(run, at): &(u64, u64)| at + (start - run) == pages.end;
        if !self.runs.back().is_some_and(follows) {
            self.runs.push_back((start, pages.end));
            self.recent.end = self.recent.end.min(start);
        }
        pages.end += bytes;
    }

    /// Nobody asks for what lies before `start` any more.
    fn forget(&mut self, start: u64) {
        while self.runs.get(1).is_some_and(|(run, _)| *run <= start) {
            self.runs.pop_front();
            self.recent = Run::default();
        }
    }

    /// The pieces of memory that a packet carries.
    #[inline]
    pub(crate) fn pieces(&mut self, data: &Data) -> u64 {
        // Most packets lie in the run that the one before them lay in.
        if self.recent.start > data.seq || data.end() > self.recent.end {
            return self.pieces_of_others(data);
        }
        let Run { start, at, .. } = self.recent;
        pieces_of((start, at), data.seq, data.end())
    }

    /// The same where they do not.
    #[inline(never)]
    fn pieces_of_others(&mut self, data: &Data) -> u64 {
        let behind = self.runs.partition_point(|(run, _)| *run <= data.seq).max(1);
        let end = self.runs.get(behind).map_or(u64::MAX, |(next, _)| *next);
        match self.runs.get(behind - 1) {
            Some(&(start, at)) if data.end() <= end => {
                self.recent = Run { start, end, at };
                pieces_of((start, at), data.seq, data.end())
            }
            _ => self.pieces_of_several(data),
        }
    }

    fn pieces_of_several(&self, data: &Data) -> u64 {
        let mut runs = self.runs.iter().peekable();
        let (mut from, end, mut pieces) = (data.seq, data.end(), 0);
        while from < end
            && let Some(run) = runs.next()
        {
            let next = runs.peek().map_or(end, |(next, _)| end.min(*next));
            if from < next {
                pieces += pieces_of(*run, from, next);
                from = next;
            }
        }
        pieces
    }
}

/// The pieces from one place in a stream to another, which lie in one run.
#[inline]
const fn pieces_of((run, at): (u64, u64), from: u64, to: u64) -> u64 {
    dualq_tcp::pieces(at + from - run, at + to - run)
}

#[cfg(test)]
mod tests {
    use dualq_tcp::{Control, EcnFlags};
    use dualq_units::Ecn;

    use super::*;

    fn data(seq: u64, payload: u32) -> Data {
        Data {
            seq,
            payload,
            segments: 1,
            mss: 1448,
            timestamp_ms: 0,
            echo_ms: 0,
            ecn: Ecn::NotEct,
            flags: EcnFlags::NONE,
            options: 0,
            control: Control::NONE,
        }
    }

    #[test]
    fn a_packet_has_a_piece_for_each_block_and_for_each_write_between_others() {
        let (mut pages, mut one, mut other) =
            (Pages::default(), Written::default(), Written::default());
        one.add(0, 40_000, &mut pages);
        assert_eq!([0, 32_000, 38_000].map(|seq| one.pieces(&data(seq, 1_448))), [1, 2, 1]);
        other.add(0, 20_000, &mut pages);
        one.add(40_000, 10_000, &mut pages);
        // From 40,000 to 60,000 there was somebody else, and a block ends at 65,536.
        assert_eq!(one.pieces(&data(39_000, 1_448)), 2);
        assert_eq!([45_000, 45_536].map(|seq| one.pieces(&data(seq, 1_000))), [2, 1]);
        one.forget(41_000);
        assert_eq!(one.pieces(&data(45_000, 1_000)), 2);
    }
}
