//! Whatever the path, each packet is accounted for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dualq_link::{Change, DirectionFigures, Engine, Options, Packet, Seen, Watch};
use dualq_scenario::{Element, Loss, Passage};
use dualq_units::{Bytes, Instant, Rate};
use proptest::prelude::*;

use crate::frames::{Made, Read, Transport, tcp};
use crate::{all_written, engine, passage, start, written};

fn element() -> impl Strategy<Value = Element> {
    let millis = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
    prop_oneof![
        (millis(0..20), millis(0..5), any::<bool>())
            .prop_map(|(delay, jitter, reorder)| Element::Delay { delay, jitter, reorder }),
        millis(1..5).prop_map(|least| Element::Slot {
            least,
            most: least * 2,
            packets: None,
            bytes: None
        }),
        (0..100).prop_map(|percent| Element::Loss(Loss::from_percent(f64::from(percent) / 4.0))),
        (0..100)
            .prop_map(|percent| Element::Duplicate(Loss::from_percent(f64::from(percent) / 4.0))),
        (1..50_u64).prop_map(|mbit| Element::Queue {
            rate: Rate::from_mbit(mbit),
            qdisc: "pfifo limit 20".parse().unwrap()
        }),
        (600..2000_u32, any::<bool>()).prop_map(|(mtu, icmp)| Element::Mtu { mtu, icmp }),
        Just(Element::Bleach),
        (1..50_u64)
            .prop_map(|mbit| Element::Police { rate: Rate::from_mbit(mbit), burst: Bytes(10_000) }),
    ]
}

fn passages() -> impl Strategy<Value = Passage> {
    let qdiscs = [
        "dualpi2",
        "dualpi2 no_split_gso",
        "fq_codel",
        "cake",
        "pie",
        "codel",
        "red limit 400kb avpkt 1500",
        "sfq",
        "fq",
        "pfifo limit 30",
        "fq_pie",
        "pfifo_fast",
        "bfifo limit 30kb",
    ];
    let bottleneck = proptest::option::of((1..200_u64, proptest::sample::select(qdiscs.to_vec())));
    let elements = || proptest::collection::vec(element(), 0..3);
    (elements(), bottleneck, elements(), 0..30_u64, any::<bool>()).prop_map(
        |(before, bottleneck, behind, millis, tunnel)| Passage {
            before,
            bottleneck: bottleneck
                .map(|(mbit, qdisc)| (Rate::from_mbit(mbit), qdisc.parse().unwrap())),
            behind,
            delay: Duration::from_millis(millis),
            mtu: 1500,
            tunnel,
            ..Passage::default()
        },
    )
}

#[derive(Clone, Debug)]
enum Event {
    Frame { port: u16, payload: usize, ecn: u8 },
    Rate(u64),
    Delay(u64),
    Qdisc(&'static str),
}

fn event() -> impl Strategy<Value = Event> {
    let qdiscs = ["fq_codel", "dualpi2 limit 20", "pfifo limit 10", "cake"];
    prop_oneof![
        20 => (1..5_u16, 1..30_000_usize, 0..4_u8).prop_map(|(port, payload, ecn)| Event::Frame { port, payload, ecn }),
        1 => (1..100_u64).prop_map(Event::Rate),
        1 => (0..50_u64).prop_map(Event::Delay),
        1 => proptest::sample::select(qdiscs.to_vec()).prop_map(Event::Qdisc),
    ]
}

/// Lets it happen; returns the payload that came.
fn happen(engine: &mut Engine, now: Instant, event: &Event) -> usize {
    match *event {
        Event::Frame { port, payload, ecn } => {
            let mut header = tcp(1);
            header.source_port = port;
            let made = Made {
                v6: port % 2 > 0,
                ecn,
                identification: port,
                transport: Transport::Tcp(header),
                payload: vec![port as u8; payload],
                gso_size: 1400,
            };
            assert!(engine.enter(now, &mut made.bytes()));
            return payload;
        }
        Event::Rate(mbit) => {
            let _ = engine.change(now, &Change::Rate(Rate::from_mbit(mbit)));
        }
        Event::Delay(millis) => {
            engine.change(now, &Change::Delay(Duration::from_millis(millis))).unwrap();
        }
        Event::Qdisc(line) => {
            let _ = engine.change(now, &Change::Qdisc(line.parse().unwrap()));
        }
    }
    0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_in_are_packets_out_and_lost_and_inside(
        passage in passages(),
        split in any::<bool>(),
        seed in any::<u64>(),
        events in proptest::collection::vec((0..3_000_u64, event()), 1..80),
    ) {
        let mut engine = engine(&passage, &Options { split, seed, ..Options::default() });
        let (mut now, mut frames, mut payload_in) = (start(), 0, 0);
        for (micros, event) in events {
            now = now + Duration::from_micros(micros);
            engine.advance(now);
            payload_in += happen(&mut engine, now, &event);
            frames += written(&mut engine, now).len();
            let at = engine.snapshot();
            let figures = at.figures;
            prop_assert_eq!(
                figures.came.packets + figures.copied,
                figures.left.packets + figures.lost.total() + at.inside
            );
        }
        let rest = all_written(&mut engine, now);
        frames += rest.len();
        let end = engine.snapshot();
        prop_assert_eq!(end.inside, 0, "{:?}", end.queue.map(|queue| queue.text()));
        prop_assert!(end.figures.left.packets >= frames as u64);
        let payload_out: usize = rest.iter().map(|(_, frame)| Read::of(frame).payload.len()).sum();
        if passage.before.iter().chain(&passage.behind).all(|element| !matches!(element, Element::Duplicate(_))) {
            prop_assert!(payload_out <= payload_in);
        }
        for _ in engine.take_messages() {}
    }
}

/// Payload that is written, by when: the clock goes to each time that `wake` says, and to the events.
fn payload_written(
    passage: &Passage,
    seed: u64,
    events: &[(u64, Event)],
    wake: impl Fn(&Engine) -> Instant,
) -> (BTreeMap<Instant, usize>, DirectionFigures) {
    let mut engine = engine(passage, &Options { seed, ..Options::default() });
    let mut by_time = BTreeMap::new();
    let mut write = |engine: &mut Engine, now: Instant| {
        for frame in written(engine, now) {
            *by_time.entry(now).or_default() += Read::of(&frame).payload.len();
        }
    };
    let mut now = start();
    let mut go = |engine: &mut Engine, until: Instant| {
        while wake(engine) <= until.min(Instant::from_nanos(u64::MAX - 1)) {
            let at = wake(engine);
            engine.advance(at);
            write(engine, at);
        }
        write(engine, until);
    };
    for (micros, event) in events {
        now = now + Duration::from_micros(*micros);
        go(&mut engine, now);
        happen(&mut engine, now, event);
        go(&mut engine, now);
    }
    go(&mut engine, Instant::NEVER);
    (by_time, engine.snapshot().figures)
}

proptest! {
    /// What moves only inside needs no call of its own.
    #[test]
    fn nothing_leaves_later_for_fewer_calls(
        passage in passages(),
        seed in any::<u64>(),
        events in proptest::collection::vec((0..3_000_u64, event()), 1..80),
    ) {
        let (eager, counted) = payload_written(&passage, seed, &events, Engine::next_due);
        let (lazy, as_well) = payload_written(&passage, seed, &events, Engine::next_wake);
        prop_assert_eq!(eager, lazy);
        prop_assert_eq!(counted.lost, as_well.lost);
        prop_assert_eq!(counted.marked, as_well.marked);
    }
}

/// 1262 bytes with all headers: 1.0096 ms at 10 Mbit/s.
fn frame(sequence: u32) -> Made {
    Made {
        v6: false,
        ecn: 0,
        identification: 1,
        transport: Transport::Tcp(tcp(sequence)),
        payload: vec![0; 1196],
        gso_size: 1448,
    }
}

#[test]
fn departures_follow_the_links_own_schedule_however_late_it_is_called() {
    let times = |late: Duration| {
        let mut engine = engine(&passage("pfifo", "10mbit"), &Options::default());
        for sequence in 0..6 {
            assert!(engine.enter(start(), &mut frame(sequence).bytes()));
        }
        let mut left = vec![start(); written(&mut engine, start()).len()];
        while engine.next_due() < Instant::NEVER {
            let due = engine.next_due();
            engine.advance(due + late);
            let count = written(&mut engine, due + late).len();
            left.extend(std::iter::repeat_n(due, count));
        }
        (left.len(), *left.last().unwrap() - start())
    };
    let (count, exact) = times(Duration::ZERO);
    assert_eq!((count, times(Duration::from_micros(700))), (6, (6, exact)));
    assert!(
        exact > Duration::from_micros(3_700) && exact < Duration::from_micros(4_100),
        "{exact:?}"
    );
}

/// As of a machine that was stopped for a while, or of a clock that is set.
#[test]
fn a_clock_that_steps_makes_packets_late_and_no_queue_longer() {
    let mut engine = engine(&passage("pfifo", "10mbit"), &Options::default());
    for sequence in 0..6 {
        assert!(engine.enter(start(), &mut frame(sequence).bytes()));
    }
    let late = start() + Duration::from_secs(5);
    engine.advance(late);
    assert!(!written(&mut engine, late).is_empty());
    let end = engine.snapshot().figures;
    assert_eq!((end.left.packets, end.lateness.count()), (6, 6));
    // 1262 bytes take 1.01 ms each: the last one waited for four, as the burst is 1600 bytes.
    assert!(end.bands[0].delays.max() < Duration::from_millis(5), "{:?}", end.bands);
    assert!(end.lateness.at(0.5) > Duration::from_millis(4_900), "{:?}", end.lateness);
    // Back again is no time at all: what comes then comes at the last one that there was.
    for sequence in 6..9 {
        assert!(engine.enter(start() + Duration::from_secs(1), &mut frame(sequence).bytes()));
    }
    let rest = all_written(&mut engine, start() + Duration::from_secs(1));
    assert_eq!(engine.snapshot().figures.left.packets, 9);
    assert!(rest.last().unwrap().0 < late + Duration::from_millis(5), "{rest:?}");
    assert!(engine.snapshot().figures.bands[0].delays.max() < Duration::from_millis(5));
}

/// Each queue of an element counts by itself, and what passes it is told with its place; the bottleneck's figures are its own.
#[test]
fn queues_of_elements_have_figures_of_their_own() {
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<(usize, Duration)>>>);
    impl Watch for Heard {
        fn packet(&mut self, _: Instant, seen: Seen, _: &Packet) {
            if let Seen::Passed { number, sojourn } = seen {
                self.0.lock().unwrap().push((number, sojourn));
            }
        }
    }
    let queue = |rate: &str, qdisc: &str| Element::Queue {
        rate: rate.parse().unwrap(),
        qdisc: qdisc.parse().unwrap(),
    };
    let passage = Passage {
        before: vec![Element::Bleach, queue("1gbit", "fq_codel")],
        behind: vec![queue("10mbit", "pfifo limit 4")],
        ..passage("pfifo", "100mbit")
    };
    let heard = Heard::default();
    let watch = Box::new(heard.clone());
    let mut engine = Engine::new(&passage, &Options::default(), start(), Some(watch));
    for sequence in 0..12 {
        assert!(engine.enter(start(), &mut frame(sequence).bytes()));
    }
    let written = all_written(&mut engine, start()).len() as u64;
    let end = engine.snapshot();
    let [before, behind] = &end.others[..] else { panic!("{:?}", end.others) };
    assert_eq!((before.config.kind(), behind.config.kind()), ("fq_codel", "pfifo"));
    assert_eq!(end.figures.bands[0].delays.count(), 12);
    assert_eq!((before.stats.counters.sent_packets, before.stats.counters.drops), (12, 0));
    assert!(behind.stats.counters.drops > 0);
    assert_eq!(behind.stats.counters.drops + written, 12);
    assert_eq!(behind.stats.counters.sent_packets, written);
    // At ten times the rate of what is behind, four of 1262 bytes wait for a millisecond each.
    let [fast, slow] = &end.figures.others[..] else { panic!("two") };
    assert_eq!((fast.count(), slow.count()), (12, written));
    assert!(fast.max() < Duration::from_micros(200), "{fast:?}");
    assert!(slow.max() > Duration::from_millis(3), "{slow:?}");
    let heard = heard.0.lock().unwrap();
    let of = |wanted| heard.iter().filter(move |(number, _)| *number == wanted);
    assert_eq!((of(0).count(), of(1).count()), (12, written as usize));
    assert!(of(1).map(|(_, sojourn)| *sojourn).max() > Some(Duration::from_millis(3)));
}

#[test]
fn a_rate_that_changes_is_kept_at_once() {
    let mut engine = engine(&passage("pfifo", "8kbit"), &Options::default());
    for sequence in 0..4 {
        let made = Made {
            v6: true,
            ecn: 0,
            identification: 1,
            transport: Transport::Tcp(tcp(sequence)),
            payload: vec![0; 914],
            gso_size: 1448,
        };
        assert!(engine.enter(start(), &mut made.bytes()));
    }
    // 1000 bytes: a second each at that rate, and a microsecond at the other. The burst is 1600 bytes, which may be overdrawn.
    assert_eq!(written(&mut engine, start()).len(), 2);
    engine.change(start(), &Change::Rate("8gbit".parse().unwrap())).unwrap();
    let last = all_written(&mut engine, start()).last().map(|(at, _)| *at - start());
    assert!(last < Some(Duration::from_secs(1)), "{last:?}");
}

#[test]
fn hosts_have_delays_of_their_own() {
    let far = [10, 0, 0, 2].into();
    let passage = Passage {
        delay: Duration::from_millis(10),
        extra_delays: vec![(far, Duration::from_millis(5))],
        mtu: 1500,
        ..Passage::default()
    };
    let mut engine = engine(&passage, &Options::default());
    for v6 in [false, true] {
        let transport = Transport::Udp { source: 1, destination: 2 };
        let made = Made {
            v6,
            ecn: 0,
            identification: 1,
            transport,
            payload: vec![1; 100],
            gso_size: 1400,
        };
        assert!(engine.enter(start(), &mut made.bytes()));
    }
    let left: Vec<_> =
        all_written(&mut engine, start()).into_iter().map(|(at, _)| at - start()).collect();
    assert_eq!(left, [10, 15].map(Duration::from_millis));
}
