//! What must hold under any configuration and any traffic.

use std::collections::VecDeque;
use std::time::Duration;

use dualpi2::{
    Change, Class, Config, DropPoint, DropReason, DualPi2, Ecn, EcnMask, Gain, MAX_GAIN, Overload,
    Packet, Queue, SplitMix64, StepThreshold,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Frame {
    id: u64,
    length: u32,
    memory: u32,
    arrived_as: Ecn,
    ecn: Ecn,
    class: Option<Class>,
    segments: u32,
}

impl Packet for Frame {
    fn length(&self) -> u32 {
        self.length
    }
    fn memory(&self) -> u32 {
        self.memory
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        assert_ne!(self.ecn, Ecn::NotEct, "CE set on a packet that is not ECN-capable");
        self.ecn = Ecn::Ce;
    }
    fn class(&self) -> Option<Class> {
        self.class
    }
    fn is_gso(&self) -> bool {
        self.segments > 0
    }
    fn split(self, segment: &mut impl FnMut(Self)) {
        for _ in 0..self.segments {
            segment(Self { segments: 0, ..self.clone() });
        }
    }
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce])
}

fn class() -> impl Strategy<Value = Option<Class>> {
    prop::sample::select(vec![
        None,
        None,
        None,
        Some(Class::Classic),
        Some(Class::L4s),
        Some(Class::LowLatency),
    ])
}

fn frame() -> impl Strategy<Value = Frame> {
    let segments = prop_oneof![4 => Just(0_u32), 1 => 1..45_u32];
    (1..70_000_u32, 1..80_000_u32, ecn(), class(), segments).prop_map(
        |(length, memory, ecn, class, segments)| Frame {
            id: 0,
            length,
            memory,
            arrived_as: ecn,
            ecn,
            class,
            segments,
        },
    )
}

/// A u32 of any magnitude, the extremes included.
fn any_u32() -> impl Strategy<Value = u32> {
    prop_oneof![0..10_u32, 0..100_000_u32, any::<u32>(), Just(u32::MAX)]
}

fn change() -> impl Strategy<Value = Change> {
    let micros = || any_u32().prop_map(|micros| Duration::from_micros(micros.into()));
    let gain = || (1..=MAX_GAIN.as_256ths()).prop_map(Gain::from_256ths);
    let step = prop_oneof![
        micros().prop_map(StepThreshold::Time),
        any_u32().prop_map(StepThreshold::Packets)
    ];
    let some = prop::option::of::<BoxedStrategy<u32>>;
    (
        some(any_u32().prop_map(|limit| limit.max(1)).boxed()),
        some(any_u32().prop_map(|limit| limit.max(1)).boxed()),
        prop::option::of(micros()),
        prop::option::of(micros().prop_map(|time| time.max(Duration::from_micros(100)))),
        prop::option::of(gain()),
        prop::option::of(gain()),
        prop::option::of(step),
        some(any_u32().boxed()),
        (
            prop::option::of(1..=255_u8),
            prop::option::of(0..=100_u8),
            prop::option::of(any::<bool>()),
            prop::option::of(any::<bool>()),
            prop::option::of(any::<bool>()),
            prop::option::of(any::<bool>()),
        ),
    )
        .prop_map(
            |(limit, memory_limit, target, tupdate, alpha, beta, step, min_qlen_step, rest)| {
                let (coupling_factor, classic_protection, overload, point, mask, split) = rest;
                Change {
                    limit,
                    memory_limit,
                    target,
                    tupdate,
                    alpha,
                    beta,
                    step_threshold: step,
                    min_qlen_step,
                    coupling_factor,
                    overload: overload.map(|d| if d { Overload::Drop } else { Overload::Overflow }),
                    drop_point: point
                        .map(|e| if e { DropPoint::Enqueue } else { DropPoint::Dequeue }),
                    classic_protection,
                    ecn_mask: mask.map(|any| if any { EcnMask::Any } else { EcnMask::L4s }),
                    split_gso: split,
                }
            },
        )
}

#[derive(Clone, Debug)]
enum Operation {
    Enqueue(Frame),
    Dequeue,
    Peek,
    Wait(u64),
    Change(Change),
    Reset,
}

fn operation() -> impl Strategy<Value = Operation> {
    let wait = prop_oneof![0..1_000_000_u64, 0..100_000_000_u64, Just(2_000_000_000)];
    prop_oneof![
        40 => frame().prop_map(Operation::Enqueue),
        25 => Just(Operation::Dequeue),
        5 => Just(Operation::Peek),
        20 => wait.prop_map(Operation::Wait),
        3 => change().prop_map(Operation::Change),
        1 => Just(Operation::Reset),
    ]
}

/// What the queue should hold, kept beside it.
#[derive(Default)]
struct Books {
    queued: [VecDeque<Frame>; 2],
    entered: u64,
    left: u64,
    lost: u64,
    flushed: u64,
}

impl Books {
    /// Packets come out of each queue in the order in which they went in; those that were dropped are missing.
    fn take(&mut self, queue: Queue, id: u64) -> Frame {
        let waiting = &mut self.queued[queue as usize];
        let at = waiting.iter().position(|frame| frame.id == id).expect("left but never entered");
        waiting.remove(at).expect("found")
    }
}

/// Miri is some hundred times slower, and looks for other things than rare values: fewer cases, and shorter ones.
const fn under_miri(fewer: usize, all: usize) -> usize {
    if cfg!(miri) { fewer } else { all }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: under_miri(8, 400) as u32, ..ProptestConfig::default() })]

    #[test]
    fn the_books_balance(
        initial in change(),
        mtu in 68..65_535_u32,
        seed in any::<u64>(),
        operations in prop::collection::vec(operation(), 1..under_miri(60, 400)),
    ) {
        let config = Config::for_mtu(mtu).with(&initial, mtu).unwrap();
        let mut queue = DualPi2::new(config, mtu, SplitMix64::new(seed), 0).unwrap();
        let mut books = Books::default();
        let mut now = 0;
        let mut next_id = 0;
        for operation in operations {
            queue.poll(now);
            match operation {
                Operation::Enqueue(mut frame) => {
                    next_id += 1;
                    frame.id = next_id;
                    let split = queue.config().split_gso && frame.segments > 0;
                    let copies = if split { u64::from(frame.segments) } else { 1 };
                    let lost_before = books.lost;
                    let mut lost = 0;
                    let queued = queue.enqueue(now, frame.clone(), &mut |_| lost += 1) as u64;
                    books.lost += lost;
                    prop_assert_eq!(queued + books.lost - lost_before, copies);
                    books.entered += copies;
                    // Which queue it took is seen when it leaves; here it is worked out from the rules.
                    let mask = queue.config().ecn_mask;
                    let by_ecn = frame.ecn.bits() & if mask == EcnMask::L4s { 1 } else { 3 } != 0;
                    let class =
                        if by_ecn { Class::L4s } else { frame.class.unwrap_or(Class::Classic) };
                    for _ in 0..queued {
                        let whole = Frame { segments: 0, ..frame.clone() };
                        books.queued[Queue::from(class) as usize].push_back(whole);
                    }
                }
                Operation::Dequeue => {
                    let mut dropped = Vec::new();
                    let departure = queue.dequeue(now, &mut |lost| dropped.push(lost));
                    for lost in dropped {
                        prop_assert_ne!(lost.reason, DropReason::Overlimit);
                        books.take(lost.queue, lost.packet.id);
                        books.lost += 1;
                    }
                    if let Some(departure) = departure {
                        let packet = &departure.packet;
                        let first = books.queued[departure.queue as usize].front().map(|f| f.id);
                        prop_assert_eq!(first, Some(packet.id), "out of order");
                        books.take(departure.queue, packet.id);
                        books.left += 1;
                        let marked = departure.marked_by_probability || departure.marked_by_step;
                        prop_assert!(!marked || packet.ecn == Ecn::Ce);
                        prop_assert!(marked || packet.ecn == packet.arrived_as);
                    }
                }
                Operation::Peek => {
                    let mut dropped = Vec::new();
                    let shown = queue.peek(now, &mut |lost| dropped.push(lost)).map(|p| p.id);
                    for lost in dropped {
                        books.take(lost.queue, lost.packet.id);
                        books.lost += 1;
                    }
                    let again = queue.peek(now, &mut |_| panic!("decided already")).map(|p| p.id);
                    prop_assert_eq!(shown, again);
                }
                Operation::Wait(nanos) => now += nanos,
                Operation::Change(change) => {
                    let mut dropped = Vec::new();
                    queue.change(&change, &mut |lost| dropped.push(lost)).unwrap();
                    for lost in dropped {
                        books.take(lost.queue, lost.packet.id);
                        books.lost += 1;
                    }
                }
                Operation::Reset => {
                    let mut dropped = Vec::new();
                    queue.reset(&mut |lost| dropped.push(lost));
                    for lost in dropped {
                        books.take(lost.queue, lost.packet.id);
                        books.flushed += 1;
                    }
                    prop_assert!(queue.is_empty());
                }
            }
            let stats = queue.stats(now);
            let waiting: Vec<&Frame> = books.queued.iter().flatten().collect();
            let backlog: u64 = waiting.iter().map(|frame| u64::from(frame.length)).sum();
            let memory: u64 = waiting.iter().map(|frame| u64::from(frame.memory)).sum();
            prop_assert_eq!(queue.len(), waiting.len());
            prop_assert_eq!(stats.backlog_packets, waiting.len() as u64);
            prop_assert_eq!(stats.backlog_bytes, backlog);
            // A peeked packet has given its memory back already.
            prop_assert!(u64::from(stats.memory_used) <= memory);
            prop_assert_eq!(stats.drops, books.lost);
            prop_assert_eq!(stats.sent_packets, books.left);
            let in_queue = waiting.len() as u64;
            prop_assert_eq!(books.entered, books.left + books.lost + books.flushed + in_queue);
            let config = queue.config();
            prop_assert!(queue.len() as u64 <= u64::from(config.limit));
            prop_assert!(stats.memory_used <= config.memory_limit);
        }
        // Everything comes out in the end, and takes its memory along.
        now += 1;
        while queue.dequeue(now, &mut |_| ()).is_some() {}
        prop_assert_eq!(queue.stats(now).memory_used, 0);
        prop_assert_eq!(queue.stats(now).backlog_bytes, 0);
    }

    /// Without drops on overload, L4S marking stops at 100 %: the base probability at 1/k.
    #[test]
    fn the_probability_stays_within_its_bounds(
        delays in prop::collection::vec(0..10_000_000_000_u64, 1..under_miri(20, 100)),
        change in change(),
        factor in 1..=255_u8,
    ) {
        let change = Change { coupling_factor: Some(factor), limit: Some(10), memory_limit: Some(u32::MAX),
            overload: Some(Overload::Overflow), split_gso: Some(false), ..change };
        let config = Config::for_mtu(1514).with(&change, 1514).unwrap();
        let mut queue = DualPi2::new(config, 1514, SplitMix64::new(1), 0).unwrap();
        let mut now = 1;
        for delay in delays {
            let frame = Frame { id: 0, length: 1514, memory: 1, arrived_as: Ecn::Ect0, ecn: Ecn::Ect0,
                class: None, segments: 0 };
            queue.enqueue(now, frame, &mut |_| ());
            now += delay;
            queue.update(now);
            prop_assert!(queue.stats(now).probability <= u32::MAX / u32::from(factor));
            queue.dequeue(now, &mut |_| ());
        }
    }

    /// While both queues stand, classic gets its share of the bytes, whatever low latency sends.
    #[test]
    fn classic_is_protected(
        protection in 1..=99_u8,
        classic_length in 64..1514_u32,
        low_latency_length in 64..1514_u32,
    ) {
        let change = Change {
            classic_protection: Some(protection),
            target: Some(Duration::from_secs(4)),
            alpha: Some(Gain::MIN),
            beta: Some(Gain::MIN),
            step_threshold: Some(StepThreshold::Packets(u32::MAX)),
            ..Change::default()
        };
        let config = Config::for_mtu(1514).with(&change, 1514).unwrap();
        let mut queue = DualPi2::new(config, 1514, SplitMix64::new(1), 0).unwrap();
        let frame = |ecn, length| Frame { id: 0, length, memory: length, arrived_as: ecn, ecn, class: None,
            segments: 0 };
        let mut sent = [0_u64; 2];
        for _ in 0..10 {
            queue.enqueue(1, frame(Ecn::NotEct, classic_length), &mut |_| ());
            queue.enqueue(1, frame(Ecn::Ect1, low_latency_length), &mut |_| ());
        }
        for _ in 0..under_miri(500, 20_000) {
            let out = queue.dequeue(1, &mut |_| ()).unwrap();
            sent[out.queue as usize] += u64::from(out.packet.length);
            let length = if out.queue == Queue::Classic { classic_length } else { low_latency_length };
            queue.enqueue(1, frame(out.packet.arrived_as, length), &mut |_| ());
        }
        let all = sent[0] + sent[1];
        let share = all as f64 * f64::from(protection) / 100.0;
        // What the credit begins with is worth one packet of the MTU at most, and a turn another.
        prop_assert!((sent[0] as f64 - share).abs() <= 2.0 * 1514.0, "{} of {all} instead of {share}", sent[0]);
    }

    /// A caller without a timer, who polls, sees the probability that a timer would have made.
    #[test]
    fn polling_late_is_as_good_as_a_timer(
        steps in prop::collection::vec((0..200_000_000_u64, 0..4_u8), 1..under_miri(20, 100)),
        // Each update is computed, up to 200,000 a step.
        tupdate in under_miri(10_000, 1) as u64..50_000,
    ) {
        let change = Change { tupdate: Some(Duration::from_micros(tupdate)), ..Change::default() };
        let config = Config::for_mtu(1514).with(&change, 1514).unwrap();
        let mut timed = DualPi2::new(config, 1514, SplitMix64::new(1), 0).unwrap();
        let mut polled = DualPi2::new(config, 1514, SplitMix64::new(1), 0).unwrap();
        let mut now = 0;
        for (wait, what) in steps {
            now += wait;
            while timed.next_update_ns() <= now {
                let due = timed.next_update_ns();
                timed.update(due);
            }
            polled.poll(now);
            prop_assert_eq!(timed.next_update_ns(), polled.next_update_ns());
            for queue in [&mut timed, &mut polled] {
                if what == 0 {
                    queue.dequeue(now, &mut |_| ());
                } else {
                    queue.enqueue(now, Frame { id: 0, length: 1514, memory: 1514, arrived_as: Ecn::Ect0,
                        ecn: Ecn::Ect0, class: None, segments: 0 }, &mut |_| ());
                }
            }
            prop_assert_eq!(timed.stats(now), polled.stats(now));
        }
    }
}

#[test]
fn values_out_of_bounds_are_refused() {
    use dualpi2::ConfigError as E;
    let defaults = Config::for_mtu(1514);
    let zero = Some(Gain::from_256ths(0));
    let cases = [
        (Change { limit: Some(0), ..Change::default() }, E::Limit),
        (Change { memory_limit: Some(0), ..Change::default() }, E::MemoryLimit),
        (Change { tupdate: Some(Duration::ZERO), ..Change::default() }, E::Tupdate),
        (Change { target: Some(Duration::MAX), ..Change::default() }, E::Target),
        (Change { alpha: zero, ..Change::default() }, E::Alpha),
        (Change { beta: zero, ..Change::default() }, E::Beta),
        (Change { coupling_factor: Some(0), ..Change::default() }, E::CouplingFactor),
        (Change { classic_protection: Some(101), ..Change::default() }, E::ClassicProtection),
    ];
    for (change, error) in cases {
        assert_eq!(defaults.with(&change, 1514), Err(error));
        let mut queue = DualPi2::<Frame>::new(defaults, 1514, SplitMix64::new(1), 0).unwrap();
        let before = queue.config();
        assert_eq!(queue.change(&change, &mut |_| ()), Err(error));
        assert_eq!(queue.config(), before, "a refused change changed something");
    }
}

#[test]
fn a_smaller_limit_drops_the_surplus_from_classic_first() {
    let mut queue = DualPi2::new(Config::for_mtu(1514), 1514, SplitMix64::new(1), 0).unwrap();
    for id in 0..10 {
        let ecn = if id % 2 == 0 { Ecn::NotEct } else { Ecn::Ect1 };
        let frame =
            Frame { id, length: 100, memory: 100, arrived_as: ecn, ecn, class: None, segments: 0 };
        queue.enqueue(1, frame, &mut |_| ());
    }
    let mut dropped = Vec::new();
    let change = Change { limit: Some(3), ..Change::default() };
    queue.change(&change, &mut |lost| dropped.push((lost.packet.id, lost.reason))).unwrap();
    let expected: Vec<_> = [0, 2, 4, 6, 8, 1, 3].map(|id| (id, DropReason::Flushed)).into();
    assert_eq!(dropped, expected);
    assert_eq!(queue.config().memory_limit, 3 * 2 * 1514, "the memory limit follows the limit");
    assert_eq!(queue.stats(1).drops, 7);
}

#[test]
fn a_callers_classifier_decides_what_ecn_and_priority_leave_open() {
    let mut queue = DualPi2::new(Config::for_mtu(1514), 1514, SplitMix64::new(1), 0).unwrap();
    let frame = |ecn, class| Frame {
        id: 0,
        length: 100,
        memory: 100,
        arrived_as: ecn,
        ecn,
        class,
        segments: 0,
    };
    let mut refused = 0;
    let mut classify = |packet: Frame, verdict: Option<Class>| {
        queue.enqueue_with(1, packet, |_| verdict, &mut |lost| {
            assert_eq!(lost.reason, DropReason::Refused);
            refused += 1;
        });
        let stats = queue.stats(1);
        (stats.packets_in_classic, stats.packets_in_low_latency)
    };
    assert_eq!(classify(frame(Ecn::NotEct, None), Some(Class::LowLatency)), (0, 1));
    assert_eq!(classify(frame(Ecn::NotEct, None), Some(Class::Classic)), (1, 1));
    assert_eq!(classify(frame(Ecn::NotEct, None), None), (1, 1));
    assert_eq!(classify(frame(Ecn::Ect1, None), None), (1, 2), "ECN comes first");
    assert_eq!(classify(frame(Ecn::NotEct, Some(Class::L4s)), None), (1, 3), "then priority");
    assert_eq!(refused, 1);
}

#[test]
fn a_long_pause_costs_nothing_to_catch_up() {
    let config = Config { tupdate: Duration::from_micros(1), ..Config::for_mtu(1514) };
    let mut queue = DualPi2::<Frame>::new(config, 1514, SplitMix64::new(1), 0).unwrap();
    let year_ns = 365 * 24 * 3_600 * 1_000_000_000;
    queue.poll(year_ns);
    assert_eq!(queue.next_update_ns(), year_ns + 1_000);
}

/// A probability that no update moves is at rest too, though it is not zero.
#[test]
fn a_long_pause_costs_nothing_where_the_probability_stays() {
    let change = Change { target: Some(Duration::ZERO), limit: Some(100_000), ..Change::default() };
    let config = Config::for_mtu(1514).with(&change, 1514).unwrap();
    let mut queue = DualPi2::<Frame>::new(config, 1514, SplitMix64::new(1), 1).unwrap();
    for now_ms in 1..2_000_u64 {
        let now_ns = now_ms * 1_000_000;
        queue.poll(now_ns);
        let (id, ecn) = (now_ms, Ecn::Ect0);
        let frame =
            Frame { id, length: 1514, memory: 1, arrived_as: ecn, ecn, class: None, segments: 0 };
        queue.enqueue(now_ns, frame, &mut |_| ());
        if now_ms % 2 == 0 {
            queue.dequeue(now_ns, &mut |_| ());
        }
    }
    while queue.dequeue(2_000_000_000, &mut |_| ()).is_some() {}
    queue.poll(3_000_000_000);
    let probability = queue.stats(3_000_000_000).probability;
    assert!(probability > 0, "with a target of zero nothing lets it fall");
    let century_ns = 100 * 365 * 24 * 3_600 * 1_000_000_000;
    queue.poll(century_ns);
    assert!(queue.next_update_ns() > century_ns);
    assert_eq!(queue.stats(century_ns).probability, probability);
}

/// A packet whose owner makes room for an option when it marks it.
struct Growing {
    memory: u32,
    ecn: Ecn,
}

impl Packet for Growing {
    fn length(&self) -> u32 {
        1000
    }
    fn memory(&self) -> u32 {
        self.memory
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
        self.memory += 500;
    }
}

#[test]
fn memory_that_changes_with_a_mark_is_given_back_as_it_was_taken() {
    let change = Change {
        drop_point: Some(DropPoint::Enqueue),
        step_threshold: Some(StepThreshold::Packets(0)),
        ..Change::default()
    };
    let config = Config::for_mtu(1514).with(&change, 1514).unwrap();
    let mut queue = DualPi2::new(config, 1514, SplitMix64::new(1), 0).unwrap();
    let (mut now_ns, mut marked) = (0, 0);
    for _ in 0..3000 {
        now_ns += 1_000_000;
        queue.poll(now_ns);
        for ecn in [Ecn::Ect0, Ecn::Ect1] {
            queue.enqueue(now_ns, Growing { memory: 1500, ecn }, &mut |_| ());
        }
        let departure = queue.dequeue(now_ns, &mut |_| ()).unwrap();
        marked += u32::from(departure.marked_by_probability);
        assert_eq!(u64::from(queue.stats(now_ns).memory_used), queue.len() as u64 * 1500);
    }
    assert!(marked > 0);
    while queue.dequeue(now_ns, &mut |_| ()).is_some() {}
    assert_eq!(queue.stats(now_ns).memory_used, 0);
}

#[test]
fn a_clock_that_goes_backwards_counts_as_no_wait() {
    let mut queue = DualPi2::new(Config::for_mtu(1514), 1514, SplitMix64::new(1), 0).unwrap();
    for _ in 0..2 {
        queue.enqueue(5_000, Growing { memory: 1, ecn: Ecn::Ect1 }, &mut |_| ());
    }
    assert_eq!(queue.stats(4_000).low_latency_delay, Duration::ZERO);
    let departure = queue.dequeue(4_000, &mut |_| ()).unwrap();
    assert_eq!((departure.sojourn_ns, departure.marked_by_step), (0, false));
    queue.update(4_500);
    assert_eq!(queue.stats(4_500).probability, 0);
    let shown = format!("{queue:?}");
    assert!(shown.starts_with("DualPi2 { classic_packets: 0, low_latency_packets: 1,"), "{shown}");
}
