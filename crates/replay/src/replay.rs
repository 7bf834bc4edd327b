use std::io::{self, Write};
use std::num::NonZeroU64;

use dualq_qdisc::{Departure, Device, Discipline, Dropped, Qdisc, Spec, XorShift64};
use dualq_units::{Instant, Rate};

use crate::link::{Link, Observer, Point};
use crate::outcome::BandOutcome;
use crate::packet::Tracked;
use crate::timeline::Timeline;
use crate::{Arrival, EventLog, Outcome};

/// What the links of a replay have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The rate of the link; above zero.
    pub rate: Rate,
    /// The largest IP packet that the device takes, in bytes.
    pub mtu: u32,
    /// The first state of the disciplines' random numbers (xorshift64).
    pub seed: NonZeroU64,
}

impl Settings {
    /// The seed of those who do not care. Its bits are mixed well, as xorshift64 needs: from a small number it would take
    /// a while to become random.
    pub const DEFAULT_SEED: NonZeroU64 = NonZeroU64::new(0x9e37_79b9_7f4a_7c15).unwrap();
}

/// The same arrivals over one or more links, each with its own discipline.
pub struct Replay<W: Write> {
    specs: Vec<Spec>,
    links: Vec<Link<Recorder<W>>>,
    arrivals: u64,
    first: Option<Instant>,
}

/// Keeps the books of one link.
struct Recorder<W: Write> {
    bands: Vec<BandOutcome>,
    timeline: Option<Timeline>,
    events: Option<EventLog<W>>,
}

impl<W: Write> Replay<W> {
    /// Idle links, one for each of `specs`. What happens on the first is written to `events`.
    pub fn new(specs: &[Spec], settings: &Settings, mut events: Option<EventLog<W>>) -> Self {
        let device = Device::ethernet(settings.mtu);
        let links = specs.iter().map(|spec| {
            let random = XorShift64::new(settings.seed);
            let discipline: Discipline<Tracked, _> = spec.build(&device, random, Instant::ZERO);
            let bands = discipline.bands().iter().map(|name| BandOutcome::new(name)).collect();
            let mut events = events.take();
            if let Some(events) = &mut events {
                events.begin(&discipline.config(), settings.rate, settings.seed, settings.mtu);
            }
            Link::new(discipline, settings.rate, Recorder { bands, timeline: None, events })
        });
        let links = links.collect();
        Self { specs: specs.to_vec(), links, arrivals: 0, first: None }
    }

    /// Keeps what happens over time too, for pictures.
    #[must_use]
    pub fn over_time(mut self) -> Self {
        for link in &mut self.links {
            link.observer.timeline = Some(Timeline::default());
        }
        self
    }

    /// Takes in the next arrival, whose time is not before the last one's.
    #[inline]
    pub fn arrive(&mut self, arrival: &Arrival) {
        self.arrivals += 1;
        self.first.get_or_insert(arrival.at);
        for link in &mut self.links {
            if let Some(timeline) = &mut link.observer.timeline {
                timeline.at(arrival.at).bytes_in += u64::from(arrival.length);
            }
            link.arrive(arrival.at, Tracked::new(self.arrivals, arrival));
        }
    }

    /// How many packets arrived so far.
    #[must_use]
    pub const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Whether the events can no longer be written, so that there is no point in going on; [`finish`](Self::finish) says
    /// why.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let events = self.links.first().and_then(|link| link.observer.events.as_ref());
        events.is_some_and(EventLog::has_failed)
    }

    /// Lets the queues run empty and closes the books. Gives back what the events were written to.
    ///
    /// # Errors
    /// If the events could not be written.
    pub fn finish(self) -> io::Result<(Vec<Outcome>, Option<W>)> {
        let first = self.first.unwrap_or_default();
        let mut writer = None;
        let mut outcomes = Vec::with_capacity(self.specs.len());
        for (mut link, spec) in self.links.into_iter().zip(self.specs) {
            link.drain();
            let Link { discipline, free_at, observer, .. } = link;
            let Recorder { bands, timeline, events } = observer;
            let total = BandOutcome::sum(&bands);
            let stats = discipline.stats(free_at);
            if let Some(events) = events {
                writer = Some(events.end(&stats, &total)?);
            }
            let config = discipline.config();
            let busy_for = free_at - first;
            outcomes.push(Outcome { spec, config, stats, bands, total, busy_for, timeline });
        }
        Ok((outcomes, writer))
    }
}

impl<W: Write> Observer for Recorder<W> {
    fn dropped(&mut self, now: Instant, point: Point, lost: &Dropped<Tracked>) {
        self.bands[lost.band].dropped(point, lost);
        if let Some(timeline) = &mut self.timeline {
            timeline.at(now).drops += 1;
        }
        if let Some(events) = &mut self.events {
            events.dropped(now, point, lost);
        }
    }

    #[inline]
    fn departed(&mut self, now: Instant, departure: &Departure<Tracked>) {
        self.bands[departure.band].departed(departure);
        if let Some(timeline) = &mut self.timeline {
            timeline.at(now).departed(departure);
        }
        if let Some(events) = &mut self.events {
            events.departed(now, departure);
        }
    }

    #[inline]
    fn timer(&mut self, now: Instant, discipline: &Discipline<Tracked, XorShift64>) {
        if let Some(events) = &mut self.events {
            events.timer(now, discipline);
        }
    }

    fn idle(
        &mut self,
        from: Instant,
        until: Instant,
        discipline: &Discipline<Tracked, XorShift64>,
    ) {
        if let Some(events) = &mut self.events {
            events.idle(from, until, discipline);
        }
    }
}
