//! The test cases of draft-ietf-ccwg-bbr, "BBR Example Test Cases", by their titles, as far as a simulated path can be given what they
//! ask for; and what of BBR version 3 is known elsewhere.

use dualq_model::{simulate, simulate_watched};
use dualq_scenario::{Change, ConnectionEvent, Metrics, Outcome, Sweep, Wants, Watch};

/// Payload's share of a packet on the wire, and what pacing leaves of the bandwidth.
const PAYLOAD: f64 = 1448.0 / 1514.0;
const MARGIN: f64 = 0.99;

/// How the first flow was at each moment: seconds, and metrics.
#[derive(Default)]
struct Life {
    moments: Vec<(f64, Metrics)>,
    outcome: Outcome,
}

impl Watch for Life {
    fn wants(&self) -> Wants {
        Wants { connections: true, ..Wants::default() }
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        if let (0, Change::Metrics(metrics)) = (event.flow, &event.change) {
            self.moments.push((event.at_ns as f64 / 1e9, metrics.clone()));
        }
    }
}

impl Life {
    fn of(source: &str) -> Self {
        let source = format!("warmup = '0s'\n{source}\n[sender]\ngso = false\n");
        let sweep = Sweep::parse(&source).expect("a scenario");
        let mut life = Self::default();
        let scenario = &sweep.variants()[0].scenario;
        life.outcome = simulate_watched(scenario, 1, &mut life).expect("it is modelled");
        life
    }

    /// One flow, on a path without loss but that of a full queue.
    fn alone(duration: u32, rate: &str, rtt: &str, qdisc: &str) -> Self {
        Self::of(&format!(
            "duration = '{duration}s'
            link = {{ rate = '{rate}', rtt = '{rtt}', qdisc = '{qdisc}' }}
            flow = [{{ cc = 'bbr3' }}]
            probe = []"
        ))
    }

    /// Its phases in order, recovery left out: when each began, and what it is.
    fn phases(&self) -> Vec<(f64, &str)> {
        let mut phases: Vec<(f64, &str)> = Vec::new();
        for (at, metrics) in &self.moments {
            let phase = &*metrics.phase;
            let is_own = phase.starts_with("probe") || ["startup", "drain"].contains(&phase);
            if is_own && phases.last().is_none_or(|(_, last)| *last != phase) {
                phases.push((*at, phase));
            }
        }
        phases
    }

    /// All pairs of phases that follow each other.
    fn steps(&self) -> Vec<(&str, &str)> {
        self.phases().windows(2).map(|pair| (pair[0].1, pair[1].1)).collect()
    }

    fn within(&self, phase: &str) -> impl Iterator<Item = &(f64, Metrics)> {
        self.moments.iter().filter(move |(_, metrics)| metrics.phase == phase)
    }

    /// The bandwidth that it paces by, in Mbit/s on the wire: from the first moment after `from` in which it cruises.
    fn bandwidth(&self, from: f64) -> f64 {
        let mut cruising = self.within("probe_bw_cruise").filter(|(at, _)| *at > from);
        let (_, metrics) = cruising.next().expect("it cruises");
        let rate = metrics.look.pacing_rate.expect("it is paced");
        rate as f64 * 8.0 / 1e6 / MARGIN / PAYLOAD
    }
}

fn is_near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{value:.2}, and not {expected:.2}");
}

#[test]
fn exiting_startup_on_bandwidth_plateau() {
    for (mbit, rtt) in [(1, "100ms"), (20, "20ms"), (100, "5ms"), (500, "50ms")] {
        let life = Life::alone(8, &format!("{mbit}mbit"), rtt, "pfifo limit 100000");
        let phases: Vec<&str> = life.phases().iter().map(|(_, phase)| *phase).collect();
        assert_eq!(phases[..2], ["startup", "drain"], "{mbit} Mbit/s, {rtt}");
        // Where the queue is empty by then, one acknowledgement ends both Drain and ProbeBW_DOWN.
        assert!(["probe_bw_down", "probe_bw_cruise"].contains(&phases[2]), "{phases:?}");
        // The draft says 2 %; the shaper's bucket of tokens lets some samples be higher than its rate.
        is_near(life.bandwidth(0.0), f64::from(mbit), 0.03);
    }
}

#[test]
fn exiting_drain_based_on_inflight() {
    let life = Life::alone(5, "20mbit", "50ms", "pfifo limit 100000");
    let bdp = 20e6 * 0.05 / 8.0 / 1514.0;
    let in_drain: Vec<u32> = life.within("drain").map(|(_, now)| now.look.in_flight).collect();
    let (first, last) = (in_drain[0], in_drain[in_drain.len() - 1]);
    // What will have left the network before the sender's next packet is there does not count.
    let (first, last) = (f64::from(first) / bdp, f64::from(last) / bdp);
    assert!((1.8..2.3).contains(&first) && (1.0..1.25).contains(&last), "{first} {last}");
    let rate = |phase| life.within(phase).last().unwrap().1.look.pacing_rate.unwrap() as f64;
    is_near(rate("drain") / rate("startup"), 0.35 / 2.77, 0.05);
}

#[test]
fn exiting_probe_up_on_bandwidth_plateau_and_probe_down_on_inflight() {
    let life = Life::alone(20, "20mbit", "40ms", "pfifo limit 100000");
    let steps = life.steps();
    let count = |step| steps.iter().filter(|other| **other == step).count();
    for step in [
        ("probe_bw_down", "probe_bw_cruise"),
        ("probe_bw_cruise", "probe_bw_refill"),
        ("probe_bw_refill", "probe_bw_up"),
        ("probe_bw_up", "probe_bw_down"),
    ] {
        assert!((2..=12).contains(&count(step)), "{step:?}: {steps:?}");
    }
    // The next probe comes 2 to 3 s after the last one, or after the last look for the round-trip time.
    let phases = life.phases();
    let starts_anew = |pair: &&[(f64, &str)]| ["probe_bw_up", "probe_rtt"].contains(&pair[0].1);
    for (at, _) in phases.iter().filter(|(_, phase)| *phase == "probe_bw_refill").skip(1) {
        let before = phases.windows(2).filter(starts_anew).map(|pair| pair[1].0);
        let last = before.filter(|start| start < at).fold(0.0, f64::max);
        assert!((2.0..=3.1).contains(&(at - last)), "{phases:?}");
    }
    // More is sent, then less.
    let rate = |phase| life.within(phase).last().unwrap().1.look.pacing_rate.unwrap() as f64;
    is_near(rate("probe_bw_up") / rate("probe_bw_cruise"), 1.25, 0.03);
    is_near(rate("probe_bw_down") / rate("probe_bw_cruise"), 0.91, 0.03);
}

#[test]
fn entering_and_exiting_probe_rtt() {
    let life = Life::alone(21, "50mbit", "40ms", "pfifo limit 100000");
    let bdp = 50e6 * 0.04 / 8.0 / 1514.0;
    let phases = life.phases();
    let probes: Vec<(f64, f64, &str)> = phases
        .windows(2)
        .filter(|pair| pair[0].1 == "probe_rtt")
        .map(|pair| (pair[0].0, pair[1].0 - pair[0].0, pair[1].1))
        .collect();
    assert!((3..=4).contains(&probes.len()), "every 5 s: {probes:?}");
    for pair in probes.windows(2) {
        assert!((5.0..=5.6).contains(&(pair[1].0 - pair[0].0)), "{probes:?}");
    }
    for (_, length, next) in &probes {
        assert!((0.2..=0.4).contains(length) && next.starts_with("probe_bw"), "{probes:?}");
    }
    let least = life.within("probe_rtt").map(|(_, now)| now.look.cwnd).min().unwrap();
    is_near(f64::from(least), bdp / 2.0, 0.1);
    assert!(life.outcome.goodput_mbit > 0.95 * 50.0 * PAYLOAD, "{}", life.outcome.goodput_mbit);
}

/// What is sent after a pause finds an empty queue anyway.
#[test]
fn skipping_probe_rtt_due_to_application_limited_sending() {
    let life = Life::of(
        "duration = '40s'
        link = { rate = '20mbit', rtt = '40ms', qdisc = 'pfifo limit 100000' }
        flow = [{ cc = 'bbr3', size = '2mb', every = '5.5s' }]
        probe = []",
    );
    assert!(life.phases().iter().any(|(_, phase)| phase.starts_with("probe_bw")));
    assert!(life.phases().iter().all(|(_, phase)| *phase != "probe_rtt"), "{:?}", life.phases());
}

#[test]
fn never_exiting_startup_when_application_limited_with_no_loss_and_probe_rtt_during_startup() {
    let life = Life::of(
        "duration = '20s'
        link = { rate = '1gbit', rtt = '100ms', qdisc = 'pfifo limit 100000' }
        flow = [{ cc = 'bbr3', size = '10kb', every = '20ms' }]
        probe = []",
    );
    let phases = life.phases();
    let names: Vec<&str> = phases.iter().map(|(_, phase)| *phase).collect();
    assert!(names.len() >= 3, "{names:?}");
    assert!(names.iter().all(|phase| ["startup", "probe_rtt"].contains(phase)), "{names:?}");
}

#[test]
fn correctly_managing_sub_packet_bdps() {
    let life = Life::alone(20, "1mbit", "1ms", "pfifo limit 1000");
    let windows = || life.within("probe_bw_cruise").map(|(_, now)| now.look.cwnd);
    // The floor, and at most what acknowledgements that come at once make of it.
    assert_eq!(windows().min(), Some(4));
    assert!(windows().all(|cwnd| cwnd <= 12), "{:?}", windows().max());
    is_near(life.outcome.goodput_mbit, PAYLOAD, 0.05);
}

#[test]
fn increasing_bandwidth_10x_and_decreasing_it_10x() {
    let with_step = |from: &str, to: &str| {
        Life::of(&format!(
            "duration = '40s'
            link = {{ rate = '{from}', rtt = '40ms', qdisc = 'pfifo limit 400', step = [{{ at = '10s', rate = '{to}' }}] }}
            flow = [{{ cc = 'bbr3' }}]
            probe = []"
        ))
    };
    let faster = with_step("10mbit", "100mbit");
    is_near(faster.bandwidth(8.0), 10.0, 0.03);
    // The next probe begins within 3 s, and then the rate grows each round trip.
    is_near(faster.bandwidth(17.0), 100.0, 0.03);
    let slower = with_step("100mbit", "10mbit");
    is_near(slower.bandwidth(8.0), 100.0, 0.03);
    // Two cycles later the old maximum is forgotten.
    is_near(slower.bandwidth(22.0), 10.0, 0.05);
}

#[test]
fn handling_token_bucket_policers() {
    let life = Life::of(
        "duration = '60s'
        link = { rate = '100mbit', rtt = '40ms', qdisc = 'pfifo limit 1000', behind = [{ police = '10mbit', burst = '50kb' }] }
        flow = [{ cc = 'bbr3' }]
        probe = []",
    );
    let flow = &life.outcome.flow[0];
    let lost = flow.retransmits as f64 / flow.data_packets as f64;
    assert!(life.outcome.goodput_mbit > 7.5, "{}", life.outcome.goodput_mbit);
    assert!(lost < 0.1, "{lost}");
}

/// The bound is where losses began, and from there on the probe grows by little.
#[test]
fn handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    let life = Life::alone(40, "50mbit", "40ms", "pfifo limit 40");
    let steps = life.steps();
    assert!(steps.contains(&("probe_bw_up", "probe_bw_down")), "{steps:?}");
    // The path and its queue hold 205 packets; 15 % below what met loss it cruises.
    let cruising = life.within("probe_bw_cruise").filter(|(at, _)| *at > 10.0);
    let most = cruising.map(|(_, now)| now.look.cwnd).max().unwrap();
    assert!((140..=205).contains(&most), "{most}");
    let flow = &life.outcome.flow[0];
    let lost = flow.retransmits as f64 / flow.data_packets as f64;
    assert!(lost > 0.0 && lost < 0.02, "{lost}");
    assert!(life.outcome.goodput_mbit > 0.85 * 50.0 * PAYLOAD, "{}", life.outcome.goodput_mbit);
}

/// Startup ends with losses before the queue has shown a plateau.
#[test]
fn exiting_startup_on_loss() {
    let short = Life::alone(10, "50mbit", "100ms", "pfifo limit 20");
    let (left, _) = short.phases()[1];
    assert!(left < 1.5, "{left}");
    let flow = &short.outcome.flow[0];
    assert!(flow.timeouts == 0 && flow.retransmits < 2_000, "{}", flow.retransmits);
    assert!(short.outcome.goodput_mbit > 0.5 * 50.0 * PAYLOAD, "{}", short.outcome.goodput_mbit);
}

/// Without `ecn_low` it sends ECT(0), and marks change nothing: beside a flow that gives way to them it takes most of the link
/// (recorded beside Prague; Sarpkaya et al., PAM 2025, saw the same).
#[test]
fn marks_are_ignored() {
    let outcome = |ecn: bool| {
        Life::of(&format!(
            "duration = '20s'
            link = {{ rate = '20mbit', rtt = '20ms', qdisc = 'codel ecn ce_threshold 1ms' }}
            flow = [{{ cc = 'bbr3', ecn = {ecn} }}, {{ cc = 'dctcp' }}]
            probe = []"
        ))
        .outcome
    };
    let marked = outcome(true);
    assert!(marked.flow[0].ce_marks > 1_000, "{}", marked.flow[0].ce_marks);
    assert!(marked.flow[0].total_mbit > 3.0 * marked.flow[1].total_mbit, "{:?}", marked.flow);
}

/// Where marks mean a short queue, heeding them keeps it so: with the route's feature, on round trips up to 5 ms.
#[test]
fn marks_on_a_low_latency_route_are_heeded() {
    let of = |rtt: &str, ecn: &str| {
        let source = format!(
            "duration = '10s'\nwarmup = '3s'\n[link]\nrate = '200mbit'\nrtt = '{rtt}'\nqdisc = 'codel ce_threshold 200us ecn'\n\
             [[flow]]\ncc = 'bbr3'\ncount = 2\n{ecn}\n[[probe]]\nkind = 'ping'\n"
        );
        let sweep = Sweep::parse(&source).expect("a scenario");
        simulate(&sweep.variants()[0].scenario, 1).expect("it is modelled")
    };
    // Above the threshold every packet is marked; ignored, marks leave the queue to the bounds of a third of a window or more.
    let delay = |rtt: &str, ecn: &str| of(rtt, ecn).queue.delay_mean_ms;
    for rtt in ["1ms", "4ms"] {
        let (ignored, heeded) = (delay(rtt, "ecn = true"), delay(rtt, "ecn_low = true"));
        assert!(heeded < 0.5 * ignored, "{rtt}: {heeded} and {ignored} ms");
        let outcome = of(rtt, "ecn_low = true");
        assert!(outcome.goodput_mbit > 170.0 && outcome.flow[0].retransmits == 0, "{outcome:?}");
        assert!(outcome.flow[0].ce_marks > 10_000, "{outcome:?}");
    }
    // The round trip is too long: the same as without the feature.
    let (ignored, heeded) = (delay("6ms", "ecn = true"), delay("6ms", "ecn_low = true"));
    assert!((heeded / ignored - 1.0).abs() < 0.1, "{heeded} and {ignored} ms");
}
