//! `pfifo_fast` as tc shows it.

use std::fmt;

use serde_json::{Value, json};

use super::{Config, PRIOMAP};
use crate::kinds::Shown;

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bands 3 priomap")?;
        PRIOMAP.iter().try_for_each(|band| write!(f, " {band}"))
    }

    fn ends_with_space(&self) -> bool {
        false
    }

    fn json(&self) -> Value {
        json!({ "bands": 3, "priomap": PRIOMAP, "multiqueue": false })
    }
}
