//! How samples become the figures of an outcome: the same in every world, so that these can be compared.

mod completions;
mod distribution;
mod echoes;
mod udp;

use std::time::Duration;

use dualq_units::Ecn;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::outcome::{
    Completions, DelayDistribution, Delays, FlowOutcome, Outcome, ProbeOutcome, QueueOutcome,
    Series,
};
use crate::scenario::Setup;

pub use echoes::Echoes;
pub use udp::{UDP_HEADERS, UdpRecord};

/// How exact percentiles are.
const DIGITS: u8 = 3;
/// Longer times count as this long in percentiles: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Of more flows than this, series have none of single flows.
pub const MOST_SINGLE_FLOWS: u64 = 128;
/// Smoothed round-trip times are kept in microseconds, as the kernel has them.
const LONGEST_US: u64 = LONGEST_NS / 1000;

/// Figures have three digits after the point; more would be noise.
#[must_use]
pub fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Probabilities, and seconds to the microsecond, have six.
#[must_use]
pub fn millionths(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Milliseconds of nanoseconds, to the microsecond.
#[must_use]
pub fn millis(nanos: f64) -> f64 {
    thousandths(nanos / 1e6)
}

/// Mbit/s of bytes in a time.
#[must_use]
pub fn megabits(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() / 1e6 }
}

impl ProbeOutcome {
    /// Summarises round trips, given in nanoseconds; `distributions` as the scenario says.
    #[must_use]
    pub fn of_round_trips(mut samples: Vec<u64>, distributions: bool) -> Self {
        if samples.is_empty() {
            return Self::default();
        }
        samples.sort_unstable();
        let count = samples.len();
        let at =
            |share: f64| millis(samples[((count as f64 * share) as usize).min(count - 1)] as f64);
        let mean = samples.iter().map(|&sample| sample as f64).sum::<f64>() / count as f64;
        let squares = samples.iter().map(|&sample| (sample as f64 - mean).powi(2)).sum::<f64>();
        Self {
            n: count as u64,
            mean_ms: millis(mean),
            min_ms: millis(samples[0] as f64),
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: millis(samples[count - 1] as f64),
            std_ms: millis((squares / count as f64).sqrt()),
            distribution: distributions.then(|| DelayDistribution::of_sorted(&samples)),
            ..Self::default()
        }
    }
}

/// Smoothed round-trip times of a group of flows, looked at now and then.
#[derive(Clone, Debug)]
pub struct SmoothedRtts {
    micros: Histogram<u64>,
}

impl Default for SmoothedRtts {
    fn default() -> Self {
        Self { micros: histogram(LONGEST_US) }
    }
}

impl SmoothedRtts {
    /// Takes note of one that was found at so many looks in a row.
    pub fn record(&mut self, micros: u64, looks: u64) {
        self.micros.saturating_record_n(micros, looks);
    }

    /// Fills in the figures that are made of them.
    pub fn summarise(&self, flow: &mut FlowOutcome) {
        if self.micros.is_empty() {
            return;
        }
        let at = |quantile| thousandths(self.micros.value_at_quantile(quantile) as f64 / 1e3);
        flow.srtt_ms_mean = thousandths(self.micros.mean() / 1e3);
        flow.srtt_ms_p50 = at(0.5);
        flow.srtt_ms_p95 = at(0.95);
        flow.srtt_ms_p99 = at(0.99);
        flow.srtt_ms_max = at(1.0);
    }
}

/// Times that packets spent in the queue, those of ECN-capable packets apart from the others.
#[derive(Clone, Debug, Default)]
pub struct QueueDelays {
    not_ect: Sojourns,
    ect: Sojourns,
}

#[derive(Clone, Debug)]
struct Sojourns {
    nanos: Histogram<u64>,
    sum_ns: u128,
    longest_ns: u64,
}

impl Default for Sojourns {
    fn default() -> Self {
        Self { nanos: histogram(LONGEST_NS), sum_ns: 0, longest_ns: 0 }
    }
}

impl QueueDelays {
    /// A packet that arrived or left with `ecn` spent `nanos` in the queue.
    #[inline]
    pub fn record(&mut self, nanos: u64, ecn: Ecn) {
        let of = if ecn == Ecn::NotEct { &mut self.not_ect } else { &mut self.ect };
        of.record(nanos);
    }

    /// Fills in the figures that are made of them; `distributions` as the scenario says.
    pub fn summarise(self, queue: &mut QueueOutcome, distributions: bool) {
        queue.delay_not_ect = self.not_ect.summary();
        queue.delay_ect = self.ect.summary();
        if distributions {
            queue.distribution_not_ect = self.not_ect.distribution();
            queue.distribution_ect = self.ect.distribution();
        }
        let Self { not_ect: mut all, ect } = self;
        all.nanos.add(&ect.nanos).expect("both have the same bounds");
        all.sum_ns += ect.sum_ns;
        all.longest_ns = all.longest_ns.max(ect.longest_ns);
        queue.distribution = distributions.then(|| all.distribution()).flatten();
        let all = all.summary().unwrap_or_default();
        queue.delay_mean_ms = all.mean_ms;
        queue.delay_p50_ms = all.p50_ms;
        queue.delay_p95_ms = all.p95_ms;
        queue.delay_p99_ms = all.p99_ms;
        queue.delay_max_ms = all.max_ms;
    }
}

/// What a queue has counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Packets that left.
    pub sent_packets: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked CE.
    pub marks: u64,
}

impl QueueCounts {
    /// What was counted between an earlier moment and this one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            sent_packets: self.sent_packets.saturating_sub(earlier.sent_packets),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            drops: self.drops.saturating_sub(earlier.drops),
            marks: self.marks.saturating_sub(earlier.marks),
        }
    }

    /// Fills in the figures of an outcome.
    pub const fn tell(self, queue: &mut QueueOutcome) {
        queue.sent_packets = self.sent_packets;
        queue.sent_bytes = self.sent_bytes;
        queue.drops = self.drops;
        queue.marks = self.marks;
    }
}

/// A connection at a moment, as `ss -ti` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Bytes acknowledged since its start.
    pub acknowledged: u64,
    /// Segments sent again since its start.
    pub retransmits: u64,
    /// The congestion window, in segments.
    pub cwnd: u32,
    /// The slow-start threshold, in segments, if it was ever set.
    pub ssthresh: Option<u32>,
    /// Segments in flight.
    pub in_flight: u32,
    /// Bytes per second, if there is a pacing rate.
    pub pacing_rate: Option<u64>,
    /// The smoothed round-trip time in microseconds, if one was measured.
    pub srtt_us: Option<u64>,
}

/// A mean under way.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| thousandths(self.sum / f64::from(self.count)))
    }
}

/// All flows of a group that have started, at a moment.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    acknowledged: u64,
    /// The same of each flow, in the order of their starts.
    each_acknowledged: Vec<u64>,
    retransmits: u64,
    cwnd: Mean,
    ssthresh: Mean,
    in_flight: Mean,
    pacing_mbit: Mean,
    srtt_ms: Mean,
}

impl Looks {
    /// One more flow.
    pub fn add(&mut self, look: &Look) {
        self.acknowledged += look.acknowledged;
        self.each_acknowledged.push(look.acknowledged);
        self.retransmits += look.retransmits;
        self.cwnd.add(Some(look.cwnd.into()));
        self.ssthresh.add(look.ssthresh.map(f64::from));
        self.in_flight.add(Some(look.in_flight.into()));
        self.pacing_mbit.add(look.pacing_rate.map(|bytes| bytes as f64 * 8.0 / 1e6));
        self.srtt_ms.add(look.srtt_us.map(|micros| micros as f64 / 1e3));
    }
}

/// A queue at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLook {
    /// Packets in it.
    pub packets: u64,
    /// What it has counted since the start.
    pub counts: QueueCounts,
    /// The probability with which it drops or marks, if it has one.
    pub probability: Option<f64>,
}

/// The time series while it is written.
#[derive(Clone, Debug)]
pub struct SeriesRecord {
    series: Series,
    began: Duration,
    /// Of packets that left the queue in the interval under way.
    delay_ns: u128,
    packets: u64,
    /// How all was when the interval began.
    groups: Vec<Looks>,
    counts: QueueCounts,
}

impl SeriesRecord {
    /// Nothing so far.
    #[must_use]
    pub fn new(scenario: &Setup) -> Self {
        let groups = scenario.flow.len();
        let lists = || vec![Vec::new(); groups];
        let all: u64 = scenario.flow.iter().map(|group| u64::from(group.count)).sum();
        let is_each = scenario.distributions && all <= MOST_SINGLE_FLOWS;
        let each = scenario.flow.iter().filter(|_| is_each);
        let each = each.map(|group| vec![Vec::new(); group.count as usize]);
        Self {
            series: Series {
                each_goodput_mbit: each.collect(),
                interval_s: scenario.interval.as_secs_f64(),
                goodput_mbit: vec![Vec::new(); groups],
                rtt_ms: vec![Vec::new(); scenario.probe.len()],
                cwnd: lists(),
                ssthresh: lists(),
                in_flight: lists(),
                pacing_mbit: lists(),
                srtt_ms: lists(),
                retransmits: vec![Vec::new(); groups],
                ..Series::default()
            },
            began: Duration::ZERO,
            delay_ns: 0,
            packets: 0,
            groups: vec![Looks::default(); groups],
            counts: QueueCounts::default(),
        }
    }

    /// A packet left the queue, in which it was for so long.
    #[inline]
    pub const fn departed(&mut self, waited_ns: u64) {
        self.delay_ns += waited_ns as u128;
        self.packets += 1;
    }

    /// Whether the interval under way has lasted at all.
    #[must_use]
    pub fn is_within_interval(&self, now: Duration) -> bool {
        now > self.began
    }

    /// Ends an interval. `groups` has one entry for each group of flows, `round_trips` the last round trip of each probe in
    /// nanoseconds.
    pub fn end_interval(
        &mut self,
        now: Duration,
        groups: Vec<Looks>,
        round_trips: impl Iterator<Item = Option<u64>>,
        queue: QueueLook,
    ) {
        let series = &mut self.series;
        let length = now.saturating_sub(std::mem::replace(&mut self.began, now));
        series.t_s.push(now.as_secs_f64());
        for (number, (looks, before)) in groups.iter().zip(&self.groups).enumerate() {
            let bytes = looks.acknowledged.saturating_sub(before.acknowledged);
            series.goodput_mbit[number].push(thousandths(megabits(bytes, length)));
            if let Some(flows) = series.each_goodput_mbit.get_mut(number) {
                for (flow, list) in flows.iter_mut().enumerate() {
                    let so_far = |looks: &Looks| looks.each_acknowledged.get(flow).copied();
                    let bytes = so_far(looks).unwrap_or(0);
                    let bytes = bytes.saturating_sub(so_far(before).unwrap_or(0));
                    list.push(thousandths(megabits(bytes, length)));
                }
            }
            series.cwnd[number].push(looks.cwnd.get());
            series.ssthresh[number].push(looks.ssthresh.get());
            series.in_flight[number].push(looks.in_flight.get());
            series.pacing_mbit[number].push(looks.pacing_mbit.get());
            series.srtt_ms[number].push(looks.srtt_ms.get());
            let sent_again = looks.retransmits.saturating_sub(before.retransmits);
            series.retransmits[number].push(sent_again);
        }
        self.groups = groups;
        for (list, last) in series.rtt_ms.iter_mut().zip(round_trips) {
            list.push(last.map(|nanos| millis(nanos as f64)));
        }
        let delay_ns = std::mem::take(&mut self.delay_ns) as f64;
        let packets = std::mem::take(&mut self.packets);
        series.queue_delay_ms.push((packets > 0).then(|| millis(delay_ns / packets as f64)));
        series.queue_packets.push(queue.packets);
        let counted = queue.counts.since(std::mem::replace(&mut self.counts, queue.counts));
        series.queue_drops.push(counted.drops);
        series.queue_marks.push(counted.marks);
        series.probability.push(queue.probability.map(millionths));
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Series {
        self.series
    }
}

impl Sojourns {
    #[inline]
    fn record(&mut self, nanos: u64) {
        self.nanos.saturating_record(nanos);
        self.sum_ns += u128::from(nanos);
        self.longest_ns = self.longest_ns.max(nanos);
    }

    fn summary(&self) -> Option<Delays> {
        let packets = self.nanos.len();
        let at =
            |quantile| millis(self.nanos.value_at_quantile(quantile).min(self.longest_ns) as f64);
        (packets > 0).then(|| Delays {
            packets,
            mean_ms: millis(self.sum_ns as f64 / packets as f64),
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: millis(self.longest_ns as f64),
        })
    }

    fn distribution(&self) -> Option<DelayDistribution> {
        (!self.nanos.is_empty())
            .then(|| DelayDistribution::of_histogram(&self.nanos, self.longest_ns))
    }
}

impl Outcome {
    /// Fills in what follows from the groups of flows, and rounds their figures.
    pub fn summarise_flows(&mut self, scenario: &Setup) {
        // Of no numbers at all the sum is -0.
        let goodput = self.flow.iter().map(|flow| flow.total_mbit).sum::<f64>() + 0.0;
        self.goodput_mbit = thousandths(goodput);
        for (number, (flow, group)) in self.flow.iter_mut().zip(&scenario.flow).enumerate() {
            flow.total_mbit = thousandths(flow.total_mbit);
            flow.line_mbit = thousandths(flow.line_mbit);
            if group.size.as_ref().is_some_and(|size| !size.is_fixed()) || !group.arrivals.is_even()
            {
                let sizes = group.transfers(number).filter_map(|transfer| transfer.size);
                let took = flow.completion_s.iter().map(|took| took.map(Duration::from_secs_f64));
                let transfers: Vec<_> = sizes.map(|size| size.0).zip(took).collect();
                flow.completions = Completions::by_class(&transfers, scenario.distributions);
            }
        }
        let groups = scenario.flow.iter().zip(&self.flow);
        let endless = groups.filter(|(group, _)| group.size.is_none());
        let endless: Vec<f64> =
            endless.flat_map(|(_, flow)| flow.goodput_mbit.iter().copied()).collect();
        self.fairness = jain(&endless).map(thousandths);
    }
}

/// Jain's fairness index of flows (Jain, Chiu, Hawe: DEC-TR-301, 1984).
#[must_use]
pub fn jain(flows: &[f64]) -> Option<f64> {
    let (sum, squares) = (flows.iter().sum::<f64>(), flows.iter().map(|x| x * x).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (flows.len() as f64 * squares))
}

fn histogram(longest: u64) -> Histogram<u64> {
    Histogram::new_with_bounds(1, longest, DIGITS).expect("bounds and digits are right")
}

#[cfg(test)]
mod tests {
    use dualq_tcp::Algorithm;

    use super::*;
    use crate::FlowGroup;
    use dualq_units::Bytes;

    #[test]
    fn delays_of_ecn_capable_packets_are_told_apart() {
        let mut delays = QueueDelays::default();
        for nanos in [1_000_000, 3_000_000] {
            delays.record(nanos, Ecn::NotEct);
        }
        delays.record(500_000, Ecn::Ce);
        let mut queue = QueueOutcome::default();
        delays.summarise(&mut queue, false);
        assert_eq!(queue.distribution, None);
        assert_eq!(queue.delay_mean_ms.to_string(), "1.5");
        assert_eq!(queue.delay_max_ms.to_string(), "3");
        let packets = |delays: Option<Delays>| delays.map(|delays| delays.packets);
        assert_eq!(packets(queue.delay_not_ect), Some(2));
        assert_eq!(packets(queue.delay_ect), Some(1));
    }

    #[test]
    fn fairness_is_one_over_n_if_one_has_everything() {
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0]), None);
    }

    /// Of a flow with a size, goodput tells how large that is.
    #[test]
    fn fairness_is_of_flows_without_a_size() {
        let cubic = FlowGroup::of(Algorithm::Cubic);
        let short =
            FlowGroup { size: Some(Bytes(1_000_000).into()), ..FlowGroup::of(Algorithm::Cubic) };
        let setup =
            Setup { flow: vec![FlowGroup { count: 2, ..cubic }, short], ..Setup::default() };
        let of = |goodput_mbit: Vec<f64>| FlowOutcome { goodput_mbit, ..FlowOutcome::default() };
        let flow = vec![of(vec![4.0, 4.0]), of(vec![0.1])];
        let mut outcome = Outcome { flow, ..Outcome::default() };
        outcome.summarise_flows(&setup);
        assert_eq!(outcome.fairness, Some(1.0));
    }

    #[test]
    fn what_was_counted_before_the_warm_up_is_left_out() {
        let before = QueueCounts { sent_packets: 5, sent_bytes: 500, drops: 3, marks: 1 };
        let now = QueueCounts { sent_packets: 7, sent_bytes: 720, drops: 3, marks: 4 };
        let mut queue = QueueOutcome::default();
        now.since(before).tell(&mut queue);
        assert_eq!((queue.sent_packets, queue.sent_bytes), (2, 220));
        assert_eq!((queue.drops, queue.marks), (0, 3));
    }
}
