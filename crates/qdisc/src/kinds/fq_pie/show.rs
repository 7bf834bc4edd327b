//! `fq_pie` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::Bytes;
use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{Config, Stats};
use crate::kinds::pie::told_micros;
use crate::kinds::{Counted, Shown};
use crate::show::whole_micros;

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limit {}p flows {} target {} tupdate {} alpha {} beta {} quantum {} memory_limit {} ecn_prob {}",
            self.limit,
            self.flows,
            format_micros(told_micros(self.target)),
            format_micros(whole_micros(self.tupdate)),
            self.alpha,
            self.beta,
            Bytes(self.quantum.into()),
            self.memory_limit,
            self.ecn_prob
        )?;
        for (flag, word) in [(self.ecn, " ecn"), (self.bytemode, " bytemode")] {
            if flag {
                f.write_str(word)?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        put("flows", self.flows.into());
        put("target", told_micros(self.target).into());
        put("tupdate", whole_micros(self.tupdate).into());
        put("alpha", self.alpha.into());
        put("beta", self.beta.into());
        put("quantum", self.quantum.into());
        put("memory_limit", self.memory_limit.0.into());
        put("ecn_prob", self.ecn_prob.into());
        for (flag, key) in [(self.ecn, "ecn"), (self.bytemode, "bytemode")] {
            if flag {
                put(key, true.into());
            }
        }
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let _ = write!(
            text,
            "  pkts_in {} overlimit {} overmemory {} dropped {} ecn_mark {}\n  \
             new_flow_count {} new_flows_len {} old_flows_len {} memory_used {}\n",
            self.pkts_in,
            self.overlimit,
            self.overmemory,
            self.dropped,
            self.ecn_mark,
            self.new_flow_count,
            self.new_flows_len,
            self.old_flows_len,
            self.memory_used
        );
    }

    fn marks(&self) -> Option<u64> {
        Some(self.ecn_mark)
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
        put("pkts_in", self.pkts_in);
        put("overlimit", self.overlimit);
        put("overmemory", self.overmemory);
        put("dropped", self.dropped);
        put("ecn_mark", self.ecn_mark);
        put("new_flow_count", self.new_flow_count);
        put("new_flows_len", self.new_flows_len.into());
        put("old_flows_len", self.old_flows_len.into());
        put("memory_used", self.memory_used);
    }
}
