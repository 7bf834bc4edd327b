//! What `cake` counts, as tc shows it.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use dualq_units::tc_time::format_micros;
use dualq_units::{Bytes, Rate};
use serde_json::{Map, Value};

use super::{Diffserv, Stats, TinStats};
use crate::kinds::Counted;
use crate::show::Inside;

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let _ = write!(
            text,
            " memory used: {} of {}\n \
             capacity estimate: {}\n \
             min/max network layer size: {:12} /{:8}\n \
             min/max overhead-adjusted size: {:8} /{:8}\n \
             average network hdr offset: {:12}\n\n",
            Bytes(self.memory_used),
            Bytes(self.memory_limit),
            Rate::from_bits_per_second(self.capacity_estimate * 8),
            self.min_network_size,
            self.max_network_size,
            self.min_adj_size,
            self.max_adj_size,
            self.avg_hdr_offset
        );
        let names = names(self.tins.len());
        text.push_str("          ");
        for name in &names {
            let _ = write!(text, " {name:>12}");
        }
        text.push('\n');
        let mut row = |label: &str, value: &dyn Fn(&TinStats) -> String| {
            let _ = write!(text, "  {label:<8}");
            for tin in &self.tins {
                let _ = write!(text, " {:>12}", value(tin));
            }
            text.push('\n');
        };
        let rate = |bytes: u64| Rate::from_bits_per_second(bytes * 8).to_string();
        row("thresh", &|tin| rate(tin.threshold_rate));
        row("target", &|tin| format_micros(tin.target_us));
        row("interval", &|tin| format_micros(tin.interval_us));
        row("pk_delay", &|tin| format_micros(tin.peak_delay_us));
        row("av_delay", &|tin| format_micros(tin.avg_delay_us));
        row("sp_delay", &|tin| format_micros(tin.base_delay_us));
        row("backlog", &|tin| Bytes(tin.backlog_bytes).to_string());
        let mut number = |label: &str, value: fn(&TinStats) -> u64| {
            row(label, &|tin| shown(value(tin)));
        };
        number("pkts", |tin| tin.sent_packets);
        number("bytes", |tin| tin.sent_bytes);
        number("way_inds", |tin| tin.way_indirect_hits);
        number("way_miss", |tin| tin.way_misses);
        number("way_cols", |tin| tin.way_collisions);
        number("drops", |tin| tin.drops);
        number("marks", |tin| tin.ecn_mark);
        number("ack_drop", |tin| tin.ack_drops);
        number("sp_flows", |tin| tin.sparse_flows.into());
        number("bk_flows", |tin| tin.bulk_flows.into());
        number("un_flows", |tin| tin.unresponsive_flows.into());
        number("max_len", |tin| tin.max_pkt_len.into());
        number("quantum", |tin| tin.flow_quantum.into());
    }

    fn queues(&self) -> Vec<Inside> {
        let tin = |(name, tin): (String, &TinStats)| Inside {
            packets: Some(tin.sent_packets),
            backlog_bytes: Some(tin.backlog_bytes),
            marks: Some(tin.ecn_mark),
            drops: Some(tin.drops),
            ..Inside::new(name, Duration::from_micros(tin.avg_delay_us.into()))
        };
        names(self.tins.len()).into_iter().zip(&self.tins).map(tin).collect()
    }

    fn marks(&self) -> Option<u64> {
        Some(self.tins.iter().map(|tin| tin.ecn_mark).sum())
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
        put("memory_used", self.memory_used);
        put("memory_limit", self.memory_limit);
        put("capacity_estimate", self.capacity_estimate);
        put("min_network_size", self.min_network_size.into());
        put("max_network_size", self.max_network_size.into());
        put("min_adj_size", self.min_adj_size.into());
        put("max_adj_size", self.max_adj_size.into());
        put("avg_hdr_offset", self.avg_hdr_offset.into());
        let tins: Vec<Value> = self.tins.iter().map(TinStats::json).collect();
        object.insert("tins".to_owned(), tins.into());
    }
}

impl TinStats {
    fn json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
        put("threshold_rate", self.threshold_rate);
        put("sent_bytes", self.sent_bytes);
        put("backlog_bytes", self.backlog_bytes);
        put("target_us", self.target_us.into());
        put("interval_us", self.interval_us.into());
        put("peak_delay_us", self.peak_delay_us.into());
        put("avg_delay_us", self.avg_delay_us.into());
        put("base_delay_us", self.base_delay_us.into());
        put("sent_packets", self.sent_packets);
        put("way_indirect_hits", self.way_indirect_hits);
        put("way_misses", self.way_misses);
        put("way_collisions", self.way_collisions);
        put("drops", self.drops);
        put("ecn_mark", self.ecn_mark);
        put("ack_drops", self.ack_drops);
        put("sparse_flows", self.sparse_flows.into());
        put("bulk_flows", self.bulk_flows.into());
        put("unresponsive_flows", self.unresponsive_flows.into());
        put("max_pkt_len", self.max_pkt_len.into());
        put("flow_quantum", self.flow_quantum.into());
        object.into()
    }
}

fn shown(value: impl Display) -> String {
    value.to_string()
}

/// tc tells the mode by how many tins there are.
fn names(tins: usize) -> Vec<String> {
    match tins {
        3 => ["Bulk", "Best Effort", "Voice"].map(str::to_owned).to_vec(),
        4 => ["Bulk", "Best Effort", "Video", "Voice"].map(str::to_owned).to_vec(),
        _ => (0..tins).map(|number| format!("Tin {number}")).collect(),
    }
}

impl Diffserv {
    /// How many tins it has.
    #[must_use]
    pub const fn tins(self) -> usize {
        super::tins::shown(self).len()
    }
}
