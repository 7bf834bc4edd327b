//! A link with a queue in front of it: one packet at a time, each for as long as its bits take.

use dualq_qdisc::{Departure, Discipline, Dropped, Qdisc, XorShift64};
use dualq_units::{Bytes, Instant, Rate};

use crate::packet::Tracked;

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Enqueue,
    Dequeue,
}

/// Who is told what happens on a link.
pub(crate) trait Observer {
    fn dropped(&mut self, now: Instant, point: Point, lost: &Dropped<Tracked>);
    fn departed(&mut self, now: Instant, departure: &Departure<Tracked>);
    fn timer(&mut self, now: Instant, discipline: &Discipline<Tracked, XorShift64>);
    /// No packet waits from `from` to `until`, and what the timer does meanwhile is not told one by one.
    fn idle(&mut self, from: Instant, until: Instant, discipline: &Discipline<Tracked, XorShift64>);
}

/// So often in a row the timer of an empty queue is told (with DualPI2's default interval for a minute). A capture whose
/// clock was set meanwhile, from 1970 say, has billions of them.
const IDLE_TIMERS: u32 = 4096;

pub(crate) struct Link<O> {
    pub(crate) discipline: Discipline<Tracked, XorShift64>,
    rate: Rate,
    /// When the packet on the wire has left.
    pub(crate) free_at: Instant,
    pub(crate) observer: O,
}

impl<O: Observer> Link<O> {
    pub(crate) const fn new(
        discipline: Discipline<Tracked, XorShift64>,
        rate: Rate,
        observer: O,
    ) -> Self {
        Self { discipline, rate, free_at: Instant::ZERO, observer }
    }

    /// Takes in a packet, after all that happens up to `now`. At one instant the timer goes first, then the link, then
    /// arrivals; an idle link asks for a packet as soon as one arrived, and otherwise when
    /// the discipline says that one is ready.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, packet: Tracked) {
        self.run(now);
        let Self { discipline, observer, .. } = self;
        discipline.enqueue(now, packet, &mut |lost| observer.dropped(now, Point::Enqueue, &lost));
        if self.free_at <= now {
            self.send(now);
        }
    }

    /// Lets the queue run empty.
    pub(crate) fn drain(&mut self) {
        while !self.discipline.is_empty() {
            let next = self.discipline.next_timer().min(self.discipline.next_ready(self.free_at));
            if next == Instant::NEVER {
                return;
            }
            self.run(next);
        }
    }

    /// Does all that is due up to and at `until`, but for arrivals.
    #[inline]
    fn run(&mut self, until: Instant) {
        let mut idle = 0;
        loop {
            let timer = self.discipline.next_timer();
            let departure = self.discipline.next_ready(self.free_at);
            if timer.min(departure) > until {
                return;
            }
            if timer <= departure {
                if timer == Instant::NEVER {
                    return;
                }
                idle = if self.discipline.is_empty() { idle + 1 } else { 0 };
                if idle > IDLE_TIMERS {
                    self.discipline.on_idle(until);
                    self.observer.idle(timer, until, &self.discipline);
                } else {
                    self.discipline.on_timer(timer);
                    self.observer.timer(timer, &self.discipline);
                }
            } else {
                self.send(departure);
            }
        }
    }

    /// Puts the next packet on the wire.
    #[inline]
    fn send(&mut self, now: Instant) {
        let Self { discipline, observer, .. } = self;
        let departure =
            discipline.dequeue(now, &mut |lost| observer.dropped(now, Point::Dequeue, &lost));
        if let Some(departure) = departure {
            let length = Bytes(departure.packet.length.into());
            self.free_at = now + self.rate.transmission_time(length);
            self.observer.departed(now, &departure);
        }
    }
}
