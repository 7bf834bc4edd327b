//! `pie` as tc shows it.

use std::fmt::{self, Write as _};

use dualq_units::number::format_g;
use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{Config, Stats, told_micros};
use crate::kinds::{Counted, Shown};
use crate::show::{Inside, six_digits, whole_micros};

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limit {}p target {} tupdate {} alpha {} beta {}",
            self.limit,
            format_micros(told_micros(self.target)),
            format_micros(whole_micros(self.tupdate)),
            self.alpha,
            self.beta
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
        put("target", told_micros(self.target).into());
        put("tupdate", whole_micros(self.tupdate).into());
        put("alpha", self.alpha.into());
        put("beta", self.beta.into());
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
            "  prob {} delay {}us\n  pkts_in {} overlimit {} dropped {} maxq {} ecn_mark {}\n",
            format_g(self.probability(), 6),
            self.delay.as_micros(),
            self.pkts_in,
            self.overlimit,
            self.dropped,
            self.maxq,
            self.ecn_mark
        );
    }

    fn queues(&self) -> Vec<Inside> {
        vec![Inside::new("", self.delay)]
    }

    fn marks(&self) -> Option<u64> {
        Some(self.ecn_mark)
    }

    fn probability(&self) -> Option<f64> {
        Some(Self::probability(self))
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("prob", six_digits(self.probability()));
        put("delay", whole_micros(self.delay).into());
        put("pkts_in", self.pkts_in.into());
        put("overlimit", self.overlimit.into());
        put("dropped", self.dropped.into());
        put("maxq", self.maxq.into());
        put("ecn_mark", self.ecn_mark.into());
    }
}
