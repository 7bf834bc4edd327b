//! `tbf`: a token bucket that lets a leaf discipline send no faster than its rate (tc-tbf(8)).
//!
//! A packet waits until the bucket holds enough for it. A packet longer than the bucket could never leave and is dropped as
//! it arrives; an aggregate that is too long is split.

pub(super) mod about;
mod discipline;
mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant, PacketTime, Rate};

use self::discipline::Tbf;
use crate::bucket::size;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket, Spec};

/// What a command line gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// The bucket.
    pub burst: Bytes,
    /// How much may wait.
    pub limit: Limit,
    /// A second bucket.
    pub peak: Option<Peak>,
    /// The discipline inside, in the place of a FIFO.
    pub leaf: Option<Box<Spec>>,
}

/// How much may wait in a `tbf` without a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes.
    Bytes(Bytes),
    /// What a packet waits for that long with an empty bucket.
    Latency(Duration),
}

/// A second bucket, that bounds how fast the first is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The rate at which it fills.
    pub rate: Rate,
    /// Its size: at least the largest packet.
    pub mtu: Bytes,
}

/// All parameters of `tbf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// The bucket, as time at that rate.
    pub buffer: Duration,
    /// The second bucket: its rate, and itself as time at that rate.
    pub peak: Option<(Rate, Duration)>,
    /// Bytes that may wait, without a leaf.
    pub limit: Bytes,
    /// The longest packet that can leave.
    pub longest: Bytes,
    /// The discipline inside.
    pub leaf: Option<Box<crate::Config>>,
}

fn time(rate: Rate, bytes: Bytes) -> Duration {
    Duration::from_nanos(PacketTime::new(rate).nanos(bytes.0))
}

impl Config {
    /// What `options` come to on `device`.
    #[must_use]
    pub fn new(options: &Options, device: &Device) -> Self {
        let Options { rate, burst, peak, .. } = *options;
        let sent = |rate: Rate, latency: Duration| {
            let bytes = (rate.as_bits_per_second() / 8) as f64;
            (bytes * latency.as_micros() as f64 / 1e6) as u64
        };
        let limit = match options.limit {
            Limit::Bytes(limit) => limit.0,
            Limit::Latency(latency) => {
                let limit = sent(rate, latency).saturating_add(burst.0);
                let peak = peak.map(|peak| sent(peak.rate, latency).saturating_add(peak.mtu.0));
                peak.map_or(limit, |peak| peak.min(limit))
            }
        };
        Self {
            rate,
            buffer: time(rate, burst),
            peak: peak.map(|peak| (peak.rate, time(peak.rate, peak.mtu))),
            limit: Bytes(limit.min(u32::MAX.into())),
            longest: peak.map_or(burst, |peak| peak.mtu.min(burst)),
            leaf: options.leaf.as_ref().map(|leaf| Box::new(leaf.configure(device))),
        }
    }

    /// What a kernel tells of one without a leaf, which is its buckets as time only.
    #[must_use]
    pub fn of_buckets(
        rate: Rate,
        buffer: Duration,
        peak: Option<(Rate, Duration)>,
        limit: Bytes,
    ) -> Self {
        let burst = size(rate, buffer);
        let longest = peak.map_or(burst, |(rate, buffer)| size(rate, buffer).min(burst));
        Self { rate, buffer, peak, limit, longest, leaf: None }
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
        Discipline::boxed(Tbf::new(self, device, random, now))
    }

    fn leaf(&self) -> Option<&Spec> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<Spec>>> {
        Some(&mut self.leaf)
    }
}

/// What `tbf` counts beside [`Counters`](crate::show::Counters): nothing itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The leaf's counters.
    pub leaf: Box<crate::show::Stats>,
}
