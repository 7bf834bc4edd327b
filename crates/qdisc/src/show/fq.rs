//! `fq` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::Bytes;
use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value, json};

use super::whole_micros;
use crate::disciplines::fq::{BANDS, Config, Stats};

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    let list = |numbers: &mut dyn Iterator<Item = u32>| {
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    };
    write!(
        f,
        "limit {}p flow_limit {}p buckets {} orphan_mask {} {}bands {BANDS} priomap {} weights {} \
         quantum {} initial_quantum {} ",
        config.limit,
        config.flow_limit,
        config.buckets,
        config.orphan_mask,
        if config.pacing { "" } else { "nopacing " },
        list(&mut config.priomap.iter().map(|band| u32::from(*band))),
        list(&mut config.weights.iter().copied()),
        whole_bytes(config.quantum),
        whole_bytes(config.initial_quantum),
    )?;
    if let Some(rate) = config.max_rate {
        write!(f, "maxrate {rate} ")?;
    }
    write!(
        f,
        "low_rate_threshold {} refill_delay {} ",
        config.low_rate_threshold,
        format_micros(whole_micros(config.refill_delay))
    )?;
    if let Some(threshold) = config.ce_threshold {
        write!(f, "ce_threshold {} ", format_micros(whole_micros(threshold)))?;
    }
    write!(
        f,
        "timer_slack {} horizon {} horizon_{} offload_horizon 0us",
        format_micros(whole_micros(config.timer_slack)),
        format_micros(whole_micros(config.horizon)),
        if config.horizon_drop { "drop" } else { "cap" }
    )
}

fn whole_bytes(bytes: u32) -> Bytes {
    Bytes(bytes.into())
}

/// The keys are tc's, its slips of the finger (`"priomap "`) included.
pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    put("limit", config.limit.into());
    put("flow_limit", config.flow_limit.into());
    put("buckets", config.buckets.into());
    put("orphan_mask", config.orphan_mask.into());
    if !config.pacing {
        put("pacing", false.into());
    }
    put("bands", BANDS.into());
    put("priomap ", json!(config.priomap));
    put("weights ", json!(config.weights));
    put("quantum", config.quantum.into());
    put("initial_quantum", config.initial_quantum.into());
    if let Some(rate) = config.max_rate {
        put("maxrate", (rate.as_bits_per_second() / 8).into());
    }
    put("low_rate_threshold", (config.low_rate_threshold.as_bits_per_second() / 8).into());
    put("refill_delay", whole_micros(config.refill_delay).into());
    if let Some(threshold) = config.ce_threshold {
        put("ce_threshold", whole_micros(threshold).into());
    }
    put("timer_slack", json!(config.timer_slack.as_nanos() as u64));
    put("horizon", whole_micros(config.horizon).into());
    put(if config.horizon_drop { "horizon_drop" } else { "horizon_cap" }, Value::Null);
    put("offload_horizon", 0.into());
    options.into()
}

pub(super) fn write_stats(text: &mut String, own: &Stats) {
    let [band0, band1, band2] = own.band_packets;
    let _ = write!(
        text,
        "  flows {} (inactive {} throttled {}) band0_pkts {band0} band1_pkts {band1} band2_pkts {band2}\n  \
         gc {} highprio {} throttled {}",
        own.flows, own.inactive, own.throttled_flows, own.gc, own.highprio, own.throttled
    );
    for (name, count) in [("ce_mark", own.ce_mark), ("flows_plimit", own.flows_plimit)] {
        if count > 0 {
            let _ = write!(text, " {name} {count}");
        }
    }
    text.push('\n');
    let rare = rare(own);
    if rare.iter().any(|(_, count)| *count > 0) {
        text.push(' ');
        for (name, count) in rare.iter().filter(|(_, count)| *count > 0) {
            let _ = write!(text, " {name} {count}");
        }
        text.push('\n');
    }
}

/// Those that tc only shows if there is something to show.
fn rare(own: &Stats) -> [(&'static str, u64); 6] {
    let [band0, band1, band2] = own.band_drops;
    [
        ("pkts_too_long", own.pkts_too_long),
        ("horizon_drops", own.horizon_drops),
        ("horizon_caps", own.horizon_caps),
        ("band0_drops", band0),
        ("band1_drops", band1),
        ("band2_drops", band2),
    ]
}

pub(super) fn put_stats(object: &mut Map<String, Value>, own: &Stats) {
    let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
    put("flows", own.flows.into());
    put("inactive", own.inactive.into());
    // tc writes this key twice: first the flows that are throttled, further on how often one was. A reader of JSON is left
    // with the last.
    put("throttled", own.throttled);
    for (name, packets) in ["band0_pkts", "band1_pkts", "band2_pkts"].iter().zip(own.band_packets) {
        put(name, packets.into());
    }
    put("gc", own.gc);
    put("highprio", own.highprio);
    for (name, count) in [("ce_mark", own.ce_mark), ("flows_plimit", own.flows_plimit)] {
        if count > 0 {
            put(name, count);
        }
    }
    for (name, count) in rare(own).into_iter().filter(|(_, count)| *count > 0) {
        put(name, count);
    }
}
