//! `pfifo_fast` (`struct tc_prio_qopt`), to which nothing can be told.

use dualq_qdisc::disciplines::pfifo_fast::{Config, PRIOMAP};

use crate::attributes::u32_at;

const BANDS: u32 = 3;

pub(super) fn config(options: &[u8], tx_queue_length: u32) -> Option<Config> {
    let is_usual = u32_at(options, 0)? == BANDS && options.get(4..)?.starts_with(&PRIOMAP);
    is_usual.then_some(Config { band_limit: tx_queue_length })
}
