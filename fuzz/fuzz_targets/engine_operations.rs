//! Any configuration, any packets, any order of calls: the engine neither panics nor loses count.
//!
//! The properties are those of `crates/dualpi2/tests/properties.rs`; there a strategy picks likely cases, here coverage
//! leads the way into unlikely ones.

#![no_main]

use std::collections::VecDeque;
use std::time::Duration;

use arbitrary::Arbitrary;
use dualpi2::{
    Change, Class, Config, DropPoint, DropReason, Dropped, DualPi2, Ecn, EcnMask, Gain, MAX_GAIN,
    Overload, Packet, Queue, SplitMix64, StepThreshold,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    mtu: u16,
    seed: u64,
    initial: Parameters,
    operations: Vec<Operation>,
}

/// A [`Change`] in plain numbers, so that any bytes make one.
#[derive(Arbitrary, Debug)]
struct Parameters {
    limit: Option<u32>,
    memory_limit: Option<u32>,
    target_ns: Option<u64>,
    tupdate_us: Option<u32>,
    alpha: Option<u32>,
    beta: Option<u32>,
    step_ns: Option<u64>,
    step_packets: Option<u32>,
    min_qlen_step: Option<u32>,
    coupling_factor: Option<u8>,
    drop_on_overload: Option<bool>,
    drop_at_enqueue: Option<bool>,
    classic_protection: Option<u8>,
    any_ect: Option<bool>,
    split_gso: Option<bool>,
}

impl Parameters {
    fn change(&self) -> Change {
        let step_packets = self.step_packets.map(StepThreshold::Packets);
        let step_time = self.step_ns.map(|nanos| StepThreshold::Time(Duration::from_nanos(nanos)));
        let choose = |yes, no| move |given: bool| if given { yes } else { no };
        Change {
            limit: self.limit,
            memory_limit: self.memory_limit,
            target: self.target_ns.map(Duration::from_nanos),
            tupdate: self.tupdate_us.map(|micros| Duration::from_micros(micros.into())),
            alpha: self.alpha.map(Gain::from_256ths),
            beta: self.beta.map(Gain::from_256ths),
            step_threshold: step_packets.or(step_time),
            min_qlen_step: self.min_qlen_step,
            coupling_factor: self.coupling_factor,
            overload: self.drop_on_overload.map(choose(Overload::Drop, Overload::Overflow)),
            drop_point: self
                .drop_at_enqueue
                .map(|early| if early { DropPoint::Enqueue } else { DropPoint::Dequeue }),
            classic_protection: self.classic_protection,
            ecn_mask: self.any_ect.map(|any| if any { EcnMask::Any } else { EcnMask::L4s }),
            split_gso: self.split_gso,
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Enqueue {
        length: u32,
        memory: u32,
        tos: u8,
        minor: u8,
        segments: u8,
        refuse: bool,
    },
    /// Many alike, so that queues grow long from few bytes of input.
    Burst {
        count: u8,
        length: u16,
        tos: u8,
    },
    Dequeue,
    Drain {
        count: u8,
    },
    Peek,
    Wait {
        nanos: u32,
    },
    Update,
    Change(Parameters),
    Reset,
}

#[derive(Clone)]
struct Frame {
    id: u64,
    length: u32,
    memory: u32,
    arrived_as: Ecn,
    ecn: Ecn,
    class: Option<Class>,
    segments: u8,
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

/// The queue, and what it should hold.
struct Subject {
    queue: DualPi2<Frame>,
    now: u64,
    next_id: u64,
    waiting: [VecDeque<(u64, u32, u32)>; 2],
    entered: u64,
    left: u64,
    lost: u64,
    flushed_by_reset: u64,
}

impl Subject {
    fn enqueue(&mut self, mut frame: Frame, refuse: bool) {
        self.next_id += 1;
        frame.id = self.next_id;
        let config = self.queue.config();
        let mask = if config.ecn_mask == EcnMask::L4s { 0b01 } else { 0b11 };
        let class = if frame.ecn.bits() & mask != 0 {
            Some(Class::L4s)
        } else {
            frame.class.or((!refuse).then_some(Class::Classic))
        };
        let split = class.is_some() && config.split_gso && frame.segments > 0;
        let copies = if split { u64::from(frame.segments) } else { 1 };
        let entry = (frame.id, frame.length, frame.memory);
        let mut lost = 0;
        let queued = self.queue.enqueue_with(
            self.now,
            frame,
            |_| (!refuse).then_some(Class::Classic),
            &mut |dropped| {
                assert_eq!(dropped.reason == DropReason::Refused, class.is_none());
                lost += 1;
            },
        ) as u64;
        assert_eq!(queued + lost, copies);
        self.entered += copies;
        self.lost += lost;
        let waiting = &mut self.waiting[Queue::from(class.unwrap_or(Class::Classic)) as usize];
        waiting.extend((0..queued).map(|_| entry));
    }

    fn dequeue(&mut self) {
        let mut dropped = Vec::new();
        let departure = self.queue.dequeue(self.now, &mut |lost| dropped.push(lost));
        self.lost += self.strike_out(&dropped);
        if let Some(departure) = departure {
            let first = self.waiting[departure.queue as usize].pop_front();
            assert_eq!(first.map(|(id, ..)| id), Some(departure.packet.id), "out of order");
            self.left += 1;
            let marked = departure.marked_by_probability || departure.marked_by_step;
            assert!(!marked || departure.packet.ecn == Ecn::Ce);
            assert!(marked || departure.packet.ecn == departure.packet.arrived_as);
        }
    }

    /// Removes lost packets from what should be there, and counts them.
    fn strike_out(&mut self, dropped: &[Dropped<Frame>]) -> u64 {
        for lost in dropped {
            let first = self.waiting[lost.queue as usize].pop_front();
            assert_eq!(first.map(|(id, ..)| id), Some(lost.packet.id), "only a head can be lost");
        }
        dropped.len() as u64
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Enqueue { length, memory, tos, minor, segments, refuse } => {
                let ecn = Ecn::from_bits(tos);
                let class = Class::from_minor(minor.into());
                let frame = Frame { id: 0, length, memory, arrived_as: ecn, ecn, class, segments };
                self.enqueue(frame, refuse);
            }
            Operation::Burst { count, length, tos } => {
                let (length, ecn) = (length.into(), Ecn::from_bits(tos));
                for _ in 0..count {
                    let frame = Frame {
                        id: 0,
                        length,
                        memory: length,
                        arrived_as: ecn,
                        ecn,
                        class: None,
                        segments: 0,
                    };
                    self.enqueue(frame, false);
                }
            }
            Operation::Dequeue => self.dequeue(),
            Operation::Drain { count } => (0..count).for_each(|_| self.dequeue()),
            Operation::Peek => {
                let mut dropped = Vec::new();
                let shown = self.queue.peek(self.now, &mut |lost| dropped.push(lost));
                let shown = shown.map(|frame| frame.id);
                self.lost += self.strike_out(&dropped);
                let again = self.queue.peek(self.now, &mut |_| panic!("decided already"));
                assert_eq!(again.map(|frame| frame.id), shown);
            }
            Operation::Wait { nanos } => {
                self.now += u64::from(nanos);
                self.queue.poll(self.now);
                assert!(self.queue.next_update_ns() > self.now);
            }
            Operation::Update => self.queue.update(self.now),
            Operation::Change(parameters) => {
                let before = (self.queue.config(), self.queue.stats(self.now));
                let mut dropped = Vec::new();
                let result =
                    self.queue.change(&parameters.change(), &mut |lost| dropped.push(lost));
                if result.is_err() {
                    assert!(dropped.is_empty());
                    assert_eq!((self.queue.config(), self.queue.stats(self.now)), before);
                }
                self.lost += self.strike_out(&dropped);
            }
            Operation::Reset => {
                let mut dropped = Vec::new();
                self.queue.reset(&mut |lost| dropped.push(lost));
                self.flushed_by_reset += self.strike_out(&dropped);
                assert!(self.queue.is_empty());
            }
        }
    }

    fn check(&self) {
        let stats = self.queue.stats(self.now);
        let config = self.queue.config();
        let all = || self.waiting.iter().flatten();
        let packets = all().count() as u64;
        assert_eq!(stats.backlog_packets, packets);
        assert_eq!(self.queue.len() as u64, packets);
        assert_eq!(
            stats.backlog_bytes,
            all().map(|(_, length, _)| u64::from(*length)).sum::<u64>()
        );
        // A peeked packet has given its memory back already.
        let memory = all().map(|(.., memory)| u64::from(*memory)).sum::<u64>();
        assert!(u64::from(stats.memory_used) <= memory);
        assert_eq!(stats.drops, self.lost);
        assert_eq!(stats.sent_packets, self.left);
        assert_eq!(self.entered, self.left + self.lost + self.flushed_by_reset + packets);
        assert!(packets <= u64::from(config.limit));
        assert!(stats.memory_used <= config.memory_limit);
    }
}

fuzz_target!(|input: Input| {
    let mtu = u32::from(input.mtu);
    let Ok(config) = Config::for_mtu(mtu).with(&input.initial.change(), mtu) else { return };
    assert!(config.alpha <= MAX_GAIN && config.beta <= MAX_GAIN);
    let queue = DualPi2::new(config, mtu, SplitMix64::new(input.seed), 0)
        .expect("a configuration that was checked");
    let mut subject = Subject {
        queue,
        now: 0,
        next_id: 0,
        waiting: [VecDeque::new(), VecDeque::new()],
        entered: 0,
        left: 0,
        lost: 0,
        flushed_by_reset: 0,
    };
    for operation in input.operations {
        subject.run(operation);
        subject.check();
    }
    while !subject.queue.is_empty() {
        subject.dequeue();
    }
    subject.check();
    assert_eq!(subject.queue.stats(subject.now).memory_used, 0);
});
