//! `codel` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{Config, Stats};
use crate::kinds::{Counted, Shown};
use crate::show::{Inside, whole_micros};

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}p target {}", self.limit, format_micros(whole_micros(self.target)))?;
        if let Some(threshold) = self.ce_threshold {
            write!(f, " ce_threshold {}", format_micros(whole_micros(threshold)))?;
        }
        write!(f, " interval {}", format_micros(whole_micros(self.interval)))?;
        if self.ecn { f.write_str(" ecn") } else { Ok(()) }
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        put("target", whole_micros(self.target).into());
        if let Some(threshold) = self.ce_threshold {
            put("ce_threshold", whole_micros(threshold).into());
        }
        put("interval", whole_micros(self.interval).into());
        if self.ecn {
            put("ecn", true.into());
        }
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let micros = u32::try_from(self.drop_next_us.unsigned_abs()).unwrap_or(u32::MAX);
        let _ = write!(
            text,
            "  count {} lastcount {} ldelay {}{} drop_next {}{}\n  maxpacket {} ecn_mark {} drop_overlimit {}",
            self.count,
            self.lastcount,
            format_micros(whole_micros(self.ldelay)),
            if self.dropping { " dropping" } else { "" },
            if self.drop_next_us < 0 { "-" } else { "" },
            format_micros(micros),
            self.maxpacket,
            self.ecn_mark,
            self.drop_overlimit
        );
        if self.ce_mark > 0 {
            let _ = write!(text, " ce_mark {}", self.ce_mark);
        }
        text.push('\n');
    }

    fn queues(&self) -> Vec<Inside> {
        vec![Inside::new("", self.ldelay)]
    }

    fn marks(&self) -> Option<u64> {
        Some(self.ecn_mark + self.ce_mark)
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("count", self.count.into());
        put("lastcount", self.lastcount.into());
        put("ldelay", whole_micros(self.ldelay).into());
        if self.dropping {
            put("dropping", true.into());
        }
        put("drop_next", self.drop_next_us.into());
        put("maxpacket", self.maxpacket.into());
        put("ecn_mark", self.ecn_mark.into());
        put("drop_overlimit", self.drop_overlimit.into());
        if self.ce_mark > 0 {
            put("ce_mark", self.ce_mark.into());
        }
    }
}
