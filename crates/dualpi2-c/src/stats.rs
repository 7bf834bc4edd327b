//! The counters in C's types.

use std::time::Duration;

/// The counters, as Linux dumps them for this qdisc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// The base probability p', in units of 2^-32.
    pub probability: u32,
    /// The scheduler's credit: weight in percent times bytes; above zero when classic is next.
    pub credit: i32,
    /// How long the head of the classic queue has waited, in whole microseconds; 0 if there is none.
    pub classic_delay_us: u64,
    /// How long the head of the low latency queue has waited, in whole microseconds; 0 if there is none.
    pub low_latency_delay_us: u64,
    /// Packets that entered the classic queue.
    pub packets_in_classic: u64,
    /// Packets that entered the low latency queue.
    pub packets_in_low_latency: u64,
    /// The most packets, of both queues, that a packet found waiting when it was enqueued.
    pub max_queue_length: u64,
    /// CE marks, by probability or step; a packet marked by both counts twice, one that came with CE counts too.
    pub ecn_marks: u64,
    /// CE marks by the low latency queue's step.
    pub step_marks: u64,
    /// Bytes of memory that waiting packets hold.
    pub memory_used: u32,
    /// The most that `memory_used` ever was.
    pub max_memory_used: u32,
    /// The limit of `memory_used`.
    pub memory_limit: u32,
    /// Packets dropped, for any reason but a reset.
    pub drops: u64,
    /// Packets dropped because the packet or memory limit was reached.
    pub overlimits: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets waiting.
    pub backlog_packets: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
}

impl From<dualpi2::Stats> for Stats {
    fn from(stats: dualpi2::Stats) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            probability: stats.probability,
            credit: stats.credit,
            classic_delay_us: micros(stats.classic_delay),
            low_latency_delay_us: micros(stats.low_latency_delay),
            packets_in_classic: stats.packets_in_classic,
            packets_in_low_latency: stats.packets_in_low_latency,
            max_queue_length: stats.max_queue_length,
            ecn_marks: stats.ecn_marks,
            step_marks: stats.step_marks,
            memory_used: stats.memory_used,
            max_memory_used: stats.max_memory_used,
            memory_limit: stats.memory_limit,
            drops: stats.drops,
            overlimits: stats.overlimits,
            sent_packets: stats.sent_packets,
            sent_bytes: stats.sent_bytes,
            backlog_packets: stats.backlog_packets,
            backlog_bytes: stats.backlog_bytes,
        }
    }
}
