//! `tbf` as tc shows it.

use std::fmt;
use std::time::Duration;

use dualq_units::tc_time::format_micros;
use dualq_units::{Bytes, Rate};
use serde_json::{Map, Value};

use crate::disciplines::bucket::size;
use crate::disciplines::tbf::Config;

/// The bytes per second of a rate, as tc writes rates into JSON.
pub(super) fn per_second(rate: Rate) -> u64 {
    rate.as_bits_per_second() / 8
}

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

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    write!(f, "rate {} burst {}", config.rate, size(config.rate, config.buffer))?;
    if let Some((rate, bytes)) = minburst(config) {
        write!(f, " peakrate {rate} minburst {bytes}")?;
    }
    match latency(config) {
        Some(latency) => write!(f, " lat {}", format_micros(latency)),
        None => write!(f, " limit {}", config.limit),
    }
}

/// As tc does, without the peak rate.
pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: u64| options.insert(key.to_owned(), value.into());
    put("rate", per_second(config.rate));
    put("burst", size(config.rate, config.buffer).0);
    if let Some((_, bytes)) = minburst(config) {
        put("minburst", bytes.0);
    }
    match latency(config) {
        Some(latency) => put("lat", latency.into()),
        None => put("limit", config.limit.0),
    };
    options.into()
}
