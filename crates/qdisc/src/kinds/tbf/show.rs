//! `tbf` as tc shows it.

use std::fmt;
use std::time::Duration;

use dualq_units::tc_time::format_micros;
use dualq_units::{Bytes, Rate};
use serde_json::{Map, Value};

use super::{Config, Stats};
use crate::bucket::size;
use crate::kinds::{Counted, Shown};
use crate::show::{self, per_second};

/// How long a packet waits at the most, if tc can tell: microseconds.
fn latency(config: &Config) -> Option<u32> {
    let latency = |rate: Rate, buffer: Duration| {
        1e6 * (config.limit.0 as f64 / per_second(rate) as f64) - buffer.as_nanos() as f64 / 1e3
    };
    let own = latency(config.rate, config.buffer);
    let peak = config.peak.map_or(f64::MIN, |(rate, buffer)| latency(rate, buffer));
    let longest = own.max(peak);
    (longest >= 0.0).then_some(longest as u32)
}

/// The bucket of the peak rate, in bytes.
fn minburst(config: &Config) -> Option<(Rate, Bytes)> {
    config.peak.map(|(rate, buffer)| (rate, size(rate, buffer)))
}

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate {} burst {}", self.rate, size(self.rate, self.buffer))?;
        if let Some((rate, bytes)) = minburst(self) {
            write!(f, " peakrate {rate} minburst {bytes}")?;
        }
        match latency(self) {
            Some(latency) => write!(f, " lat {}", format_micros(latency)),
            None => write!(f, " limit {}", self.limit),
        }
    }

    fn leaf(&self) -> Option<&crate::Config> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<crate::Config>>> {
        Some(&mut self.leaf)
    }

    /// As tc does, without the peak rate.
    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: u64| options.insert(key.to_owned(), value.into());
        put("rate", per_second(self.rate));
        put("burst", size(self.rate, self.buffer).0);
        if let Some((_, bytes)) = minburst(self) {
            put("minburst", bytes.0);
        }
        match latency(self) {
            Some(latency) => put("lat", latency.into()),
            None => put("limit", self.limit.0),
        };
        options.into()
    }
}

impl Counted for Stats {
    fn leaf(&self) -> Option<&show::Stats> {
        Some(&self.leaf)
    }
}
