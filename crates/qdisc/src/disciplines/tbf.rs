//! `tbf`: a token bucket that lets a leaf discipline send no faster than its rate (tc-tbf(8)).
//!
//! A packet waits until the bucket holds enough for it. A packet longer than the bucket could never leave and is dropped as
//! it arrives; an aggregate that is too long is split.

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant, Rate};

use super::bucket::{Bucket, cost, filled, size};
use super::{Departure, Discipline, DropReason, Dropped, Fifo, Qdisc};
use crate::show::{self, Counters, OwnStats};
use crate::{Device, FifoLimit, FlowPacket, Spec};

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
    Duration::from_nanos(cost(rate, bytes.0).unsigned_abs())
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
    pub fn told(
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

/// The discipline.
pub struct Tbf<P, R> {
    config: Config,
    bucket: Bucket,
    peak: Option<Bucket>,
    filled_at: Instant,
    /// Before this there are too few tokens for the next packet.
    ready_at: Instant,
    leaf: Discipline<P, R>,
    /// What was sent, dropped before the leaf, and held back; the leaf knows the rest.
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Tbf<P, R> {
    /// A full bucket, and nothing that waits.
    #[must_use]
    pub fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self {
        let config = Config::new(options, device);
        let leaf = match &options.leaf {
            Some(leaf) => leaf.build_modelled(device, random, now),
            None => Discipline::Fifo(Fifo::new(FifoLimit::Bytes(config.limit))),
        };
        Self {
            bucket: Bucket::new(config.rate, config.buffer),
            peak: config.peak.map(|(rate, depth)| Bucket::new(rate, depth)),
            config,
            filled_at: now,
            ready_at: Instant::ZERO,
            leaf,
            counters: Counters::ZERO,
        }
    }

    /// What both buckets hold once `length` is taken out, if they hold enough.
    fn take(&mut self, now: Instant, length: u32) -> Option<(i64, i64)> {
        let passed = now - self.filled_at;
        let tokens = self.bucket.after(passed, length);
        let peak = self.peak.map_or(0, |peak| peak.after(passed, length));
        let least = tokens.min(peak);
        self.ready_at = filled(now, least);
        (least >= 0).then_some((tokens, peak))
    }

    fn enqueue_one(
        &mut self,
        now: Instant,
        packet: P,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> usize {
        if u64::from(packet.length()) > self.config.longest.0 {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }
        self.leaf.enqueue(now, packet, dropped)
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Tbf<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        self.leaf.bands()
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
        let is_long = u64::from(packet.length()) > self.config.longest.0;
        if !(is_long && packet.is_gso()) {
            return self.enqueue_one(now, packet, dropped);
        }
        let mut queued = 0;
        packet.split(&mut |segment| queued += self.enqueue_one(now, segment, dropped));
        queued
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let length = self.leaf.peek(now, dropped)?.length();
        let Some((tokens, peak)) = self.take(now, length) else {
            self.counters.overlimits += 1;
            return None;
        };
        let departure = self.leaf.dequeue(now, dropped)?;
        self.filled_at = now;
        self.bucket.set(tokens);
        if let Some(bucket) = &mut self.peak {
            bucket.set(peak);
        }
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(length);
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
        let length = self.leaf.peek(now, dropped)?.length();
        self.take(now, length)?;
        self.leaf.peek(now, dropped)
    }

    fn len(&self) -> usize {
        self.leaf.len()
    }

    fn next_ready(&self, now: Instant) -> Instant {
        self.leaf.next_ready(now.max(self.ready_at))
    }

    fn next_timer(&self) -> Instant {
        self.leaf.next_timer()
    }

    fn on_timer(&mut self, now: Instant) {
        self.leaf.on_timer(now);
    }

    fn on_idle(&mut self, until: Instant) {
        self.leaf.on_idle(until);
    }

    fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        self.leaf.reset(dropped);
        self.ready_at = Instant::ZERO;
        self.bucket = Bucket::new(self.config.rate, self.config.buffer);
        self.peak = self.config.peak.map(|(rate, depth)| Bucket::new(rate, depth));
    }

    fn config(&self) -> crate::Config {
        crate::Config::Tbf(self.config.clone())
    }

    fn stats(&self, now: Instant) -> show::Stats {
        let leaf = self.leaf.stats(now);
        let counters = Counters {
            drops: self.counters.drops + leaf.counters.drops,
            backlog_bytes: leaf.counters.backlog_bytes,
            backlog_packets: leaf.counters.backlog_packets,
            ..self.counters
        };
        show::Stats { counters, own: OwnStats::Tbf(Box::new(leaf)) }
    }
}
