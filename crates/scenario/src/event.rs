//! What happened to single packets of a run: for whoever looks at each of them, or compares two worlds packet by packet.

use dualq_qdisc::DropReason;
use serde::{Deserialize, Serialize};

use crate::path::Direction;
use crate::words::word;

/// Where a packet was seen, or what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// On its way to the queue of its direction, which may drop it.
    In,
    /// Leaving that queue.
    Out,
    /// An acknowledgement or the answer to a ping, back at its sender.
    Ack,
    /// Dropped by that queue.
    Drop,
    /// Setting out upwards, where there need be no queue.
    Sent,
    /// Data that went up, at their receiver.
    Arrive,
}

impl Seen {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Ack => "ack",
            Self::Drop => "drop",
            Self::Sent => "sent",
            Self::Arrive => "arrive",
        }
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A TCP segment from the side that sends data.
    #[default]
    Data,
    /// A TCP segment from the side that acknowledges.
    Ack,
    /// An ICMP echo request or its reply.
    Echo,
    /// A UDP packet.
    Udp,
    /// The ICMP message of a router that a packet was too long.
    Error,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Echo => "echo",
            Self::Udp => "udp",
            Self::Error => "error",
        }
    }
}

/// A packet seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// Where.
    pub seen: Seen,
    /// The number of its flow, in the order of the scenario's groups and of their starts; probes follow, then streams of UDP.
    pub flow: u32,
    /// Which way it goes.
    #[serde(with = "word", default)]
    pub direction: Direction,
    /// What it is.
    #[serde(default)]
    pub kind: Kind,
    /// The place of its first byte in the stream; of an acknowledgement, up to where all arrived; of a UDP packet, its number; of a
    /// ping, when that was sent, if this is known.
    pub seq: u64,
    /// Payload bytes; of an acknowledgement back at its sender, its window.
    pub bytes: u64,
    /// The ECN field; of an acknowledgement back at its sender, 1 if it echoes congestion.
    pub ecn: u8,
    /// How many SACK blocks an acknowledgement has that is back at its sender.
    pub sacks: u8,
    /// How long a packet that leaves a queue was in it, if this is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Why it was dropped.
    #[serde(skip)]
    pub reason: Option<DropReason>,
}
