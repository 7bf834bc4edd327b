//! The two queues and what happens to a packet on its way through them (RFC 9332 Figures 3, 4 and 7).

use alloc::collections::VecDeque;
use core::fmt;
use core::time::Duration;

use crate::config::{
    Change, Config, ConfigError, DropPoint, EcnMask, Gain, Overload, StepThreshold,
};
use crate::coupling::{Coupling, Verdict};
use crate::packet::{Class, Ecn, Packet, Queue};
use crate::pi2::{Controller, ScaledGain};
use crate::random::{Random, SplitMix64};
use crate::scheduler::Scheduler;
use crate::stats::Stats;

/// A packet that leaves, and how it fared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Departure<P> {
    /// The packet, CE set if it was marked.
    pub packet: P,
    /// The queue it waited in.
    pub queue: Queue,
    /// How long it waited, in nanoseconds; 0 if the clock went backwards meanwhile.
    pub sojourn_ns: u64,
    /// Marked by the squared or coupled probability.
    pub marked_by_probability: bool,
    /// Marked by the low latency queue's step.
    pub marked_by_step: bool,
}

/// A packet that is lost, given back to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// The queue it was in or bound for.
    pub queue: Queue,
    /// Why.
    pub reason: DropReason,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The packet limit or the memory limit was reached.
    Overlimit,
    /// The controller's probability said so.
    Congested,
    /// The step would have marked it, but it is not ECN-capable.
    Step,
    /// The caller's classifier refused it.
    Refused,
    /// A smaller limit took effect, or the queue was reset.
    Flushed,
}

struct Entry<P> {
    packet: P,
    enqueued_ns: u64,
    /// What counts against the memory limit while it waits. Setting CE may change what its owner says then.
    memory: u32,
    class: Class,
    apply_step: bool,
    marked_by_probability: bool,
}

/// A step threshold in the units that it is compared in.
#[derive(Clone, Copy)]
struct Step {
    threshold: u32,
    /// In packets rather than nanoseconds.
    in_packets: bool,
}

/// The dual queue. `P` is the packet, `R` the source of its dice.
///
/// Every method that may lose packets hands each to `dropped`; pass `&mut |_| ()` to let them go.
pub struct DualPi2<P, R = SplitMix64> {
    /// Indexed by [`Queue`].
    queues: [VecDeque<Entry<P>>; 2],
    /// What [`peek`](Self::peek) showed: it has passed the AQM and still counts as waiting.
    peeked: Option<Departure<P>>,
    scheduler: Scheduler,
    coupling: Coupling,
    controller: Controller,
    random: R,

    limit: u32,
    memory_limit: u32,
    /// Below this many waiting bytes the probabilities are left alone: two MTU.
    min_backlog: u64,
    step: Step,
    min_qlen_step: u32,
    ecn_mask: u8,
    drop_point: DropPoint,
    split_gso: bool,

    mtu: u32,
    tupdate_ns: u32,
    next_update_ns: u64,

    backlog_bytes: u64,
    memory_used: u32,
    max_memory_used: u32,
    packets_in: [u64; 2],
    max_queue_length: u64,
    ecn_marks: u64,
    step_marks: u64,
    drops: u64,
    overlimits: u64,
    sent_packets: u64,
    sent_bytes: u64,
}

impl<P: Packet, R: Random> DualPi2<P, R> {
    /// An empty queue at time `now_ns`, on a device whose largest frame, link-layer header included, has `mtu` bytes. The
    /// first probability update is due one `tupdate` later.
    ///
    /// # Errors
    /// If a parameter is out of its bounds.
    pub fn new(config: Config, mtu: u32, random: R, now_ns: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let mut queue = Self {
            queues: [VecDeque::new(), VecDeque::new()],
            peeked: None,
            scheduler: Scheduler::new(config.classic_protection, mtu),
            coupling: Coupling::new(0, config.coupling_factor, config.overload),
            controller: Controller::new(
                0,
                ScaledGain::new(config.alpha),
                ScaledGain::new(config.beta),
            ),
            random,
            limit: 0,
            memory_limit: 0,
            min_backlog: 2 * u64::from(mtu),
            step: Step { threshold: 0, in_packets: false },
            min_qlen_step: 0,
            ecn_mask: 0,
            drop_point: DropPoint::Dequeue,
            split_gso: false,
            mtu,
            tupdate_ns: 0,
            next_update_ns: 0,
            backlog_bytes: 0,
            memory_used: 0,
            max_memory_used: 0,
            packets_in: [0; 2],
            max_queue_length: 0,
            ecn_marks: 0,
            step_marks: 0,
            drops: 0,
            overlimits: 0,
            sent_packets: 0,
            sent_bytes: 0,
        };
        queue.configure(&config);
        queue.next_update_ns = now_ns.saturating_add(queue.tupdate_ns.into());
        Ok(queue)
    }

    /// Makes room for that many packets in each queue at once, so that none is made later.
    pub fn reserve(&mut self, packets: usize) {
        for queue in &mut self.queues {
            queue.reserve(packets.saturating_sub(queue.len()));
        }
    }

    /// Takes over everything but the scheduler's weights and the gains, which keep their state or their rounding.
    fn configure(&mut self, config: &Config) {
        self.limit = config.limit;
        self.memory_limit = config.memory_limit;
        self.controller.target_ns = config.target.as_nanos() as u64;
        self.tupdate_ns = saturating_nanos(config.tupdate);
        self.step = match config.step_threshold {
            StepThreshold::Time(time) => {
                Step { threshold: saturating_nanos(time), in_packets: false }
            }
            StepThreshold::Packets(packets) => Step { threshold: packets, in_packets: true },
        };
        self.min_qlen_step = config.min_qlen_step;
        self.ecn_mask = config.ecn_mask.bits();
        self.drop_point = config.drop_point;
        self.split_gso = config.split_gso;
        self.couple(config.coupling_factor, config.overload);
    }

    fn couple(&mut self, factor: u8, overload: Overload) {
        self.coupling = Coupling::new(self.controller.probability, factor, overload);
    }

    /// The parameters in force, with the kernel's rounding: times in whole microseconds, gains rounded down (a configured
    /// 41/256 Hz reads back as 40/256).
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            limit: self.limit,
            memory_limit: self.memory_limit,
            target: whole_micros(self.controller.target_ns),
            tupdate: whole_micros(self.tupdate_ns.into()),
            alpha: self.controller.alpha.unscale(),
            beta: self.controller.beta.unscale(),
            step_threshold: if self.step.in_packets {
                StepThreshold::Packets(self.step.threshold)
            } else {
                StepThreshold::Time(whole_micros(self.step.threshold.into()))
            },
            min_qlen_step: self.min_qlen_step,
            coupling_factor: self.coupling.factor(),
            overload: self.coupling.on_overload(),
            drop_point: self.drop_point,
            classic_protection: self.scheduler.classic_weight(),
            ecn_mask: if self.ecn_mask == EcnMask::L4s.bits() {
                EcnMask::L4s
            } else {
                EcnMask::Any
            },
            split_gso: self.split_gso,
        }
    }

    /// Changes parameters while packets wait. What a smaller limit leaves no room for is dropped at once: first a peeked
    /// packet, then from the head of classic, then from the head of low latency. Giving the classic protection starts
    /// the scheduler's credit afresh, even if its value is the old one; a new `tupdate` counts from the next update on.
    ///
    /// # Errors
    /// If a value is out of its bounds; nothing has changed then.
    pub fn change(
        &mut self,
        change: &Change,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), ConfigError> {
        // The gains in force have been rounded, perhaps to zero, and must not be rounded again: only new ones count.
        let unchecked = Config { alpha: Gain::MIN, beta: Gain::MIN, ..self.config() };
        let mut config = unchecked.with(change, self.mtu)?;
        // Reading back cuts times to microseconds; what was not changed keeps its nanoseconds.
        if change.target.is_none() {
            config.target = Duration::from_nanos(self.controller.target_ns);
        }
        if change.tupdate.is_none() {
            config.tupdate = Duration::from_nanos(self.tupdate_ns.into());
        }
        if change.step_threshold.is_none() && !self.step.in_packets {
            let threshold = Duration::from_nanos(self.step.threshold.into());
            config.step_threshold = StepThreshold::Time(threshold);
        }
        self.configure(&config);
        if let Some(alpha) = change.alpha {
            self.controller.alpha = ScaledGain::new(alpha);
        }
        if let Some(beta) = change.beta {
            self.controller.beta = ScaledGain::new(beta);
        }
        if let Some(weight) = change.classic_protection {
            self.scheduler = Scheduler::new(weight, self.mtu);
        }
        while self.len() > self.limit as usize || self.memory_used > self.memory_limit {
            if !self.flush_one(dropped) {
                break;
            }
            self.drops += 1;
        }
        Ok(())
    }

    /// Empties both queues and forgets the probability, the credit and this qdisc's own counters; parameters, and what
    /// was sent and dropped, stay. The flushed packets do not count as drops.
    pub fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        while self.flush_one(dropped) {}
        self.controller.probability = 0;
        self.couple(self.coupling.factor(), self.coupling.on_overload());
        self.scheduler.reset();
        self.packets_in = [0; 2];
        self.max_queue_length = 0;
        self.ecn_marks = 0;
        self.step_marks = 0;
        self.max_memory_used = 0;
    }

    fn flush_one(&mut self, dropped: &mut impl FnMut(Dropped<P>)) -> bool {
        let (packet, queue) = if let Some(departure) = self.peeked.take() {
            // Its memory was given back when it was taken from its queue.
            (departure.packet, departure.queue)
        } else {
            let [classic, low_latency] = &mut self.queues;
            let Some(entry) = classic.pop_front().or_else(|| low_latency.pop_front()) else {
                return false;
            };
            self.memory_used -= entry.memory;
            (entry.packet, entry.class.into())
        };
        self.backlog_bytes -= u64::from(packet.length());
        dropped(Dropped { packet, queue, reason: DropReason::Flushed });
        true
    }

    /// Packets waiting in both queues.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.queues[0].len() + self.queues[1].len() + usize::from(self.peeked.is_some())
    }

    /// Whether no packet waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enqueues a packet that arrived at `now_ns` (RFC 9332 Figure 3), classified by its ECN field, else by
    /// [`Packet::class`], else as classic. Returns how many packets were queued: more than one if an aggregate was split.
    #[inline]
    pub fn enqueue(
        &mut self,
        now_ns: u64,
        packet: P,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> usize {
        self.enqueue_with(now_ns, packet, |_| Some(Class::Classic), dropped)
    }

    /// As [`enqueue`](Self::enqueue), but packets that neither their ECN field nor their priority classified are shown to
    /// `classify` (RFC 9332 §2.3; tc's filters). `None` refuses the packet: it is dropped.
    #[inline]
    pub fn enqueue_with(
        &mut self,
        now_ns: u64,
        packet: P,
        classify: impl FnOnce(&P) -> Option<Class>,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> usize {
        let class = if packet.ecn().bits() & self.ecn_mask != 0 {
            Class::L4s
        } else if let Some(class) = packet.class().or_else(|| classify(&packet)) {
            class
        } else {
            self.drops += 1;
            dropped(Dropped { packet, queue: Queue::Classic, reason: DropReason::Refused });
            return 0;
        };
        if self.split_gso && packet.is_gso() {
            let mut queued = 0;
            packet.split(&mut |segment| {
                queued += usize::from(self.admit(now_ns, segment, class, dropped));
            });
            queued
        } else {
            usize::from(self.admit(now_ns, packet, class, dropped))
        }
    }

    /// Enqueues one packet of a known class, if there is room and the AQM lets it.
    #[inline]
    fn admit(
        &mut self,
        now_ns: u64,
        mut packet: P,
        class: Class,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> bool {
        let queue = Queue::from(class);
        let waiting = self.len();
        let memory = packet.memory();
        let memory_used = u64::from(self.memory_used) + u64::from(memory);
        if waiting >= self.limit as usize || memory_used > u64::from(self.memory_limit) {
            self.overlimits += 1;
            self.drops += 1;
            dropped(Dropped { packet, queue, reason: DropReason::Overlimit });
            return false;
        }

        let mut marked_by_probability = false;
        if self.drop_point == DropPoint::Enqueue {
            match self.judge(class, &mut packet) {
                Verdict::Pass => {}
                Verdict::Mark => marked_by_probability = true,
                Verdict::Drop => {
                    self.drops += 1;
                    dropped(Dropped { packet, queue, reason: DropReason::Congested });
                    return false;
                }
            }
        }

        self.memory_used = memory_used as u32; // at most memory_limit, which is an u32
        self.max_memory_used = self.max_memory_used.max(self.memory_used);
        self.max_queue_length = self.max_queue_length.max(waiting as u64);
        self.backlog_bytes += u64::from(packet.length());
        let apply_step = (class == Class::L4s)
            & (self.queues[Queue::LowLatency as usize].len() >= self.min_qlen_step as usize);
        self.packets_in[queue as usize] += 1;
        let entry =
            Entry { packet, enqueued_ns: now_ns, memory, class, apply_step, marked_by_probability };
        let [classic, low_latency] = &mut self.queues;
        match queue {
            Queue::Classic => classic.push_back(entry),
            Queue::LowLatency => low_latency.push_back(entry),
        }
        true
    }

    /// Applies the probabilities to one packet, and the mark if there is to be one.
    #[inline]
    fn judge(&mut self, class: Class, packet: &mut P) -> Verdict {
        if self.backlog_bytes < self.min_backlog {
            return Verdict::Pass;
        }
        let verdict = self.coupling.roll(class, packet.ecn(), &mut self.random);
        if verdict == Verdict::Mark {
            packet.set_ce();
            self.ecn_marks += 1;
        }
        verdict
    }

    /// Takes the next packet to send at `now_ns` (RFC 9332 Figure 7); `None` if none waits. Packets that the AQM drops on
    /// the way go to `dropped`.
    #[inline]
    pub fn dequeue(
        &mut self,
        now_ns: u64,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let departure =
            if self.peeked.is_none() { self.take(now_ns, dropped)? } else { self.take_peeked()? };
        let length = u64::from(departure.packet.length());
        self.sent_packets += 1;
        self.sent_bytes += length;
        Some(departure)
    }

    /// Shows the packet that the next [`dequeue`](Self::dequeue) will return. The AQM decides about it now, as when Linux
    /// peeks: what it drops on the way goes to `dropped`, and the packet shown keeps its mark and its sojourn time.
    pub fn peek(&mut self, now_ns: u64, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
        if self.peeked.is_none() {
            self.peeked = self.take(now_ns, dropped);
            if let Some(departure) = &self.peeked {
                self.backlog_bytes += u64::from(departure.packet.length());
            }
        }
        self.peeked.as_ref().map(|departure| &departure.packet)
    }

    /// A packet that waits: the one behind `ahead` others of its queue. Whether and when it leaves is yet to be decided.
    #[must_use]
    #[inline]
    pub fn waiting(&self, queue: Queue, ahead: usize) -> Option<&P> {
        self.queues[queue as usize].get(ahead).map(|entry| &entry.packet)
    }

    /// Kept apart from [`dequeue`](Self::dequeue), where moving even an empty `Option` out would cost a fifth of the time.
    #[cold]
    fn take_peeked(&mut self) -> Option<Departure<P>> {
        let departure = self.peeked.take()?;
        self.backlog_bytes -= u64::from(departure.packet.length());
        Some(departure)
    }

    /// Takes packets from the queues until one passes the AQM.
    #[inline]
    fn take(&mut self, now_ns: u64, dropped: &mut impl FnMut(Dropped<P>)) -> Option<Departure<P>> {
        loop {
            let [classic, low_latency] = &self.queues;
            let classic_waits = !classic.is_empty();
            let low_latency_waits = !low_latency.is_empty();
            let low_latency_is_next =
                low_latency_waits & (!classic_waits | self.scheduler.prefers_low_latency());
            let [classic, low_latency] = &mut self.queues;
            let (entry, queue) = if low_latency_is_next {
                (low_latency.pop_front(), Queue::LowLatency)
            } else {
                (classic.pop_front(), Queue::Classic)
            };
            let Some(entry) = entry else {
                self.scheduler.reset();
                return None;
            };
            let Entry {
                mut packet,
                enqueued_ns,
                memory,
                class,
                apply_step,
                mut marked_by_probability,
            } = entry;
            let length = packet.length();
            self.memory_used -= memory;
            // The backlog that the decision looks at is what this packet leaves behind.
            self.backlog_bytes -= u64::from(length);

            if self.drop_point == DropPoint::Dequeue {
                match self.judge(class, &mut packet) {
                    Verdict::Pass => {}
                    Verdict::Mark => marked_by_probability = true,
                    Verdict::Drop => {
                        self.drops += 1;
                        dropped(Dropped { packet, queue, reason: DropReason::Congested });
                        continue;
                    }
                }
            }

            let sojourn_ns = now_ns.saturating_sub(enqueued_ns);
            let packets_behind = self.queues[Queue::LowLatency as usize].len() as u64;
            let measure = if self.step.in_packets { packets_behind } else { sojourn_ns };
            let over_step = apply_step & (measure > u64::from(self.step.threshold));
            if over_step {
                if packet.ecn() == Ecn::NotEct {
                    self.drops += 1;
                    dropped(Dropped { packet, queue, reason: DropReason::Step });
                    continue;
                }
                packet.set_ce();
                self.ecn_marks += 1;
                self.step_marks += 1;
            }

            if classic_waits & low_latency_waits {
                self.scheduler.served(queue, length);
            }
            return Some(Departure {
                packet,
                queue,
                sojourn_ns,
                marked_by_probability,
                marked_by_step: over_step,
            });
        }
    }

    /// When the next probability update is due.
    #[must_use]
    #[inline]
    pub const fn next_update_ns(&self) -> u64 {
        self.next_update_ns
    }

    /// Updates the probability (RFC 9332 Figure 8); to be called when [`next_update_ns`](Self::next_update_ns) has come.
    /// The next update is due one `tupdate` after `now_ns`.
    pub fn update(&mut self, now_ns: u64) {
        let [classic, low_latency] = &self.queues;
        let delay_ns = head_delay_ns(classic, now_ns).max(head_delay_ns(low_latency, now_ns));
        self.controller.update(delay_ns);
        self.controller.probability = self.controller.probability.min(self.coupling.base_limit());
        self.couple(self.coupling.factor(), self.coupling.on_overload());
        self.next_update_ns = now_ns.saturating_add(self.tupdate_ns.into());
    }

    /// For callers without a timer: runs each update that has come due up to `now_ns`, at the time when it was due. Call
    /// it before each enqueue and dequeue. Costs one comparison if nothing is due; else one update for each that was
    /// missed, of which those after the queue ran empty and the probability came to rest are free.
    #[inline]
    pub fn poll(&mut self, now_ns: u64) {
        if now_ns >= self.next_update_ns {
            self.catch_up(now_ns);
        }
    }

    #[cold]
    fn catch_up(&mut self, now_ns: u64) {
        while now_ns >= self.next_update_ns && self.next_update_ns < u64::MAX {
            let before = self.controller.state();
            self.update(self.next_update_ns);
            // Without a queue every update is given the same delay, so that one which changed nothing ends all change.
            let nothing_moves =
                self.queues.iter().all(VecDeque::is_empty) && self.controller.state() == before;
            if nothing_moves && now_ns >= self.next_update_ns {
                // On to the last update that is due.
                let interval = u64::from(self.tupdate_ns);
                self.next_update_ns += (now_ns - self.next_update_ns) / interval * interval;
            }
        }
    }

    /// The counters, and the queueing delays as they are at `now_ns`.
    #[must_use]
    pub fn stats(&self, now_ns: u64) -> Stats {
        let [classic, low_latency] = &self.queues;
        Stats {
            probability: self.controller.probability,
            classic_delay: whole_micros(head_delay_ns(classic, now_ns)),
            low_latency_delay: whole_micros(head_delay_ns(low_latency, now_ns)),
            packets_in_classic: self.packets_in[Queue::Classic as usize],
            packets_in_low_latency: self.packets_in[Queue::LowLatency as usize],
            max_queue_length: self.max_queue_length,
            ecn_marks: self.ecn_marks,
            step_marks: self.step_marks,
            credit: self.scheduler.credit,
            memory_used: self.memory_used,
            max_memory_used: self.max_memory_used,
            memory_limit: self.memory_limit,
            drops: self.drops,
            overlimits: self.overlimits,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            backlog_packets: self.len() as u64,
            backlog_bytes: self.backlog_bytes,
        }
    }
}

impl<P, R> fmt::Debug for DualPi2<P, R> {
    /// The state of the queue; not its packets, which need not be printable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [classic, low_latency] = &self.queues;
        f.debug_struct("DualPi2")
            .field("classic_packets", &classic.len())
            .field("low_latency_packets", &low_latency.len())
            .field("is_peeked", &self.peeked.is_some())
            .field("backlog_bytes", &self.backlog_bytes)
            .field("memory_used", &self.memory_used)
            .field("probability", &self.controller.probability)
            .field("credit", &self.scheduler.credit)
            .field("next_update_ns", &self.next_update_ns)
            .finish_non_exhaustive()
    }
}

/// How long the head of a queue has waited. An enqueue at time 0 counts as no packet, because the kernel keeps the
/// head's time in a variable whose 0 means 'empty'.
#[inline]
fn head_delay_ns<P>(queue: &VecDeque<Entry<P>>, now_ns: u64) -> u64 {
    match queue.front() {
        Some(entry) if entry.enqueued_ns != 0 => now_ns.saturating_sub(entry.enqueued_ns),
        _ => 0,
    }
}

fn saturating_nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

const fn whole_micros(nanos: u64) -> Duration {
    Duration::from_micros(nanos / 1_000)
}
