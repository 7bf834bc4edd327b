//! What must hold for any words, and for any packets through any discipline.

use std::time::Duration;

use dualpi2::{Class, SplitMix64};
use dualq_qdisc::{Device, Ecn, FlowPacket, Packet, Qdisc, grammar, show};
use dualq_units::Instant;
use proptest::prelude::*;

/// Command lines that are mostly right: tc's words with values of every shape.
fn line() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (0..2000_u32).prop_map(|n| n.to_string()),
        any::<u32>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| x.to_string()),
        (0.0..100.0_f64).prop_map(|x| format!("{x:.3}")),
        Just("-1".to_owned()),
        Just("0x1f".to_owned()),
        Just("inf".to_owned()),
    ];
    let unit = prop::sample::select(vec!["", "", "ms", "us", "s", "p", "%", "kb", "mbit", "é"]);
    let value = (number, unit).prop_map(|(number, unit)| format!("{number}{unit}"));
    let value = prop::option::weighted(0.9, value);
    let words = prop::collection::vec((0..64_usize, value), 0..6);
    let kind = prop_oneof![3 => Just(0), 4 => 0..grammar::KINDS.len()];
    let leaf = prop::option::weighted(0.3, 0..SENSIBLE.len());
    (kind, words, leaf).prop_map(|(kind, words, leaf)| {
        let kind = grammar::KINDS[kind];
        let mut line = kind.to_owned();
        // What cannot be left out.
        line += match kind {
            "tbf" => " rate 10mbit burst 10kb latency 50ms",
            "htb" => " rate 10mbit",
            "red" => " limit 60kb avpkt 1000",
            _ => "",
        };
        let options = options(kind);
        for (option, value) in words {
            let Some(option) = options.get(option % (options.len() + 1)) else { continue };
            // Flags take no value.
            let flag = FLAGS.contains(option);
            line += &format!(" {option} {}", value.filter(|_| !flag).unwrap_or_default());
        }
        if let (Some(leaf), "tbf" | "htb" | "netem") = (leaf, kind) {
            line += &format!(" leaf {}", SENSIBLE[leaf]);
        }
        line
    })
}

const FLAGS: [&str; 31] = [
    "harddrop",
    "nodrop",
    "adaptive",
    "headdrop",
    "divisor 16",
    "unlimited",
    "autorate-ingress",
    "metro",
    "besteffort",
    "dual-srchost",
    "nat",
    "wash",
    "ack-filter",
    "no-split-gso",
    "raw",
    "ether-vlan",
    "conservative",
    "overflow",
    "any_ect",
    "drop_enqueue",
    "no_split_gso",
    "help",
    "bogus",
    "ecn",
    "noecn",
    "bytemode",
    "nopacing",
    "horizon_cap",
    "nobytemode",
    "pacing",
    "horizon_drop",
];

fn options(kind: &str) -> &'static [&'static str] {
    match kind {
        "dualpi2" => &[
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
        ],
        "cake" => &[
            "bandwidth",
            "unlimited",
            "autorate-ingress",
            "rtt",
            "metro",
            "besteffort",
            "dual-srchost",
            "nat",
            "wash",
            "ingress",
            "ack-filter",
            "no-split-gso",
            "memlimit",
            "fwmark",
            "overhead",
            "raw",
            "ether-vlan",
            "docsis",
            "conservative",
            "bogus",
        ],
        "fq" => &[
            "limit",
            "flow_limit",
            "quantum",
            "initial_quantum",
            "maxrate",
            "buckets",
            "orphan_mask",
            "nopacing",
            "refill_delay",
            "low_rate_threshold",
            "ce_threshold",
            "timer_slack",
            "horizon",
            "horizon_cap",
            "weights 70000 65536 100000",
            "bogus",
        ],
        "codel" => &["limit", "target", "interval", "ecn", "noecn", "ce_threshold", "bogus"],
        "fq_codel" => &[
            "limit",
            "flows",
            "quantum",
            "target",
            "interval",
            "memory_limit",
            "ecn",
            "noecn",
            "ce_threshold",
            "ce_threshold_selector 0x01/0x03 ce_threshold",
            "drop_batch",
            "bogus",
        ],
        "fq_pie" => &[
            "limit",
            "flows",
            "target",
            "tupdate",
            "alpha",
            "beta",
            "quantum",
            "memory_limit",
            "ecn_prob",
            "ecn",
            "bytemode",
            "bogus",
        ],
        "red" => &[
            "limit",
            "min",
            "max",
            "avpkt",
            "burst",
            "bandwidth",
            "probability",
            "ecn",
            "harddrop",
            "nodrop",
            "adaptive",
            "bogus",
        ],
        "sfq" => {
            &["limit", "perturb", "quantum", "divisor 16", "flows", "depth", "headdrop", "bogus"]
        }
        "pie" => &["limit", "target", "tupdate", "alpha", "beta", "ecn", "bytemode", "bogus"],
        "tbf" => &["peakrate 20mbit mtu", "mtu", "linklayer", "overhead"],
        "htb" => &["ceil", "burst", "cburst", "prio"],
        "netem" => &[
            "limit",
            "delay",
            "delay 1ms",
            "delay 5ms 1ms",
            "distribution normal",
            "loss",
            "loss gemodel",
            "loss state 1%",
            "ecn",
            "duplicate",
            "corrupt",
            "reorder",
            "gap",
            "rate",
            "rate 1mbit",
            "slot",
            "slot 1ms 2ms packets",
            "slot distribution pareto 2ms",
            "seed",
        ],
        "prio" => &["bands", "priomap", "priomap 0 1 2", "bogus"],
        _ => &["limit", "bogus"],
    }
}

/// Lines of each kind that do something.
const SENSIBLE: [&str; 31] = [
    "prio bands 5 priomap 4 3 2 1 0",
    "netem delay 5ms 2ms 25% distribution paretonormal loss gemodel 1% 10% corrupt 1% reorder 2% 50% rate 20mbit 20 48 5",
    "netem loss state 1% 10% 70% 30% 1% duplicate 2% slot 1ms 3ms packets 4 bytes 9000 limit 40",
    "cake",
    "cake bandwidth 20mbit memlimit 20kb",
    "cake bandwidth 30mbit besteffort dual-srchost ingress rtt 1ms overhead 38 mpu 84",
    "cake bandwidth 8mbit diffserv8 ack-filter atm overhead 40",
    "cake unlimited precedence hosts autorate-ingress rtt 2ms",
    "fq_codel ce_threshold 1ms ce_threshold_selector 1/3 limit 30",
    "fq_pie target 1ms tupdate 1ms limit 40",
    "fq_pie flows 3000 target 1ms tupdate 1ms ecn",
    "red limit 60kb min 5kb max 15kb avpkt 1000 burst 10",
    "red limit 60kb min 5kb max 15kb avpkt 1000 burst 10 ecn nodrop adaptive",
    "sfq limit 20 perturb 1 depth 5",
    "sfq limit 20 flows 4 divisor 8 headdrop perturb 1",
    "dualpi2 target 5ms",
    "fq flow_limit 20 quantum 1514",
    "fq maxrate 5mbit",
    "codel target 1ms interval 10ms",
    "codel ecn",
    "fq_codel limit 30 drop_batch 4",
    "fq_codel flows 4 target 1ms interval 10ms",
    "pie target 1ms tupdate 1ms limit 40",
    "pfifo limit 20",
    "bfifo limit 30000",
    "pfifo_fast",
    "tbf rate 20mbit burst 10kb latency 10ms",
    "tbf rate 20mbit burst 9kb latency 10ms peakrate 40mbit mtu 9kb leaf fq_codel",
    "htb rate 20mbit leaf dualpi2",
    "netem delay 3ms 2ms loss 10% rate 30mbit",
    "netem delay 3ms leaf pie",
];

#[derive(Clone)]
struct Frame {
    length: u32,
    ecn: Ecn,
    class: Option<Class>,
    flow: u32,
    priority: u32,
    departure: Option<Instant>,
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

impl FlowPacket for Frame {
    fn flow(&self) -> u32 {
        self.flow
    }
    fn priority(&self) -> u32 {
        self.priority
    }
    fn departure_time(&self) -> Option<Instant> {
        self.departure
    }
}

/// What arrives: length, ECN, class, flow, how far ahead its departure time lies, how many packets are asked for then.
type Arrival = (u32, u8, u16, u32, u64, usize);

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (1..9000_u32, 0..4_u8, 0..4_u16, 0..9_u32, 0..8_u64, 0..3_usize);
    prop::collection::vec(arrival, 1..200)
}

/// Packets in = out + dropped + queued, and what is ready is told apart from what is not.
fn conserve(line: &str, arrivals: Vec<Arrival>) -> Result<(), TestCaseError> {
    let Ok(parsed) = grammar::parse(line) else { return Ok(()) };
    let device = Device::ethernet(1500);
    let mut discipline = parsed.spec.build(&device, SplitMix64::new(1), Instant::ZERO);
    let (mut entered, mut left, mut lost) = (0, 0, 0);
    let mut now = Instant::ZERO;
    for (step, (length, ecn, minor, flow, ahead, departures)) in arrivals.into_iter().enumerate() {
        now = Instant::from_nanos(step as u64 * 1_000_000);
        let mut timers = 0;
        while discipline.next_timer() <= now && timers < 1000 {
            discipline.on_timer(now);
            timers += 1;
        }
        let frame = Frame {
            length,
            ecn: Ecn::from_bits(ecn),
            class: Class::from_minor(minor),
            flow,
            priority: flow,
            departure: (ahead > 5).then(|| now + Duration::from_millis(ahead)),
        };
        entered += 1;
        discipline.enqueue(now, frame, &mut |_| lost += 1);
        for _ in 0..departures {
            let shown = discipline.peek(now, &mut |_| lost += 1).map(|frame| frame.length);
            let departure = discipline.dequeue(now, &mut |_| lost += 1);
            prop_assert_eq!(shown, departure.as_ref().map(|departure| departure.packet.length));
            if departure.is_none() && !discipline.is_empty() {
                prop_assert!(discipline.next_ready(now) > now, "nothing was ready");
            }
            left += u64::from(departure.is_some());
        }
        let counters = discipline.stats(now).counters;
        prop_assert_eq!(entered, left + lost + discipline.len() as u64);
        prop_assert_eq!(counters.drops, lost);
        prop_assert_eq!(counters.sent_packets, left);
        prop_assert_eq!(counters.backlog_packets, discipline.len() as u64);
    }
    // A link that calls when it is told to gets some of what waits, and each call that yields nothing puts the next off.
    for _ in 0..10 {
        let ready = discipline.next_ready(now);
        prop_assert_eq!(ready == Instant::NEVER, discipline.is_empty());
        if discipline.is_empty() {
            break;
        }
        prop_assert!(ready >= now);
        now = ready;
        while discipline.next_timer() <= now && discipline.next_timer() + TIMERS > now {
            discipline.on_timer(now);
        }
        let departure = discipline.dequeue(now, &mut |_| lost += 1);
        left += u64::from(departure.is_some());
        prop_assert!(departure.is_some() || discipline.next_ready(now) > now);
        prop_assert_eq!(entered, left + lost + discipline.len() as u64);
    }
    let before = discipline.len();
    let mut flushed = 0;
    discipline.reset(&mut |_| flushed += 1);
    prop_assert_eq!((flushed, discipline.len()), (before, 0));
    prop_assert_eq!(discipline.stats(now).counters.backlog_bytes, 0);
    Ok(())
}

/// Updates that are longer overdue are not made up for.
const TIMERS: Duration = Duration::from_secs(1);

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
                let meant = parsed.spec.configure(&device);
                prop_assert!(show::text(&meant).starts_with("qdisc "));
                let discipline =
                    parsed.spec.build::<Frame, _>(&device, SplitMix64::new(1), Instant::ZERO);
                let (config, stats) = (discipline.config(), discipline.stats(Instant::ZERO));
                prop_assert_eq!(&config, &meant);
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

    /// Packets are conserved through every discipline, whatever its parameters.
    #[test]
    fn packets_are_conserved(line in line(), arrivals in arrivals()) {
        conserve(&line, arrivals)?;
    }

    /// Idle time at once is what it is update by update.
    #[test]
    fn idle_time_may_be_skipped(
        line in prop_oneof![line(), prop::sample::select(SENSIBLE.to_vec()).prop_map(str::to_owned)],
        arrivals in prop::collection::vec((1..9000_u32, 0..4_u8, 0..40_000_000_u64, 0..3_usize), 1..60),
        idle_ns in 0..60_000_000_000_u64,
    ) {
        let Ok(parsed) = grammar::parse(&line) else { return Ok(()) };
        let device = Device::ethernet(1500);
        let build =
            || parsed.spec.build::<Frame, _>(&device, SplitMix64::new(1), Instant::ZERO);
        let (mut skipped, mut walked) = (build(), build());
        let mut now = Instant::ZERO;
        for (length, ecn, pause_ns, departures) in arrivals {
            now = now + Duration::from_nanos(pause_ns);
            let (ecn, departure) = (Ecn::from_bits(ecn), None);
            let frame = Frame { length, ecn, class: None, flow: 0, priority: 0, departure };
            for discipline in [&mut skipped, &mut walked] {
                if discipline.next_timer() <= now {
                    discipline.on_timer(now);
                }
                discipline.enqueue(now, frame.clone(), &mut |_| ());
                for _ in 0..departures {
                    discipline.dequeue(now, &mut |_| ());
                }
            }
        }
        let until = now + Duration::from_nanos(idle_ns);
        // Very short intervals would take the walk too long.
        let Some(bound) = until.as_nanos().checked_sub(skipped.next_timer().as_nanos()) else {
            return Ok(());
        };
        skipped.on_idle(until);
        let mut updates = 0_u64;
        while walked.next_timer() <= until && updates < 100_000 {
            walked.on_timer(walked.next_timer());
            updates += 1;
        }
        prop_assume!(updates < 100_000 || bound == 0);
        prop_assert_eq!(skipped.next_timer(), walked.next_timer());
        prop_assert_eq!(skipped.stats(until), walked.stats(until));
    }

    /// And through each kind with parameters that make it work.
    #[test]
    fn packets_are_conserved_where_much_is_dropped(line in 0..SENSIBLE.len(), arrivals in arrivals()) {
        conserve(SENSIBLE[line], arrivals)?;
    }
}
