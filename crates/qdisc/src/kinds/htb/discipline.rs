//! The class: two buckets, and the leaf that waits for them.

use dualpi2::Random;
use dualq_units::Instant;

use super::{Config, Options, Stats};
use crate::bucket::{Bucket, filled};
use crate::kinds::Grammar;
use crate::kinds::fifo::{Fifo, FifoLimit};
use crate::show::{self, Counters, OwnStats};
use crate::{ChangeError, Departure, Device, Discipline, Dropped, FlowPacket, Qdisc, Spec};

/// No debt is longer.
const LONGEST_DEBT: i64 = 60_000_000_000;
/// The discipline.
pub(super) struct Htb<P, R> {
    config: Config,
    rate: Bucket,
    ceil: Bucket,
    filled_at: Instant,
    /// Before this a bucket is in debt.
    ready_at: Instant,
    leaf: Discipline<P, R>,
    /// What was sent and held back; the leaf knows the rest.
    counters: Counters,
    /// How often a packet was let out on what the class has itself; an aggregate is one.
    lended: u64,
}

impl<P: FlowPacket, R: Random> Htb<P, R> {
    /// Full buckets, and nothing that waits.
    pub(super) fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self
    where
        R: Send + 'static,
    {
        let config = Config::new(options, device);
        let leaf = match &options.leaf {
            Some(leaf) => leaf.build(device, random, now),
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
            lended: 0,
        }
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Htb<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        self.leaf.bands()
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        self.leaf.enqueue(now, packet, dropped)
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
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
        self.counters.sent(&departure.packet);
        self.lended += 1;
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
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

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.leaf.reset(dropped);
        self.ready_at = Instant::ZERO;
        self.rate = Bucket::new(self.config.rate, self.config.buffer);
        self.ceil = Bucket::new(self.config.ceil, self.config.cbuffer);
    }

    fn change(
        &mut self,
        spec: &Spec,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match spec {
            Spec::Htb(_) => Err(ChangeError::Shaper),
            other => Err(ChangeError::other_kind(Options::NAME, other)),
        }
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
            lended: self.lended,
            tokens: self.rate.ticks(),
            ctokens: self.ceil.ticks(),
            leaf: Box::new(leaf),
        };
        show::Stats { counters, own: OwnStats::Htb(own) }
    }
}
