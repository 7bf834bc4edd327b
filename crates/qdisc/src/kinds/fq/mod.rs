//! `fq`: flows take turns, and each packet leaves no earlier than its departure time or its flow's rate allows.
//!
//! Made from tc-fq(8) and from how Linux behaves. Three bands of priorities share the link by weight (deficit round robin);
//! within a band flows take turns by a quantum, new ones first. A flow whose next packet is not due is set aside until it
//! is. Packets that meet nothing but each other pass by the flows, up to eight: where little waits, `fq` is a FIFO.

mod about;
mod discipline;
mod flows;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Instant, Rate};

use self::discipline::Fq;
use crate::kinds::Kind;
use crate::timer::TICK;
use crate::{Device, Discipline, FlowPacket};

/// By how much a timer may be late by default.
pub const TIMER_SLACK: Duration = Duration::from_micros(10);

/// How many priority bands there are.
pub const BANDS: usize = 3;

/// What a command line gives; `None` is for what it leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub flow_limit: Option<u32>,
    pub buckets: Option<u32>,
    pub orphan_mask: Option<u32>,
    pub pacing: Option<bool>,
    pub priomap: Option<[u8; 16]>,
    pub weights: Option<[u32; BANDS]>,
    pub quantum: Option<u32>,
    pub initial_quantum: Option<u32>,
    pub max_rate: Option<Rate>,
    pub low_rate_threshold: Option<Rate>,
    pub refill_delay: Option<Duration>,
    pub ce_threshold: Option<Duration>,
    pub timer_slack: Option<Duration>,
    pub horizon: Option<Duration>,
    pub horizon_drop: Option<bool>,
}

/// All parameters of `fq` (tc-fq(8)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that each band may hold.
    pub limit: u32,
    /// Packets that each flow may hold.
    pub flow_limit: u32,
    /// The size of Linux's hash table, a power of two. Ours grows as it must: this is only shown.
    pub buckets: u32,
    /// The bits of a flow's hash that count for packets that no local socket sent.
    pub orphan_mask: u32,
    /// Whether the rates of sockets, and `max_rate`, are enforced. Departure times always are.
    pub pacing: bool,
    /// The band of each priority.
    pub priomap: [u8; 16],
    /// Bytes that each band may send in its turn.
    pub weights: [u32; BANDS],
    /// Bytes that each flow may send in its turn.
    pub quantum: u32,
    /// Bytes that a new flow may send in its first turn.
    pub initial_quantum: u32,
    /// The most that a flow may send.
    pub max_rate: Option<Rate>,
    /// Flows up to this rate are paced packet by packet, faster ones by the quantum.
    pub low_rate_threshold: Rate,
    /// A flow that was idle for longer gets a new quantum.
    pub refill_delay: Duration,
    /// Packets that left later than they should have by more than this are marked.
    pub ce_threshold: Option<Duration>,
    /// By how much a timer may be late.
    pub timer_slack: Duration,
    /// Packets whose departure time lies further ahead are dropped, or that time is cut.
    pub horizon: Duration,
    /// Which of these.
    pub horizon_drop: bool,
}

impl Config {
    /// Linux's defaults on `device`.
    #[must_use]
    pub const fn new(device: &Device) -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            buckets: 1024,
            orphan_mask: 1023,
            pacing: true,
            priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            weights: [589_824, 196_608, 65_536],
            quantum: device.max_frame.saturating_mul(2),
            initial_quantum: device.max_frame.saturating_mul(10),
            max_rate: None,
            low_rate_threshold: Rate::from_bits_per_second(550_000),
            refill_delay: Duration::from_millis(40),
            ce_threshold: None,
            timer_slack: TIMER_SLACK,
            horizon: Duration::from_secs(10),
            horizon_drop: true,
        }
    }

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            flow_limit: options.flow_limit.unwrap_or(self.flow_limit),
            buckets: options.buckets.unwrap_or(self.buckets),
            orphan_mask: options.orphan_mask.unwrap_or(self.orphan_mask),
            pacing: options.pacing.unwrap_or(self.pacing),
            priomap: options.priomap.unwrap_or(self.priomap),
            weights: options.weights.unwrap_or(self.weights),
            quantum: options.quantum.unwrap_or(self.quantum),
            initial_quantum: options.initial_quantum.unwrap_or(self.initial_quantum),
            max_rate: options.max_rate.or(self.max_rate),
            low_rate_threshold: options.low_rate_threshold.unwrap_or(self.low_rate_threshold),
            refill_delay: options.refill_delay.map_or(self.refill_delay, in_ticks),
            ce_threshold: options.ce_threshold.or(self.ce_threshold),
            timer_slack: options.timer_slack.unwrap_or(self.timer_slack),
            horizon: options.horizon.unwrap_or(self.horizon),
            horizon_drop: options.horizon_drop.unwrap_or(self.horizon_drop),
        }
    }
}

/// As Linux keeps it.
fn in_ticks(delay: Duration) -> Duration {
    TICK * u32::try_from(delay.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(u32::MAX)
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
        Discipline::boxed(Fq::new(self, device))
    }
}

/// What `fq` counts beside [`Counters`](crate::show::Counters), under the names of `tc -s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Flows that are known.
    pub flows: u32,
    /// Of these, how many have no packet.
    pub inactive: u32,
    /// Of these, how many wait for their time.
    pub throttled_flows: u32,
    /// Packets waiting in each band.
    pub band_packets: [u32; BANDS],
    /// Flows that were forgotten after some idle time.
    pub gc: u64,
    /// Packets of the control priority.
    pub highprio: u64,
    /// How often a flow was made to wait.
    pub throttled: u64,
    /// Packets marked by `ce_threshold`.
    pub ce_mark: u64,
    /// Packets dropped as their flow held too many.
    pub flows_plimit: u64,
    /// Packets that would have taken more than a second at their flow's rate.
    pub pkts_too_long: u64,
    /// Packets dropped as their time lay too far ahead.
    pub horizon_drops: u64,
    /// Packets whose time was cut as it lay too far ahead.
    pub horizon_caps: u64,
    /// Packets dropped as their band held too many.
    pub band_drops: [u64; BANDS],
}
