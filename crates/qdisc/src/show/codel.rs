//! `codel` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::whole_micros;
use crate::disciplines::codel::{Config, Stats};

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    write!(f, "limit {}p target {}", config.limit, format_micros(whole_micros(config.target)))?;
    if let Some(threshold) = config.ce_threshold {
        write!(f, " ce_threshold {}", format_micros(whole_micros(threshold)))?;
    }
    write!(f, " interval {}", format_micros(whole_micros(config.interval)))?;
    if config.ecn { f.write_str(" ecn") } else { Ok(()) }
}

pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    put("limit", config.limit.into());
    put("target", whole_micros(config.target).into());
    if let Some(threshold) = config.ce_threshold {
        put("ce_threshold", whole_micros(threshold).into());
    }
    put("interval", whole_micros(config.interval).into());
    if config.ecn {
        put("ecn", true.into());
    }
    options.into()
}

pub(super) fn write_stats(text: &mut String, own: &Stats) {
    let micros = u32::try_from(own.drop_next_us.unsigned_abs()).unwrap_or(u32::MAX);
    let _ = write!(
        text,
        "  count {} lastcount {} ldelay {}{} drop_next {}{}\n  maxpacket {} ecn_mark {} drop_overlimit {}",
        own.count,
        own.lastcount,
        format_micros(whole_micros(own.ldelay)),
        if own.dropping { " dropping" } else { "" },
        if own.drop_next_us < 0 { "-" } else { "" },
        format_micros(micros),
        own.maxpacket,
        own.ecn_mark,
        own.drop_overlimit
    );
    if own.ce_mark > 0 {
        let _ = write!(text, " ce_mark {}", own.ce_mark);
    }
    text.push('\n');
}

pub(super) fn put_stats(object: &mut Map<String, Value>, own: &Stats) {
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("count", own.count.into());
    put("lastcount", own.lastcount.into());
    put("ldelay", whole_micros(own.ldelay).into());
    if own.dropping {
        put("dropping", true.into());
    }
    put("drop_next", own.drop_next_us.into());
    put("maxpacket", own.maxpacket.into());
    put("ecn_mark", own.ecn_mark.into());
    put("drop_overlimit", own.drop_overlimit.into());
    if own.ce_mark > 0 {
        put("ce_mark", own.ce_mark.into());
    }
}
