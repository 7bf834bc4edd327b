//! What a simulation found: the fields of the reference files, and the queue's own counters.

use serde::{Deserialize, Serialize};

/// The figures of one run, taken from the scenario's warm-up to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Acknowledged payload of all flows, in Mbit/s.
    pub goodput_mbit: f64,
    /// The groups of flows, in the scenario's order.
    pub flow: Vec<FlowOutcome>,
    /// The probes, in the scenario's order.
    pub probe: Vec<ProbeOutcome>,
    /// The bottleneck's queue.
    pub queue: QueueOutcome,
    /// Data packets that left the senders in the whole run, aggregates counted by segment.
    pub data_packets: u64,
}

/// A group of flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// Acknowledged payload of each flow, in Mbit/s.
    pub goodput_mbit: Vec<f64>,
    /// The sum of these.
    pub total_mbit: f64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// The mean of the smoothed round-trip time, sampled each 100 ms.
    pub srtt_ms_mean: f64,
    /// Its maximum.
    pub srtt_ms_max: f64,
    /// Segments that arrived with CE.
    pub ce_marks: u64,
    /// When each finite flow was done, in seconds; `null` for the others.
    pub completion_s: Vec<Option<f64>>,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// Round trips measured.
    pub n: u64,
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
    /// The standard deviation.
    pub std_ms: f64,
    /// The smoothed round-trip time at the end, as `ss -ti` shows it.
    pub kernel_srtt_ms: f64,
    /// Its mean deviation.
    pub kernel_rttvar_ms: f64,
    /// Segments that were sent again.
    pub retransmits: u64,
}

/// The bottleneck's queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueOutcome {
    /// Packets that left in the whole run.
    pub sent_packets: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked CE.
    pub marks: u64,
    /// The mean time in the queue from the warm-up on, in milliseconds.
    pub delay_mean_ms: f64,
}
