//! `red` as tc shows it.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use super::{Config, Stats};
use crate::kinds::{Counted, Shown};

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {} min {} max {}", self.limit, self.min, self.max)?;
        for word in self.flags.words() {
            write!(f, " {word}")?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.0.into());
        put("min", self.min.0.into());
        put("max", self.max.0.into());
        put("ecn", self.flags.ecn.into());
        put("harddrop", self.flags.harddrop.into());
        put("adaptive", self.flags.adaptive.into());
        put("nodrop", self.flags.nodrop.into());
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let Self { marked, early, pdrop, other } = self;
        let _ = writeln!(text, "  marked {marked} early {early} pdrop {pdrop} other {other} ");
    }

    fn marks(&self) -> Option<u64> {
        Some(self.marked)
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
        put("marked", self.marked);
        put("early", self.early);
        put("pdrop", self.pdrop);
        put("other", self.other);
    }
}
