//! `codel` (`TCA_CODEL_*`, `struct tc_codel_xstats`).

use dualq_qdisc::kinds::codel::{Config, Options, Stats};

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count, flag, micros};
use crate::attributes::Writer;

const TARGET: u16 = 1;
const LIMIT: u16 = 2;
const INTERVAL: u16 = 3;
const ECN: u16 = 4;
const CE_THRESHOLD: u16 = 5;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            into.u32_if(LIMIT, self.limit);
            into.u32_if(INTERVAL, self.interval_us);
            into.u32_if(TARGET, self.target_us);
            into.u32_if(ECN, self.ecn.map(u32::from));
            into.u32_if(CE_THRESHOLD, self.ce_threshold_us);
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        Some(Config {
            limit: options.u32(LIMIT)?,
            target: micros(options.u32(TARGET)?),
            interval: micros(options.u32(INTERVAL)?),
            ecn: flag(options.u32(ECN)?)?,
            ce_threshold: options.u32(CE_THRESHOLD).map(micros),
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = statistics.own?;
        Some(OwnStats::Codel(Stats {
            maxpacket: count(own, 0),
            count: count(own, 4),
            lastcount: count(own, 8),
            ldelay: micros(count(own, 12)),
            drop_next_us: count(own, 16).cast_signed().into(),
            drop_overlimit: count(own, 20).into(),
            ecn_mark: count(own, 24).into(),
            dropping: count(own, 28) != 0,
            ce_mark: count(own, 32).into(),
        }))
    }
}
