//! `netem`: a path that delays, loses and slows packets down (tc-netem(8)).
//!
//! Delays without a `distribution` are uniform, from delay - jitter to delay + jitter, and a packet that draws a short one
//! overtakes others. With a rate, each packet is sent when the one before it has been, and no sooner than its delay allows.
//! Packets whose time has come go through the leaf, if there is one.

mod discipline;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Instant, Rate};

use self::discipline::Netem;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket, Spec};

/// What a command line gives; `None` is for what it leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub delay: Option<Duration>,
    pub jitter: Option<Duration>,
    pub loss: Option<u32>,
    pub ecn: bool,
    pub rate: Option<Rate>,
    pub seed: Option<u64>,
    pub leaf: Option<Box<Spec>>,
}

/// All parameters of `netem`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may be under way.
    pub limit: u32,
    /// The mean delay.
    pub delay: Duration,
    /// By how much it varies to either side.
    pub jitter: Duration,
    /// How many packets are lost, in units of 1/(2³² - 1).
    pub loss: u32,
    /// Whether ECN-capable packets are marked instead of lost.
    pub ecn: bool,
    /// The rate of the path.
    pub rate: Option<Rate>,
    /// What the dice begin with, if that was given.
    pub seed: Option<u64>,
    /// The discipline that packets go through after their delay.
    pub leaf: Option<Box<crate::Config>>,
}

impl Config {
    /// What `options` come to on `device`.
    #[must_use]
    pub fn new(options: &Options, device: &Device) -> Self {
        Self {
            limit: options.limit.unwrap_or(1000),
            delay: options.delay.unwrap_or_default(),
            jitter: options.jitter.unwrap_or_default(),
            loss: options.loss.unwrap_or(0),
            ecn: options.ecn,
            rate: options.rate,
            seed: options.seed,
            leaf: options.leaf.as_ref().map(|leaf| Box::new(leaf.configure(device))),
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
        Discipline::boxed(Netem::new(self, device, random, now))
    }

    fn leaf(&self) -> Option<&Spec> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<Spec>>> {
        Some(&mut self.leaf)
    }
}

/// What `netem` counts, under the names of `tc -s`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that were held back.
    pub delayed: u64,
    /// Packets that were lost.
    pub dropped: u64,
    /// Packets that overtook others.
    pub reordered: u64,
    /// Packets that were marked instead of lost.
    pub ecn_marked: u64,
    /// The leaf's counters.
    pub leaf: Option<Box<crate::show::Stats>>,
}
