//! Draws the trace `scenarios/lte.trace`: a link whose rate wanders as that of LTE does.
//!
//! The model is that of Winstein, Sivaraman and Balakrishnan (*Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular
//! Networks*, NSDI 2013, §3.1): packets are a Poisson process whose rate is in Brownian motion, between nothing and 1,000 packets a second,
//! with a deviation of 200 packets per second after a second. When it comes to nothing it stays there for a second on average.
//!
//! ```sh
//! cargo run -p dualq-scenario --example lte_trace > scenarios/lte.trace
//! ```

use dualq_qdisc::{Random, SplitMix64};

/// How long the trace is.
const SECONDS: u32 = 30;
/// How often the rate changes: a tick of 20 ms, as in the paper.
const TICKS_PER_SECOND: u32 = 50;
/// Packets a second.
const MOST: f64 = 1000.0;
const FIRST: f64 = 500.0;
/// The deviation after a second, in packets a second.
const DEVIATION: f64 = 200.0;
/// How many outages end in a second of outage.
const ESCAPES: f64 = 1.0;
const SEED: u64 = 6;

/// Within (0, 1].
fn share(random: &mut SplitMix64) -> f64 {
    (f64::from(random.next_u32()) + 1.0) / 2_f64.powi(32)
}

/// Of mean 0 and deviation 1, nearly normal: the sum of twelve equally distributed numbers.
fn normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| share(random)).sum::<f64>() - 6.0
}

/// The lines of the trace.
pub(crate) fn trace() -> String {
    let mut random = SplitMix64::new(SEED);
    let tick_ms = f64::from(1000 / TICKS_PER_SECOND);
    let step = DEVIATION / f64::from(TICKS_PER_SECOND).sqrt();
    let escape = 1.0 - (-ESCAPES / f64::from(TICKS_PER_SECOND)).exp();
    let mut rate = FIRST;
    // In packets: how much of the Poisson process has to pass until the next one is due.
    let mut missing = -share(&mut random).ln();
    let mut lines = String::new();
    for tick in 0..SECONDS * TICKS_PER_SECOND {
        let change = step * normal(&mut random);
        if rate > 0.0 {
            rate = (rate + change).clamp(0.0, MOST);
        } else if share(&mut random) < escape {
            rate = change.abs();
        }
        let mut left_ms = tick_ms;
        while rate > 0.0 && missing * 1000.0 / rate <= left_ms {
            left_ms -= missing * 1000.0 / rate;
            let at_ms = f64::from(tick) * tick_ms + tick_ms - left_ms;
            lines += &format!("{}\n", at_ms as u32);
            missing = -share(&mut random).ln();
        }
        missing -= left_ms * rate / 1000.0;
    }
    lines
}

fn main() {
    print!("{}", trace());
}
