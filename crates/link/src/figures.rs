//! What a link counts.

use std::fmt;
use std::time::Duration;

use dualq_net::Lost;
use dualq_qdisc::show::{self, Stats};
use dualq_qdisc::{Config, DropReason};
use dualq_scenario::summary::QueueDelays;
use dualq_units::Instant;
use hdrhistogram::Histogram;

/// The longest time that is told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(60);
/// Times are kept to one part in a hundred.
const DIGITS: u8 = 2;

/// So large a share of a round trip may come of the link's own lateness.
const SHARE: f64 = 0.1;
/// Packets that leave later than this are not late: threads of ordinary Linux wake no better, so that a shorter time would tell of them and not of
/// the path.
const PUNCTUAL: Duration = Duration::from_micros(100);

/// Many times: how often each came, to one part in a hundred.
#[derive(Clone)]
pub struct Times {
    nanos: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Self {
        let longest = LONGEST.as_nanos() as u64;
        let nanos = Histogram::new_with_bounds(1, longest, DIGITS);
        Self { nanos: nanos.expect("bounds and digits are right") }
    }
}

impl Times {
    /// One more.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.nanos.saturating_record(time.as_nanos() as u64);
    }

    /// The same of each of so many.
    #[inline]
    pub(crate) fn record_all(&mut self, time: Duration, count: u16) {
        self.nanos.saturating_record_n(time.as_nanos() as u64, count.into());
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// Their mean; none at all if there are none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanos.mean() as u64)
    }

    /// The time that so large a share of all, from 0 to 1, is not longer than.
    #[must_use]
    pub fn at(&self, share: f64) -> Duration {
        Duration::from_nanos(self.nanos.value_at_quantile(share))
    }

    /// How many are not longer than `time`, which is told from others to one part in a hundred.
    #[must_use]
    pub fn up_to(&self, time: Duration) -> u64 {
        self.nanos.count_between(0, time.as_nanos() as u64)
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos.max())
    }
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Times")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p99", &self.at(0.99))
            .finish_non_exhaustive()
    }
}

/// Packets as they are on the wire, of an aggregate each by itself, and their bytes there, Ethernet's header included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Amount {
    #[inline]
    pub(crate) fn add(&mut self, packets: u16, bytes: u32) {
        self.packets += u64::from(packets);
        self.bytes += u64::from(bytes);
    }
}

/// Packets that were lost on the way, by what lost them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The queue disciplines: of the bottleneck and of elements.
    pub queue: u64,
    /// Elements that lose at random.
    pub random: u64,
    /// They were longer than an element's MTU.
    pub too_long: u64,
    /// Policers.
    pub policed: u64,
    /// A queue discipline was replaced, or the link stopped, while they waited.
    pub flushed: u64,
    /// The link itself had no memory for them: no loss of the path, but an error of the link.
    pub no_room: u64,
    /// The device at the other end did not take them: an error of the link as well.
    pub refused: u64,
}

impl Losses {
    pub(crate) const fn count(&mut self, why: Lost, packets: u64) {
        let counter = match why {
            Lost::Queue(DropReason::Flushed) => &mut self.flushed,
            Lost::Queue(_) => &mut self.queue,
            Lost::Random => &mut self.random,
            Lost::TooLong { .. } => &mut self.too_long,
            Lost::Policed => &mut self.policed,
        };
        *counter += packets;
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.queue
            + self.random
            + self.too_long
            + self.policed
            + self.flushed
            + self.no_room
            + self.refused
    }
}

/// How long packets stayed in one of the queues inside a discipline, such as the `L` of dualpi2.
#[derive(Clone, Debug)]
pub struct Band {
    /// The discipline's name for it.
    pub name: &'static str,
    /// How long.
    pub delays: Times,
}

/// What a direction has counted since it started. Of its packets: `came + copied + made = left + lost.total() + inside`.
#[derive(Clone, Debug, Default)]
pub struct DirectionFigures {
    /// What was read from the device.
    pub came: Amount,
    /// What was written to the other one.
    pub left: Amount,
    /// What was lost.
    pub lost: Losses,
    /// Packets that came twice.
    pub copied: u64,
    /// ICMP messages that routers on the path sent this way.
    pub made: u64,
    /// Packets that left with CE and had come without.
    pub marked: u64,
    /// How long packets stayed in the bottleneck's queue, by the queues that its discipline has.
    pub bands: Vec<Band>,
    /// How long packets stayed in the queues of elements, in the order in which packets meet them.
    pub others: Vec<Times>,
    /// The same of the bottleneck's by the ECN field, to be summed up as outcomes have it.
    pub delays: QueueDelays,
    /// How much later packets were written than the path let them go: as they are on the wire, of an aggregate each by itself.
    pub lateness: Times,
}

/// A queue, as it is.
#[derive(Clone, Debug)]
pub struct QueueSnapshot {
    /// Its options.
    pub config: Config,
    /// Its own counters.
    pub stats: Stats,
}

impl QueueSnapshot {
    /// As `tc -s qdisc show` shows it.
    #[must_use]
    pub fn text(&self) -> String {
        show::text_with_stats(&self.config, &self.stats)
    }
}

/// A direction at a moment.
#[derive(Clone, Debug, Default)]
pub struct DirectionSnapshot {
    /// What it has counted.
    pub figures: DirectionFigures,
    /// Its bottleneck's queue, if it has one.
    pub queue: Option<QueueSnapshot>,
    /// The queues of elements, in the order in which packets meet them.
    pub others: Vec<QueueSnapshot>,
    /// Packets inside.
    pub inside: u64,
    /// Packets that the device dropped before the link could read them: an error of the link, never a drop of the queue.
    pub device_dropped: u64,
    /// Packets that came while its thread had not read all that was there for longer than 10 ms: how long they waited for it, nobody knows.
    pub behind: u64,
    /// Why it does nothing any more, if a device failed.
    pub failed: Option<String>,
}

impl DirectionSnapshot {
    /// Whether its thread read too slowly for figures to be those of the path: then more than a hundredth of what came waited before it. None
    /// without a bottleneck, for then that is what there is.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.queue.is_some() && self.behind.saturating_mul(100) > self.figures.came.packets
    }
}

/// A link at a moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The moment, by `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// From the far device to the near one.
    pub down: DirectionSnapshot,
    /// From the near device to the far one.
    pub up: DirectionSnapshot,
}
/// A link was too late for figures to be those of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate {
    /// The 99th percentiles of how late packets were, those of both ways added: what a round trip may have of it.
    pub late: Duration,
    /// How much that may be.
    pub allowed: Duration,
    /// The mean round trip that it is compared with.
    pub round_trip: Duration,
}

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "this machine was too busy: packets were written {:.3} ms late (the 99th percentiles of down and up added), and no more than {:.3} \
             ms may be ({:.0} % of a mean round trip of {:.3} ms, or {:.1} ms if that is more)",
            ms(self.late),
            ms(self.allowed),
            SHARE * 1e2,
            ms(self.round_trip),
            ms(PUNCTUAL)
        )
    }
}

impl Snapshot {
    /// Whether it was too late for figures of which a mean round trip is so long.
    #[must_use]
    pub fn too_late(&self, round_trip: Duration) -> Option<TooLate> {
        let [down, up] = [&self.down, &self.up].map(|way| way.figures.lateness.at(0.99));
        let (late, allowed) = (down + up, round_trip.mul_f64(SHARE).max(PUNCTUAL));
        (late > allowed).then_some(TooLate { late, allowed, round_trip })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_counts_beside_a_round_trip() {
        let mut snapshot = Snapshot::default();
        let mut is_late = |late_us, round_trip_ms| {
            for way in [&mut snapshot.down, &mut snapshot.up] {
                way.figures.lateness = Times::default();
                way.figures.lateness.record(Duration::from_micros(late_us));
            }
            snapshot.too_late(Duration::from_millis(round_trip_ms)).is_some()
        };
        // Both ways count.
        assert!(!is_late(490, 10) && is_late(510, 10));
        assert!(!is_late(49, 0) && is_late(51, 0));
        let seconds = 60;
        assert!(is_late(seconds * 1_000_000, 1000));
        // What is said is the rule: 40 and 70 us are together more than 0.1 ms.
        for (way, late_us) in [(&mut snapshot.down, 40), (&mut snapshot.up, 70)] {
            way.figures.lateness = Times::default();
            way.figures.lateness.record(Duration::from_micros(late_us));
        }
        let said = snapshot.too_late(Duration::from_micros(500)).unwrap().to_string();
        assert!(said.contains("0.110 ms late") || said.contains("0.111 ms late"), "{said}");
        let rule = "no more than 0.100 ms may be (10 % of a mean round trip of 0.500 ms, or 0.1 ms if that is more)";
        assert!(said.ends_with(rule), "{said}");
    }
}
