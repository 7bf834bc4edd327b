//! `pie`: one queue, kept near a target delay by dropping at random as packets arrive (RFC 8033, tc-pie(8)).
//!
//! Where Linux differs from the RFC, this follows Linux: the delay is that of the packet last sent; the burst allowance
//! shrinks with the time between departures; the probability is judged by that same delay, and may be 20 % before short
//! delays stop early drops no longer; it may rise far above certainty, from where it takes its time to come back (what tc
//! shows is then only a part of it; here it is 1); updates come with the kernel's ticks of 10 ms (`CONFIG_HZ=100`), the first
//! after half a second; a queue of less than two frames is left alone.

mod about;
pub(crate) mod controller;
mod discipline;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;

use self::discipline::Pie;
use crate::kinds::Kind;
use crate::timer::TICK_US;
use crate::{Device, Discipline, FlowPacket};

/// What a command line gives; `None` is for what it leaves open. Times are in microseconds, as tc sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub target_us: Option<u32>,
    pub tupdate_us: Option<u32>,
    pub alpha: Option<u32>,
    pub beta: Option<u32>,
    pub ecn: Option<bool>,
    pub bytemode: Option<bool>,
}

/// All parameters of `pie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
    /// The delay that is aimed for, in units of 64 ns, as Linux cuts it.
    pub target: Duration,
    /// How often the probability is updated, in whole ticks of the kernel.
    pub tupdate: Duration,
    /// How strongly the distance from the target counts, in 1/16 Hz.
    pub alpha: u32,
    /// How strongly the trend counts, in 1/16 Hz.
    pub beta: u32,
    /// Whether ECN-capable packets are marked instead of dropped while the probability is at most 10 %.
    pub ecn: bool,
    /// Whether short packets are less likely to be dropped.
    pub bytemode: bool,
}

/// Linux counts delays in units of 64 ns.
const DELAY_SHIFT: u32 = 6;
/// Certainty. The bits above it are room for the sum that spreads drops out.
pub(crate) const CERTAIN: u64 = u64::MAX >> 8;

pub(crate) const fn cut(micros: u32) -> Duration {
    Duration::from_nanos((micros as u64 * 1000) >> DELAY_SHIFT << DELAY_SHIFT)
}

/// The microseconds of a target, as the kernel tells them: it keeps more than the 32 bits of nanoseconds that it tells them by.
pub(crate) const fn told_micros(target: Duration) -> u32 {
    target.as_nanos() as u32 / 1000
}

pub(crate) const fn whole_ticks(micros: u32) -> Duration {
    let ticks = micros.div_ceil(TICK_US) as u64;
    Duration::from_micros(if ticks == 0 { 1 } else { ticks } * TICK_US as u64)
}

impl Config {
    /// Linux's defaults.
    pub const DEFAULT: Self = Self {
        limit: 1000,
        target: cut(15_000),
        tupdate: whole_ticks(15_000),
        alpha: 2,
        beta: 20,
        ecn: false,
        bytemode: false,
    };

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            target: options.target_us.map_or(self.target, cut),
            tupdate: options.tupdate_us.map_or(self.tupdate, whole_ticks),
            alpha: options.alpha.unwrap_or(self.alpha),
            beta: options.beta.unwrap_or(self.beta),
            ecn: options.ecn.unwrap_or(self.ecn),
            bytemode: options.bytemode.unwrap_or(self.bytemode),
        }
    }
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, _device: &Device) -> Config {
        Config::DEFAULT.with(self)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(Pie::new(self, device, random, now))
    }
}

/// What `pie` counts, under the names of `tc -s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The drop probability, in units of 1/(2⁵⁶ - 1).
    pub probability: u64,
    /// The delay of the packet last sent.
    pub delay: Duration,
    /// Packets taken in.
    pub pkts_in: u64,
    /// Packets that met a full queue.
    pub overlimit: u64,
    /// Packets dropped, these included.
    pub dropped: u64,
    /// The most packets that ever waited.
    pub maxq: u32,
    /// Packets marked.
    pub ecn_mark: u64,
}

impl Stats {
    /// The drop probability, from 0 to 1.
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.probability as f64 / CERTAIN as f64
    }
}
