//! What happens on a link over time, in so few intervals that a capture of any length fits: where there are more, each two become one.

use std::time::Duration;

use dualq_qdisc::Departure;
use dualq_units::{Bytes, Instant, Rate};

use crate::packet::Tracked;

/// So many intervals at most; there are between half of this and this in a long capture.
const MOST_INTERVALS: usize = 2048;

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(1);

/// What happened in intervals of one length, from the first packet on.
#[derive(Clone, Debug)]
pub struct Timeline {
    first: Option<Instant>,
    interval: Duration,
    intervals: Vec<Interval>,
}

/// What happened in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Bytes that arrived before the queue.
    pub bytes_in: u64,
    /// Bytes that left the queue.
    pub bytes_out: u64,
    /// Of the packets that left, those that the queue had marked.
    pub marks: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// The shortest and the longest delay of the packets that left, if any did.
    pub delays: Option<(Duration, Duration)>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { first: None, interval: SHORTEST, intervals: Vec::new() }
    }
}

impl Interval {
    pub(crate) fn departed(&mut self, departure: &Departure<Tracked>) {
        let marked = departure.marked_by_probability || departure.marked_by_step;
        let delay = departure.sojourn();
        self.join(&Self {
            bytes_in: 0,
            bytes_out: u64::from(departure.packet.length),
            marks: u64::from(marked),
            drops: 0,
            delays: Some((delay, delay)),
        });
    }

    fn join(&mut self, other: &Self) {
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.marks += other.marks;
        self.drops += other.drops;
        self.delays = match (self.delays, other.delays) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }
}

impl Timeline {
    /// How long each interval is.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// The intervals, one after the other.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// The rate of so many bytes in an interval.
    #[must_use]
    pub fn rate(&self, bytes: u64) -> Rate {
        Rate::of(Bytes(bytes), self.interval)
    }

    /// The interval at this time.
    pub(crate) fn at(&mut self, now: Instant) -> &mut Interval {
        let since = now - *self.first.get_or_insert(now);
        let mut number = (since.as_nanos() / self.interval.as_nanos()) as usize;
        while number >= MOST_INTERVALS {
            self.halve();
            number /= 2;
        }
        if number >= self.intervals.len() {
            self.intervals.resize(number + 1, Interval::default());
        }
        &mut self.intervals[number]
    }

    /// Each two intervals become one.
    fn halve(&mut self) {
        let joined = self.intervals.chunks(2).map(|pair| {
            let mut one = pair[0];
            pair[1..].iter().for_each(|other| one.join(other));
            one
        });
        self.intervals = joined.collect();
        self.interval *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_it_is_nothing_is_lost() {
        for millis in [1_u64, 7, 40, 5_000, 1_000_000_000] {
            let mut timeline = Timeline::default();
            for packet in 0..10_000_u64 {
                let at = Instant::ZERO + Duration::from_millis(1_000 + packet * millis);
                let interval = timeline.at(at);
                interval.bytes_out += 100;
                let delay = Duration::from_micros(packet);
                interval.join(&Interval { delays: Some((delay, delay)), ..Interval::default() });
            }
            let intervals = timeline.intervals();
            assert!(intervals.len() <= MOST_INTERVALS && intervals.len() >= MOST_INTERVALS / 2);
            assert_eq!(intervals.iter().map(|one| one.bytes_out).sum::<u64>(), 1_000_000);
            let delays = || intervals.iter().filter_map(|one| one.delays);
            assert_eq!(delays().map(|(least, _)| least).min(), Some(Duration::ZERO));
            assert_eq!(delays().map(|(_, most)| most).max(), Some(Duration::from_micros(9_999)));
            let spans = timeline.interval().as_millis() as usize * intervals.len();
            assert!(spans > 9_999 * millis as usize, "{spans}");
        }
    }
}
