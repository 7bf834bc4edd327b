//! `fq_codel` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{Config, Selector, Stats};
use crate::kinds::{Counted, Shown};
use crate::show::whole_micros;

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { limit, flows, quantum, memory_limit, drop_batch, .. } = self;
        let target = format_micros(whole_micros(self.target));
        write!(f, "limit {limit}p flows {flows} quantum {quantum} target {target} ")?;
        if let Some(threshold) = self.ce_threshold {
            write!(f, "ce_threshold {} ", format_micros(whole_micros(threshold)))?;
            if let Some(Selector { value, mask }) = self.ce_threshold_selector {
                write!(f, "ce_threshold_selector {value:#x}/{mask:#x} ")?;
            }
        }
        let interval = format_micros(whole_micros(self.interval));
        let ecn = if self.ecn { "ecn " } else { "" };
        write!(f, "interval {interval} memory_limit {memory_limit} {ecn}drop_batch {drop_batch}")
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        put("flows", self.flows.into());
        put("quantum", self.quantum.into());
        put("target", whole_micros(self.target).into());
        if let Some(threshold) = self.ce_threshold {
            put("ce_threshold", whole_micros(threshold).into());
            if let Some(Selector { value, mask }) = self.ce_threshold_selector {
                put("ce_threshold_selector", value.into());
                put("ce_threshold_mask", mask.into());
            }
        }
        put("interval", whole_micros(self.interval).into());
        put("memory_limit", self.memory_limit.0.into());
        if self.ecn {
            put("ecn", true.into());
        }
        put("drop_batch", self.drop_batch.into());
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let _ = write!(
            text,
            "  maxpacket {} drop_overlimit {} new_flow_count {} ecn_mark {}",
            self.maxpacket, self.drop_overlimit, self.new_flow_count, self.ecn_mark
        );
        for (name, count) in rare(self) {
            let _ = write!(text, " {name} {count}");
        }
        let _ = writeln!(
            text,
            "\n  new_flows_len {} old_flows_len {}",
            self.new_flows_len, self.old_flows_len
        );
    }

    fn marks(&self) -> Option<u64> {
        Some(self.ecn_mark + self.ce_mark)
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
        put("maxpacket", self.maxpacket.into());
        put("drop_overlimit", self.drop_overlimit);
        put("new_flow_count", self.new_flow_count);
        put("ecn_mark", self.ecn_mark);
        for (name, count) in rare(self) {
            put(name, count);
        }
        put("new_flows_len", self.new_flows_len.into());
        put("old_flows_len", self.old_flows_len.into());
    }
}

/// Those that tc only shows if there is something to show.
fn rare(own: &Stats) -> impl Iterator<Item = (&'static str, u64)> {
    [
        ("ce_mark", own.ce_mark),
        ("memory_used", own.memory_used),
        ("drop_overmemory", own.drop_overmemory),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
}
