//! `fq_codel` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::whole_micros;
use crate::disciplines::fq_codel::{Config, Stats};

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    let Config { limit, flows, quantum, memory_limit, drop_batch, .. } = config;
    let target = format_micros(whole_micros(config.target));
    write!(f, "limit {limit}p flows {flows} quantum {quantum} target {target} ")?;
    if let Some(threshold) = config.ce_threshold {
        write!(f, "ce_threshold {} ", format_micros(whole_micros(threshold)))?;
    }
    let interval = format_micros(whole_micros(config.interval));
    let ecn = if config.ecn { "ecn " } else { "" };
    write!(f, "interval {interval} memory_limit {memory_limit} {ecn}drop_batch {drop_batch}")
}

pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    put("limit", config.limit.into());
    put("flows", config.flows.into());
    put("quantum", config.quantum.into());
    put("target", whole_micros(config.target).into());
    if let Some(threshold) = config.ce_threshold {
        put("ce_threshold", whole_micros(threshold).into());
    }
    put("interval", whole_micros(config.interval).into());
    put("memory_limit", config.memory_limit.0.into());
    if config.ecn {
        put("ecn", true.into());
    }
    put("drop_batch", config.drop_batch.into());
    options.into()
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

pub(super) fn write_stats(text: &mut String, own: &Stats) {
    let _ = write!(
        text,
        "  maxpacket {} drop_overlimit {} new_flow_count {} ecn_mark {}",
        own.maxpacket, own.drop_overlimit, own.new_flow_count, own.ecn_mark
    );
    for (name, count) in rare(own) {
        let _ = write!(text, " {name} {count}");
    }
    let _ = writeln!(
        text,
        "\n  new_flows_len {} old_flows_len {}",
        own.new_flows_len, own.old_flows_len
    );
}

pub(super) fn put_stats(object: &mut Map<String, Value>, own: &Stats) {
    let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
    put("maxpacket", own.maxpacket.into());
    put("drop_overlimit", own.drop_overlimit);
    put("new_flow_count", own.new_flow_count);
    put("ecn_mark", own.ecn_mark);
    for (name, count) in rare(own) {
        put(name, count);
    }
    put("new_flows_len", own.new_flows_len.into());
    put("old_flows_len", own.old_flows_len.into());
}
