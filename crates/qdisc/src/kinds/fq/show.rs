//! `fq` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::tc_time::format_micros;
use dualq_units::{Bytes, Rate};
use serde_json::{Map, Value, json};

use super::{BANDS, Config, Stats};
use crate::kinds::{Counted, Shown};
use crate::show::{format_nanos, whole_micros};

impl Config {
    /// tc tells of none that is 0.
    fn told_threshold(&self) -> Option<Rate> {
        Some(self.low_rate_threshold).filter(|rate| rate.as_bits_per_second() > 0)
    }
}

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &mut dyn Iterator<Item = u32>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
        };
        write!(
            f,
            "limit {}p flow_limit {}p buckets {} orphan_mask {} {}bands {BANDS} priomap {} weights {} \
             quantum {} initial_quantum {} ",
            self.limit,
            self.flow_limit,
            self.buckets,
            self.orphan_mask,
            if self.pacing { "" } else { "nopacing " },
            list(&mut self.priomap.iter().map(|band| u32::from(*band))),
            list(&mut self.weights.iter().copied()),
            whole_bytes(self.quantum),
            whole_bytes(self.initial_quantum),
        )?;
        if let Some(rate) = self.max_rate {
            write!(f, "maxrate {rate} ")?;
        }
        if let Some(rate) = self.told_threshold() {
            write!(f, "low_rate_threshold {rate} ")?;
        }
        write!(f, "refill_delay {} ", format_micros(whole_micros(self.refill_delay)))?;
        if let Some(threshold) = self.ce_threshold {
            write!(f, "ce_threshold {} ", format_micros(whole_micros(threshold)))?;
        }
        write!(
            f,
            "timer_slack {} horizon {} horizon_{} offload_horizon 0us",
            format_nanos(self.timer_slack),
            format_micros(whole_micros(self.horizon)),
            if self.horizon_drop { "drop" } else { "cap" }
        )
    }

    /// The keys are tc's, its slips of the finger (`"priomap "`) included.
    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        put("flow_limit", self.flow_limit.into());
        put("buckets", self.buckets.into());
        put("orphan_mask", self.orphan_mask.into());
        if !self.pacing {
            put("pacing", false.into());
        }
        put("bands", BANDS.into());
        put("priomap ", json!(self.priomap));
        put("weights ", json!(self.weights));
        put("quantum", self.quantum.into());
        put("initial_quantum", self.initial_quantum.into());
        if let Some(rate) = self.max_rate {
            put("maxrate", (rate.as_bits_per_second() / 8).into());
        }
        if let Some(rate) = self.told_threshold() {
            put("low_rate_threshold", (rate.as_bits_per_second() / 8).into());
        }
        put("refill_delay", whole_micros(self.refill_delay).into());
        if let Some(threshold) = self.ce_threshold {
            put("ce_threshold", whole_micros(threshold).into());
        }
        put("timer_slack", json!(self.timer_slack.as_nanos() as u64));
        put("horizon", whole_micros(self.horizon).into());
        put(if self.horizon_drop { "horizon_drop" } else { "horizon_cap" }, Value::Null);
        put("offload_horizon", 0.into());
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let [band0, band1, band2] = self.band_packets;
        let _ = write!(
            text,
            "  flows {} (inactive {} throttled {}) band0_pkts {band0} band1_pkts {band1} band2_pkts {band2}\n  \
             gc {} highprio {} throttled {}",
            self.flows, self.inactive, self.throttled_flows, self.gc, self.highprio, self.throttled
        );
        for (name, count) in [("ce_mark", self.ce_mark), ("flows_plimit", self.flows_plimit)] {
            if count > 0 {
                let _ = write!(text, " {name} {count}");
            }
        }
        text.push('\n');
        let rare = rare(self);
        if rare.iter().any(|(_, count)| *count > 0) {
            text.push(' ');
            for (name, count) in rare.iter().filter(|(_, count)| *count > 0) {
                let _ = write!(text, " {name} {count}");
            }
            text.push('\n');
        }
    }

    fn marks(&self) -> Option<u64> {
        Some(self.ce_mark)
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
        put("flows", self.flows.into());
        put("inactive", self.inactive.into());
        // tc writes this key twice: first the flows that are throttled, further on how often one was. A reader of JSON is left
        // with the last.
        put("throttled", self.throttled);
        for (name, packets) in
            ["band0_pkts", "band1_pkts", "band2_pkts"].iter().zip(self.band_packets)
        {
            put(name, packets.into());
        }
        put("gc", self.gc);
        put("highprio", self.highprio);
        for (name, count) in [("ce_mark", self.ce_mark), ("flows_plimit", self.flows_plimit)] {
            if count > 0 {
                put(name, count);
            }
        }
        for (name, count) in rare(self).into_iter().filter(|(_, count)| *count > 0) {
            put(name, count);
        }
    }
}

fn whole_bytes(bytes: u32) -> Bytes {
    Bytes(bytes.into())
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
