//! The engine of the crate `dualpi2`, as a [`Qdisc`].

use std::time::Duration;

use dualpi2::{Change, Config as Parameters, DualPi2, Packet, Queue, Random, SplitMix64};
use dualq_units::Instant;

use super::{Departure, DropReason, Dropped, Qdisc, UPCOMING};
use crate::show::{Counters, OwnStats, Stats};
use crate::{Config, Device};

/// A [`Spec`](crate::Spec) is made by the grammar, whose bounds are the engine's: a property test builds what it accepts.
const ACCEPTED: &str = "the grammar lets no value pass that is out of bounds";

pub(crate) fn build<P: Packet, R: Random>(
    change: &Change,
    device: &Device,
    random: R,
    now: Instant,
) -> DualPi2<P, R> {
    let mtu = device.max_frame;
    let parameters = Parameters::for_mtu(mtu).with(change, mtu).expect(ACCEPTED);
    DualPi2::new(parameters, mtu, random, now.as_nanos()).expect(ACCEPTED)
}

/// What the engine reads back.
pub(crate) fn config(change: &Change, device: &Device) -> Parameters {
    /// No packet is ever put into the queue that this is for.
    enum Nothing {}
    impl Packet for Nothing {
        fn length(&self) -> u32 {
            match *self {}
        }
        fn memory(&self) -> u32 {
            match *self {}
        }
        fn ecn(&self) -> dualpi2::Ecn {
            match *self {}
        }
        fn set_ce(&mut self) {}
    }
    build::<Nothing, _>(change, device, SplitMix64::new(0), Instant::ZERO).config()
}

pub(super) fn change<P: Packet, R: Random>(
    queue: &mut DualPi2<P, R>,
    change: &Change,
    dropped: &mut impl FnMut(Dropped<P>),
) {
    queue.change(change, &mut lost(dropped)).expect(ACCEPTED);
}

fn reason(reason: dualpi2::DropReason) -> DropReason {
    match reason {
        dualpi2::DropReason::Overlimit => DropReason::Overlimit,
        dualpi2::DropReason::Congested => DropReason::Congested,
        dualpi2::DropReason::Step => DropReason::Step,
        dualpi2::DropReason::Refused => DropReason::Refused,
        _ => DropReason::Flushed,
    }
}

fn lost<P>(dropped: &mut impl FnMut(Dropped<P>)) -> impl FnMut(dualpi2::Dropped<P>) {
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
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
        self.enqueue(now.as_nanos(), packet, &mut lost(dropped))
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        self.dequeue(now.as_nanos(), &mut lost(dropped)).map(|departure| Departure {
            packet: departure.packet,
            band: departure.queue as usize,
            sojourn: Duration::from_nanos(departure.sojourn_ns),
            marked_by_probability: departure.marked_by_probability,
            marked_by_step: departure.marked_by_step,
        })
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        let of = |queue| self.waiting(queue, UPCOMING);
        of(Queue::LowLatency).or_else(|| of(Queue::Classic))
    }

    fn peek(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
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

    fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        self.reset(&mut lost(dropped));
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
