//! `htb` with one class: a leaf discipline that sends no faster than a rate (tc-htb(8)).
//!
//! With no other class to lend or borrow, the class may send while neither its own bucket nor that of its ceiling is in
//! debt. Other than with `tbf`, a packet may leave a bucket in debt, so that none is too long.

mod about;
mod discipline;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant, Rate};

use self::discipline::Htb;
use crate::bucket::span;
use crate::kinds::Kind;
use crate::show::Counters;
use crate::{Device, Discipline, FlowPacket, Spec};

/// What a command line gives; `None` is for what it leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The rate of the class.
    pub rate: Rate,
    /// The most that it may send; one class alone never gets above the smaller of the two.
    pub ceil: Option<Rate>,
    /// What it may send at once.
    pub burst: Option<Bytes>,
    /// What it may send at once above its ceiling.
    pub cburst: Option<Bytes>,
    /// The discipline of the class, in the place of a FIFO.
    pub leaf: Option<Box<Spec>>,
}

/// All parameters of `htb` and its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the class.
    pub rate: Rate,
    /// The most that it may send.
    pub ceil: Rate,
    /// The bucket of the rate, as time at that rate.
    pub buffer: Duration,
    /// The bucket of the ceiling, as time at that.
    pub cbuffer: Duration,
    /// `txqueuelen`.
    pub direct_queue_length: u32,
    /// The discipline of the class.
    pub leaf: Option<Box<crate::Config>>,
}

/// What tc takes for the largest packet, and adds to what a rate sends in one tick of the clock, a nanosecond.
const PACKET: u64 = 1600;

/// The bucket that tc chooses for a rate if none is given.
pub(crate) fn default_burst(rate: Rate) -> Bytes {
    Bytes(rate.as_bits_per_second() / 8 / 1_000_000_000 + PACKET)
}

impl Config {
    /// What `options` come to on `device`.
    #[must_use]
    pub fn new(options: &Options, device: &Device) -> Self {
        let rate = options.rate;
        let ceil = options.ceil.unwrap_or(rate);
        let bucket = |rate: Rate, given: Option<Bytes>| {
            let bytes = given.unwrap_or_else(|| default_burst(rate));
            span(rate, bytes.0).unwrap_or(Duration::MAX)
        };
        Self {
            rate,
            ceil,
            buffer: bucket(rate, options.burst),
            cbuffer: bucket(ceil, options.cburst),
            direct_queue_length: device.tx_queue_length,
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
        Discipline::boxed(Htb::new(self, device, random, now))
    }

    fn leaf(&self) -> Option<&Spec> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<Spec>>> {
        Some(&mut self.leaf)
    }
}

/// What the class counts, under the names of `tc -s class`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// What every class counts; Linux may count other drops for a class than for the discipline.
    pub class: Counters,
    /// Packets that its own rate paid for.
    pub lended: u64,
    /// What its bucket holds, in units of 64 ns.
    pub tokens: i64,
    /// What the bucket of its ceiling holds.
    pub ctokens: i64,
    /// The leaf's counters.
    pub leaf: Box<crate::show::Stats>,
}
