//! `sfq` as tc shows it.

use std::fmt;

use dualq_units::Bytes;
use serde_json::{Map, Value};

use super::Config;
use crate::kinds::Shown;

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, depth, divisor, perturb_s, .. } = self;
        write!(f, "limit {limit}p quantum {} depth {depth}", Bytes(self.quantum.into()))?;
        if self.headdrop {
            f.write_str(" headdrop")?;
        }
        write!(f, " divisor {divisor}")?;
        if *perturb_s > 0 { write!(f, " perturb {perturb_s}sec") } else { Ok(()) }
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        put("quantum", self.quantum.into());
        put("depth", self.depth.into());
        if self.headdrop {
            put("headdrop", true.into());
        }
        put("divisor", self.divisor.into());
        if self.perturb_s > 0 {
            put("perturb", self.perturb_s.into());
        }
        options.into()
    }
}
