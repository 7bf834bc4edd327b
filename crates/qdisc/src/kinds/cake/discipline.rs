//! The shaper, the tins behind it, and the packets.

use dualpi2::Random;
use dualq_units::{Instant, Rate};

use super::acks::superseded;
use super::cobalt::Verdict;
use super::flows::Hashes;
use super::link::{ByteTime, Framing};
use super::tin::{FAST, SLOW, Tin, ewma};
use super::tins::{shares, shown, tin};
use super::{AckFilter, Config, Options, Stats};
use crate::kinds::Grammar;
use crate::pool::Pool;
use crate::show::{self, Counters, OwnStats};
use crate::{ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec, hash};

const SECOND: u64 = 1_000_000_000;
/// The kernel's limits on memory: four times what the rate brings in an interval, at least so much; and so many of the longest packets.
const LEAST_MEMORY: u64 = 4 << 20;
const MOST_PACKETS: u64 = 10_240;
/// No more often than that, `autorate-ingress` sets another rate.
const RATE_HOLDS: u64 = SECOND / 4;

struct Waiting<P> {
    packet: P,
    enqueued: Instant,
    /// Bytes that it takes on the link.
    bytes: u32,
}

/// What `autorate-ingress` knows of the packets that arrive.
#[derive(Default)]
struct Arrivals {
    last: u64,
    average_interval: u64,
    window_began: u64,
    window_bytes: u64,
    /// Bytes per second.
    peak: u64,
    /// When a rate was last told.
    told: u64,
}

impl Arrivals {
    /// A packet arrived; says at which rate they do, if that may be told now.
    fn arrived(&mut self, now: u64) -> Option<u64> {
        let interval = (now - self.last).min(SECOND);
        let shift = if interval > self.average_interval { FAST } else { SLOW };
        self.average_interval = ewma(self.average_interval, interval, shift);
        self.last = now;
        if interval <= self.average_interval {
            return None;
        }
        let passed = u128::from(now - self.window_began).max(1);
        let rate = (u128::from(self.window_bytes) * u128::from(SECOND) / passed) as u64;
        let shift = if rate > self.peak { FAST } else { SLOW };
        self.peak = ewma(self.peak, rate, shift);
        (self.window_bytes, self.window_began) = (0, now);
        if now <= self.told + RATE_HOLDS {
            return None;
        }
        self.told = now;
        Some((self.peak * 15) >> 4)
    }
}

/// The discipline.
pub(super) struct Cake<P, R> {
    config: Config,
    device: Device,
    random: R,
    pool: Pool<Waiting<P>>,
    tins: Vec<Tin>,
    current: usize,
    byte_time: ByteTime,
    /// When the link is free, in nanoseconds; and when it is, had all packets taken half as long again, dropped ones nothing.
    next: u64,
    failsafe: u64,
    framing: Framing,
    arrivals: Arrivals,
    memory: u64,
    most_memory: u64,
    memory_limit: u64,
    /// Packets waiting in the tins.
    packets: u64,
    /// What [`Qdisc::peek`] showed.
    peeked: Option<Departure<P>>,
    counters: Counters,
}

impl<P: FlowPacket, R: Random> Cake<P, R> {
    /// An empty discipline.
    pub(super) fn new(config: Config, device: &Device, random: R) -> Self {
        let mut cake = Self {
            framing: Framing::new(&config),
            config,
            device: *device,
            random,
            pool: Pool::new(),
            tins: Vec::new(),
            current: 0,
            byte_time: ByteTime::default(),
            next: 0,
            failsafe: 0,
            arrivals: Arrivals::default(),
            memory: 0,
            most_memory: 0,
            memory_limit: 0,
            packets: 0,
            peeked: None,
            counters: Counters::ZERO,
        };
        cake.configure(&mut |_| ());
        cake.arrivals.peak = cake.tins[0].share.rate;
        cake
    }

    /// Sets all that follows from the parameters. Tins that are there no longer lose their packets.
    fn configure(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        let shares = shares(&self.config, &self.device);
        for number in shares.len()..self.tins.len() {
            self.flush(number, dropped);
        }
        self.tins.truncate(shares.len());
        for (tin, share) in self.tins.iter_mut().zip(&shares) {
            tin.share = *share;
        }
        self.tins.extend(shares[self.tins.len()..].iter().map(|share| Tin::new(*share)));
        self.current = self.current.min(shares.len() - 1);
        self.byte_time = shares[0].byte_time;
        let limit = self.config.memory_limit.map(|limit| limit.0);
        let by_rate = if shares[0].rate > 0 {
            let bytes = u128::from(shares[0].rate) * self.config.rtt.as_micros() / 250_000;
            (bytes as u64).max(LEAST_MEMORY)
        } else {
            u64::MAX
        };
        let most = MOST_PACKETS * u64::from(self.device.max_frame);
        self.memory_limit = limit.unwrap_or(by_rate).min(most.max(limit.unwrap_or(0)));
    }

    fn flush(&mut self, number: usize, dropped: &mut dyn FnMut(Dropped<P>)) {
        for id in 0..self.tins[number].flows.queues.len() {
            while let Some(waiting) = self.take(number, id as u32) {
                self.lose(waiting.packet, DropReason::Flushed, dropped);
            }
        }
    }

    /// Takes the first packet of a flow. It counts as waiting until it leaves or is lost.
    #[inline(always)]
    fn take(&mut self, number: usize, id: u32) -> Option<Waiting<P>> {
        let tin = &mut self.tins[number];
        let flow = &mut tin.flows.queues[id as usize];
        let waiting = self.pool.pop(&mut flow.chain)?;
        let length = u64::from(waiting.packet.length());
        flow.bytes -= length;
        tin.counted.backlog_bytes -= length;
        self.memory -= u64::from(waiting.packet.memory());
        self.packets -= 1;
        Some(waiting)
    }

    /// A packet that was taken is lost.
    fn lose(&mut self, packet: P, reason: DropReason, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= u64::from(packet.length());
        // What a change or a reset throws away is no drop.
        self.counters.drops += u64::from(reason != DropReason::Flushed);
        dropped(Dropped { packet, band: 0, reason });
    }

    /// A packet takes its time on the link; `drops` if it has been lost, behind the link.
    #[inline]
    fn charge(&mut self, now: u64, number: usize, bytes: u32, drops: bool) {
        if self.byte_time.is_none() {
            return;
        }
        let tin = &mut self.tins[number];
        let own = tin.share.byte_time.of(bytes);
        if tin.next < now {
            tin.next += own;
        } else if tin.next < now + own {
            tin.next = now + own;
        }
        let time = self.byte_time.of(bytes);
        self.next += time;
        if !drops {
            self.failsafe += time + time / 2;
        }
    }

    /// Drops the first packet of whoever has most bytes.
    #[cold]
    fn make_room(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> bool {
        let tins = self.tins.iter().enumerate();
        let longest = tins.filter_map(|(number, tin)| Some((tin.longest()?, number))).max();
        let Some(((_, id), number)) = longest else { return false };
        let Some(waiting) = self.take(number, id) else { return false };
        let tin = &mut self.tins[number];
        let law = &mut tin.flows.queues[id as usize].law;
        tin.unresponsive += u32::from(law.is_full(&tin.share.law, now.as_nanos()));
        tin.counted.drops += 1;
        if self.config.ingress {
            self.charge(now.as_nanos(), number, waiting.bytes, true);
        }
        self.lose(waiting.packet, DropReason::Overlimit, dropped);
        true
    }

    /// A tin's packets and those of all are due from now on, if they were due before.
    #[inline]
    fn catch_up(&mut self, now: u64, number: usize) {
        let tin = &mut self.tins[number];
        if tin.counted.backlog_bytes > 0 {
            return;
        }
        tin.next = tin.next.max(now);
        if self.packets > 0 {
            return;
        }
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        } else if self.next > now && self.failsafe > now {
            self.counters.overlimits += 1;
        }
    }

    #[inline(always)]
    fn add(&mut self, now: Instant, (number, id): (usize, u32), packet: P) {
        let length = u64::from(packet.length());
        self.memory += u64::from(packet.memory());
        self.packets += 1;
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += length;
        self.arrivals.window_bytes += length;
        let bytes = self.framing.length(&packet);
        let tin = &mut self.tins[number];
        tin.counted.sent_packets += 1;
        tin.counted.sent_bytes += length;
        tin.counted.backlog_bytes += length;
        let flow = &mut tin.flows.queues[id as usize];
        flow.bytes += length;
        self.pool.push(&mut flow.chain, Waiting { packet, enqueued: now, bytes });
    }

    /// Drops an acknowledgement that the last packet of a flow made superfluous.
    #[cold]
    fn filter(&mut self, now: u64, number: usize, id: u32, dropped: &mut dyn FnMut(Dropped<P>)) {
        let flow = &mut self.tins[number].flows.queues[id as usize];
        let before_last = flow.chain.len() - 1;
        if before_last == 0 {
            return;
        }
        let acks = self.pool.iter(&flow.chain).map(|waiting| waiting.packet.pure_ack());
        let last = self.pool.last(&flow.chain).and_then(|waiting| waiting.packet.pure_ack());
        let place = last.and_then(|last| {
            superseded(self.config.ack_filter, acks.take(before_last), before_last, &last)
        });
        let Some(Waiting { packet, bytes, .. }) =
            place.and_then(|place| self.pool.take(&mut flow.chain, place))
        else {
            return;
        };
        let length = u64::from(packet.length());
        flow.bytes -= length;
        let tin = &mut self.tins[number];
        tin.counted.backlog_bytes -= length;
        tin.counted.ack_drops += 1;
        self.memory -= u64::from(packet.memory());
        self.packets -= 1;
        if self.config.ingress {
            self.charge(now, number, bytes, true);
        }
        self.lose(packet, DropReason::Superseded, dropped);
    }

    /// The tin whose turn it is: by weight where there is no rate; else the last of those that are due, or the one that is due first.
    #[inline]
    fn choose_tin(&mut self, now: u64) {
        if self.tins.len() == 1 {
            self.current = 0;
            return;
        }
        if self.byte_time.is_none() {
            loop {
                let tin = &mut self.tins[self.current];
                if tin.deficit >= 0 && tin.is_busy() {
                    return;
                }
                if tin.deficit <= 0 {
                    tin.deficit += tin.share.tin_quantum;
                }
                self.current = (self.current + 1) % self.tins.len();
            }
        }
        let mut best = i64::MAX;
        for (number, tin) in self.tins.iter().enumerate() {
            let ahead = tin.next as i64 - now as i64;
            if tin.is_busy() && (ahead <= 0 || ahead <= best) {
                (best, self.current) = (ahead, number);
            }
        }
    }

    /// The next packet that the link may send.
    #[inline(always)]
    fn choose(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let time = now.as_nanos();
        let mode = self.config.flow_mode;
        let mut is_first = true;
        while self.packets > 0 {
            if self.next > time && self.failsafe > time {
                self.counters.overlimits += 1;
                return None;
            }
            self.choose_tin(time);
            loop {
                let number = self.current;
                let Some((id, _)) = self.tins[number].first(is_first) else { break };
                is_first = false;
                if self.tins[number].flows.queues[id as usize].deficit <= 0 {
                    let random = &mut self.random;
                    self.tins[number].next_turn(mode, id, || roll(random));
                    continue;
                }
                if self.tins[number].flows.queues[id as usize].chain.is_empty() {
                    self.tins[number].rests(mode, id, time);
                    break;
                }
                if let Some(departure) = self.serve(now, (number, id), dropped) {
                    return Some(departure);
                }
            }
        }
        None
    }

    /// The next packet of a flow that its law lets go; `None` if others come first after a drop.
    #[inline(always)]
    fn serve(
        &mut self,
        now: Instant,
        (number, id): (usize, u32),
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let time = now.as_nanos();
        while let Some(Waiting { mut packet, enqueued, bytes }) = self.take(number, id) {
            let tin = &mut self.tins[number];
            let flow = &mut tin.flows.queues[id as usize];
            let bulk = if self.config.ingress { tin.bulk } else { 0 };
            let times = (time, enqueued.as_nanos());
            let verdict =
                flow.law.judge(&tin.share.law, times, &mut packet, bulk, &mut self.random);
            // The last one is not dropped.
            if verdict != Verdict::Goes || flow.chain.is_empty() {
                let marked = verdict == Verdict::LeavesMarked;
                tin.counted.ecn_mark += u64::from(marked);
                flow.deficit -= i64::from(bytes);
                tin.deficit -= i64::from(bytes);
                tin.left(time - enqueued.as_nanos());
                self.charge(time, number, bytes, false);
                return Some(Departure {
                    packet,
                    band: 0,
                    sojourn_ns: now.nanos_since(enqueued),
                    marked_by_probability: marked,
                    marked_by_step: false,
                });
            }
            tin.counted.drops += 1;
            if self.config.ingress {
                flow.deficit -= i64::from(bytes);
                tin.deficit -= i64::from(bytes);
                self.charge(time, number, bytes, true);
            }
            self.lose(packet, DropReason::Congested, dropped);
            if self.config.ingress {
                return None;
            }
        }
        None
    }
}

/// A die of 16 bits.
#[inline]
fn roll(random: &mut impl Random) -> u16 {
    (random.next_u32() >> 16) as u16
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Cake<P, R> {
    fn bands(&self) -> &'static [&'static str] {
        &["cake"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let time = now.as_nanos();
        let mode = self.config.flow_mode;
        let number = tin(self.config.diffserv, packet.dscp());
        let [from, to] = packet.hosts();
        let hashes = Hashes { flow: hash(packet.flow()), hosts: [hash(from), hash(!to)] };
        self.catch_up(time, number);
        let tin = &mut self.tins[number];
        let id = tin.flows.find(mode, &hashes);
        tin.counted.max_pkt_len = tin.counted.max_pkt_len.max(packet.length());
        let mut queued = 1;
        if packet.is_gso() && self.config.split_gso {
            queued = 0;
            packet.split(&mut |segment| {
                self.add(now, (number, id), segment);
                queued += 1;
            });
        } else {
            self.add(now, (number, id), packet);
            if self.config.ack_filter != AckFilter::No {
                self.filter(time, number, id, dropped);
            }
        }
        if self.config.autorate {
            if let Some(rate) = self.arrivals.arrived(time) {
                self.config.bandwidth = Some(Rate::from_bits_per_second(rate * 8));
                self.configure(dropped);
            }
        } else {
            (self.arrivals.window_bytes, self.arrivals.last) = (0, time);
        }
        let random = &mut self.random;
        self.tins[number].wake(mode, id, || roll(random));
        self.most_memory = self.most_memory.max(self.memory);
        while self.memory > self.memory_limit && self.make_room(now, dropped) {}
        queued
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
        self.counters.left(&departure.packet);
        Some(departure)
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        let tin = self.tins.get(self.current)?;
        let id = tin.new.first().or(tin.old.first())?;
        self.pool.first(&tin.flows.queues[id as usize].chain).map(|waiting| &waiting.packet)
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
        self.counters.backlog_packets as usize
    }

    #[inline]
    fn next_ready(&self, now: Instant) -> Instant {
        if self.is_empty() {
            return Instant::NEVER;
        }
        if self.peeked.is_some() {
            return now;
        }
        now.max(Instant::from_nanos(self.next.min(self.failsafe)))
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some(Departure { packet, .. }) = self.peeked.take() {
            self.lose(packet, DropReason::Flushed, dropped);
        }
        for number in 0..self.tins.len() {
            self.flush(number, dropped);
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Cake(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        self.config = self.config.clone().with(options);
        self.framing = Framing::new(&self.config);
        self.configure(dropped);
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::Cake(self.config.clone())
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        let Framing { network, adjusted, .. } = &self.framing;
        let tins = shown(self.config.diffserv).iter();
        let own = Stats {
            memory_used: self.most_memory,
            memory_limit: self.memory_limit,
            capacity_estimate: self.arrivals.peak,
            min_network_size: network.least.into(),
            max_network_size: network.most.into(),
            min_adj_size: adjusted.least.into(),
            max_adj_size: adjusted.most.into(),
            avg_hdr_offset: self.framing.header(),
            tins: tins.map(|number| self.tins[*number].stats()).collect(),
        };
        show::Stats { counters: self.counters, own: OwnStats::Cake(own) }
    }
}
