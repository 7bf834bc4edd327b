//! `prio` (`struct tc_prio_qopt`).

use dualq_qdisc::kinds::prio::{Config, Options};

use super::{Parameters, TCA_OPTIONS, Wire};
use crate::attributes::{Writer, u32_at};

/// Where the bands of priorities are in the structure.
const PRIOMAP: std::ops::Range<usize> = 4..20;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        let mut options = u32::from(self.bands()).to_ne_bytes().to_vec();
        options.extend(self.priomap());
        into.put(TCA_OPTIONS, &options);
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        Some(Config {
            bands: u8::try_from(u32_at(parameters.options, 0)?).ok()?,
            priomap: parameters.options.get(PRIOMAP)?.try_into().ok()?,
            band_limit: parameters.tx_queue_length,
        })
    }
}
