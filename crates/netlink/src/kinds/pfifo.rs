//! `pfifo` (`struct tc_fifo_qopt`): the limit in packets.

use dualq_qdisc::kinds::pfifo::{Config, Options};

use super::{Parameters, TCA_OPTIONS, Wire};
use crate::attributes::{Writer, u32_at};

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.u32_if(TCA_OPTIONS, self.limit);
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        Some(Config { limit: u32_at(parameters.options, 0)? })
    }
}
