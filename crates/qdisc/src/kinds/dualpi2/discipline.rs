//! The engine of the crate `dualpi2`, as a [`Qdisc`].

use dualpi2::{Change, DualPi2, Packet, Queue, Random};
use dualq_units::Instant;

use super::{ACCEPTED, Options};
use crate::kinds::Grammar;
use crate::show::{Counters, OwnStats, Stats};
use crate::{ChangeError, Config, Departure, DropReason, Dropped, Qdisc, Spec, UPCOMING};

fn reason(reason: dualpi2::DropReason) -> DropReason {
    match reason {
        dualpi2::DropReason::Overlimit => DropReason::Overlimit,
        dualpi2::DropReason::Congested => DropReason::Congested,
        dualpi2::DropReason::Step => DropReason::Step,
        dualpi2::DropReason::Refused => DropReason::Refused,
        _ => DropReason::Flushed,
    }
}

fn lost<P>(dropped: &mut dyn FnMut(Dropped<P>)) -> impl FnMut(dualpi2::Dropped<P>) {
    |lost| {
        let reason = reason(lost.reason);
        dropped(Dropped { packet: lost.packet, band: lost.queue as usize, reason });
    }
}

impl<P: Packet, R: Random> Qdisc<P> for DualPi2<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["classic", "low latency"]
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        self.enqueue(now.as_nanos(), packet, &mut lost(dropped))
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        self.dequeue(now.as_nanos(), &mut lost(dropped)).map(|departure| Departure {
            packet: departure.packet,
            band: departure.queue as usize,
            sojourn_ns: departure.sojourn_ns,
            marked_by_probability: departure.marked_by_probability,
            marked_by_step: departure.marked_by_step,
        })
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        let of = |queue| self.waiting(queue, UPCOMING);
        of(Queue::LowLatency).or_else(|| of(Queue::Classic))
    }

    fn decides_early(&self) -> bool {
        true
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        self.peek(now.as_nanos(), &mut lost(dropped))
    }

    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        Instant::from_nanos(self.next_update_ns())
    }

    fn on_timer(&mut self, now: Instant) {
        self.update(now.as_nanos());
    }

    fn on_idle(&mut self, until: Instant) {
        self.poll(until.as_nanos());
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.reset(&mut lost(dropped));
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Dualpi2(change) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        if *change == Change::default() {
            return Err(ChangeError::NothingGiven);
        }
        self.change(change, &mut lost(dropped)).expect(ACCEPTED);
        Ok(())
    }

    fn config(&self) -> Config {
        Config::Dualpi2(self.config())
    }

    fn stats(&self, now: Instant) -> Stats {
        let stats = self.stats(now.as_nanos());
        Stats {
            counters: Counters {
                sent_bytes: stats.sent_bytes,
                sent_packets: stats.sent_packets,
                drops: stats.drops,
                overlimits: stats.overlimits,
                backlog_bytes: stats.backlog_bytes,
                backlog_packets: stats.backlog_packets,
            },
            own: OwnStats::Dualpi2(stats),
        }
    }
}
