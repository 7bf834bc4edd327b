//! `pie` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::number::format_g;
use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{six_digits, whole_micros};
use crate::disciplines::pie::{Config, Stats};

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    write!(
        f,
        "limit {}p target {} tupdate {} alpha {} beta {}",
        config.limit,
        format_micros(whole_micros(config.target)),
        format_micros(whole_micros(config.tupdate)),
        config.alpha,
        config.beta
    )?;
    for (flag, word) in [(config.ecn, " ecn"), (config.bytemode, " bytemode")] {
        if flag {
            f.write_str(word)?;
        }
    }
    Ok(())
}

pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    put("limit", config.limit.into());
    put("target", whole_micros(config.target).into());
    put("tupdate", whole_micros(config.tupdate).into());
    put("alpha", config.alpha.into());
    put("beta", config.beta.into());
    for (flag, key) in [(config.ecn, "ecn"), (config.bytemode, "bytemode")] {
        if flag {
            put(key, true.into());
        }
    }
    options.into()
}

pub(super) fn write_stats(text: &mut String, own: &Stats) {
    let _ = write!(
        text,
        "  prob {} delay {}us\n  pkts_in {} overlimit {} dropped {} maxq {} ecn_mark {}\n",
        format_g(own.probability(), 6),
        own.delay.as_micros(),
        own.pkts_in,
        own.overlimit,
        own.dropped,
        own.maxq,
        own.ecn_mark
    );
}

pub(super) fn put_stats(object: &mut Map<String, Value>, own: &Stats) {
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("prob", six_digits(own.probability()));
    put("delay", whole_micros(own.delay).into());
    put("pkts_in", own.pkts_in.into());
    put("overlimit", own.overlimit.into());
    put("dropped", own.dropped.into());
    put("maxq", own.maxq.into());
    put("ecn_mark", own.ecn_mark.into());
}
