//! What must hold for any words, and for any packets through any discipline.

use dualpi2::{Class, SplitMix64};
use dualq_qdisc::{Device, Ecn, FlowPacket, Packet, Qdisc, grammar, show};
use dualq_units::Instant;
use proptest::prelude::*;

/// Command lines that are mostly right: tc's words with values of every shape.
fn line() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec!["dualpi2", "dualpi2", "dualpi2", "pfifo", "bfifo", "fq"]);
    let option = prop::sample::select(vec![
        "limit",
        "memlimit",
        "target",
        "tupdate",
        "alpha",
        "beta",
        "coupling_factor",
        "step_thresh",
        "min_qlen_step",
        "classic_protection",
        "max_rtt",
        "typical_rtt",
        "overflow",
        "any_ect",
        "drop_enqueue",
        "no_split_gso",
        "help",
        "bogus",
    ]);
    let number = prop_oneof![
        (0..2000_u32).prop_map(|n| n.to_string()),
        any::<u32>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| x.to_string()),
        (0.0..100.0_f64).prop_map(|x| format!("{x:.3}")),
        Just("-1".to_owned()),
        Just("0x1f".to_owned()),
        Just("inf".to_owned()),
    ];
    let unit = prop::sample::select(vec!["", "", "ms", "us", "s", "p", "%", "kb", "é"]);
    let value = (number, unit).prop_map(|(number, unit)| format!("{number}{unit}"));
    let words = prop::collection::vec((option, prop::option::weighted(0.9, value)), 0..6);
    (kind, words).prop_map(|(kind, words)| {
        let mut line = kind.to_owned();
        for (option, value) in words {
            line += &format!(" {option} {}", value.unwrap_or_default());
        }
        line
    })
}

#[derive(Clone)]
struct Frame {
    length: u32,
    ecn: Ecn,
    class: Option<Class>,
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
    fn class(&self) -> Option<Class> {
        self.class
    }
}

impl FlowPacket for Frame {}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_upsets_the_grammar(text in "\\PC{0,60}") {
        let _ = grammar::parse(&text);
        let _ = grammar::parse(&format!("dualpi2 {text}"));
    }

    /// What is accepted can be built, shown, and said again; what is refused is refused in one line.
    #[test]
    fn every_accepted_line_builds(line in line(), mtu in 68..65_535_u32) {
        match grammar::parse(&line) {
            Err(error) => {
                prop_assert_eq!(error.to_string().lines().count(), 1);
                prop_assert!(error.column() <= line.chars().count() + 1);
            }
            Ok(parsed) => {
                let device = Device::ethernet(mtu);
                let discipline =
                    parsed.spec.build::<Frame, _>(&device, SplitMix64::new(1), Instant::ZERO);
                let (config, stats) = (discipline.config(), discipline.stats(Instant::ZERO));
                prop_assert_eq!(&config, &parsed.spec.configure(&device));
                prop_assert!(show::text_with_stats(&config, &stats).starts_with("qdisc "));
                prop_assert!(show::json_with_stats(&config, &stats).len() >= 12);
                let again = grammar::parse(&parsed.spec.to_string()).unwrap();
                // Gains that were derived in double precision are said again in single precision.
                if !line.contains("rtt") {
                    prop_assert_eq!(again.spec, parsed.spec);
                }
            }
        }
    }

    /// Packets in = out + dropped + queued, through every discipline, whatever its parameters.
    #[test]
    fn packets_are_conserved(
        line in line(),
        arrivals in prop::collection::vec((1..9000_u32, 0..4_u8, 0..4_u16, 0..3_usize), 1..200),
    ) {
        let Ok(parsed) = grammar::parse(&line) else { return Ok(()) };
        let device = Device::ethernet(1500);
        let mut discipline = parsed.spec.build(&device, SplitMix64::new(1), Instant::ZERO);
        let (mut entered, mut left, mut lost) = (0, 0, 0);
        for (step, (length, ecn, minor, departures)) in arrivals.into_iter().enumerate() {
            let now = Instant::from_nanos(step as u64 * 1_000_000);
            let mut timers = 0;
            while discipline.next_timer() <= now && timers < 1000 {
                discipline.on_timer(now);
                timers += 1;
            }
            let frame = Frame { length, ecn: Ecn::from_bits(ecn), class: Class::from_minor(minor) };
            entered += 1;
            discipline.enqueue(now, frame, &mut |_| lost += 1);
            for _ in 0..departures {
                let shown = discipline.peek(now, &mut |_| lost += 1).map(|frame| frame.length);
                let departure = discipline.dequeue(now, &mut |_| lost += 1);
                prop_assert_eq!(shown, departure.as_ref().map(|departure| departure.packet.length));
                left += u64::from(departure.is_some());
            }
            let counters = discipline.stats(now).counters;
            prop_assert_eq!(entered, left + lost + discipline.len() as u64);
            prop_assert_eq!(counters.drops, lost);
            prop_assert_eq!(counters.sent_packets, left);
            prop_assert_eq!(counters.backlog_packets, discipline.len() as u64);
        }
        let before = discipline.len();
        let mut flushed = 0;
        discipline.reset(&mut |_| flushed += 1);
        prop_assert_eq!((flushed, discipline.len()), (before, 0));
    }
}
