//! `fq_pie`: flows take turns, and PIE keeps the queue of each short (draft-ietf-tsvwg-fq-pie, RFC 8033, tc-fq_pie(8)).
//!
//! As Linux does it: the turns are those of `fq_codel`; each queue has a controller as that of `pie`, all of which are updated at
//! one time (of more than 2048, so many each tick); the limit is of packets, and what exceeds it is dropped as it arrives; the
//! memory limit is only counted, and keeps nothing out; of a target beyond 4.29 s the kernel's 32 bits of nanoseconds keep the rest.

mod about;
mod discipline;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant};

use self::discipline::FqPie;
use crate::kinds::{Kind, pie};
use crate::{Device, Discipline, FlowPacket};

/// What a command line gives; `None` is for what it leaves open. Times are in microseconds, as tc sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub flows: Option<u32>,
    pub target_us: Option<u32>,
    pub tupdate_us: Option<u32>,
    pub alpha: Option<u32>,
    pub beta: Option<u32>,
    pub quantum: Option<u32>,
    pub memory_limit: Option<Bytes>,
    pub ecn_prob: Option<u32>,
    pub ecn: Option<bool>,
    pub bytemode: Option<bool>,
}

/// All parameters of `fq_pie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
    /// The queues that flows are hashed into.
    pub flows: u32,
    /// The delay that is aimed for, in units of 64 ns, as Linux cuts it.
    pub target: Duration,
    /// How often the probabilities are updated, in whole ticks of the kernel.
    pub tupdate: Duration,
    /// How strongly the distance from the target counts, in 1/16 Hz.
    pub alpha: u32,
    /// How strongly the trend counts, in 1/16 Hz.
    pub beta: u32,
    /// Bytes that each queue may send in its turn.
    pub quantum: u32,
    /// Memory above which packets that arrive are counted.
    pub memory_limit: Bytes,
    /// Up to this probability, in percent, packets are marked.
    pub ecn_prob: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether short packets are less likely to be dropped.
    pub bytemode: bool,
}

/// The kernel takes no smaller quantum.
const LEAST_QUANTUM: u32 = 256;

impl Config {
    /// Linux's defaults on `device`.
    #[must_use]
    pub const fn new(device: &Device) -> Self {
        let pie = pie::Config::DEFAULT;
        Self {
            limit: 10_240,
            flows: 1024,
            target: pie.target,
            tupdate: pie.tupdate,
            alpha: pie.alpha,
            beta: pie.beta,
            quantum: device.max_frame,
            memory_limit: Bytes(32 << 20),
            ecn_prob: 10,
            ecn: false,
            bytemode: false,
        }
    }

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            flows: options.flows.unwrap_or(self.flows),
            target: options.target_us.map_or(self.target, pie::cut),
            tupdate: options.tupdate_us.map_or(self.tupdate, pie::whole_ticks),
            alpha: options.alpha.unwrap_or(self.alpha),
            beta: options.beta.unwrap_or(self.beta),
            quantum: options.quantum.map_or(self.quantum, |quantum| quantum.max(LEAST_QUANTUM)),
            memory_limit: options.memory_limit.unwrap_or(self.memory_limit),
            ecn_prob: options.ecn_prob.unwrap_or(self.ecn_prob),
            ecn: options.ecn.unwrap_or(self.ecn),
            bytemode: options.bytemode.unwrap_or(self.bytemode),
        }
    }

    /// What the controllers are set to.
    const fn controllers(&self) -> pie::Config {
        pie::Config {
            limit: self.limit,
            target: self.target,
            tupdate: self.tupdate,
            alpha: self.alpha,
            beta: self.beta,
            ecn: self.ecn,
            bytemode: self.bytemode,
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
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(FqPie::new(self, device, random, now))
    }
}

/// What `fq_pie` counts, under the names of `tc -s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets taken in.
    pub pkts_in: u64,
    /// Packets that met a full queue.
    pub overlimit: u64,
    /// Packets that arrived while more memory was taken than the limit allows.
    pub overmemory: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked.
    pub ecn_mark: u64,
    /// How often a queue that was empty and at rest got a packet.
    pub new_flow_count: u64,
    /// Queues that are new and have not used up their first quantum.
    pub new_flows_len: u32,
    /// Queues that take turns.
    pub old_flows_len: u32,
    /// Memory that waiting packets take.
    pub memory_used: u64,
}
