//! `sfq` (`struct tc_sfq_qopt_v1`).

use dualq_qdisc::kinds::sfq::{Config, Options};

use super::{Parameters, TCA_OPTIONS, Wire};
use crate::attributes::{Writer, u32_at};

/// `struct tc_sfq_qopt`, and the bytes behind it in `struct tc_sfq_qopt_v1`, which begin with the depth and whether drops are at the
/// head; those of RED follow.
const PLAIN_BYTES: usize = 20;
const MORE_BYTES: usize = 52;
/// Where RED's lower threshold is, which is 0 without it.
const QTH_MIN: usize = 32;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        let plain = [self.quantum, self.perturb_s, self.limit, self.divisor, self.flows];
        let mut options = plain.map(|value| value.unwrap_or(0).to_ne_bytes()).concat();
        if self.depth.is_some() || self.headdrop {
            options.extend(self.depth.unwrap_or(0).to_ne_bytes());
            options.extend(u32::from(self.headdrop).to_ne_bytes());
            options.resize(PLAIN_BYTES + MORE_BYTES, 0);
        }
        into.put(TCA_OPTIONS, &options);
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let at = |offset| u32_at(parameters.options, offset);
        if at(QTH_MIN)? != 0 {
            return None;
        }
        Some(Config {
            quantum: at(0)?,
            perturb_s: at(4)?,
            limit: at(8)?,
            divisor: at(12)?,
            flows: at(16)?,
            depth: at(20)?,
            headdrop: at(24)? != 0,
        })
    }
}
