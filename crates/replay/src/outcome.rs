//! What became of the packets.

use std::time::Duration;

use dualq_qdisc::show::Stats;
use dualq_qdisc::{Config, Departure, DropReason, Dropped, Ecn, Spec};
use dualq_units::{Bytes, Rate};
use hdrhistogram::Histogram;

use crate::link::Point;
use crate::packet::Tracked;
use crate::timeline::Timeline;

/// What became of all packets on one link.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The discipline that was asked for.
    pub spec: Spec,
    /// What it was.
    pub config: Config,
    /// Its counters at the end.
    pub stats: Stats,
    /// Each of its queues.
    pub bands: Vec<BandOutcome>,
    /// All of them together.
    pub total: BandOutcome,
    /// From the first arrival to the end of the last packet that was sent.
    pub busy_for: Duration,
    /// What happened over time, if that was asked for.
    pub timeline: Option<Timeline>,
}

impl Outcome {
    /// What the link delivered, over [`busy_for`](Self::busy_for).
    #[must_use]
    pub fn delivered(&self) -> Rate {
        Rate::of(Bytes(self.total.bytes_out), self.busy_for)
    }
}

/// What became of the packets of one queue. Aggregates that were split count as their segments.
#[derive(Clone, Debug)]
pub struct BandOutcome {
    /// The queue's name.
    pub name: &'static str,
    /// Packets that left.
    pub packets_out: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Of those that left, how many had CE set, by whomever.
    pub ce_out: u64,
    /// Of those that left, how many the probability had marked.
    pub marked_by_probability: u64,
    /// Of those that left, how many a step had marked.
    pub marked_by_step: u64,
    /// Packets that were dropped.
    pub drops: Drops,
    delays: Histogram<u64>,
    shortest_ns: u64,
    longest_ns: u64,
}

/// Packets dropped, by reason and place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// They met a full queue.
    pub overlimit: u64,
    /// The AQM dropped them as they arrived.
    pub congested_at_enqueue: u64,
    /// The AQM dropped them when their turn had come.
    pub congested_at_dequeue: u64,
    /// The step would have marked them, but they were not ECN-capable.
    pub step: u64,
    /// A lossy path lost them.
    pub random: u64,
}

impl Drops {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.overlimit
            + self.congested_at_enqueue
            + self.congested_at_dequeue
            + self.step
            + self.random
    }
}

/// Queueing delays of the packets that left: from enqueue to the start of their transmission. The percentiles are exact to
/// three digits, the extremes to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for what they are")]
pub struct Delays {
    pub min: Duration,
    pub p50: Duration,
    pub p95: Duration,
    pub p99: Duration,
    pub max: Duration,
}

/// How exact percentiles are.
const DIGITS: u8 = 3;
/// How many steps a distribution has until half of what is left is passed, each time.
const STEPS_PER_HALF: u32 = 40;
/// Longer delays count as this long in percentiles: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl BandOutcome {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            packets_out: 0,
            bytes_out: 0,
            ce_out: 0,
            marked_by_probability: 0,
            marked_by_step: 0,
            drops: Drops::default(),
            delays: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
                .expect("bounds and digits are right"),
            shortest_ns: u64::MAX,
            longest_ns: 0,
        }
    }

    /// Packets that came in: every one has left or was dropped.
    #[must_use]
    pub const fn packets_in(&self) -> u64 {
        self.packets_out + self.drops.total()
    }

    /// The delays of the packets that left; `None` if none did.
    #[must_use]
    pub fn delays(&self) -> Option<Delays> {
        let quantile = |quantile| {
            // A bucket's upper end may lie above the longest delay that was seen.
            let nanos = self.delays.value_at_quantile(quantile);
            Duration::from_nanos(nanos.clamp(self.shortest_ns, self.longest_ns))
        };
        (self.packets_out > 0).then(|| Delays {
            min: Duration::from_nanos(self.shortest_ns),
            p50: quantile(0.50),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: Duration::from_nanos(self.longest_ns),
        })
    }

    /// Steps of the delays' cumulative distribution, ascending: a delay, and the share of the packets that waited no longer. Denser
    /// towards the end, where percentiles are asked for.
    #[must_use]
    pub fn distribution(&self) -> Vec<(Duration, f64)> {
        let total = self.delays.len().max(1) as f64;
        let mut steps: Vec<(Duration, f64)> = Vec::new();
        for step in self.delays.iter_quantiles(STEPS_PER_HALF) {
            let nanos = step.value_iterated_to().clamp(self.shortest_ns, self.longest_ns);
            let below = self.delays.count_between(0, step.value_iterated_to()) as f64 / total;
            steps.push((Duration::from_nanos(nanos), below));
        }
        steps.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 = if same { kept.1.max(next.1) } else { kept.1 };
            same
        });
        steps
    }

    #[inline]
    pub(crate) fn departed(&mut self, departure: &Departure<Tracked>) {
        self.packets_out += 1;
        self.bytes_out += u64::from(departure.packet.length);
        self.ce_out += u64::from(departure.packet.ecn == Ecn::Ce);
        self.marked_by_probability += u64::from(departure.marked_by_probability);
        self.marked_by_step += u64::from(departure.marked_by_step);
        let nanos = departure.sojourn_ns;
        self.shortest_ns = self.shortest_ns.min(nanos);
        self.longest_ns = self.longest_ns.max(nanos);
        self.delays.saturating_record(nanos);
    }

    pub(crate) fn dropped(&mut self, point: Point, lost: &Dropped<Tracked>) {
        let drops = &mut self.drops;
        *match (lost.reason, point) {
            (DropReason::Step, _) => &mut drops.step,
            (DropReason::Random, _) => &mut drops.random,
            (DropReason::Congested, Point::Enqueue) => &mut drops.congested_at_enqueue,
            (DropReason::Congested, Point::Dequeue) => &mut drops.congested_at_dequeue,
            // Nobody refuses or flushes packets in a replay, and none of them is known to be an acknowledgement.
            (
                DropReason::Overlimit
                | DropReason::Refused
                | DropReason::Flushed
                | DropReason::Superseded,
                _,
            ) => &mut drops.overlimit,
        } += 1;
    }

    pub(crate) fn sum(bands: &[Self]) -> Self {
        let mut total = Self::new("all");
        for band in bands {
            total.packets_out += band.packets_out;
            total.bytes_out += band.bytes_out;
            total.ce_out += band.ce_out;
            total.marked_by_probability += band.marked_by_probability;
            total.marked_by_step += band.marked_by_step;
            total.drops.overlimit += band.drops.overlimit;
            total.drops.congested_at_enqueue += band.drops.congested_at_enqueue;
            total.drops.congested_at_dequeue += band.drops.congested_at_dequeue;
            total.drops.step += band.drops.step;
            total.drops.random += band.drops.random;
            total.shortest_ns = total.shortest_ns.min(band.shortest_ns);
            total.longest_ns = total.longest_ns.max(band.longest_ns);
            total.delays.add(&band.delays).expect("all have the same bounds");
        }
        total
    }
}
