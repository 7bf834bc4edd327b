//! `pfifo_fast` (`struct tc_prio_qopt`), to which nothing can be told.

use dualq_qdisc::kinds::pfifo_fast::{Config, Options, PRIOMAP};

use super::{Parameters, Wire};
use crate::attributes::{Writer, u32_at};

const BANDS: u32 = 3;

impl Wire for Options {
    type Config = Config;

    fn write(&self, _into: &mut Writer) {}

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.options;
        let is_usual = u32_at(options, 0)? == BANDS && options.get(4..)?.starts_with(&PRIOMAP);
        is_usual.then_some(Config { band_limit: parameters.tx_queue_length })
    }
}
