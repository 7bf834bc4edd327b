//! The packets under way.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use dualpi2::{Random, SplitMix64};
use dualq_units::{Bytes, Instant};

use super::{Config, Options, Stats};
use crate::kinds::Grammar;
use crate::show::{self, Counters, OwnStats};
use crate::{
    ChangeError, Departure, Device, Discipline, DropReason, Dropped, FlowPacket, Qdisc, Spec,
};

/// A packet under way.
struct Delayed<P> {
    due: Instant,
    /// Which of those due at once came first.
    number: u64,
    enqueued: Instant,
    packet: P,
    marked: bool,
}

impl<P> PartialEq for Delayed<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Delayed<P> {}

impl<P> PartialOrd for Delayed<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Delayed<P> {
    /// The one that is due first is the greatest: the one on top of a heap.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

/// The discipline.
pub(super) struct Netem<P, R> {
    config: Config,
    dice: SplitMix64,
    /// In the order in which they are due, which without jitter is that in which they came. The last of all is here.
    ordered: VecDeque<Delayed<P>>,
    /// Those that came later than others but are due earlier.
    overtaking: BinaryHeap<Delayed<P>>,
    number: u64,
    leaf: Option<Discipline<P, R>>,
    stats: Stats,
    /// Of what is not in the leaf.
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Netem<P, R> {
    /// A path with nothing on it.
    pub(super) fn new(options: &Options, device: &Device, mut random: R, now: Instant) -> Self
    where
        R: Send + 'static,
    {
        let config = Config::new(options, device);
        let seed = config
            .seed
            .unwrap_or_else(|| u64::from(random.next_u32()) << 32 | u64::from(random.next_u32()));
        Self {
            config,
            dice: SplitMix64::new(seed),
            ordered: VecDeque::new(),
            overtaking: BinaryHeap::new(),
            number: 0,
            leaf: options.leaf.as_ref().map(|leaf| leaf.build(device, random, now)),
            stats: Stats::default(),
            counters: Counters::ZERO,
        }
    }

    fn under_way(&self) -> usize {
        self.ordered.len() + self.overtaking.len()
    }

    /// A delay as the dice fall.
    fn delay(&mut self) -> Duration {
        let Config { delay, jitter, .. } = self.config;
        if jitter.is_zero() {
            return delay;
        }
        let roll = u64::from(self.dice.next_u32()) << 32 | u64::from(self.dice.next_u32());
        let width = 2 * u128::from(jitter.as_nanos() as u64);
        let drawn = ((u128::from(roll) * width) >> 64) as u64;
        (delay + Duration::from_nanos(drawn)).saturating_sub(jitter)
    }

    /// When the packet that is due next is so.
    fn next_due(&self) -> Instant {
        let ordered = self.ordered.front().map_or(Instant::NEVER, |first| first.due);
        let overtaking = self.overtaking.peek().map_or(Instant::NEVER, |first| first.due);
        ordered.min(overtaking)
    }

    fn first(&self) -> Option<&Delayed<P>> {
        self.ordered.front().max(self.overtaking.peek())
    }

    fn pop(&mut self) -> Option<Delayed<P>> {
        let overtakes = self.overtaking.peek() > self.ordered.front();
        let delayed = if overtakes { self.overtaking.pop() } else { self.ordered.pop_front() }?;
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= u64::from(delayed.packet.length());
        Some(delayed)
    }

    /// Hands what is due to the leaf.
    fn pass_on(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) {
        while self.next_due() <= now {
            let Some(delayed) = self.pop() else { return };
            if let Some(leaf) = &mut self.leaf {
                leaf.enqueue(now, delayed.packet, dropped);
            }
        }
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Netem<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        self.leaf.as_ref().map_or(&["netem"], Qdisc::<P>::bands)
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> usize {
        let mut marked = false;
        if self.config.loss > 0 && self.dice.next_u32() <= self.config.loss {
            if !self.config.ecn || !packet.ecn().is_capable() {
                self.stats.dropped += 1;
                self.counters.drops += 1;
                dropped(Dropped { packet, band: 0, reason: DropReason::Random });
                return 0;
            }
            packet.set_ce();
            self.stats.ecn_marked += 1;
            marked = true;
        }
        if self.under_way() >= self.config.limit as usize {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }

        let last = self.ordered.back().map_or(Instant::ZERO, |last| last.due);
        let mut due = now + self.delay();
        if let Some(rate) = self.config.rate {
            due = due.max(last) + rate.transmission_time(Bytes(packet.length().into()));
        }
        self.stats.delayed += u64::from(due > now);
        self.number += 1;
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += u64::from(packet.length());
        let delayed = Delayed { due, number: self.number, enqueued: now, packet, marked };
        if due >= last {
            self.ordered.push_back(delayed);
        } else {
            self.stats.reordered += 1;
            self.overtaking.push(delayed);
        }
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let departure = if self.leaf.is_some() {
            self.pass_on(now, dropped);
            self.leaf.as_mut()?.dequeue(now, dropped)?
        } else {
            if self.next_due() > now {
                return None;
            }
            let Delayed { packet, enqueued, marked, .. } = self.pop()?;
            let sojourn = now - enqueued;
            let marked_by_probability = marked;
            Departure { packet, band: 0, sojourn, marked_by_probability, marked_by_step: false }
        };
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(departure.packet.length());
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        if self.leaf.is_some() {
            self.pass_on(now, dropped);
            return self.leaf.as_mut()?.peek(now, dropped);
        }
        self.first().filter(|first| first.due <= now).map(|first| &first.packet)
    }

    fn len(&self) -> usize {
        self.under_way() + self.leaf.as_ref().map_or(0, Qdisc::<P>::len)
    }

    fn next_ready(&self, now: Instant) -> Instant {
        let leaf = self.leaf.as_ref().map_or(Instant::NEVER, |leaf| leaf.next_ready(now));
        self.next_due().max(now).min(leaf)
    }

    fn next_timer(&self) -> Instant {
        self.leaf.as_ref().map_or(Instant::NEVER, Qdisc::<P>::next_timer)
    }

    fn on_timer(&mut self, now: Instant) {
        if let Some(leaf) = &mut self.leaf {
            leaf.on_timer(now);
        }
    }

    fn on_idle(&mut self, until: Instant) {
        if let Some(leaf) = &mut self.leaf {
            leaf.on_idle(until);
        }
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        while let Some(Delayed { packet, .. }) = self.pop() {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
        if let Some(leaf) = &mut self.leaf {
            leaf.reset(dropped);
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match spec {
            Spec::Netem(_) => Err(ChangeError::Shaper),
            other => Err(ChangeError::other_kind(Options::NAME, other)),
        }
    }

    fn config(&self) -> crate::Config {
        crate::Config::Netem(self.config.clone())
    }

    fn stats(&self, now: Instant) -> show::Stats {
        let mut counters = self.counters;
        let leaf = self.leaf.as_ref().map(|leaf| leaf.stats(now));
        if let Some(leaf) = &leaf {
            counters.drops += leaf.counters.drops;
            counters.backlog_packets += leaf.counters.backlog_packets;
            counters.backlog_bytes += leaf.counters.backlog_bytes;
        }
        let own = Stats { leaf: leaf.map(Box::new), ..self.stats.clone() };
        show::Stats { counters, own: OwnStats::Netem(own) }
    }
}
