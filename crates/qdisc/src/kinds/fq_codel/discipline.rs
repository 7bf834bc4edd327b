//! The flows, each under CoDel's law.

use dualq_units::Instant;

use super::{Config, Options, Stats};
use crate::kinds::Grammar;
use crate::kinds::codel::law::{Backlog, Law, Parameters, Source, Tally, Waiting};
use crate::pool::{Chain, Pool, read_ahead};
use crate::show::{self, Counters, OwnStats};
use crate::turns::{Link, Linked, List};
use crate::{ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec, hash};

struct Flow {
    chain: Chain,
    law: Law,
    /// Bytes that it may send in its turn; below zero if it sent more.
    deficit: i64,
    listed: bool,
    link: Link,
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

/// The discipline.
pub(super) struct FqCodel<P> {
    config: Config,
    parameters: Parameters,
    mtu: u32,
    pool: Pool<Waiting<P>>,
    flows: Vec<Flow>,
    /// Bytes waiting in each queue, apart from the rest so that the longest is found fast.
    bytes: Vec<u64>,
    new: List,
    old: List,
    backlog: Backlog,
    tally: Tally,
    new_flow_count: u64,
    overlimit: u64,
    overmemory: u64,
    /// What [`Qdisc::peek`] showed.
    peeked: Option<Departure<P>>,
    counters: Counters,
}

impl<P: FlowPacket> FqCodel<P> {
    /// An empty discipline.
    pub(super) fn new(options: &Options, device: &Device) -> Self {
        let config = Config::new(device).with(options);
        let flow = || Flow {
            chain: Chain::EMPTY,
            law: Law::new(),
            deficit: 0,
            listed: false,
            link: Link::NONE,
        };
        Self {
            parameters: parameters(&config, device.max_frame),
            mtu: device.max_frame,
            pool: Pool::new(),
            flows: (0..config.flows).map(|_| flow()).collect(),
            bytes: vec![0; config.flows as usize],
            new: List::EMPTY,
            old: List::EMPTY,
            backlog: Backlog::default(),
            tally: Tally::default(),
            new_flow_count: 0,
            overlimit: 0,
            overmemory: 0,
            peeked: None,
            counters: Counters::ZERO,
            config,
        }
    }

    fn flush(&mut self, id: usize, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some(waiting) = self.source(id).2.pop() {
            dropped(Dropped { packet: waiting.packet, band: 0, reason: DropReason::Flushed });
        }
    }

    fn exceeds_limit(&self) -> bool {
        self.backlog.packets > u64::from(self.config.limit)
    }

    fn exceeds_memory(&self) -> bool {
        self.backlog.memory > self.config.memory_limit.0
    }

    /// The law of a queue, and what it works on.
    fn source(&mut self, id: usize) -> (&mut Law, &Parameters, Source<'_, P>) {
        let Self { parameters, pool, flows, bytes, backlog, tally, .. } = self;
        let Flow { law, chain, .. } = &mut flows[id];
        let bytes = &mut bytes[id];
        (law, parameters, Source { pool, chain, bytes, backlog, tally })
    }

    fn longest(&self) -> usize {
        let (mut longest, mut most) = (0, 0);
        for (id, bytes) in self.bytes.iter().enumerate() {
            if *bytes > most {
                (longest, most) = (id, *bytes);
            }
        }
        longest
    }

    /// Drops from the head of the longest queue: a batch, or half of it.
    #[cold]
    fn make_room(&mut self, over_memory: bool, dropped: &mut dyn FnMut(Dropped<P>)) {
        let id = self.longest();
        let enough = self.bytes[id] / 2;
        let batch = self.config.drop_batch;
        let (law, _, mut source) = self.source(id);
        let (mut packets, mut bytes) = (0, 0);
        while let Some(waiting) = source.pop() {
            bytes += u64::from(waiting.packet.length());
            packets += 1;
            let reason = DropReason::Overlimit;
            dropped(Dropped { packet: waiting.packet, band: 0, reason });
            if packets >= batch || bytes >= enough {
                break;
            }
        }
        // To CoDel they count as drops of its own.
        law.count = law.count.saturating_add(packets);
        self.overlimit += u64::from(packets);
        if over_memory {
            self.overmemory += u64::from(packets);
        }
    }

    #[inline(always)]
    fn choose(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
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
            let (law, parameters, mut source) = self.source(id as usize);
            if let Some(departure) = law.dequeue(now, parameters, &mut source, dropped) {
                self.flows[id as usize].deficit -= i64::from(departure.packet.length());
                return Some(departure);
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
}

fn parameters(config: &Config, mtu: u32) -> Parameters {
    let Config { target, interval, ce_threshold, ce_threshold_selector, ecn, .. } = *config;
    Parameters::new(target, interval, ce_threshold, ecn, mtu).with_selector(ce_threshold_selector)
}

impl<P: FlowPacket> Qdisc<P> for FqCodel<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["fq_codel"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let hash = hash(packet.flow());
        let id = ((u64::from(hash) * u64::from(self.config.flows)) >> 32) as u32;
        self.bytes[id as usize] += u64::from(packet.length());
        self.backlog.add(&packet);
        let flow = &mut self.flows[id as usize];
        self.pool.push(&mut flow.chain, Waiting { packet, enqueued: now });
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.config.quantum);
            self.new.append(&mut self.flows, id);
            self.new_flow_count += 1;
        }
        let over_memory = self.exceeds_memory();
        if over_memory || self.exceeds_limit() {
            self.make_room(over_memory, dropped);
        }
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        // An `or_else` here hands the packet on by way of memory once more.
        let departure = match self.peeked {
            None => self.choose(now, dropped)?,
            Some(_) => self.peeked.take()?,
        };
        self.counters.sent(&departure.packet);
        Some(departure)
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        let flow = |id: Option<u32>| self.flows.get(id.or(self.old.first())? as usize);
        // The first has its turn now.
        let current = flow(self.new.first())?;
        let first = flow(current.next())?;
        let second = flow(first.next())?;
        self.pool.read_ahead(&second.chain);
        if let Some(third) = second.next().or(self.old.first()) {
            read_ahead(&self.flows, third);
        }
        self.pool.first(&first.chain).map(|waiting| &waiting.packet)
    }

    fn decides_early(&self) -> bool {
        true
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        if self.peeked.is_none() {
            self.peeked = self.choose(now, dropped);
        }
        self.peeked.as_ref().map(|departure| &departure.packet)
    }

    #[inline]
    fn len(&self) -> usize {
        self.backlog.packets as usize + usize::from(self.peeked.is_some())
    }

    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some(Departure { packet, .. }) = self.peeked.take() {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
        for id in 0..self.flows.len() {
            while !self.flows[id].chain.is_empty() {
                self.flush(id, dropped);
            }
            (self.flows[id].listed, self.flows[id].law) = (false, Law::new());
        }
        (self.new, self.old) = (List::EMPTY, List::EMPTY);
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::FqCodel(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        // The queues are there, as many as there are.
        let flows = self.config.flows;
        self.config = Config { flows, ..self.config.with(options) };
        self.parameters = parameters(&self.config, self.mtu);
        while self.exceeds_limit() || self.exceeds_memory() {
            let longest = self.longest();
            self.flush(longest, dropped);
        }
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::FqCodel(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        let own = Stats {
            maxpacket: self.tally.longest_packet,
            drop_overlimit: self.overlimit,
            new_flow_count: self.new_flow_count,
            ecn_mark: self.tally.ecn_marks,
            ce_mark: self.tally.ce_marks,
            memory_used: self.backlog.memory,
            drop_overmemory: self.overmemory,
            new_flows_len: self.new.len(),
            old_flows_len: self.old.len(),
        };
        let peeked = self.peeked.as_ref().map_or(0, |departure| departure.packet.length());
        let counters = Counters {
            drops: self.tally.drops + self.overlimit,
            backlog_packets: self.len() as u64,
            backlog_bytes: self.backlog.bytes + u64::from(peeked),
            ..self.counters
        };
        show::Stats { counters, own: OwnStats::FqCodel(own) }
    }
}
