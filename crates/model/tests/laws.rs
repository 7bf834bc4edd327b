//! What is known of senders and queues in closed form, or was measured by those who made them, with its source. The model is not made from
//! these laws, so that they can find it wrong.

use dualq_model::simulate;
use dualq_scenario::{Outcome, Sweep};

/// Payload of a segment of 1500 bytes with timestamps.
const SEGMENT_BITS: f64 = 1448.0 * 8.0;

/// What comes of the first scenario of a file, with packets as they are on the wire.
fn outcome(source: &str) -> Outcome {
    outcome_of(source, 1)
}

fn outcome_of(source: &str, seed: u64) -> Outcome {
    let source = format!("warmup = '20s'\n{source}\n[sender]\ngso = false\n");
    let sweep = Sweep::parse(&source).expect("a scenario");
    simulate(&sweep.variants()[0].scenario, seed).expect("it is modelled")
}

/// The mean window, in segments, of one flow on a link that never is the limit; of a round-trip time in milliseconds.
fn window(cc: &str, rtt_ms: u32, (qdisc, loss): (&str, &str)) -> f64 {
    let source = format!(
        "duration = '120s'
        link = {{ rate = '1gbit', rtt = '{rtt_ms}ms', qdisc = '{qdisc}', loss = '{loss}' }}
        flow = [{{ cc = '{cc}' }}]
        probe = [{{ kind = 'ping', interval = '1s' }}]"
    );
    // A hundred losses or so in each run: their number varies by a tenth.
    let goodputs = (1..=4).map(|seed| outcome_of(&source, seed).goodput_mbit);
    goodputs.sum::<f64>() / 4.0 * 1e6 / SEGMENT_BITS * f64::from(rtt_ms) / 1e3
}

fn is_near(value: f64, law: f64, share: f64) {
    assert!((value / law - 1.0).abs() <= share, "{value:.1}, by the law {law:.1}");
}

/// Mathis, Semke, Mahdavi, Ott: *The macroscopic behavior of the TCP congestion avoidance algorithm* (CCR 1997): W = √(3/2p), if each
/// packet is acknowledged or counts (RFC 3465).
#[test]
fn renos_window_is_the_root_of_three_by_two_p() {
    for (loss, share) in [("0.03%", 0.0003), ("0.1%", 0.001), ("0.3%", 0.003)] {
        is_near(window("reno", 40, ("pfifo limit 10000", loss)), (1.5_f64 / share).sqrt(), 0.1);
    }
}

/// RFC 9438 §5.1: W = ⁴√(C (3 + β) / 4 (1 - β)) · (RTT / p)^(3/4), and §4.3: where Reno's is larger, that.
#[test]
fn cubics_window_is_its_own_law_or_renos() {
    let cubic = |rtt_s: f64, share: f64| {
        (0.4_f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * (rtt_s / share).powf(0.75)
    };
    for (rtt_ms, loss, share) in [(40, "0.1%", 0.001), (200, "0.03%", 0.0003), (200, "0.1%", 0.001)]
    {
        let law = cubic(f64::from(rtt_ms) / 1e3, share).max((1.5_f64 / share).sqrt());
        // The formula is of losses at equal distances. Random ones leave more: after a long time without one a window is larger by
        // more than it is smaller after a short time.
        is_near(window("cubic", rtt_ms, ("pfifo limit 10000", loss)), law, 0.25);
    }
}

/// Alizadeh, Javanmard, Prabhakar: *Analysis of DCTCP* (SIGMETRICS 2011), and RFC 9332 §2.1: W = 2/p where packets are marked at random.
///
/// Linux keeps it only from 2 % on or so. Its alpha is counted in 1024ths, and a sixteenth of the share that was marked in a round trip is
/// added to it, rounded down (`dctcp_update_alpha`): of a share below a 64th nothing is left, alpha falls to nothing, and so does the
/// answer. At 1 % both worlds have windows of 250 to 270 segments after a minute, and they still grow.
#[test]
fn dctcps_window_is_two_by_p() {
    for (marked, share) in [("5%", 0.05), ("10%", 0.1)] {
        let qdisc = format!("netem loss {marked} ecn limit 10000");
        is_near(window("dctcp", 20, (&qdisc, "0%")), 2.0 / share, 0.12);
    }
    let hardly_marked = window("dctcp", 20, ("netem loss 1% ecn limit 10000", "0%"));
    assert!(hardly_marked > 1.25 * 2.0 / 0.01, "{hardly_marked}");
}

/// Cardwell et al.: *BBR: congestion-based congestion control* (ACM Queue 2016), figure 8: BBR does not heed random loss up to some 15 %,
/// and then there is a cliff, since it loses more than its gain of a quarter can probe for.
#[test]
fn bbr_does_not_heed_loss_until_its_cliff() {
    let goodput = |loss: &str| {
        outcome(&format!(
            "duration = '60s'
            link = {{ rate = '100mbit', rtt = '40ms', qdisc = 'pfifo limit 10000', loss = '{loss}' }}
            flow = [{{ cc = 'bbr' }}]"
        ))
        .goodput_mbit
    };
    let line = 100.0 * 1448.0 / 1514.0;
    for (loss, share) in [("1%", 0.01), ("5%", 0.05), ("10%", 0.1)] {
        // It probes for its round-trip time a fiftieth of the time.
        let possible = line * (1.0 - share);
        let goodput = goodput(loss);
        assert!((0.85..=1.0).contains(&(goodput / possible)), "{goodput} of {possible}");
    }
    let beyond = goodput("25%");
    assert!(beyond < 0.1 * line, "{beyond}");
}

fn queue(cc: &str, count: u32, rtt: &str, rate: &str, qdisc: &str) -> Outcome {
    outcome(&format!(
        "duration = '140s'
        link = {{ rate = '{rate}', rtt = '{rtt}', qdisc = '{qdisc}' }}
        flow = [{{ cc = '{cc}', count = {count} }}]"
    ))
}

/// RFC 8033 §4.2: PIE's controller has its rest at the target.
#[test]
fn pie_holds_its_target() {
    for target in [5, 15, 30] {
        let outcome = queue("reno", 5, "40ms", "50mbit", &format!("pie target {target}ms"));
        is_near(outcome.queue.delay_mean_ms, f64::from(target), 0.15);
    }
}

/// RFC 8289 §4.2, §4.3: CoDel tolerates bursts of an interval above its target of 5 ms, so that a few flows stay near it. One Reno flow
/// halves its window at the first drop, and with an empty queue then has no less than three quarters of the link.
#[test]
fn codel_stays_about_its_target() {
    let several = queue("reno", 5, "40ms", "50mbit", "codel");
    assert!((3.0..=8.0).contains(&several.queue.delay_mean_ms), "{}", several.queue.delay_mean_ms);
    let one = queue("reno", 1, "40ms", "50mbit", "codel");
    assert!(one.queue.delay_mean_ms < 5.0, "{}", one.queue.delay_mean_ms);
    let share = one.goodput_mbit / (50.0 * 1448.0 / 1514.0);
    assert!((0.75..0.95).contains(&share), "{share}");
}

/// RFC 9332 §2.1: a coupling factor of 2 gives a scalable and a Classic flow of one round-trip time about the same rate. It leaves out what
/// either queue adds to the round trip, and a window of few segments, so that it is true to a factor of three.
#[test]
fn the_coupling_shares_about_equally() {
    for (rate, rtt) in [("40mbit", "20ms"), ("120mbit", "10ms"), ("40mbit", "50ms")] {
        let outcome = outcome(&format!(
            "duration = '80s'
            link = {{ rate = '{rate}', rtt = '{rtt}', qdisc = 'dualpi2 any_ect' }}
            flow = [{{ cc = 'dctcp' }}, {{ cc = 'reno' }}]"
        ));
        let ratio = outcome.flow[0].total_mbit / outcome.flow[1].total_mbit;
        assert!((1.0 / 3.0..=3.0).contains(&ratio), "{rate}, {rtt}: {ratio}");
        // What the low-latency queue is for.
        let [low, classic] = [outcome.queue.delay_ect, outcome.queue.delay_not_ect]
            .map(|delays| delays.expect("both had packets").mean_ms);
        assert!(low < 1.5 && (8.0..25.0).contains(&classic), "{low} {classic}");
    }
}

/// Shreedhar, Varghese (SIGCOMM 1995), Bertsekas, Gallager, *Data Networks* §6.5.2: queues that are served in turn share max-min: flows
/// that all want more get equally much, whatever their congestion control is.
#[test]
fn fair_queueing_shares_max_min() {
    for qdisc in ["fq", "fq_codel"] {
        let outcome = outcome(&format!(
            "duration = '60s'
            link = {{ rate = '30mbit', rtt = '20ms', qdisc = '{qdisc}' }}
            flow = [{{ cc = 'cubic' }}, {{ cc = 'reno' }}, {{ cc = 'bbr' }}]"
        ));
        assert!(outcome.fairness.is_some_and(|index| index > 0.99), "{:?}", outcome.fairness);
    }
}
