//! The queue, which the controller keeps short.

use std::collections::VecDeque;
use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;
use dualq_units::hint::unlikely;

use super::controller::{Controller, ECN_THRESHOLD, FIRST_UPDATE};
use super::{Config, Options, Stats};
use crate::kinds::Grammar;
use crate::show::{self, Counters, OwnStats};
use crate::timer::{TICK, TICK_US};
use crate::{
    ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec, UPCOMING,
};

/// The discipline.
pub(super) struct Pie<P, R> {
    config: Config,
    mtu: u32,
    controller: Controller,
    next_update: Instant,
    random: R,
    queue: VecDeque<(Instant, P, bool)>,
    /// The first packet was shown, and counts as departed.
    shown: bool,
    stats: Stats,
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Pie<P, R> {
    /// An empty queue at time `now`.
    pub(super) fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self {
        let tick = u64::from(TICK_US) * 1000;
        let ticked = Instant::from_nanos(now.as_nanos() / tick * tick);
        Self {
            config: Config::DEFAULT.with(options),
            mtu: device.max_frame,
            controller: Controller::START,
            next_update: ticked + FIRST_UPDATE + TICK,
            random,
            queue: VecDeque::new(),
            shown: false,
            stats: Stats::default(),
            counters: Counters::ZERO,
        }
    }

    /// From one update to the next: timers never fire early, and are started anew within a tick that has begun, which is one more each
    /// time.
    fn interval(&self) -> Duration {
        self.config.tupdate + TICK
    }

    fn flush(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.shown = false;
        if let Some((_, packet, _)) = self.queue.pop_front() {
            self.counters.backlog_packets -= 1;
            self.counters.backlog_bytes -= u64::from(packet.length());
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Pie<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["pie"]
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> usize {
        let Self { config, mtu, controller, random, counters, stats, .. } = self;
        let length = packet.length();
        let is_full = self.queue.len() >= config.limit as usize;
        let hit =
            !is_full && controller.drops(config, length, counters.backlog_bytes, *mtu, random);
        let marks = hit
            && config.ecn
            && controller.probability <= ECN_THRESHOLD
            && packet.ecn().is_capable();
        if unlikely(is_full || (hit && !marks)) {
            stats.overlimit += u64::from(is_full);
            stats.dropped += 1;
            controller.accumulated = 0;
            counters.drops += 1;
            let reason = if is_full { DropReason::Overlimit } else { DropReason::Congested };
            dropped(Dropped { packet, band: 0, reason });
            return 0;
        }
        if marks {
            packet.set_ce();
            stats.ecn_mark += 1;
        }
        stats.pkts_in += 1;
        counters.backlog_packets += 1;
        counters.backlog_bytes += u64::from(length);
        self.queue.push_back((now, packet, marks));
        stats.maxq = stats.maxq.max(self.queue.len() as u32);
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        // It is looked at where it lies: packets that are looked at on their way are moved piece by piece.
        self.counters.left(&self.queue.front()?.1);
        let (enqueued, packet, marked_by_probability) = self.queue.pop_front()?;
        if !std::mem::take(&mut self.shown) {
            self.controller.departed(enqueued, now, self.queue.is_empty());
        }
        let sojourn_ns = now.nanos_since(enqueued);
        Some(Departure {
            packet,
            band: 0,
            sojourn_ns,
            marked_by_probability,
            marked_by_step: false,
        })
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        self.queue.get(UPCOMING).map(|(_, packet, _)| packet)
    }

    /// What is shown has departed for the controller (Linux: `qdisc_peek_dequeued`).
    fn peek(&mut self, now: Instant, _dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        let (enqueued, packet, _) = self.queue.front()?;
        if !std::mem::replace(&mut self.shown, true) {
            self.controller.departed(*enqueued, now, self.queue.len() == 1);
        }
        Some(packet)
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, _now: Instant) {
        self.controller.update(&self.config, self.counters.backlog_bytes);
        self.next_update = self.next_update + self.interval();
    }

    fn on_idle(&mut self, until: Instant) {
        while self.next_update <= until && self.next_update < Instant::NEVER {
            let before = self.controller;
            self.on_timer(self.next_update);
            // Without a packet every update is like the one before, so that one which changed nothing ends all change.
            if self.queue.is_empty() && self.controller == before && self.next_update <= until {
                // On to the last update that is due.
                let interval = self.interval().as_nanos() as u64;
                let left = (until.as_nanos() - self.next_update.as_nanos()) / interval;
                self.next_update =
                    Instant::from_nanos(self.next_update.as_nanos() + left * interval);
            }
        }
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        while !self.queue.is_empty() {
            self.flush(dropped);
        }
        self.controller = Controller::START;
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Pie(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        self.config = self.config.with(options);
        while self.queue.len() > self.config.limit as usize {
            self.flush(dropped);
        }
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::Pie(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        let own = Stats {
            probability: self.controller.probability(),
            delay: self.controller.delay(),
            ..self.stats
        };
        show::Stats { counters: self.counters, own: OwnStats::Pie(own) }
    }
}
