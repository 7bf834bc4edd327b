//! `pfifo_fast` as tc shows it.

use std::fmt;

use serde_json::{Value, json};

use crate::disciplines::pfifo_fast::{Config, PRIOMAP};

pub(super) fn write(f: &mut fmt::Formatter<'_>, _: &Config) -> fmt::Result {
    f.write_str("bands 3 priomap")?;
    PRIOMAP.iter().try_for_each(|band| write!(f, " {band}"))
}

pub(super) fn options(_: &Config) -> Value {
    json!({ "bands": 3, "priomap": PRIOMAP, "multiqueue": false })
}
