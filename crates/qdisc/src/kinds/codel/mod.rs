//! `codel`: one queue that CoDel keeps short (RFC 8289, tc-codel(8)).

mod about;
mod discipline;
mod grammar;
pub(crate) mod law;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;

use self::discipline::Codel;
use self::law::cut;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket};

/// What a command line gives; `None` is for what it leaves open. Times are in microseconds, as tc sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub target_us: Option<u32>,
    pub interval_us: Option<u32>,
    pub ecn: Option<bool>,
    pub ce_threshold_us: Option<u32>,
}

/// All parameters of `codel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
    /// The delay that is aimed for; times are cut to units of 1.024 µs, as Linux does.
    pub target: Duration,
    /// For how long the delay may be above that: about the longest usual round-trip time.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// ECN-capable packets that waited longer are marked.
    pub ce_threshold: Option<Duration>,
}

impl Config {
    /// Linux's defaults.
    pub const DEFAULT: Self = Self {
        limit: 1000,
        target: cut(5_000),
        interval: cut(100_000),
        ecn: false,
        ce_threshold: None,
    };

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            target: options.target_us.map_or(self.target, cut),
            interval: options.interval_us.map_or(self.interval, cut),
            ecn: options.ecn.unwrap_or(self.ecn),
            ce_threshold: options.ce_threshold_us.map(cut).or(self.ce_threshold),
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
        _random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(Codel::new(self, device))
    }
}

/// What `codel` counts and where its law stands, under the names of `tc -s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Drops or marks since dropping began.
    pub count: u32,
    /// As many when dropping last began.
    pub lastcount: u32,
    /// How long the last packet had waited.
    pub ldelay: Duration,
    /// Whether packets are dropped or marked just now.
    pub dropping: bool,
    /// When the next one is due while that is so, in microseconds from now.
    pub drop_next_us: i64,
    /// The longest packet.
    pub maxpacket: u32,
    /// Packets that the law marked.
    pub ecn_mark: u64,
    /// Packets that met a full queue.
    pub drop_overlimit: u64,
    /// Packets that `ce_threshold` marked.
    pub ce_mark: u64,
}
