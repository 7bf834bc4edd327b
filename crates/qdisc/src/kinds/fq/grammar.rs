//! `fq` (tc-fq(8), and what `tc qdisc add … fq help` lists beyond it).

use std::fmt;

use dualq_units::{Exact, Rate};

use super::about::{ABOUT, BUCKETS, BYTES, PACKETS, PRIOMAP, QUANTUM, RATE, SLACK, TIME, WEIGHTS};
use super::{BANDS, Options};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, exact_nanos, exact_time, unknown_option, write_flag, write_option,
};
use crate::kinds::Grammar;

/// The kernel's bounds.
const MAX_QUANTUM: u32 = 1 << 20;
const MAX_BUCKETS: u32 = 1 << 18;
const WEIGHT_BOUNDS: std::ops::RangeInclusive<u32> = 65_536..=i32::MAX as u32;

impl Grammar for Options {
    const NAME: &'static str = "fq";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => options.limit = Some(words.number(word, PACKETS)?),
                "flow_limit" => options.flow_limit = Some(words.number(word, PACKETS)?),
                "orphan_mask" => options.orphan_mask = Some(words.number(word, "give a number")?),
                "buckets" => {
                    let buckets = words.number(word, BUCKETS)?;
                    if buckets == 1 || buckets > MAX_BUCKETS {
                        return Err(words.kernel_refuses(word, BUCKETS));
                    }
                    // tc sends the logarithm, rounded up.
                    let buckets = words.unless_zero(word, buckets);
                    options.buckets = buckets.map(u32::next_power_of_two);
                }
                "quantum" => {
                    let quantum = words.number(word, QUANTUM)?;
                    if quantum == 0 || quantum > MAX_QUANTUM {
                        return Err(words.kernel_refuses(word, QUANTUM));
                    }
                    options.quantum = Some(quantum);
                }
                "initial_quantum" => options.initial_quantum = Some(words.number(word, BYTES)?),
                "maxrate" => options.max_rate = Some(rate(word, words)?),
                "low_rate_threshold" => options.low_rate_threshold = Some(rate(word, words)?),
                "pacing" => options.pacing = Some(true),
                "nopacing" => options.pacing = Some(false),
                "refill_delay" => options.refill_delay = Some(words.time(word, TIME)?),
                "ce_threshold" => options.ce_threshold = Some(words.time(word, TIME)?),
                "horizon" => options.horizon = Some(words.time(word, TIME)?),
                "timer_slack" => options.timer_slack = Some(words.nanos(word, SLACK)?),
                "horizon_cap" => options.horizon_drop = Some(false),
                "horizon_drop" => options.horizon_drop = Some(true),
                "bands" => {
                    words.literal("bands", "3", "fq has 3 bands: write bands 3 priomap …")?;
                    words.literal("bands", "priomap", PRIOMAP)?;
                    let mut map = [0; 16];
                    for band in &mut map {
                        *band = words.u8("priomap", PRIOMAP)?;
                        if usize::from(*band) >= BANDS {
                            return Err(words.refuse(RefusedBy::Tc, format!("no band: {PRIOMAP}")));
                        }
                    }
                    options.priomap = Some(map);
                }
                "weights" => {
                    let mut weights = [0; BANDS];
                    for weight in &mut weights {
                        *weight = words.number("weight", WEIGHTS)?;
                        if !WEIGHT_BOUNDS.contains(weight) {
                            return Err(
                                words.refuse(RefusedBy::Tc, format!("no weight: {WEIGHTS}"))
                            );
                        }
                    }
                    options.weights = Some(weights);
                }
                "defrate" | "offload_horizon" => {
                    let message = format!("{word} has no effect in dualq; leave it out");
                    return Err(words.refuse(RefusedBy::Dualq, message));
                }
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        write_option(f, "limit", self.limit)?;
        write_option(f, "flow_limit", self.flow_limit)?;
        write_option(f, "buckets", self.buckets)?;
        write_option(f, "orphan_mask", self.orphan_mask)?;
        if let Some(map) = self.priomap {
            write!(f, " bands {BANDS} priomap {}", list(&map.map(u32::from)))?;
        }
        write_option(f, "weights", self.weights.map(|weights| list(&weights)))?;
        write_option(f, "quantum", self.quantum)?;
        write_option(f, "initial_quantum", self.initial_quantum)?;
        write_option(f, "maxrate", self.max_rate.map(Exact))?;
        write_option(f, "low_rate_threshold", self.low_rate_threshold.map(Exact))?;
        write_option(f, "refill_delay", self.refill_delay.map(exact_time))?;
        write_option(f, "ce_threshold", self.ce_threshold.map(exact_time))?;
        write_option(f, "timer_slack", self.timer_slack.map(exact_nanos))?;
        write_option(f, "horizon", self.horizon.map(exact_time))?;
        write_flag(f, self.horizon_drop, "horizon_drop", "horizon_cap")?;
        write_flag(f, self.pacing, "pacing", "nopacing")
    }
}

/// A rate that fits 32 bits of bytes per second, as tc sends it: whole bytes.
fn rate(option: &str, words: &mut Words<'_>) -> Result<Rate, ParseError> {
    let bytes = words.rate(option, RATE)?.as_bits_per_second() / 8;
    if bytes > u64::from(u32::MAX) {
        return Err(words.refuse(RefusedBy::Tc, format!("too large for {option}: {RATE}")));
    }
    Ok(Rate::from_bits_per_second(bytes * 8))
}
