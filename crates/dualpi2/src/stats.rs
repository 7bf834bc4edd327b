//! What `tc -s qdisc show` tells.

use core::time::Duration;

/// A snapshot of the counters, as Linux dumps them for this qdisc (`struct tc_dualpi2_xstats` and the generic queue
/// statistics); RFC 9332 §2.5.2.2 asks for such monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The base probability p', in units of 2⁻³².
    pub probability: u32,
    /// How long the head of the classic queue has waited, in whole microseconds; zero if there is none.
    pub classic_delay: Duration,
    /// How long the head of the low latency queue has waited, in whole microseconds; zero if there is none.
    pub low_latency_delay: Duration,
    /// Packets that entered the classic queue.
    pub packets_in_classic: u64,
    /// Packets that entered the low latency queue.
    pub packets_in_low_latency: u64,
    /// The most packets, of both queues, that a packet found waiting when it was enqueued.
    pub max_queue_length: u64,
    /// CE marks, by probability or step; a packet marked by both counts twice, one that came with CE counts too.
    pub ecn_marks: u64,
    /// CE marks by the step AQM of the low latency queue.
    pub step_marks: u64,
    /// The scheduler's credit: weight (percent) times bytes, above zero when classic is next.
    pub credit: i32,
    /// Bytes of memory that waiting packets hold.
    pub memory_used: u32,
    /// The most that `memory_used` ever was.
    pub max_memory_used: u32,
    /// The configured limit of `memory_used`.
    pub memory_limit: u32,
    /// Packets dropped, for any reason.
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
