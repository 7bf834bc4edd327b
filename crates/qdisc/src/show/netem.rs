//! `netem` as tc shows it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use dualq_units::number::format_g;
use serde_json::{Map, Value, json};

use super::six_digits;
use super::tbf::per_second;
use crate::disciplines::netem::{Config, Stats};

/// A time to the nanosecond, three significant digits, as tc shows such.
fn time(span: Duration) -> String {
    let nanos = span.as_nanos() as f64;
    let (unit, name) = match span.as_nanos() {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        1_000.. => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{}{name}", format_g(nanos / unit, 3))
}

fn fraction(loss: u32) -> f64 {
    f64::from(loss) / f64::from(u32::MAX)
}

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    write!(f, "limit {}", config.limit)?;
    if !config.delay.is_zero() {
        write!(f, " delay {}", time(config.delay))?;
        if !config.jitter.is_zero() {
            write!(f, "  {}", time(config.jitter))?;
        }
    }
    if config.loss > 0 {
        write!(f, " loss {}%", format_g(100.0 * fraction(config.loss), 6))?;
    }
    if let Some(rate) = config.rate {
        write!(f, " rate {rate}")?;
    }
    if let Some(seed) = config.seed {
        write!(f, " seed {seed}")?;
    }
    if config.ecn { f.write_str(" ecn") } else { Ok(()) }
}

pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    put("limit", config.limit.into());
    if !config.delay.is_zero() {
        let (delay, jitter) = (config.delay.as_secs_f64(), config.jitter.as_secs_f64());
        let (delay, jitter) = (six_digits(delay), six_digits(jitter));
        put("delay", json!({ "delay": delay, "jitter": jitter, "correlation": 0 }));
    }
    if config.loss > 0 {
        let loss = six_digits(fraction(config.loss));
        put("loss-random", json!({ "loss": loss, "correlation": 0 }));
    }
    if let Some(rate) = config.rate {
        let rate = per_second(rate);
        let framing =
            json!({ "rate": rate, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0 });
        put("rate", framing);
    }
    if let Some(seed) = config.seed {
        put("seed", seed.into());
    }
    put("ecn", config.ecn.into());
    put("gap", 0.into());
    options.into()
}

/// tc's names; what dualq does not do stays at 0.
fn counts(own: &Stats) -> [(&'static str, u64); 6] {
    [
        ("delayed", own.delayed),
        ("dropped", own.dropped),
        ("corrupted", 0),
        ("duplicated", 0),
        ("reordered", own.reordered),
        ("ecn_marked", own.ecn_marked),
    ]
}

pub(super) fn write_stats(text: &mut String, own: &Stats) {
    text.push(' ');
    for (name, count) in counts(own) {
        let _ = write!(text, " {name} {count}");
    }
    text.push('\n');
}

pub(super) fn put_stats(object: &mut Map<String, Value>, own: &Stats) {
    for (name, count) in counts(own) {
        object.insert(name.to_owned(), count.into());
    }
}
