//! What came of a scenario: the fields of the reference files, and more.
//!
//! Figures are taken from the scenario's warm-up to its end unless they say otherwise. Goodput is acknowledged payload; a line
//! rate counts every byte that left the senders, headers and retransmissions included.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::passage::{OTHER_QUEUES, TESTED_QUEUE, UP_QUEUE};
use crate::scenario::Link;

/// What came of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Goodput of all flows, in Mbit/s.
    pub goodput_mbit: f64,
    /// Jain's fairness index of the flows that have no size: 1 if they are equal, 1/n if one has everything; `null` if none got
    /// anything.
    pub fairness: Option<f64>,
    /// The groups of flows, in the scenario's order.
    pub flow: Vec<FlowOutcome>,
    /// The probes, in the scenario's order.
    pub probe: Vec<ProbeOutcome>,
    /// The groups of UDP streams, in the scenario's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpOutcome>,
    /// The bottleneck's queue: the one under test.
    pub queue: QueueOutcome,
    /// The queue of the other direction, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_queue: Option<QueueOutcome>,
    /// The queues of bottlenecks that are elements of the path, in the order in which packets meet them, those on the way down first. The
    /// world `live` has none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_queues: Vec<OtherQueue>,
    /// How it went, from the very start.
    pub series: Series,
    /// Data packets that left the senders in the whole run, not only from the warm-up on; aggregates counted by segment.
    pub data_packets: u64,
    /// Limits of the machine that were met in the whole run, and that the scenario does not speak of. The model has none.
    pub limits: Vec<Limit>,
    /// How late dualq's own link was, which only the world `live` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LinkLateness>,
}

impl Outcome {
    /// Puts in what the queue of that number did; those of elements come in the order of their numbers.
    pub fn put_queue(&mut self, link: &Link, number: usize, queue: QueueOutcome) {
        match number {
            TESTED_QUEUE => self.queue = queue,
            UP_QUEUE => self.up_queue = Some(queue),
            other => {
                let place = link.other_bottlenecks().nth(other - OTHER_QUEUES);
                self.other_queues.extend(place.map(|place| OtherQueue { at: place.at, queue }));
            }
        }
    }
}

/// How late a link in user space wrote packets, by its own schedule, each way and in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkLateness {
    /// Of the way down.
    pub down: Lateness,
    /// Of the way up.
    pub up: Lateness,
}

/// How late packets were, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// How many packets there were, of aggregates each by itself.
    pub packets: u64,
    /// The median.
    pub p50_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
    /// How many were so late: each bin begins where the one before ends, and ends at twice its time.
    pub histogram: Vec<LatenessBin>,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatenessBin {
    /// Where it ends.
    pub up_to_ms: f64,
    /// How many are in it.
    pub packets: u64,
}

/// A limit of a real machine that was met: figures may be of it rather than of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Whose it is.
    pub at: String,
    /// What happened, in words.
    pub what: String,
    /// What counted that, as `nstat` or `tc` name it.
    pub counter: String,
    /// How often.
    pub count: u64,
}

impl Limit {
    /// Limits of several runs, each told once, with the most that a run counted.
    #[must_use]
    pub fn in_words<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<String> {
        let mut met: Vec<(&Self, u64)> = Vec::new();
        for limit in outcomes.into_iter().flat_map(|outcome| &outcome.limits) {
            let same = |other: &Self| other.at == limit.at && other.counter == limit.counter;
            match met.iter_mut().find(|(other, _)| same(other)) {
                Some((_, most)) => *most = limit.count.max(*most),
                None => met.push((limit, limit.count)),
            }
        }
        let words = |(Self { at, what, counter, .. }, most): (&Self, u64)| {
            format!("{at}: {what} ({counter}: {most})")
        };
        met.into_iter().map(words).collect()
    }
}

/// A group of flows. Lists have one entry for each flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// Goodput of each, in Mbit/s.
    pub goodput_mbit: Vec<f64>,
    /// The sum of these.
    pub total_mbit: f64,
    /// The line rate of all, in Mbit/s.
    pub line_mbit: f64,
    /// Segments with payload that left the senders, those sent again included.
    pub data_packets: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments that arrived with CE.
    pub ce_marks: u64,
    /// The smoothed round-trip time at the end, in milliseconds: the first figure of `rtt:` in `ss -ti`.
    pub srtt_ms: Vec<f64>,
    /// Its mean deviation at the end, in milliseconds: the second figure there.
    pub rttvar_ms: Vec<f64>,
    /// The congestion window at the end, in segments: `cwnd:` in `ss -ti`.
    pub cwnd: Vec<u32>,
    /// The mean of the smoothed round-trip times, looked at each 100 ms.
    pub srtt_ms_mean: f64,
    /// Their median.
    pub srtt_ms_p50: f64,
    /// Their 95th percentile.
    pub srtt_ms_p95: f64,
    /// Their 99th percentile.
    pub srtt_ms_p99: f64,
    /// Their maximum.
    pub srtt_ms_max: f64,
    /// When each flow with a size was done, in seconds from its start, to the microsecond, in the warm-up too; `null` for those that
    /// were not, or have no size. Of flows that send again and again: the last time.
    pub completion_s: Vec<Option<f64>>,
    /// The same by classes of size, of groups whose sizes differ or whose flows send again and again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completions: Vec<Completions>,
    /// Of groups that asked for Accurate ECN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accurate_ecn: Option<AccurateEcn>,
}

/// What Accurate ECN told the senders of a group of flows from the beginning to the end, as `TCP_INFO` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccurateEcn {
    /// Flows that agreed on it with their receivers. The others have classic ECN or, as Prague, none.
    pub agreed: u32,
    /// Prague's flows that are Reno without ECN, as their receiver does not have Accurate ECN.
    pub reno: u32,
    /// Packets that arrived with CE.
    pub delivered_ce: u64,
    /// Bytes of payload that arrived with ECT(0).
    pub delivered_e0_bytes: u64,
    /// Bytes of payload that arrived with ECT(1).
    pub delivered_e1_bytes: u64,
    /// Bytes of payload that arrived with CE.
    pub delivered_ce_bytes: u64,
}

/// How long the transfers of a class of sizes took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completions {
    /// They have at least so many bytes,
    pub from_bytes: u64,
    /// and fewer than so many; `null` if there is no such bound.
    pub below_bytes: Option<u64>,
    /// Transfers that were to be made.
    pub transfers: u64,
    /// Of these, those that were done at the end; what follows is of them.
    pub done: u64,
    /// The mean time in seconds, as all that follows; `null` if none was done.
    pub mean_s: Option<f64>,
    /// The median.
    pub p50_s: Option<f64>,
    /// The 95th percentile.
    pub p95_s: Option<f64>,
    /// The 99th percentile.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
    /// How these times are distributed, in milliseconds, if the scenario asks for that and some transfer was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<DelayDistribution>,
}

/// A group of UDP streams. What was sent before the warm-up's end is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpOutcome {
    /// Packets sent.
    pub sent: u64,
    /// Of these, those that arrived, each counted once.
    pub received: u64,
    /// Those that did not.
    pub lost: u64,
    /// Copies that arrived beside.
    pub duplicates: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
    /// Packets that arrived with CE.
    pub ce_marks: u64,
    /// What arrived of UDP's payload, in Mbit/s.
    pub goodput_mbit: f64,
    /// What was sent, headers included, in Mbit/s.
    pub line_mbit: f64,
    /// How long packets took from one program to the other; `null` if none arrived.
    pub delay: Option<Delays>,
    /// The interarrival jitter at the end (RFC 3550 §6.4.1), in milliseconds: the mean of all streams.
    pub jitter_ms: f64,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// Round trips measured.
    pub n: u64,
    /// Pings sent from the warm-up's end on. Other probes have TCP send again what is lost, and documents of earlier versions do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Of these, those that were never answered, and were not on their way at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Their mean, in milliseconds, as all that follows.
    pub mean_ms: f64,
    /// The shortest.
    pub min_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// The standard deviation: the jitter.
    pub std_ms: f64,
    /// The smoothed round-trip time at the end, as `ss -ti` shows it.
    pub kernel_srtt_ms: f64,
    /// Its mean deviation.
    pub kernel_rttvar_ms: f64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// How the round trips are distributed, if the scenario asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<DelayDistribution>,
}

/// The bottleneck's queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueOutcome {
    /// Packets that left.
    pub sent_packets: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked CE.
    pub marks: u64,
    /// The mean time in the queue, in milliseconds.
    pub delay_mean_ms: f64,
    /// The median.
    pub delay_p50_ms: f64,
    /// The 95th percentile.
    pub delay_p95_ms: f64,
    /// The 99th percentile.
    pub delay_p99_ms: f64,
    /// The longest.
    pub delay_max_ms: f64,
    /// Of packets that were not ECN-capable; `null` if there were none. In `dualpi2 any_ect` they had the C queue.
    pub delay_not_ect: Option<Delays>,
    /// Of ECN-capable packets; `null` if there were none. In `dualpi2 any_ect` they had the L queue.
    pub delay_ect: Option<Delays>,
    /// How the times of all packets are distributed, if the scenario asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<DelayDistribution>,
    /// The same of packets that were not ECN-capable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution_not_ect: Option<DelayDistribution>,
    /// The same of ECN-capable packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution_ect: Option<DelayDistribution>,
    /// The object of `tc -j -s qdisc show` at the end. Its counters are those of the whole run, as the kernel shows them.
    pub tc: Map<String, Value>,
}

/// The queue of a bottleneck that is an element of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherQueue {
    /// Where it is: `before 1`, the first element before the queue under test; `up behind 2`.
    pub at: String,
    /// What it did.
    pub queue: QueueOutcome,
}

/// Times that a kind of packets spent in the queue, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Packets that were measured.
    pub packets: u64,
    /// The mean.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// How times are distributed: steps of the cumulative distribution function, dense where percentiles are asked for, the tail
/// included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayDistribution {
    /// How many times it is of.
    pub samples: u64,
    /// Times in milliseconds, ascending.
    pub ms: Vec<f64>,
    /// The share of the samples that were no longer than each of these; 1 at the last.
    pub share: Vec<f64>,
}

/// Figures at a fixed interval. Each list has one entry an interval; those of groups are lists of such lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The interval, in seconds.
    pub interval_s: f64,
    /// When each interval ended, in seconds.
    pub t_s: Vec<f64>,
    /// Goodput of each group of flows in the interval, in Mbit/s.
    pub goodput_mbit: Vec<Vec<f64>>,
    /// Goodput of each flow of each group in the interval, in Mbit/s, if the scenario asks for distributions and has no more than
    /// [`MOST_SINGLE_FLOWS`](crate::summary::MOST_SINGLE_FLOWS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_goodput_mbit: Vec<Vec<Vec<f64>>>,
    /// The last round trip that each probe measured by then, in milliseconds; `null` before the first.
    pub rtt_ms: Vec<Vec<Option<f64>>>,
    /// The mean time in the queue of the packets that left it in the interval, in milliseconds; `null` if none did.
    pub queue_delay_ms: Vec<Option<f64>>,
    /// Packets in the queue.
    pub queue_packets: Vec<u64>,
    /// The probability with which the queue drops or marks, where it has one.
    pub probability: Vec<Option<f64>>,
    /// Packets that the queue dropped in the interval.
    #[serde(default)]
    pub queue_drops: Vec<u64>,
    /// How often it marked in the interval.
    #[serde(default)]
    pub queue_marks: Vec<u64>,
    /// The congestion window of each group's flows at the end of the interval, in segments: the mean of those that have started, as
    /// are all that follow; `null` if none has.
    #[serde(default)]
    pub cwnd: Vec<Vec<Option<f64>>>,
    /// The slow-start threshold, in segments, of those that have one.
    #[serde(default)]
    pub ssthresh: Vec<Vec<Option<f64>>>,
    /// Segments in flight.
    #[serde(default)]
    pub in_flight: Vec<Vec<Option<f64>>>,
    /// The pacing rate, in Mbit/s, of those that have one.
    #[serde(default)]
    pub pacing_mbit: Vec<Vec<Option<f64>>>,
    /// The smoothed round-trip time, in milliseconds, of those that have one.
    #[serde(default)]
    pub srtt_ms: Vec<Vec<Option<f64>>>,
    /// Segments of each group that were sent again in the interval.
    #[serde(default)]
    pub retransmits: Vec<Vec<u64>>,
}
