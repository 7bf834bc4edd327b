//! The bucket, and the leaf that waits for it.

use dualpi2::Random;
use dualq_units::Instant;

use super::{Config, Options, Stats};
use crate::bucket::{Bucket, filled};
use crate::kinds::Grammar;
use crate::kinds::fifo::{Fifo, FifoLimit};
use crate::show::{self, Counters, OwnStats};
use crate::{
    ChangeError, Departure, Device, Discipline, DropReason, Dropped, FlowPacket, Qdisc, Spec,
};

/// The discipline.
pub(super) struct Tbf<P, R> {
    config: Config,
    bucket: Bucket,
    peak: Option<Bucket>,
    filled_at: Instant,
    /// Before this there are too few tokens for the next packet.
    ready_at: Instant,
    leaf: Discipline<P, R>,
    /// Since when it has shown the packet that is next, which waits for tokens.
    shown: Option<Instant>,
    /// What was sent, dropped before the leaf, and held back; the leaf knows the rest.
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Tbf<P, R> {
    /// A full bucket, and nothing that waits.
    pub(super) fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self
    where
        R: Send + 'static,
    {
        let config = Config::new(options, device);
        let leaf = match &options.leaf {
            Some(leaf) => leaf.build(device, random, now),
            None => Discipline::Fifo(Fifo::new(FifoLimit::Bytes(config.limit))),
        };
        Self {
            bucket: Bucket::new(config.rate, config.buffer),
            peak: config.peak.map(|(rate, depth)| Bucket::new(rate, depth)),
            config,
            filled_at: now,
            ready_at: Instant::ZERO,
            leaf,
            shown: None,
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
        dropped: &mut dyn FnMut(Dropped<P>),
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
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
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
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let length = self.leaf.peek(now, dropped)?.length();
        let shown = *self.shown.get_or_insert(now);
        let Some((tokens, peak)) = self.take(now, length) else {
            self.counters.overlimits += 1;
            return None;
        };
        let mut departure = self.leaf.dequeue(now, dropped)?;
        self.shown = None;
        if self.leaf.decides_early() {
            departure.sojourn_ns += now.nanos_since(shown);
        }
        self.filled_at = now;
        self.bucket.set(tokens);
        if let Some(bucket) = &mut self.peak {
            bucket.set(peak);
        }
        self.counters.sent(&departure.packet);
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        let length = self.leaf.peek(now, dropped)?.length();
        self.shown.get_or_insert(now);
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

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.leaf.reset(dropped);
        self.shown = None;
        self.ready_at = Instant::ZERO;
        self.bucket = Bucket::new(self.config.rate, self.config.buffer);
        self.peak = self.config.peak.map(|(rate, depth)| Bucket::new(rate, depth));
    }

    fn change(
        &mut self,
        spec: &Spec,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match spec {
            Spec::Tbf(_) => Err(ChangeError::Shaper),
            other => Err(ChangeError::other_kind(Options::NAME, other)),
        }
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
        show::Stats { counters, own: OwnStats::Tbf(Stats { leaf: Box::new(leaf) }) }
    }
}
