//! The packets under way.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use dualpi2::{Random, SplitMix64};
use dualq_units::{Bytes, Instant, Rate};

use super::dice::{Correlated, Dice, Losses};
use super::distribution::Distribution;
use super::slots::{Slotted, distributed};
use super::{Config, Framing, Options, Stats};
use crate::kinds::Grammar;
use crate::show::{self, Counters, OwnStats};
use crate::{
    ChangeError, Departure, Device, Discipline, DropReason, Dropped, FlowPacket, Qdisc, Spec,
};

/// Where Ethernet's is in them.
const SOURCE_ADDRESS: Range<u32> = 6..12;

/// When packets are due that take no delay: before all others, and the last of them first. No slot holds them.
const AT_ONCE: Instant = Instant::ZERO;
/// Packets are numbered from here, up or down.
const FIRST: u64 = 1 << 63;

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
    delays: Correlated,
    distribution: Option<Distribution>,
    losses: Losses,
    copies: Dice,
    spoils: Dice,
    hurries: Dice,
    /// Packets that took their delay since one did not.
    in_order: u32,
    slots: Option<Slotted>,
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
        let mut dice = SplitMix64::new(seed);
        let slots = config.slots.map(|slots| Slotted::new(slots, options.slot_distribution, now));
        Self {
            delays: Correlated::new(config.delay_correlation, &mut dice),
            distribution: options.distribution,
            losses: Losses::new(config.loss, &mut dice),
            copies: Dice::new(config.duplicate, &mut dice),
            spoils: Dice::new(config.corrupt, &mut dice),
            hurries: Dice::new(config.reorder, &mut dice),
            in_order: 0,
            slots,
            config,
            dice,
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
        if self.distribution.is_some() || !self.delays.is_independent() {
            return distributed(delay, jitter, self.distribution, &mut self.delays, &mut self.dice);
        }
        let roll = u64::from(self.dice.next_u32()) << 32 | u64::from(self.dice.next_u32());
        let width = 2 * u128::from(jitter.as_nanos() as u64);
        let drawn = ((u128::from(roll) * width) >> 64) as u64;
        (delay + Duration::from_nanos(drawn)).saturating_sub(jitter)
    }

    /// How long a packet takes at a rate, with what its framing adds.
    fn transmission_time(&self, rate: Rate, length: u32) -> Duration {
        let Framing { packet_overhead, cell_size, cell_overhead } = self.config.framing;
        let mut bytes = i64::from(length) + i64::from(packet_overhead);
        if cell_size > 0 {
            let cells = bytes.max(0).unsigned_abs().div_ceil(cell_size.into());
            bytes = i64::try_from(cells).unwrap_or(i64::MAX)
                * (i64::from(cell_size) + i64::from(cell_overhead));
        }
        rate.transmission_time(Bytes(bytes.max(0).unsigned_abs()))
    }

    /// A bit of the packet is wrong, wherever (Linux 7.2: `netem_enqueue`, which has all of it in one piece before: `skb_linearize`). Nobody looks at the
    /// address of Ethernet that it comes from.
    fn spoil(&mut self, packet: &mut P) {
        self.stats.corrupted += 1;
        let at = self.dice.next_u32() % packet.length().max(1);
        if !SOURCE_ADDRESS.contains(&at) {
            packet.spoil();
        }
    }

    /// A packet sets out, unless it is lost.
    fn enter(&mut self, now: Instant, mut packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let mut marked = false;
        if self.losses.strike(&mut self.dice) {
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
        if self.spoils.strikes(&mut self.dice) {
            if packet.is_gso() {
                // Of an aggregate the first packet is spoiled, and each of the others comes anew, with all that chance does.
                let (mut queued, mut is_first) = (0, true);
                packet.split(&mut |mut part| {
                    if std::mem::take(&mut is_first) {
                        self.spoil(&mut part);
                        queued += self.set_out(now, part, marked, dropped);
                    } else {
                        queued += self.enqueue(now, part, dropped);
                    }
                });
                return queued;
            }
            self.spoil(&mut packet);
        }
        self.set_out(now, packet, marked, dropped)
    }

    /// A packet takes its delay, if there is room for it.
    fn set_out(
        &mut self,
        now: Instant,
        packet: P,
        marked: bool,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> usize {
        if self.under_way() >= self.config.limit as usize {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }
        self.number += 1;
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += u64::from(packet.length());
        if self.hurries_now() {
            self.stats.reordered += 1;
            let (due, number) = (AT_ONCE, FIRST - self.number);
            self.overtaking.push(Delayed { due, number, enqueued: now, packet, marked });
            return 1;
        }
        let last = self.ordered.back().map_or(Instant::ZERO, |last| last.due);
        let mut due = now + self.delay();
        if let Some(rate) = self.config.rate {
            due = due.max(last) + self.transmission_time(rate, packet.length());
        }
        self.stats.delayed += u64::from(due > now);
        let delayed = Delayed { due, number: FIRST + self.number, enqueued: now, packet, marked };
        if due >= last {
            self.ordered.push_back(delayed);
        } else {
            self.stats.reordered += 1;
            self.overtaking.push(delayed);
        }
        1
    }

    /// Whether a packet passes without any delay: of those behind the gap some do.
    fn hurries_now(&mut self) -> bool {
        let gap = self.config.gap;
        let hurries = gap > 0 && self.in_order >= gap - 1 && self.hurries.strikes(&mut self.dice);
        self.in_order = if hurries { 0 } else { self.in_order.saturating_add(1) };
        hurries
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

    /// When the first packet may leave, in its slot too.
    fn next_leave(&self) -> Instant {
        let due = self.next_due();
        match &self.slots {
            Some(slots) if due != AT_ONCE && due != Instant::NEVER => due.max(slots.next()),
            _ => due,
        }
    }

    /// Whether a packet may leave now. If it was due after the slot began, the slot is another one.
    fn may_leave(&mut self, now: Instant) -> bool {
        let due = self.next_due();
        if let Some(slots) = self.slots.as_mut().filter(|_| due < Instant::NEVER) {
            slots.look(now, due, &mut self.dice);
        }
        self.next_leave() <= now
    }

    /// Takes the packet that may leave.
    fn leave(&mut self, now: Instant) -> Option<Delayed<P>> {
        let delayed = self.pop()?;
        if let Some(slots) = self.slots.as_mut().filter(|_| delayed.due != AT_ONCE) {
            slots.left(now, delayed.packet.length(), &mut self.dice);
        }
        Some(delayed)
    }

    /// Hands what is due to the leaf.
    fn pass_on(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) {
        while self.may_leave(now) {
            let Some(delayed) = self.leave(now) else { return };
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
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let copy = if self.copies.strikes(&mut self.dice) { packet.copy() } else { None };
        self.stats.duplicated += u64::from(copy.is_some());
        let mut queued = self.enter(now, packet, dropped);
        if let Some(copy) = copy {
            queued += self.enter(now, copy, dropped);
        }
        queued
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
            if !self.may_leave(now) {
                return None;
            }
            let Delayed { packet, enqueued, marked, .. } = self.leave(now)?;
            let sojourn_ns = now.nanos_since(enqueued);
            let marked_by_probability = marked;
            Departure { packet, band: 0, sojourn_ns, marked_by_probability, marked_by_step: false }
        };
        self.counters.sent(&departure.packet);
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        if self.leaf.is_some() {
            self.pass_on(now, dropped);
            return self.leaf.as_mut()?.peek(now, dropped);
        }
        if !self.may_leave(now) {
            return None;
        }
        self.first().map(|first| &first.packet)
    }

    fn len(&self) -> usize {
        self.under_way() + self.leaf.as_ref().map_or(0, Qdisc::<P>::len)
    }

    fn next_ready(&self, now: Instant) -> Instant {
        let leaf = self.leaf.as_ref().map_or(Instant::NEVER, |leaf| leaf.next_ready(now));
        self.next_leave().max(now).min(leaf)
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
