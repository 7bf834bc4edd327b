//! `htb` with one class: a leaf discipline that sends no faster than a rate (tc-htb(8)).
//!
//! With no other class to lend or borrow, the class may send while neither its own bucket nor that of its ceiling is in
//! debt. Other than with `tbf`, a packet may leave a bucket in debt, so that none is too long.

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant, Rate};

use super::bucket::{Bucket, filled, span};
use super::{Departure, Discipline, Dropped, Fifo, Qdisc};
use crate::show::{self, Counters, OwnStats};
use crate::{Device, FifoLimit, FlowPacket, Spec};

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

/// No debt is longer.
const LONGEST_DEBT: i64 = 60_000_000_000;
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
    pub leaf: Box<show::Stats>,
}

/// The discipline.
pub struct Htb<P, R> {
    config: Config,
    rate: Bucket,
    ceil: Bucket,
    filled_at: Instant,
    /// Before this a bucket is in debt.
    ready_at: Instant,
    leaf: Discipline<P, R>,
    /// What was sent and held back; the leaf knows the rest.
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Htb<P, R> {
    /// Full buckets, and nothing that waits.
    #[must_use]
    pub fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self {
        let config = Config::new(options, device);
        let leaf = match &options.leaf {
            Some(leaf) => leaf.build_modelled(device, random, now),
            None => Discipline::Fifo(Fifo::new(FifoLimit::Packets(device.tx_queue_length))),
        };
        Self {
            rate: Bucket::new(config.rate, config.buffer),
            ceil: Bucket::new(config.ceil, config.cbuffer),
            config,
            filled_at: now,
            ready_at: Instant::ZERO,
            leaf,
            counters: Counters::ZERO,
        }
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Htb<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        self.leaf.bands()
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
        self.leaf.enqueue(now, packet, dropped)
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        if now < self.ready_at {
            self.counters.overlimits += u64::from(!self.leaf.is_empty());
            return None;
        }
        let departure = self.leaf.dequeue(now, dropped)?;
        let length = departure.packet.length();
        let passed = now - self.filled_at;
        self.filled_at = now;
        for bucket in [&mut self.rate, &mut self.ceil] {
            bucket.set(bucket.after(passed, length).max(1 - LONGEST_DEBT));
        }
        self.ready_at = filled(now, self.rate.tokens().min(self.ceil.tokens()));
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(length);
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
        if now < self.ready_at {
            return None;
        }
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
        self.rate = Bucket::new(self.config.rate, self.config.buffer);
        self.ceil = Bucket::new(self.config.ceil, self.config.cbuffer);
    }

    fn config(&self) -> crate::Config {
        crate::Config::Htb(self.config.clone())
    }

    fn stats(&self, now: Instant) -> show::Stats {
        let leaf = self.leaf.stats(now);
        let counters = Counters {
            drops: leaf.counters.drops,
            backlog_bytes: leaf.counters.backlog_bytes,
            backlog_packets: leaf.counters.backlog_packets,
            ..self.counters
        };
        let own = Stats {
            class: counters,
            lended: counters.sent_packets,
            tokens: self.rate.ticks(),
            ctokens: self.ceil.ticks(),
            leaf: Box::new(leaf),
        };
        show::Stats { counters, own: OwnStats::Htb(own) }
    }
}
