//! `bfifo` (`struct tc_fifo_qopt`): the limit in bytes.

use dualq_qdisc::kinds::bfifo::{Config, Options};
use dualq_units::Bytes;

use super::{Parameters, TCA_OPTIONS, Wire};
use crate::attributes::{Writer, u32_at};

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        // The grammar lets no size pass that 32 bits do not hold.
        into.u32_if(TCA_OPTIONS, self.limit.map(|limit| limit.0 as u32));
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        Some(Config { limit: Bytes(u32_at(parameters.options, 0)?.into()) })
    }
}
