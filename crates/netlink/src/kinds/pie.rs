//! `pie` (`TCA_PIE_*`, `struct tc_pie_xstats`).

use dualq_qdisc::kinds::pie::{Config, Options, Stats};

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count, flag, micros};
use crate::attributes::{Writer, u64_at};

const TARGET: u16 = 1;
const LIMIT: u16 = 2;
const TUPDATE: u16 = 3;
const ALPHA: u16 = 4;
const BETA: u16 = 5;
const ECN: u16 = 6;
const BYTEMODE: u16 = 7;
const DQ_RATE_ESTIMATOR: u16 = 8;

/// Linux keeps the probability in 56 bits and tells it in 64.
const PROBABILITY_SHIFT: u32 = 8;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            into.u32_if(LIMIT, self.limit);
            into.u32_if(TUPDATE, self.tupdate_us);
            into.u32_if(TARGET, self.target_us);
            into.u32_if(ALPHA, self.alpha);
            into.u32_if(BETA, self.beta);
            into.u32_if(ECN, self.ecn.map(u32::from));
            into.u32_if(BYTEMODE, self.bytemode.map(u32::from));
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        if options.u32(DQ_RATE_ESTIMATOR).is_some_and(|estimates| estimates != 0) {
            return None;
        }
        Some(Config {
            limit: options.u32(LIMIT)?,
            target: micros(options.u32(TARGET)?),
            tupdate: micros(options.u32(TUPDATE)?),
            alpha: options.u32(ALPHA)?,
            beta: options.u32(BETA)?,
            ecn: flag(options.u32(ECN)?)?,
            bytemode: flag(options.u32(BYTEMODE)?)?,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = statistics.own?;
        Some(OwnStats::Pie(Stats {
            probability: u64_at(own, 0).unwrap_or(0) >> PROBABILITY_SHIFT,
            delay: micros(count(own, 8)),
            pkts_in: count(own, 20).into(),
            dropped: count(own, 24).into(),
            overlimit: count(own, 28).into(),
            maxq: count(own, 32),
            ecn_mark: count(own, 36).into(),
        }))
    }
}
