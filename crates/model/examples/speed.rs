//! Data packets a second: one flow of each congestion control at 50 Mbit/s and 48.33 ms through PIE for 60 s, and
//! lossy 10 Gbit/s.

use std::time::Instant;

use dualq_model::{Scenario, simulate};
use serde_json::json;

fn scenario(
    rate: &str,
    rtt: &str,
    qdisc: &str,
    sender: (&str, bool),
    cc: &str,
    seconds: u32,
) -> Scenario {
    let value = json!({
        "name": "speed", "duration": format!("{seconds}s"), "warmup": "1s",
        "link": {"rate": rate, "rtt": rtt, "qdisc": qdisc, "loss": "0%", "mtu": 1500},
        "sender": {"qdisc": sender.0, "gso": sender.1},
        "receiver": {"read_interval": "0ms"},
        "flow": [{"cc": cc, "count": 1, "ecn": false}],
        "probe": [],
    });
    serde_json::from_value(value).unwrap_or_else(|error| panic!("a scenario of this file: {error}"))
}

fn main() {
    let mut cases = Vec::new();
    for cc in ["bbr", "cubic", "reno", "dctcp"] {
        cases.push((cc, scenario("50mbit", "48.33ms", "pie", ("fq", false), cc, 60)));
    }
    for cc in ["bbr", "cubic"] {
        let sender = ("netem loss 1% limit 10000", true);
        let lan = scenario("10gbit", "0.12ms", "bfifo limit 4000000", sender, cc, 10);
        cases.push((cc, lan));
    }
    for (cc, scenario) in &cases {
        let mut best = f64::MAX;
        let mut packets = 0;
        for seed in 1..=5 {
            let start = Instant::now();
            match simulate(scenario, seed) {
                Ok(outcome) => packets = outcome.data_packets,
                Err(error) => println!("{error}"),
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{cc:>6} at {}: {packets} packets in {:.3} s: {:.0} a second",
            scenario.link.rate,
            best,
            packets as f64 / best
        );
    }
}
