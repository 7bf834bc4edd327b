//! What each discipline does to packets, step by step.

mod cake;
mod codel;
mod fq;
mod fq_codel;
mod fq_pie;
mod netem;
mod pfifo_fast;
mod pie;
mod prio;
mod red;
mod sfq;
mod shapers;
mod upcoming;

use dualq_qdisc::{
    Departure, Device, Discipline, Dropped, Ecn, FlowPacket, Packet, PureAck, Qdisc, SplitMix64,
    grammar,
};
use dualq_units::{Instant, Rate};

/// A packet that remembers what it was made as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    id: u32,
    length: u32,
    ecn: Ecn,
    flow: u32,
    priority: u32,
    departure: Option<Instant>,
    rate: Option<Rate>,
}

/// The flow of what has a wrong bit.
const SPOILT: u32 = u32::MAX;

/// A packet that is so long is an acknowledgement, which says more the larger its id is.
const ACK_BYTES: u32 = 66;

/// A full-sized packet of `flow` that is not ECN-capable.
const fn full(id: u32, flow: u32) -> Frame {
    Frame { id, length: 1514, ecn: Ecn::NotEct, flow, priority: 0, departure: None, rate: None }
}

impl Packet for Frame {
    fn length(&self) -> u32 {
        self.length
    }
    fn memory(&self) -> u32 {
        self.length + 768
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        assert_ne!(self.ecn, Ecn::NotEct);
        self.ecn = Ecn::Ce;
    }
    fn is_gso(&self) -> bool {
        self.length > 1514
    }
    fn split(self, segment: &mut impl FnMut(Self)) {
        let mut rest = self.length;
        while rest > 0 {
            segment(Self { length: rest.min(1514), ..self });
            rest -= rest.min(1514);
        }
    }
}

impl FlowPacket for Frame {
    fn flow(&self) -> u32 {
        self.flow
    }
    /// What is longer than a frame is an aggregate.
    fn segments(&self) -> (u32, u32) {
        (self.length.div_ceil(1514).max(1), self.length.min(1514))
    }
    fn copy(&self) -> Option<Self> {
        Some(*self)
    }
    /// Who reads it finds no flow.
    fn spoil(&mut self) {
        self.flow = SPOILT;
    }
    fn socket(&self) -> Option<u32> {
        Some(self.flow)
    }
    fn priority(&self) -> u32 {
        self.priority
    }
    fn dscp(&self) -> u8 {
        self.priority as u8
    }
    /// Ten flows come from one host, and all go to one.
    fn hosts(&self) -> [u32; 2] {
        [self.flow / 10, 0]
    }
    fn pure_ack(&self) -> Option<PureAck> {
        (self.length == ACK_BYTES).then_some(PureAck {
            connection: self.flow,
            number: self.id.into(),
            has_sacks: false,
            ecn_flags: 0,
            is_special: false,
        })
    }
    fn departure_time(&self) -> Option<Instant> {
        self.departure
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
}

/// A discipline with a list of what it dropped.
struct Bench {
    discipline: Discipline<Frame>,
    dropped: Vec<Dropped<Frame>>,
}

impl Bench {
    fn new(line: &str) -> Self {
        let spec = grammar::parse(line).unwrap().spec;
        let random = SplitMix64::new(7);
        let discipline = spec.build(&Device::ethernet(1500), random, Instant::ZERO);
        Self { discipline, dropped: Vec::new() }
    }

    fn put(&mut self, now: u64, frame: Frame) {
        let Self { discipline, dropped } = self;
        discipline.enqueue(Instant::from_nanos(now), frame, &mut |lost| dropped.push(lost));
    }

    fn take(&mut self, now: u64) -> Option<Departure<Frame>> {
        let Self { discipline, dropped } = self;
        discipline.dequeue(Instant::from_nanos(now), &mut |lost| dropped.push(lost))
    }

    /// The ids of the next `count` packets that leave at `now`.
    fn ids(&mut self, now: u64, count: usize) -> Vec<u32> {
        (0..count).map_while(|_| self.take(now)).map(|departure| departure.packet.id).collect()
    }

    /// Waits for the next packet on a link that is idle from `now` on.
    fn next(&mut self, mut now: u64) -> Option<(u64, Departure<Frame>)> {
        loop {
            let ready = self.discipline.next_ready(Instant::from_nanos(now)).as_nanos();
            let timer = self.discipline.next_timer().as_nanos();
            if ready == u64::MAX {
                return None;
            }
            if timer <= ready {
                self.discipline.on_timer(Instant::from_nanos(timer));
                continue;
            }
            now = ready;
            if let Some(departure) = self.take(now) {
                return Some((now, departure));
            }
        }
    }

    /// The times at which the packets that wait leave a link without a rate.
    fn departures(&mut self, now: u64) -> Vec<u64> {
        let mut last = now;
        std::iter::from_fn(|| {
            let (at, _) = self.next(last)?;
            last = at;
            Some(at)
        })
        .collect()
    }
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// As the kernel counts them (`bstats_update`): by segments where they left, and nowhere else.
#[test]
fn aggregates_that_leave_count_by_their_segments() {
    for line in [
        "pfifo",
        "bfifo",
        "pfifo_fast",
        "prio",
        "red limit 1mb avpkt 1000",
        "codel",
        "pie",
        "fq",
        "fq_codel",
        "fq_pie",
        "sfq",
        "netem limit 100",
        "cake no-split-gso",
        "tbf rate 1gbit burst 100kb latency 1s",
        "htb rate 1gbit",
    ] {
        let mut bench = Bench::new(line);
        bench.put(0, Frame { length: 4 * 1514, ..full(0, 1) });
        bench.put(0, full(1, 1));
        let waiting = bench.discipline.stats(Instant::ZERO).counters.backlog_packets;
        assert_eq!(waiting, 2, "{line}");
        // Shapers let the second go a little later.
        let times = [0, 1_000_000].map(Instant::from_nanos);
        let left = times.into_iter().filter_map(|now| bench.discipline.dequeue(now, &mut |_| ()));
        assert_eq!(left.count(), 2, "{line}");
        let counters = bench.discipline.stats(times[1]).counters;
        assert_eq!((counters.sent_packets, counters.sent_bytes), (5, 5 * 1514), "{line}");
        if let dualq_qdisc::show::OwnStats::Htb(own) = bench.discipline.stats(times[1]).own {
            assert_eq!(own.lended, 2);
        }
    }
}
