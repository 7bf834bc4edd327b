//! `prio` as tc shows it.

use std::fmt;

use serde_json::{Value, json};

use super::Config;
use crate::kinds::Shown;

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bands {} priomap", self.bands)?;
        self.priomap.iter().try_for_each(|band| write!(f, " {band}"))
    }

    fn ends_with_space(&self) -> bool {
        false
    }

    fn json(&self) -> Value {
        json!({ "bands": self.bands, "priomap": self.priomap, "multiqueue": false })
    }
}
