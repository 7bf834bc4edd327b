//! The two queues and what happens to a packet on its way through them (RFC 9332 Figures 3, 4 and 7).

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::config::{
    Change, Config, ConfigError, DropPoint, EcnMask, Gain, Overload, StepThreshold,
};
use crate::coupling::{Coupling, Verdict};
use crate::packet::{Class, Ecn, Packet};
use crate::pi2::{Controller, ScaledGain};
use crate::random::{Random, SplitMix64};
use crate::scheduler::Scheduler;
use crate::stats::Stats;

/// One of the two queues (RFC 9332 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// C: classic traffic.
    Classic,
    /// L: low latency traffic.
    LowLatency,
}

impl From<Class> for Queue {
    fn from(class: Class) -> Self {
        match class {
            Class::Classic => Self::Classic,
            Class::L4s | Class::LowLatency => Self::LowLatency,
        }
    }
}

/// A packet that leaves, and how it fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The packet, CE set if it was marked.
    pub packet: P,
    /// The queue it waited in.
    pub queue: Queue,
    /// How long it waited, in nanoseconds.
    pub sojourn_ns: u64,
    /// Marked by the squared or coupled probability.
    pub marked_by_probability: bool,
    /// Marked by the low latency queue's step.
    pub marked_by_step: bool,
}

/// A packet that is lost, given back to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    class: Class,
    apply_step: bool,
    marked_by_probability: bool,
}

/// A step threshold in the units that it is compared in.
#[derive(Clone, Copy)]
enum Step {
    Nanos(u32),
    Packets(u32),
}

/// The dual queue. `P` is the packet, `R` the source of its dice.
///
/// Every method that may lose packets hands each to `dropped`; pass `&mut |_| ()` to let them go.
pub struct DualPi2<P, R = SplitMix64> {
    classic: VecDeque<Entry<P>>,
    low_latency: VecDeque<Entry<P>>,
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
    packets_in_classic: u64,
    packets_in_low_latency: u64,
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
            classic: VecDeque::new(),
            low_latency: VecDeque::new(),
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
            step: Step::Packets(0),
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
            packets_in_classic: 0,
            packets_in_low_latency: 0,
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
        self.classic.reserve(packets.saturating_sub(self.classic.len()));
        self.low_latency.reserve(packets.saturating_sub(self.low_latency.len()));
    }

    /// Takes over everything but the scheduler's weights and the gains, which keep their state or their rounding.
    fn configure(&mut self, config: &Config) {
        self.limit = config.limit;
        self.memory_limit = config.memory_limit;
        self.controller.target_ns = config.target.as_nanos() as u64;
        self.tupdate_ns = saturating_nanos(config.tupdate);
        self.step = match config.step_threshold {
            StepThreshold::Time(time) => Step::Nanos(saturating_nanos(time)),
            StepThreshold::Packets(packets) => Step::Packets(packets),
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
            step_threshold: match self.step {
                Step::Nanos(nanos) => StepThreshold::Time(whole_micros(nanos.into())),
                Step::Packets(packets) => StepThreshold::Packets(packets),
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
        if let (None, Step::Nanos(nanos)) = (change.step_threshold, self.step) {
            config.step_threshold = StepThreshold::Time(Duration::from_nanos(nanos.into()));
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
        self.packets_in_classic = 0;
        self.packets_in_low_latency = 0;
        self.max_queue_length = 0;
        self.ecn_marks = 0;
        self.step_marks = 0;
        self.max_memory_used = 0;
    }

    fn flush_one(&mut self, dropped: &mut impl FnMut(Dropped<P>)) -> bool {
        let (packet, queue) = if let Some(departure) = self.peeked.take() {
            // Its memory was given back when it was taken from its queue.
            (departure.packet, departure.queue)
        } else if let Some(entry) = self.classic.pop_front() {
            self.memory_used -= entry.packet.memory();
            (entry.packet, Queue::Classic)
        } else if let Some(entry) = self.low_latency.pop_front() {
            self.memory_used -= entry.packet.memory();
            (entry.packet, Queue::LowLatency)
        } else {
            return false;
        };
        self.backlog_bytes -= u64::from(packet.length());
        dropped(Dropped { packet, queue, reason: DropReason::Flushed });
        true
    }

    /// Packets waiting in both queues.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.classic.len() + self.low_latency.len() + usize::from(self.peeked.is_some())
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
        let memory_used = u64::from(self.memory_used) + u64::from(packet.memory());
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
        let apply_step =
            class == Class::L4s && self.low_latency.len() >= self.min_qlen_step as usize;
        let entry = Entry { packet, enqueued_ns: now_ns, class, apply_step, marked_by_probability };
        match queue {
            Queue::Classic => {
                self.packets_in_classic += 1;
                self.classic.push_back(entry);
            }
            Queue::LowLatency => {
                self.packets_in_low_latency += 1;
                self.low_latency.push_back(entry);
            }
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
        let departure = if let Some(departure) = self.peeked.take() {
            self.backlog_bytes -= u64::from(departure.packet.length());
            departure
        } else {
            self.take(now_ns, dropped)?
        };
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

    /// Takes packets from the queues until one passes the AQM.
    #[inline]
    fn take(&mut self, now_ns: u64, dropped: &mut impl FnMut(Dropped<P>)) -> Option<Departure<P>> {
        loop {
            let classic_waits = !self.classic.is_empty();
            let low_latency_waits = !self.low_latency.is_empty();
            let (entry, queue) =
                if low_latency_waits && (!classic_waits || self.scheduler.prefers_low_latency()) {
                    (self.low_latency.pop_front()?, Queue::LowLatency)
                } else if classic_waits {
                    (self.classic.pop_front()?, Queue::Classic)
                } else {
                    self.scheduler.reset();
                    return None;
                };
            let Entry { mut packet, enqueued_ns, class, apply_step, mut marked_by_probability } =
                entry;
            let length = packet.length();
            self.memory_used -= packet.memory();
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

            let sojourn_ns = now_ns.wrapping_sub(enqueued_ns);
            let over_step = apply_step
                && match self.step {
                    Step::Nanos(nanos) => sojourn_ns > u64::from(nanos),
                    Step::Packets(packets) => self.low_latency.len() > packets as usize,
                };
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

            if classic_waits && low_latency_waits {
                match queue {
                    Queue::Classic => self.scheduler.served_classic(length),
                    Queue::LowLatency => self.scheduler.served_low_latency(length),
                }
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
        let delay_ns =
            head_delay_ns(&self.classic, now_ns).max(head_delay_ns(&self.low_latency, now_ns));
        self.controller.update(delay_ns);
        self.controller.probability = self.controller.probability.min(self.coupling.base_limit());
        self.couple(self.coupling.factor(), self.coupling.on_overload());
        self.next_update_ns = now_ns.saturating_add(self.tupdate_ns.into());
    }

    /// For callers without a timer: runs each update that has come due up to `now_ns`, at the time when it was due. Call
    /// it before each enqueue and dequeue. Costs one comparison if nothing is due, and no more than one step per missed
    /// update if the queue stood still.
    #[inline]
    pub fn poll(&mut self, now_ns: u64) {
        if now_ns >= self.next_update_ns {
            self.catch_up(now_ns);
        }
    }

    #[cold]
    fn catch_up(&mut self, now_ns: u64) {
        while now_ns >= self.next_update_ns {
            self.update(self.next_update_ns);
            if self.classic.is_empty()
                && self.low_latency.is_empty()
                && self.controller.is_at_rest()
            {
                // Nothing can change before the next packet: skip to the last update that was due.
                let interval = u64::from(self.tupdate_ns);
                let missed = (now_ns.saturating_sub(self.next_update_ns)) / interval;
                self.next_update_ns += missed * interval;
                if self.next_update_ns <= now_ns {
                    self.next_update_ns = self.next_update_ns.saturating_add(interval);
                }
            }
            if self.next_update_ns == u64::MAX {
                return;
            }
        }
    }

    /// The counters, and the queueing delays as they are at `now_ns`.
    #[must_use]
    pub fn stats(&self, now_ns: u64) -> Stats {
        Stats {
            probability: self.controller.probability,
            classic_delay: whole_micros(head_delay_ns(&self.classic, now_ns)),
            low_latency_delay: whole_micros(head_delay_ns(&self.low_latency, now_ns)),
            packets_in_classic: self.packets_in_classic,
            packets_in_low_latency: self.packets_in_low_latency,
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

/// How long the head of a queue has waited. An enqueue at time 0 counts as no packet, because the kernel keeps the
/// head's time in a variable whose 0 means 'empty'.
#[inline]
fn head_delay_ns<P>(queue: &VecDeque<Entry<P>>, now_ns: u64) -> u64 {
    match queue.front() {
        Some(entry) if entry.enqueued_ns != 0 => now_ns.wrapping_sub(entry.enqueued_ns),
        _ => 0,
    }
}

fn saturating_nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

const fn whole_micros(nanos: u64) -> Duration {
    Duration::from_micros(nanos / 1_000)
}
