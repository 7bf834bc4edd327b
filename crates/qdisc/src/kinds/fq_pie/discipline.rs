//! The flows, each under a controller of its own.

use dualpi2::Random;
use dualq_units::Instant;

use super::{Config, Options, Stats};
use crate::kinds::Grammar;
use crate::kinds::pie::controller::{Controller, FIRST_UPDATE};
use crate::kinds::pie::{self, CERTAIN};
use crate::pool::{Chain, Pool};
use crate::show::{self, Counters, OwnStats};
use crate::timer::{TICK, TICK_US};
use crate::turns::{Link, Linked, List};
use crate::{ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec, hash};

/// So many controllers are updated at once.
const AT_ONCE: u32 = 2048;

struct Flow {
    chain: Chain,
    /// Bytes waiting.
    bytes: u64,
    /// Bytes that it may send in its turn; below zero if it sent more.
    deficit: i64,
    listed: bool,
    /// Whether an update may change its controller.
    awake: bool,
    link: Link,
    controller: Controller,
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    #[inline]
    fn next(&self) -> Option<u32> {
        self.link.next()
    }
}

struct Waiting<P> {
    packet: P,
    enqueued: Instant,
    marked: bool,
}

/// The discipline.
pub(super) struct FqPie<P, R> {
    config: Config,
    controllers: pie::Config,
    mtu: u32,
    random: R,
    pool: Pool<Waiting<P>>,
    flows: Vec<Flow>,
    new: List,
    old: List,
    /// The flows whose controllers an update may change, in no order.
    awake: Vec<u32>,
    next_update: Instant,
    /// The first flow of the next update.
    cursor: u32,
    /// What [`Qdisc::peek`] showed.
    peeked: Option<Departure<P>>,
    stats: Stats,
    counters: Counters,
}

impl<P: FlowPacket, R: Random> FqPie<P, R> {
    /// An empty discipline at time `now`.
    pub(super) fn new(options: &Options, device: &Device, random: R, now: Instant) -> Self {
        let config = Config::new(device).with(options);
        let flow = || Flow {
            chain: Chain::EMPTY,
            bytes: 0,
            deficit: 0,
            listed: false,
            awake: false,
            link: Link::NONE,
            controller: Controller::START,
        };
        let tick = u64::from(TICK_US) * 1000;
        let ticked = Instant::from_nanos(now.as_nanos() / tick * tick);
        Self {
            controllers: config.controllers(),
            mtu: device.max_frame,
            random,
            pool: Pool::new(),
            flows: (0..config.flows).map(|_| flow()).collect(),
            new: List::EMPTY,
            old: List::EMPTY,
            awake: Vec::new(),
            next_update: ticked + FIRST_UPDATE + TICK,
            cursor: 0,
            peeked: None,
            stats: Stats::default(),
            counters: Counters::ZERO,
            config,
        }
    }

    #[inline(always)]
    fn take(&mut self, id: u32) -> Option<Waiting<P>> {
        let flow = &mut self.flows[id as usize];
        let waiting = self.pool.pop(&mut flow.chain)?;
        flow.bytes -= u64::from(waiting.packet.length());
        self.stats.memory_used -= u64::from(waiting.packet.memory());
        Some(waiting)
    }

    fn forget(&mut self, packet: &P) {
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= u64::from(packet.length());
    }

    /// Whether a packet that arrives at its queue is let in, marked or not.
    #[inline]
    fn judge(&mut self, id: u32, packet: &P) -> Option<bool> {
        let flow = &mut self.flows[id as usize];
        let hit = flow.controller.drops(
            &self.controllers,
            packet.length(),
            flow.bytes,
            self.mtu,
            &mut self.random,
        );
        if !hit {
            return Some(false);
        }
        let threshold = CERTAIN / 100 * u64::from(self.config.ecn_prob);
        let marks = self.config.ecn && flow.controller.probability <= threshold;
        (marks && packet.ecn().is_capable()).then_some(true)
    }

    #[inline(always)]
    fn choose(&mut self, now: Instant) -> Option<Departure<P>> {
        loop {
            let is_new = self.new.len() > 0;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let id = list.first()?;
            let flow = &mut self.flows[id as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                list.remove_first(&mut self.flows);
                self.old.append(&mut self.flows, id);
                continue;
            }
            if let Some(Waiting { packet, enqueued, marked }) = self.take(id) {
                let flow = &mut self.flows[id as usize];
                flow.deficit -= i64::from(packet.length());
                flow.controller.departed(enqueued, now, flow.chain.is_empty());
                return Some(Departure {
                    packet,
                    band: 0,
                    sojourn_ns: now.nanos_since(enqueued),
                    marked_by_probability: marked,
                    marked_by_step: false,
                });
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.remove_first(&mut self.flows);
            if is_new && self.old.len() > 0 {
                // A pass among the old ones, lest it come back as new at once and starve these (RFC 8290 §4.2).
                self.old.append(&mut self.flows, id);
            } else {
                self.flows[id as usize].listed = false;
            }
        }
    }

    /// When the next update is due after one: in the next tick if there are flows left, which is no later than timers fire anyway.
    fn after_update(&mut self, now: Instant) {
        self.cursor += AT_ONCE;
        if self.cursor >= self.config.flows {
            self.cursor = 0;
            self.next_update = now + self.config.tupdate + TICK;
        } else {
            self.next_update = now + TICK;
        }
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for FqPie<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["fq_pie"]
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> usize {
        let id = ((u64::from(hash(packet.flow())) * u64::from(self.config.flows)) >> 32) as u32;
        let memory = u64::from(packet.memory());
        let is_full = self.counters.backlog_packets >= self.config.limit.into();
        if !is_full && self.stats.memory_used > self.config.memory_limit.0 + memory {
            self.stats.overmemory += 1;
        }
        let judged = if is_full { None } else { self.judge(id, &packet) };
        if !self.flows[id as usize].awake {
            self.flows[id as usize].awake = true;
            self.awake.push(id);
        }
        let Some(marked) = judged else {
            self.stats.overlimit += u64::from(is_full);
            self.stats.dropped += 1;
            self.counters.drops += 1;
            self.flows[id as usize].controller.accumulated = 0;
            let reason = if is_full { DropReason::Overlimit } else { DropReason::Congested };
            dropped(Dropped { packet, band: 0, reason });
            return 0;
        };
        if marked {
            packet.set_ce();
            self.stats.ecn_mark += 1;
        }
        let length = u64::from(packet.length());
        self.stats.pkts_in += 1;
        self.stats.memory_used += memory;
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += length;
        let flow = &mut self.flows[id as usize];
        flow.bytes += length;
        self.pool.push(&mut flow.chain, Waiting { packet, enqueued: now, marked });
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.config.quantum.into();
            self.new.append(&mut self.flows, id);
            self.stats.new_flow_count += 1;
        }
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        // An `or_else` here hands the packet on by way of memory once more.
        let departure = match self.peeked {
            None => self.choose(now)?,
            Some(_) => self.peeked.take()?,
        };
        self.counters.left(&departure.packet);
        Some(departure)
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        let id = self.new.first().or(self.old.first())?;
        self.pool.first(&self.flows[id as usize].chain).map(|waiting| &waiting.packet)
    }

    fn decides_early(&self) -> bool {
        true
    }

    fn peek(&mut self, now: Instant, _dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        if self.peeked.is_none() {
            self.peeked = self.choose(now);
        }
        self.peeked.as_ref().map(|departure| &departure.packet)
    }

    #[inline]
    fn len(&self) -> usize {
        self.counters.backlog_packets as usize
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, _now: Instant) {
        let turn = self.cursor..self.cursor.saturating_add(AT_ONCE);
        let Self { awake, flows, controllers, .. } = self;
        awake.retain(|id| {
            let flow = &mut flows[*id as usize];
            if turn.contains(id) {
                let before = flow.controller;
                flow.controller.update(controllers, flow.bytes);
                // Without a packet every update is like the one before, so that one which changed nothing ends all change.
                flow.awake = !flow.chain.is_empty() || flow.controller != before;
            }
            flow.awake
        });
        self.after_update(self.next_update);
    }

    fn on_idle(&mut self, until: Instant) {
        while self.next_update <= until && self.next_update < Instant::NEVER {
            self.on_timer(self.next_update);
            if self.awake.is_empty() && self.cursor == 0 && self.next_update <= until {
                // On to the last round that is due.
                let rounds = u64::from(self.config.flows.div_ceil(AT_ONCE)) - 1;
                let round = (self.config.tupdate + TICK).as_nanos() as u64
                    + rounds * TICK.as_nanos() as u64;
                let left = (until.as_nanos() - self.next_update.as_nanos()) / round;
                self.next_update = Instant::from_nanos(self.next_update.as_nanos() + left * round);
            }
        }
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        let reason = DropReason::Flushed;
        if let Some(Departure { packet, .. }) = self.peeked.take() {
            self.forget(&packet);
            dropped(Dropped { packet, band: 0, reason });
        }
        for id in 0..self.config.flows {
            while let Some(Waiting { packet, .. }) = self.take(id) {
                self.forget(&packet);
                dropped(Dropped { packet, band: 0, reason });
            }
            let flow = &mut self.flows[id as usize];
            (flow.listed, flow.controller) = (false, Controller::START);
        }
        (self.new, self.old) = (List::EMPTY, List::EMPTY);
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::FqPie(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        // The queues are there, as many as there are.
        let flows = self.config.flows;
        self.config = Config { flows, ..self.config.with(options) };
        self.controllers = self.config.controllers();
        for id in 0..flows {
            while self.counters.backlog_packets > self.config.limit.into() {
                let Some(Waiting { packet, .. }) = self.take(id) else { break };
                self.forget(&packet);
                dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
            }
        }
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::FqPie(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        let (new_flows_len, old_flows_len) = (self.new.len(), self.old.len());
        let own = Stats { new_flows_len, old_flows_len, ..self.stats };
        show::Stats { counters: self.counters, own: OwnStats::FqPie(own) }
    }
}
