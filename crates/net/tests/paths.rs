//! What must hold on every path: nothing is lost unseen, nothing comes out of nothing, and time goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use dualq_net::{
    Chance, Delay, Element, Environment, Jitter, Lost, Mtu, Packet, Path, Police, Queue, Slots,
};
use dualq_qdisc::{Device, Ecn, FlowPacket, Random, SplitMix64, grammar};
use dualq_units::{Bytes, Instant, Rate};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    number: u32,
    /// Segments of 1514 bytes, but the last.
    segments: u32,
    length: u32,
    ecn: Ecn,
}

impl dualq_qdisc::Packet for Frame {
    fn length(&self) -> u32 {
        self.length
    }

    fn memory(&self) -> u32 {
        self.length
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        assert_ne!(self.ecn, Ecn::NotEct);
        self.ecn = Ecn::Ce;
    }

    fn is_gso(&self) -> bool {
        self.segments > 1
    }

    fn split(mut self, segment: &mut impl FnMut(Self)) {
        while self.segments > 1 {
            segment(Self { segments: 1, length: 1514, ..self });
            self.segments -= 1;
            self.length -= 1514;
        }
        segment(self);
    }
}

impl FlowPacket for Frame {
    fn flow(&self) -> u32 {
        self.number % 7
    }
}

impl Packet for Frame {
    fn clear_ecn(&mut self) {
        self.ecn = Ecn::NotEct;
    }

    fn ip_bytes(&self) -> u32 {
        self.length.min(1514) - 14
    }

    fn origin(&self) -> u32 {
        self.number % 3
    }
}

/// Bytes that were lost and copied.
struct Books {
    random: SplitMix64,
    lost: u64,
    copied: u64,
    reasons: BTreeMap<String, u64>,
}

impl Books {
    fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed), lost: 0, copied: 0, reasons: BTreeMap::new() }
    }
}

impl Environment<Frame> for Books {
    fn random(&mut self) -> u32 {
        self.random.next_u32()
    }

    fn copy(&mut self, frame: &Frame) -> Frame {
        self.copied += u64::from(frame.length);
        frame.clone()
    }

    fn lost(&mut self, frame: Frame, why: Lost) {
        self.lost += u64::from(frame.length);
        *self.reasons.entry(format!("{why:?}")).or_default() += 1;
    }
}

fn queue(line: &str, mbit: u64) -> Element<Frame> {
    plain_queue(line, mbit).into()
}

fn plain_queue(line: &str, mbit: u64) -> Queue<Frame> {
    let spec = grammar::parse(line).expect("a qdisc").spec;
    let device = Device::ethernet(1500);
    let discipline = spec.build(&device, SplitMix64::new(3), Instant::ZERO);
    Queue::new(discipline, Rate::from_mbit(mbit))
}

const KINDS: u32 = 12;

fn element(kind: u32) -> Element<Frame> {
    let millis = Duration::from_millis;
    let half = Chance::from_threshold(1 << 31);
    match kind {
        0 => queue("pfifo limit 20", 10),
        1 => queue("dualpi2 limit 50", 20),
        2 => queue("fq_codel limit 30", 5),
        3 => Delay::new(millis(7)).into(),
        4 => Delay::of_origins([1, 5, 2].map(millis)).into(),
        5 => Jitter::new(millis(5), millis(9)).into(),
        6 => Jitter::new(millis(5), millis(3)).keeping_order().into(),
        7 => Element::Loss(Chance::from_threshold(1 << 29)),
        8 => Element::Duplicate(half),
        9 => Mtu { mtu: 1000, icmp: true }.into(),
        10 => Police::new(Rate::from_mbit(8), Bytes(20_000)).into(),
        11 => Slots::new(millis(2), millis(6)).at_most(Some(3), Some(Bytes(4000))).into(),
        _ => Element::Bleach,
    }
}

/// Sends frames at their times, and what comes out with its times. All that happens, happens in the order of time.
fn drive(
    path: &mut Path<Frame>,
    frames: &[(u64, Frame)],
    books: &mut Books,
    mut until: impl FnMut(&Path<Frame>, u64, u64, &Books),
) -> Vec<(Instant, Frame)> {
    let mut out = Vec::new();
    let (mut entered, mut left) = (0, 0);
    let mut frames = frames.iter().peekable();
    let mut now = Instant::ZERO;
    loop {
        let arrival = frames.peek().map_or(Instant::NEVER, |(at, _)| Instant::from_nanos(*at));
        let due = path.next_due();
        let next = due.map_or(Instant::NEVER, |(due, _)| due).min(arrival);
        if next == Instant::NEVER {
            return out;
        }
        assert!(next >= now, "time goes on");
        assert!(due.is_none_or(|(due, _)| path.next_due_beside() >= due));
        now = next;
        match due {
            Some((due, place)) if due == now => path.start(place),
            _ => {
                if let Some((_, frame)) = frames.next() {
                    entered += u64::from(frame.length);
                    path.enter(now, frame.clone(), books);
                }
            }
        }
        while let Some(frame) = path.next_out(now, books) {
            left += u64::from(frame.length);
            out.push((now, frame));
        }
        until(path, entered, left, books);
    }
}

fn single(number: u32, length: u32) -> Frame {
    Frame { number, segments: 1, length, ecn: Ecn::Ect0 }
}

proptest! {
    /// What went in came out, was lost, or is inside; copies come in addition. In the end nothing is inside.
    #[test]
    fn nothing_is_lost_unseen(
        kinds in prop::collection::vec(0..=KINDS, 0..6),
        lengths in prop::collection::vec((60..1515_u32, 0..900_000_u64, 1..5_u32), 1..200),
        seed in any::<u64>(),
    ) {
        let mut at_ns = 0;
        let frames: Vec<(u64, Frame)> = (0..).zip(&lengths).map(|(number, (length, gap, segments))| {
            at_ns += gap;
            let length = (segments - 1) * 1514 + length;
            let ecn = if number % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
            (at_ns, Frame { number, segments: *segments, length, ecn })
        }).collect();
        let mut path = Path::new(kinds.into_iter().map(element).collect());
        let mut books = Books::new(seed);
        let mut balance = 0;
        let out = drive(&mut path, &frames, &mut books, |path, entered, left, books| {
            balance = entered + books.copied - books.lost - left;
            let inside: usize = path.elements().iter().map(Element::len).sum();
            assert_eq!(balance == 0, inside == 0, "{inside} packets of {balance} bytes");
        });
        prop_assert_eq!(balance, 0);
        prop_assert!(out.is_sorted_by_key(|(at, _)| *at));
    }

    /// Without what reorders, packets of one origin come out in the order in which they went in.
    #[test]
    fn order_is_kept_where_nothing_reorders(
        kinds in prop::collection::vec(prop::sample::select(vec![0_u32, 3, 6, 7, 9, 10]), 1..6),
        gaps in prop::collection::vec(0..900_000_u64, 1..200),
    ) {
        let mut at_ns = 0;
        let frames: Vec<(u64, Frame)> = (0..).zip(&gaps).map(|(number, gap)| {
            at_ns += gap;
            (at_ns, single(number, 1000))
        }).collect();
        let mut path = Path::new(kinds.into_iter().map(element).collect());
        let out = drive(&mut path, &frames, &mut Books::new(1), |_, _, _, _| ());
        prop_assert!(out.is_sorted_by_key(|(_, frame)| frame.number));
    }
}

/// Frames of 1000 bytes, one each millisecond.
fn steady(count: u32) -> Vec<(u64, Frame)> {
    (0..count).map(|number| (u64::from(number) * 1_000_000, single(number, 1000))).collect()
}

fn through(element: Element<Frame>, frames: &[(u64, Frame)]) -> (Vec<(Instant, Frame)>, Books) {
    let mut books = Books::new(5);
    let out = drive(&mut Path::new(vec![element]), frames, &mut books, |_, _, _, _| ());
    (out, books)
}

#[test]
fn jitter_is_uniform_around_its_mean() {
    let delays = |jitter: Jitter<Frame>| -> Vec<f64> {
        let (out, _) = through(jitter.into(), &steady(20_000));
        let waited =
            |(at, frame): &(Instant, Frame)| at.as_nanos() as f64 / 1e6 - f64::from(frame.number);
        out.iter().map(waited).collect()
    };
    let millis = Duration::from_millis;
    let free = delays(Jitter::new(millis(20), millis(5)));
    let mean = free.iter().sum::<f64>() / free.len() as f64;
    assert!((mean - 20.0).abs() < 0.1, "{mean}");
    assert!(free.iter().all(|delay| (15.0..25.0).contains(delay)));
    let low = free.iter().filter(|delay| **delay < 17.5).count();
    assert!(low.abs_diff(free.len() / 4) < free.len() / 50, "{low}");
    // Who may not overtake waits for who takes longer.
    let ordered = delays(Jitter::new(millis(20), millis(5)).keeping_order());
    assert!(ordered.iter().sum::<f64>() > free.iter().sum::<f64>());
    // Nothing arrives before it left.
    assert!(delays(Jitter::new(millis(1), millis(9))).iter().all(|delay| *delay >= 0.0));
}

#[test]
fn chances_are_what_they_say() {
    let tenth = Chance::from_threshold((1 << 32) / 10);
    let (out, _) = through(Element::Loss(tenth), &steady(20_000));
    assert!(out.len().abs_diff(18_000) < 200, "{}", out.len());
    let (out, _) = through(Element::Duplicate(tenth), &steady(20_000));
    assert!(out.len().abs_diff(22_000) < 200, "{}", out.len());
    for (chance, left) in [(Chance::default(), 10), (Chance::from_threshold(u64::MAX), 0)] {
        assert_eq!(through(Element::Loss(chance), &steady(10)).0.len(), left);
    }
}

#[test]
fn a_policer_passes_its_burst_and_its_rate() {
    // 8 Mbit/s come; 4 Mbit/s pass, and 10,000 bytes at first.
    let police = Police::new(Rate::from_mbit(4), Bytes(10_000));
    let (out, books) = through(police.into(), &steady(1000));
    assert!(out.len().abs_diff(510) <= 1, "{}", out.len());
    assert_eq!(books.reasons.keys().collect::<Vec<_>>(), ["Policed"]);
    assert!(out[..15].iter().enumerate().all(|(number, (_, frame))| frame.number == number as u32));
    // What is longer than the burst never passes.
    let (out, _) = through(Police::new(Rate::from_mbit(4), Bytes(999)).into(), &steady(100));
    assert!(out.is_empty());
}

#[test]
fn only_what_is_short_enough_passes_an_mtu() {
    let aggregate = Frame { number: 0, segments: 3, length: 2 * 1514 + 500, ecn: Ecn::NotEct };
    let frames = [(0, aggregate), (5, single(1, 1014)), (6, single(2, 1015))];
    let (out, books) = through(Mtu { mtu: 1000, icmp: true }.into(), &frames);
    let left: Vec<(u32, u32)> = out.iter().map(|(_, frame)| (frame.number, frame.length)).collect();
    assert_eq!(left, [(0, 500), (1, 1014)]);
    assert_eq!(
        books.reasons,
        BTreeMap::from([("TooLong { mtu: 1000, told: true, place: 0 }".to_owned(), 3)])
    );
    // An aggregate whose segments are short enough stays one.
    let (out, _) = through(Mtu { mtu: 1500, icmp: false }.into(), &frames);
    assert_eq!(out[0].1.segments, 3);
}

#[test]
fn rates_change_while_packets_wait() {
    let mut path = Path::new(vec![queue("pfifo", 8)]);
    let mut books = Books::new(1);
    for number in 0..20 {
        path.enter(Instant::ZERO, single(number, 1000), &mut books);
        while path.next_out(Instant::ZERO, &mut books).is_some() {}
    }
    let mut left = Vec::new();
    while let Some((now, place)) = path.next_due() {
        path.start(place);
        while let Some(frame) = path.next_out(now, &mut books) {
            left.push((frame.number, now.as_nanos() / 1_000_000));
        }
        if left.len() == 10 {
            path.queue_mut(0).expect("it is one").change_rate(Rate::from_mbit(80));
        }
    }
    assert_eq!(left.len(), 18);
    let spaces: Vec<u64> = left.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(spaces[..9].iter().all(|space| *space == 1), "{left:?}");
    assert!(left[17].1 - left[10].1 <= 1, "{left:?}");
}

/// PIE's updates begin half a second after it was made, and before them it drops nothing.
#[test]
fn a_discipline_may_be_older_than_its_path() {
    let frames: Vec<(u64, Frame)> =
        (0..2_000).map(|number| (u64::from(number) * 500_000, single(number, 1514))).collect();
    let first_drop = |age| {
        let mut queue = plain_queue("pie", 10);
        queue.start_clock_at(Duration::from_millis(age));
        let mut path = Path::new(vec![queue.into()]);
        let mut books = Books::new(1);
        let mut first = None;
        let out = drive(&mut path, &frames, &mut books, |_, entered, _, books| {
            if books.lost > 0 {
                first.get_or_insert(entered);
            }
        });
        assert!(out.len() > 800);
        first.expect("it drops") / 1514 / 2
    };
    let (young, old) = (first_drop(0), first_drop(500));
    assert!(young > 510 && (150..500).contains(&old), "after {young} and {old} ms");
}

/// What a discipline holds back is let go by the path's clock, whatever its own shows.
#[test]
fn a_disciplines_clock_is_its_own() {
    let frames = [(1_000_000, single(0, 1514)), (4_000_000, single(1, 1514))];
    let left = |age| {
        let mut queue = plain_queue("netem delay 10ms", 1000);
        queue.start_clock_at(Duration::from_millis(age));
        drive(&mut Path::new(vec![queue.into()]), &frames, &mut Books::new(1), |_, _, _, _| ())
    };
    let times = |age| left(age).iter().map(|(at, _)| at.as_nanos()).collect::<Vec<_>>();
    assert_eq!(times(0).len(), 2);
    assert_eq!(times(0), times(500));
}

/// As in the world `kernel` behind `red`, which the next packet finds as full as the last one left it.
#[test]
fn an_empty_queue_that_drops_what_comes_is_not_asked_for_it() {
    let line =
        "red limit 84000 min 10500 max 31500 avpkt 1500 bandwidth 990Mbit probability 0.00001";
    let mut frames: Vec<_> = (0..60).map(|number| (0, single(number, 1514))).collect();
    // The average falls by an eighth with each of these, and not by the time between.
    frames.extend((1..4).map(|number| (number * 1_000_000, single(100, 1514))));
    let (arrived, _) = through(queue(line, 990), &frames);
    let late = arrived
        .iter()
        .filter(|(_, frame)| frame.number == 100)
        .map(|(at, _)| at.as_nanos() / 1_000_000);
    assert_eq!(late.collect::<Vec<_>>(), [3]);
}
