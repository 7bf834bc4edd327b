//! What happened to single packets of a run: for whoever compares two worlds packet by packet.

use serde::{Deserialize, Serialize};

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// On its way to the bottleneck's queue, which may drop it.
    In,
    /// Leaving the bottleneck's queue.
    Out,
    /// An acknowledgement, back at its sender.
    Ack,
}

/// A packet seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// Where.
    pub seen: Seen,
    /// The number of its flow, in the order of the scenario's groups and of their starts; probes follow.
    pub flow: u32,
    /// The place of its first byte in the stream; of an acknowledgement, up to where all arrived.
    pub seq: u64,
    /// Payload bytes; of an acknowledgement, its window.
    pub bytes: u64,
    /// The ECN field of a packet with data; of an acknowledgement, 1 if it echoes congestion.
    pub ecn: u8,
    /// How many SACK blocks an acknowledgement has.
    pub sacks: u8,
}
