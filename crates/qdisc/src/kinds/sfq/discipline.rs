//! The flows, and who has most packets.

use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;

use super::{Config, LONGEST, Options};
use crate::kinds::Grammar;
use crate::pool::{Chain, Pool, read_ahead};
use crate::show::{self, Counters, OwnStats};
use crate::timer::fires_after;
use crate::{ChangeError, Departure, DropReason, Dropped, FlowPacket, Qdisc, Spec, hash};

const NOBODY: u32 = u32::MAX;

/// A flow that has packets, or room for one.
struct Flow {
    chain: Chain,
    hash: u32,
    /// Bytes that it may send in its turn; below zero if it sent more.
    allotment: i64,
    /// Who is served after it.
    next: u32,
    /// Its neighbours among those with as many packets.
    shorter: Neighbours,
}

#[derive(Clone, Copy)]
struct Neighbours {
    next: u32,
    previous: u32,
}

/// All flows by how many packets they have, the one that came last to a number first.
struct Lengths {
    first: [u32; LONGEST as usize + 1],
    longest: usize,
}

impl Lengths {
    /// A flow has another number of packets than `before`.
    #[inline]
    fn moved(&mut self, flows: &mut [Flow], id: u32, before: usize) {
        let Neighbours { next, previous } = flows[id as usize].shorter;
        match flows.get_mut(previous as usize) {
            Some(flow) => flow.shorter.next = next,
            None => self.first[before] = next,
        }
        if let Some(flow) = flows.get_mut(next as usize) {
            flow.shorter.previous = previous;
        }
        self.add(flows, id);
        if before == self.longest && self.first[before] == NOBODY {
            self.longest = flows[id as usize].chain.len();
        }
    }

    #[inline]
    fn add(&mut self, flows: &mut [Flow], id: u32) {
        let length = flows[id as usize].chain.len();
        let next = std::mem::replace(&mut self.first[length], id);
        flows[id as usize].shorter = Neighbours { next, previous: NOBODY };
        if let Some(flow) = flows.get_mut(next as usize) {
            flow.shorter.previous = id;
        }
        self.longest = self.longest.max(length);
    }
}

/// The discipline.
pub(super) struct Sfq<P, R> {
    config: Config,
    random: R,
    perturbation: u32,
    next_perturbation: Instant,
    pool: Pool<(Instant, P)>,
    flows: Vec<Flow>,
    /// Which flow has which hash.
    table: Vec<u32>,
    lengths: Lengths,
    /// Who was served last, before the one that is now.
    last: u32,
    /// What found no room when the hash changed, until somebody can be told.
    lost: Vec<P>,
    /// What [`Qdisc::peek`] showed.
    peeked: Option<Departure<P>>,
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Sfq<P, R> {
    /// An empty discipline at time `now`.
    pub(super) fn new(config: Config, random: R, now: Instant) -> Self {
        let flow = || Flow {
            chain: Chain::EMPTY,
            hash: 0,
            allotment: 0,
            next: NOBODY,
            shorter: Neighbours { next: NOBODY, previous: NOBODY },
        };
        let mut flows: Vec<Flow> = (0..config.flows).map(|_| flow()).collect();
        let mut lengths = Lengths { first: [NOBODY; LONGEST as usize + 1], longest: 0 };
        for id in 0..config.flows {
            lengths.add(&mut flows, id);
        }
        Self {
            // What tells flows apart is the owner's to scatter, until the hash is to change.
            perturbation: 0,
            random,
            next_perturbation: after(&config, now),
            pool: Pool::new(),
            flows,
            table: vec![NOBODY; config.divisor as usize],
            lengths,
            last: NOBODY,
            lost: Vec::new(),
            peeked: None,
            counters: Counters::ZERO,
            config,
        }
    }

    fn hash(&self, packet: &P) -> u32 {
        hash(packet.addresses() ^ self.perturbation) & (self.config.divisor - 1)
    }

    /// The flow with that hash, which may be a new one; `None` if there are too many.
    #[inline]
    fn find(&mut self, hash: u32) -> Option<u32> {
        let place = &mut self.table[hash as usize];
        if *place == NOBODY {
            let free = self.lengths.first[0];
            if free == NOBODY {
                return None;
            }
            *place = free;
            self.flows[free as usize].hash = hash;
        }
        Some(*place)
    }

    #[inline(always)]
    fn add(&mut self, id: u32, enqueued: Instant, packet: P) {
        let flow = &mut self.flows[id as usize];
        let before = flow.chain.len();
        self.pool.push(&mut flow.chain, (enqueued, packet));
        self.lengths.moved(&mut self.flows, id, before);
        if before > 0 {
            return;
        }
        let next = match self.flows.get_mut(self.last as usize) {
            Some(last) => std::mem::replace(&mut last.next, id),
            None => id,
        };
        let flow = &mut self.flows[id as usize];
        (flow.next, flow.allotment) = (next, self.config.quantum.into());
        self.last = id;
    }

    /// Takes a packet from a flow that has some: the last one, or the first.
    #[inline(always)]
    fn take(&mut self, id: u32, is_last: bool) -> Option<(Instant, P)> {
        let flow = &mut self.flows[id as usize];
        let before = flow.chain.len();
        let chain = &mut flow.chain;
        let taken = if is_last { self.pool.pop_last(chain) } else { self.pool.pop(chain) }?;
        self.lengths.moved(&mut self.flows, id, before);
        Some(taken)
    }

    /// The flow that is served after the last one has no packets any more.
    fn retire(&mut self, id: u32) {
        let Flow { hash, next, .. } = self.flows[id as usize];
        self.table[hash as usize] = NOBODY;
        if next == id {
            self.last = NOBODY;
        } else {
            self.flows[self.last as usize].next = next;
        }
    }

    fn forget(&mut self, packet: &P) {
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= u64::from(packet.length());
    }

    /// Drops a packet of whoever has most.
    #[cold]
    fn make_room(&mut self) -> Option<P> {
        let longest = self.lengths.longest;
        let mut id = self.lengths.first[longest];
        if longest == 1 {
            // All have one: whoever's turn it is.
            id = self.flows[self.last as usize].next;
            self.retire(id);
        }
        let (_, packet) = self.take(id, !self.config.headdrop)?;
        self.forget(&packet);
        Some(packet)
    }

    /// Sorts all packets anew, flow by flow.
    #[cold]
    fn sort_anew(&mut self) {
        let mut packets = Vec::with_capacity(self.counters.backlog_packets as usize);
        for id in 0..self.config.flows {
            while let Some(taken) = self.take(id, false) {
                packets.push(taken);
            }
        }
        self.table.fill(NOBODY);
        self.last = NOBODY;
        for (enqueued, packet) in packets {
            let depth = self.config.depth as usize;
            let has_room = |id: &u32, flows: &[Flow]| flows[*id as usize].chain.len() < depth;
            let hash = self.hash(&packet);
            let found = self.find(hash).filter(|id| has_room(id, &self.flows));
            match found {
                Some(id) => self.add(id, enqueued, packet),
                None => {
                    self.forget(&packet);
                    self.counters.drops += 1;
                    self.lost.push(packet);
                }
            }
        }
    }

    /// Tells of what was lost when nobody could be told.
    #[inline]
    fn tell(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        for packet in self.lost.drain(..) {
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
        }
    }

    #[inline(always)]
    fn choose(&mut self, now: Instant) -> Option<Departure<P>> {
        let id = loop {
            let id = self.flows.get(self.last as usize)?.next;
            let flow = &mut self.flows[id as usize];
            if flow.allotment > 0 {
                break id;
            }
            flow.allotment += i64::from(self.config.quantum);
            self.last = id;
        };
        let (enqueued, packet) = self.take(id, false)?;
        let flow = &mut self.flows[id as usize];
        if flow.chain.is_empty() {
            self.retire(id);
        } else {
            flow.allotment -= i64::from(packet.length());
        }
        Some(Departure {
            packet,
            band: 0,
            sojourn_ns: now.nanos_since(enqueued),
            marked_by_probability: false,
            marked_by_step: false,
        })
    }
}

/// When the hash changes next, after what happens at `now`.
fn after(config: &Config, now: Instant) -> Instant {
    match config.perturb_s {
        0 => Instant::NEVER,
        seconds => fires_after(now, Duration::from_secs(seconds.into())),
    }
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Sfq<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["sfq"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        self.tell(dropped);
        let reason = DropReason::Overlimit;
        let hash = self.hash(&packet);
        let Some(id) = self.find(hash) else {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason });
            return 0;
        };
        if self.flows[id as usize].chain.len() >= self.config.depth as usize {
            self.counters.drops += 1;
            if !self.config.headdrop {
                dropped(Dropped { packet, band: 0, reason });
                return 0;
            }
            // It keeps its place among the others.
            let chain = &mut self.flows[id as usize].chain;
            let first = self.pool.pop(chain);
            self.counters.backlog_packets += 1;
            self.counters.backlog_bytes += u64::from(packet.length());
            self.pool.push(chain, (now, packet));
            if let Some((_, packet)) = first {
                self.forget(&packet);
                dropped(Dropped { packet, band: 0, reason });
            }
            return 1;
        }
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += u64::from(packet.length());
        self.add(id, now, packet);
        if self.counters.backlog_packets > u64::from(self.config.limit)
            && let Some(packet) = self.make_room()
        {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason });
        }
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        self.tell(dropped);
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
        let current = self.flows.get(self.last as usize)?.next;
        let first = &self.flows[self.flows[current as usize].next as usize];
        let second = &self.flows[first.next as usize];
        self.pool.read_ahead(&second.chain);
        read_ahead(&self.flows, second.next);
        self.pool.first(&first.chain).map(|(_, packet)| packet)
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
        self.next_perturbation
    }

    fn on_timer(&mut self, now: Instant) {
        if now < self.next_perturbation {
            return;
        }
        self.perturbation = self.random.next_u32();
        if self.last != NOBODY {
            self.sort_anew();
        }
        self.next_perturbation = after(&self.config, now);
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.tell(dropped);
        let reason = DropReason::Flushed;
        while let Some(Departure { packet, .. }) =
            self.peeked.take().or_else(|| self.choose(Instant::NEVER))
        {
            self.forget(&packet);
            dropped(Dropped { packet, band: 0, reason });
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match spec {
            Spec::Sfq(_) => Err(ChangeError::Fixed { kind: Options::NAME }),
            other => Err(ChangeError::other_kind(Options::NAME, other)),
        }
    }

    fn config(&self) -> crate::Config {
        crate::Config::Sfq(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        show::Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}
