//! `fq_codel`: flows take turns, and CoDel keeps the queue of each short (RFC 8290, tc-fq_codel(8)).
//!
//! As Linux does, not as the RFC says: the limits are of packets and of memory, and what exceeds them is dropped from the
//! head of the longest queue, a batch at a time but no more than half of it; that CoDel leaves a backlog of one frame alone
//! is judged by the backlog of all flows together. Flows are told apart by a hash and may share a queue.

mod about;
mod discipline;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant};

use self::discipline::FqCodel;
use crate::kinds::Kind;
pub use crate::kinds::codel::law::Selector;
use crate::kinds::codel::law::cut;
use crate::{Device, Discipline, FlowPacket};

/// What a command line gives; `None` is for what it leaves open. Times are in microseconds, as tc sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub flows: Option<u32>,
    pub quantum: Option<u32>,
    pub target_us: Option<u32>,
    pub interval_us: Option<u32>,
    pub memory_limit: Option<Bytes>,
    pub ecn: Option<bool>,
    pub ce_threshold_us: Option<u32>,
    pub ce_threshold_selector: Option<(u8, u8)>,
    pub drop_batch: Option<u32>,
}

/// All parameters of `fq_codel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
    /// The queues that flows are hashed into.
    pub flows: u32,
    /// Bytes that each queue may send in its turn.
    pub quantum: u32,
    /// The delay that is aimed for; times are cut to units of 1.024 µs, as Linux does.
    pub target: Duration,
    /// For how long the delay may be above that.
    pub interval: Duration,
    /// Memory that waiting packets may take.
    pub memory_limit: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// ECN-capable packets that waited longer are marked.
    pub ce_threshold: Option<Duration>,
    /// Of these only those that are selected, if that is said.
    pub ce_threshold_selector: Option<Selector>,
    /// How many packets are dropped at once when a limit is exceeded.
    pub drop_batch: u32,
}

/// The kernel takes no smaller quantum.
const LEAST_QUANTUM: u32 = 256;
/// Nor a larger memory limit.
const LARGEST_MEMORY: u64 = 1 << 31;

impl Config {
    /// Linux's defaults on `device`.
    #[must_use]
    pub const fn new(device: &Device) -> Self {
        Self {
            limit: 10_240,
            flows: 1024,
            quantum: device.max_frame,
            target: cut(5_000),
            interval: cut(100_000),
            memory_limit: Bytes(32 << 20),
            ecn: true,
            ce_threshold: None,
            ce_threshold_selector: None,
            drop_batch: 64,
        }
    }

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        let memory_limit = options.memory_limit.map(|limit| Bytes(limit.0.min(LARGEST_MEMORY)));
        Self {
            limit: options.limit.unwrap_or(self.limit),
            flows: options.flows.unwrap_or(self.flows),
            quantum: options.quantum.map_or(self.quantum, |quantum| quantum.max(LEAST_QUANTUM)),
            target: options.target_us.map_or(self.target, cut),
            interval: options.interval_us.map_or(self.interval, cut),
            memory_limit: memory_limit.unwrap_or(self.memory_limit),
            ecn: options.ecn.unwrap_or(self.ecn),
            ce_threshold: options.ce_threshold_us.map(cut).or(self.ce_threshold),
            ce_threshold_selector: match options.ce_threshold_selector {
                // A mask of nothing selects all.
                Some((_, 0)) => None,
                Some((value, mask)) => Some(Selector { value, mask }),
                None => self.ce_threshold_selector,
            },
            drop_batch: options.drop_batch.unwrap_or(self.drop_batch),
        }
    }
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, device: &Device) -> Config {
        Config::new(device).with(self)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        _random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(FqCodel::new(self, device))
    }
}

/// What `fq_codel` counts, under the names of `tc -s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The longest packet.
    pub maxpacket: u32,
    /// Packets dropped as a limit was exceeded.
    pub drop_overlimit: u64,
    /// How often a queue that was empty and at rest got a packet.
    pub new_flow_count: u64,
    /// Packets that CoDel marked.
    pub ecn_mark: u64,
    /// Packets that `ce_threshold` marked.
    pub ce_mark: u64,
    /// Memory that waiting packets take.
    pub memory_used: u64,
    /// Packets dropped as the limit of memory was exceeded.
    pub drop_overmemory: u64,
    /// Queues that are new and have not used up their first quantum.
    pub new_flows_len: u32,
    /// Queues that take turns.
    pub old_flows_len: u32,
}
