//! `netem` as tc shows it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use dualq_units::number::format_g;
use serde_json::{Map, Value, json};

use super::{Config, Stats};
use crate::kinds::{Counted, Shown};
use crate::show::{self, per_second, six_digits};

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

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}", self.limit)?;
        if !self.delay.is_zero() {
            write!(f, " delay {}", time(self.delay))?;
            if !self.jitter.is_zero() {
                write!(f, "  {}", time(self.jitter))?;
            }
        }
        if self.loss > 0 {
            write!(f, " loss {}%", format_g(100.0 * fraction(self.loss), 6))?;
        }
        if let Some(rate) = self.rate {
            write!(f, " rate {rate}")?;
        }
        if let Some(seed) = self.seed {
            write!(f, " seed {seed}")?;
        }
        if self.ecn { f.write_str(" ecn") } else { Ok(()) }
    }

    fn leaf(&self) -> Option<&crate::Config> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<crate::Config>>> {
        Some(&mut self.leaf)
    }

    fn ends_with_space(&self) -> bool {
        false
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        if !self.delay.is_zero() {
            let (delay, jitter) = (self.delay.as_secs_f64(), self.jitter.as_secs_f64());
            let (delay, jitter) = (six_digits(delay), six_digits(jitter));
            put("delay", json!({ "delay": delay, "jitter": jitter, "correlation": 0 }));
        }
        if self.loss > 0 {
            let loss = six_digits(fraction(self.loss));
            put("loss-random", json!({ "loss": loss, "correlation": 0 }));
        }
        if let Some(rate) = self.rate {
            let rate = per_second(rate);
            let framing =
                json!({ "rate": rate, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0 });
            put("rate", framing);
        }
        if let Some(seed) = self.seed {
            put("seed", seed.into());
        }
        put("ecn", self.ecn.into());
        put("gap", 0.into());
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        text.push(' ');
        for (name, count) in counts(self) {
            let _ = write!(text, " {name} {count}");
        }
        text.push('\n');
    }

    fn leaf(&self) -> Option<&show::Stats> {
        self.leaf.as_deref()
    }

    fn put(&self, object: &mut Map<String, Value>) {
        for (name, count) in counts(self) {
            object.insert(name.to_owned(), count.into());
        }
    }
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
