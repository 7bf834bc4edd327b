//! `sfq`: flows take turns, told apart by a hash that changes now and then, and whoever has most loses packets (McKenney,
//! "Stochastic Fairness Queueing", 1990; tc-sfq(8)).
//!
//! As Linux does it: new flows wait behind old ones; a full queue loses a packet of the longest flow, its last one or, with
//! `headdrop`, its first; a flow has at most `depth` packets; when the hash changes, packets are sorted anew, so that
//! flows may be overtaken, and what finds no room is lost. The RED inside (`redflowlimit`) is not there.

mod about;
mod discipline;
mod grammar;
mod show;

use dualpi2::Random;
use dualq_units::Instant;

use self::discipline::Sfq;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket};

/// What a command line gives; `None` is for what it leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub quantum: Option<u32>,
    pub depth: Option<u32>,
    pub headdrop: bool,
    pub flows: Option<u32>,
    pub divisor: Option<u32>,
    pub perturb_s: Option<u32>,
}

/// All parameters of `sfq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
    /// Bytes that a flow may send in its turn.
    pub quantum: u32,
    /// Packets that a flow may have.
    pub depth: u32,
    /// Whether it is the first packet of a flow that makes room, not the last.
    pub headdrop: bool,
    /// Flows that may have packets at once.
    pub flows: u32,
    /// The values of the hash, a power of two.
    pub divisor: u32,
    /// After so many seconds the hash changes; 0 for never.
    pub perturb_s: u32,
}

/// `SFQ_MAX_DEPTH`, the default too.
const LONGEST: u32 = 127;
/// `SFQ_MAX_FLOWS`: 16 bits tell flows and lengths.
const MOST_FLOWS: u32 = 0x1_0000 - LONGEST - 1;
/// The kernel takes no smaller quantum.
const LEAST_QUANTUM: u32 = 256;

impl Config {
    /// What `options` come to on `device`.
    #[must_use]
    pub fn new(options: &Options, device: &Device) -> Self {
        let (depth, flows, limit) = options.bounds();
        Self {
            limit,
            quantum: options.quantum.map_or(device.max_frame, |bytes| bytes.max(LEAST_QUANTUM)),
            depth,
            headdrop: options.headdrop,
            flows,
            divisor: options.divisor.unwrap_or(1024),
            perturb_s: options.perturb_s.unwrap_or(0),
        }
    }
}

impl Options {
    /// The depth, the flows and the limit. The kernel bounds them by each other only where they are given: more flows than the
    /// default hash has values may be asked for, and then count in the limit.
    fn bounds(&self) -> (u32, u32, u32) {
        let depth = self.depth.unwrap_or(LONGEST).min(LONGEST);
        let flows = self.flows.map_or(128, |flows| flows.min(MOST_FLOWS));
        let flows = self.divisor.map_or(flows, |divisor| flows.min(divisor));
        match self.limit.map(|limit| limit.min(depth * flows)) {
            Some(limit) => (depth, flows.min(limit), limit),
            None => (depth, flows, LONGEST),
        }
    }
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, device: &Device) -> Config {
        Config::new(self, device)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(Sfq::new(Config::new(self, device), random, now))
    }
}
