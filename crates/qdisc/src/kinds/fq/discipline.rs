//! The flows, their turns and their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use dualq_units::{Bytes, Instant};

use super::flows::{FlowId, FlowList, Flows};
use super::{BANDS, Config, Options, Stats};
use crate::kinds::Grammar;
use crate::pool::{Chain, Pool};
use crate::show::{self, Counters, OwnStats};
use crate::timer::TICK;
use crate::{ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec, hash};

/// So many packets may pass by the flows (Linux: `fq_fastpath_check`), and what is their band, which counts nothing.
const MOST_FAST: usize = 8;
const FAST: usize = BANDS;
/// No flow is held back for longer by one packet.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The discipline.
pub(super) struct Fq<P> {
    config: Config,
    waiting: Pool<Waiting<P>>,
    flows: Flows,
    bands: [Band; BANDS],
    /// The band whose turn it is.
    turn: usize,
    /// How many flows are in the lists of the bands.
    listed: usize,
    /// Packets that pass by the flows, and how many flows have packets that are not held back.
    fast: Chain,
    ready: usize,
    /// Flows to which no packet is due yet: when one is, and which came first.
    throttled: BinaryHeap<Reverse<(Instant, u64, FlowId)>>,
    /// What [`Qdisc::peek`] showed.
    peeked: Option<Departure<P>>,
    counters: Counters,
    stats: Stats,
}

struct Waiting<P> {
    packet: P,
    band: usize,
    enqueued: Instant,
    /// The departure time, or when it arrived.
    due: Instant,
}

#[derive(Clone, Copy)]
struct Band {
    new: FlowList,
    old: FlowList,
    /// Bytes that it may send in its turn.
    credit: i64,
}

/// Whether a flow that had nothing to send since `since` has new credit at `now`. Linux counts the delay in its ticks, and from an odd one, for
/// the lowest bit says that the flow is listed nowhere (`fq_flow_set_detached`).
fn is_refilled(since: Instant, now: Instant, delay: Duration) -> bool {
    let tick = TICK.as_nanos() as u64;
    let delay = (delay.as_nanos() as u64).div_ceil(tick);
    now.as_nanos() / tick > ((since.as_nanos() / tick) | 1) + delay
}

impl<P: FlowPacket> Fq<P> {
    /// An empty discipline.
    pub(super) fn new(options: &Options, device: &Device) -> Self {
        let config = Config::new(device).with(options);
        Self {
            waiting: Pool::new(),
            flows: Flows::new(),
            bands: [Band { new: FlowList::EMPTY, old: FlowList::EMPTY, credit: 0 }; BANDS],
            turn: 0,
            listed: 0,
            fast: Chain::EMPTY,
            ready: 0,
            throttled: BinaryHeap::new(),
            peeked: None,
            counters: Counters::ZERO,
            stats: Stats::default(),
            config,
        }
    }

    fn flush(&mut self, waiting: Waiting<P>, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.leave_band(waiting.band);
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= u64::from(waiting.packet.length());
        dropped(Dropped { packet: waiting.packet, band: 0, reason: DropReason::Flushed });
    }

    #[inline]
    fn leave_band(&mut self, band: usize) {
        if band != FAST {
            self.stats.band_packets[band] -= 1;
        }
    }

    /// Whether a packet may pass by the flows: it is due, and nothing waits but others that do so and what is held back
    /// (Linux: `fq_fastpath_check`). A rate for each flow forbids it.
    #[inline]
    fn is_fast(&self, now: Instant, due: Instant) -> bool {
        if due > now || self.config.max_rate.is_some() {
            return false;
        }
        let overdue = || matches!(self.throttled.peek(), Some(Reverse((due, ..))) if *due <= now);
        self.is_empty() || (self.ready == 0 && self.fast.len() < MOST_FAST && !overdue())
    }

    fn refuse(&mut self, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        self.counters.drops += 1;
        dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
        0
    }

    /// What flows are told apart by: the socket of local packets, some bits of a hash for others.
    #[inline]
    fn key(&self, packet: &P) -> u64 {
        match packet.socket() {
            Some(socket) => 1 << 32 | u64::from(socket),
            None => u64::from(hash(packet.flow()) & self.config.orphan_mask),
        }
    }

    /// Lets flows go on whose time has come.
    #[inline]
    fn release(&mut self, now: Instant) {
        while let Some(Reverse((due, _, id))) = self.throttled.peek().copied() {
            if due > now {
                return;
            }
            self.throttled.pop();
            self.ready += 1;
            self.list(id);
        }
    }

    /// Puts a flow at the end of those that have had a turn.
    #[inline]
    fn list(&mut self, id: FlowId) {
        self.list_again(id);
        self.listed += 1;
    }

    /// The same of one that has just been taken from another list. That may be another band's: see [`enqueue`](Qdisc::enqueue).
    #[inline]
    fn list_again(&mut self, id: FlowId) {
        let band = self.flows[id].band;
        self.flows.append(&mut self.bands[band].old, id);
    }

    /// Chooses the band to serve: the one whose turn it is while it has flows and credit, else the next such. There is one.
    #[inline]
    fn band(&mut self) -> usize {
        loop {
            let band = &self.bands[self.turn];
            if band.credit > 0 && !(band.new.is_empty() && band.old.is_empty()) {
                return self.turn;
            }
            self.next_band();
        }
    }

    fn next_band(&mut self) {
        self.turn = (self.turn + 1) % BANDS;
        let weight = i64::from(self.config.weights[self.turn]);
        let band = &mut self.bands[self.turn];
        band.credit = (band.credit + weight).min(weight);
    }

    /// The packet that leaves now, if one may.
    fn choose(&mut self, now: Instant) -> Option<Departure<P>> {
        if self.is_empty() {
            return None;
        }
        if let Some(waiting) = self.waiting.pop(&mut self.fast) {
            return Some(Self::departure(waiting, now, false));
        }
        self.release(now);
        while self.listed > 0 {
            let turn = self.band();
            let band = &mut self.bands[turn];
            let is_new = !band.new.is_empty();
            let list = if is_new { &mut band.new } else { &mut band.old };
            let Some(id) = list.first() else { break };
            if self.flows[id].credit <= 0 {
                self.flows[id].credit += i64::from(self.config.quantum);
                self.flows.remove_first(list);
                self.list_again(id);
                continue;
            }
            let Some(first) = self.waiting.first(&self.flows[id].queue) else {
                // A new flow that ran empty waits one turn among the old ones, or it could come back as new at once and
                // starve these.
                self.flows.remove_first(list);
                if is_new {
                    self.list_again(id);
                } else {
                    self.listed -= 1;
                    self.flows.rest(id, now);
                }
                continue;
            };
            let due = first.due.max(self.flows[id].next_packet);
            if due > now {
                self.flows.remove_first(list);
                self.listed -= 1;
                self.ready -= 1;
                self.flows[id].next_packet = due;
                self.stats.throttled += 1;
                self.throttled.push(Reverse((due, self.stats.throttled, id)));
                continue;
            }
            return self.send(turn, id, now);
        }
        // Who looks at all bands in vain fills their credit up.
        let mut vain = 0;
        while vain < BANDS {
            self.next_band();
            vain = if self.bands[self.turn].credit > 0 { vain + 1 } else { 0 };
        }
        None
    }

    /// Takes the first packet of a flow whose turn it is, and works out when the next one may follow.
    fn send(&mut self, turn: usize, id: FlowId, now: Instant) -> Option<Departure<P>> {
        let flow = &mut self.flows[id];
        let mut waiting = self.waiting.pop(&mut flow.queue)?;
        self.ready -= usize::from(flow.queue.is_empty());
        let mut length = waiting.packet.length();
        flow.credit -= i64::from(length);
        self.bands[turn].credit -= i64::from(length);

        let late = now - waiting.due;
        let is_late = self.config.ce_threshold.is_some_and(|threshold| late > threshold);
        let marked = is_late && waiting.packet.ecn().is_capable();
        if marked {
            waiting.packet.set_ce();
            self.stats.ce_mark += 1;
        }
        if !self.config.pacing {
            return Some(Self::departure(waiting, now, marked));
        }

        let mut rate = self.config.max_rate;
        if waiting.packet.departure_time().is_none() {
            // The socket has a say, and fast flows are held back once a quantum rather than after each packet.
            rate = rate.into_iter().chain(waiting.packet.pacing_rate()).min();
            if rate.is_some_and(|rate| rate <= self.config.low_rate_threshold) {
                flow.credit = 0;
            } else {
                length = length.max(self.config.quantum);
                if flow.credit > 0 {
                    rate = None;
                }
            }
        }
        if let Some(rate) = rate {
            let mut pause = rate.transmission_time(Bytes(length.into()));
            if pause > LONGEST_PAUSE {
                pause = LONGEST_PAUSE;
                self.stats.pkts_too_long += 1;
            }
            if flow.next_packet > Instant::ZERO {
                // What came late, by timers or a busy link, is made up for, but not all at once.
                pause -= (now - flow.next_packet).min(pause / 2);
            }
            flow.next_packet = now + pause;
        }
        Some(Self::departure(waiting, now, marked))
    }

    fn departure(waiting: Waiting<P>, now: Instant, marked: bool) -> Departure<P> {
        Departure {
            packet: waiting.packet,
            band: waiting.band,
            sojourn_ns: now.nanos_since(waiting.enqueued),
            marked_by_probability: false,
            marked_by_step: marked,
        }
    }
}

impl<P: FlowPacket> Qdisc<P> for Fq<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["fq"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let priority = packet.priority() & 0xf;
        let band = usize::from(self.config.priomap[priority as usize]);
        if self.stats.band_packets[band] >= self.config.limit {
            self.stats.band_drops[band] += 1;
            return self.refuse(packet, dropped);
        }
        let mut due = packet.departure_time().map_or(now, |due| due.max(now));
        if due > now + self.config.horizon {
            if self.config.horizon_drop {
                self.stats.horizon_drops += 1;
                return self.refuse(packet, dropped);
            }
            self.stats.horizon_caps += 1;
            due = now + self.config.horizon;
        }

        let length = u64::from(packet.length());
        let key = self.key(&packet);
        let is_fast = self.is_fast(now, due);
        let waiting =
            Waiting { packet, band: if is_fast { FAST } else { band }, enqueued: now, due };
        if is_fast {
            self.waiting.push(&mut self.fast, waiting);
        } else {
            let credit = self.config.initial_quantum.into();
            let id = self.flows.find_or_add(key, credit, now);
            if self.flows[id].queue.len() >= self.config.flow_limit as usize {
                self.stats.flows_plimit += 1;
                return self.refuse(waiting.packet, dropped);
            }
            if let Some(since) = self.flows.wake(id) {
                let flow = &mut self.flows[id];
                if is_refilled(since, now, self.config.refill_delay) {
                    flow.credit = flow.credit.max(self.config.quantum.into());
                }
                // In the band of its last packet, which of a flow that nobody knew before is the first one: so what a connection
                // begins with waits until the other bands have used up their credit (Linux: `fq_enqueue`).
                let last_band = flow.band;
                self.flows.append(&mut self.bands[last_band].new, id);
                self.listed += 1;
            }
            let flow = &mut self.flows[id];
            flow.band = band;
            self.ready += usize::from(flow.queue.is_empty());
            if !flow.queue.is_empty() && flow.last_due > due {
                self.waiting.insert(&mut flow.queue, waiting, |other| other.due > due);
            } else {
                flow.last_due = due;
                self.waiting.push(&mut flow.queue, waiting);
            }
            self.stats.band_packets[band] += 1;
        }
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += length;
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let mut departure = self.peeked.take().or_else(|| self.choose(now))?;
        self.leave_band(std::mem::take(&mut departure.band));
        self.counters.left(&departure.packet);
        Some(departure)
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        if let Some(waiting) = self.waiting.first(&self.fast) {
            return Some(&waiting.packet);
        }
        let band = &self.bands[self.turn];
        let (first, second) = self.flows.upcoming(&band.new, &band.old)?;
        self.waiting.read_ahead(&second.queue);
        self.waiting.first(&first.queue).map(|waiting| &waiting.packet)
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
    fn next_ready(&self, now: Instant) -> Instant {
        // Flows that ran empty stay listed until their turn.
        if self.is_empty() {
            return Instant::NEVER;
        }
        if self.listed > 0 || self.peeked.is_some() || !self.fast.is_empty() {
            return now;
        }
        match self.throttled.peek() {
            Some(Reverse((due, ..))) if *due <= now => now,
            Some(Reverse((due, ..))) => *due + self.config.timer_slack,
            None => Instant::NEVER,
        }
    }

    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some(departure) = self.peeked.take() {
            let Departure { packet, band, .. } = departure;
            let waiting = Waiting { packet, band, enqueued: Instant::ZERO, due: Instant::ZERO };
            self.flush(waiting, dropped);
        }
        while let Some(waiting) = self.waiting.pop(&mut self.fast) {
            self.flush(waiting, dropped);
        }
        for id in self.flows.ids() {
            while let Some(waiting) = self.waiting.pop(&mut self.flows[id].queue) {
                self.flush(waiting, dropped);
            }
        }
        let forgotten = self.flows.forgotten;
        self.flows = Flows::new();
        self.flows.forgotten = forgotten;
        self.throttled.clear();
        self.ready = 0;
        self.listed = 0;
        for band in &mut self.bands {
            (band.new, band.old) = (FlowList::EMPTY, FlowList::EMPTY);
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Fq(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        self.config = self.config.clone().with(options);
        let limit = self.config.limit as usize;
        let mut id = 0;
        while self.len() > limit && self.flows.ids().contains(&id) {
            match self.waiting.pop(&mut self.flows[id].queue) {
                Some(waiting) => self.flush(waiting, dropped),
                None => id += 1,
            }
        }
        let waits = |id: &FlowId| !self.flows[*id].queue.is_empty();
        let held = self.throttled.iter().filter(|Reverse((.., id))| waits(id)).count();
        self.ready = self.flows.ids().filter(waits).count() - held;
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::Fq(self.config.clone())
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        let (flows, throttled_flows) = (self.flows.count(), self.throttled.len() as u32);
        let own = Stats {
            flows,
            inactive: flows.saturating_sub(self.ready as u32 + throttled_flows),
            throttled_flows,
            gc: self.flows.forgotten,
            ..self.stats
        };
        show::Stats { counters: self.counters, own: OwnStats::Fq(own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_comes_back_by_whole_ticks_from_an_odd_one() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        for (since, refused, refilled) in [(0, 59, 60), (9, 59, 60), (10, 59, 60), (20, 79, 80)] {
            let delay = Duration::from_millis(40);
            assert!(!is_refilled(at(since), at(refused), delay), "{since} ms, {refused} ms");
            assert!(is_refilled(at(since), at(refilled), delay), "{since} ms, {refilled} ms");
        }
    }
}
