//! An own congestion control raced against CUBIC and BBR in the model: as a program that shows who gets what, and as unit tests of it, as a
//! QUIC stack's CI would have them.
//!
//! `cargo run -p dualq-model --example race`, `cargo test -p dualq-model --example race`

use dualq_scenario::{Algorithm, Outcome, Sweep};
use dualq_tcp::cc::{CongestionControl, Context, Window};

/// Reno that gives up a fifth of its window for a loss or a mark, not half.
#[derive(Debug)]
struct Gentle;

impl CongestionControl for Gentle {
    fn ssthresh(&mut self, window: &Window, _: &Context) -> u32 {
        (window.cwnd * 4 / 5).max(2)
    }

    fn increase(&mut self, window: &mut Window, _: &Context, mut acked: u32) {
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            window.additive_increase(window.cwnd, acked);
        }
    }
}

/// What comes of a flow of ours beside one of `other`, on 20 Mbit/s and 40 ms behind this queue discipline. The same each time.
fn race(other: &str, qdisc: &str) -> Result<Outcome, Box<dyn std::error::Error>> {
    if Algorithm::from_name("gentle").is_none() {
        // Another test may have been quicker.
        let _ = Algorithm::register("gentle", || Box::new(Gentle));
    }
    let scenario = format!(
        "duration = '60s'
        [link]
        rate = '20mbit'
        rtt = '40ms'
        qdisc = '{qdisc}'
        [[flow]]
        cc = 'gentle'
        [[flow]]
        cc = '{other}'"
    );
    let variant = Sweep::parse(&scenario)?.variants().remove(0);
    Ok(dualq_model::simulate(&variant.scenario, 1)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<8} {:<16} {:>9} {:>9} {:>12}", "against", "queue", "ours", "theirs", "RTT p99");
    for qdisc in ["pfifo limit 100", "fq_codel", "dualpi2"] {
        for other in ["cubic", "bbr"] {
            let outcome = race(other, qdisc)?;
            let [ours, theirs] = [0, 1].map(|flow| outcome.flow[flow].total_mbit);
            let p99_ms = outcome.probe[0].p99_ms;
            println!("{other:<8} {qdisc:<16} {ours:>4.1} Mbit {theirs:>4.1} Mbit {p99_ms:>9.1} ms");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our flow's part of what both get.
    fn share(outcome: &Outcome) -> f64 {
        outcome.flow[0].total_mbit / outcome.goodput_mbit
    }

    #[test]
    fn queues_that_tell_flows_apart_are_fair_to_us() {
        for other in ["cubic", "bbr"] {
            let share = share(&race(other, "fq_codel").unwrap());
            assert!((0.45..0.55).contains(&share), "{other}: {share}");
        }
    }

    #[test]
    fn nobody_starves_in_one_queue() {
        for (other, qdisc) in
            [("cubic", "dualpi2"), ("cubic", "pfifo limit 100"), ("bbr", "pfifo limit 100")]
        {
            let share = share(&race(other, qdisc).unwrap());
            assert!((0.1..0.9).contains(&share), "{other}, {qdisc}: {share}");
        }
    }

    #[test]
    fn the_link_is_used() {
        let outcome = race("cubic", "dualpi2").unwrap();
        assert!(outcome.goodput_mbit > 18.0, "{}", outcome.goodput_mbit);
    }
}
