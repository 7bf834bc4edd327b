//! `fq` (`TCA_FQ_*`, `struct tc_fq_qd_stats`).

use std::time::Duration;

use dualq_qdisc::kinds::fq::{BANDS, Config, Options, Stats};
use dualq_units::Rate;

use super::{
    OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count, flag, micros, whole_micros,
};
use crate::attributes::{Writer, u32_at, u64_at};

const PLIMIT: u16 = 1;
const FLOW_PLIMIT: u16 = 2;
const QUANTUM: u16 = 3;
const INITIAL_QUANTUM: u16 = 4;
const RATE_ENABLE: u16 = 5;
const FLOW_MAX_RATE: u16 = 7;
const BUCKETS_LOG: u16 = 8;
const FLOW_REFILL_DELAY: u16 = 9;
const ORPHAN_MASK: u16 = 10;
const LOW_RATE_THRESHOLD: u16 = 11;
const CE_THRESHOLD: u16 = 12;
const TIMER_SLACK: u16 = 13;
const HORIZON: u16 = 14;
const HORIZON_DROP: u16 = 15;
const PRIOMAP: u16 = 16;
const WEIGHTS: u16 = 17;
const OFFLOAD_HORIZON: u16 = 18;

/// No rate, or no threshold.
const NONE: u32 = u32::MAX;

/// The grammar lets no rate pass that 32 bits do not hold.
fn per_second(rate: Rate) -> u32 {
    u32::try_from(rate.as_bits_per_second() / 8).unwrap_or(NONE)
}

fn rate(per_second: u32) -> Rate {
    Rate::from_bits_per_second(u64::from(per_second) * 8)
}

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            // tc sends the logarithm of a power of two.
            into.u32_if(BUCKETS_LOG, self.buckets.map(u32::trailing_zeros));
            into.u32_if(PLIMIT, self.limit);
            into.u32_if(FLOW_PLIMIT, self.flow_limit);
            into.u32_if(QUANTUM, self.quantum);
            into.u32_if(INITIAL_QUANTUM, self.initial_quantum);
            into.u32_if(RATE_ENABLE, self.pacing.map(u32::from));
            into.u32_if(FLOW_MAX_RATE, self.max_rate.map(per_second));
            into.u32_if(LOW_RATE_THRESHOLD, self.low_rate_threshold.map(per_second));
            into.u32_if(FLOW_REFILL_DELAY, self.refill_delay.map(whole_micros));
            into.u32_if(ORPHAN_MASK, self.orphan_mask);
            into.u32_if(CE_THRESHOLD, self.ce_threshold.map(whole_micros));
            // The grammar lets no slack pass that 32 bits do not hold.
            into.u32_if(TIMER_SLACK, self.timer_slack.map(|slack| slack.as_nanos() as u32));
            into.u32_if(HORIZON, self.horizon.map(whole_micros));
            into.u8_if(HORIZON_DROP, self.horizon_drop.map(u8::from));
            if let Some(map) = self.priomap {
                into.put(PRIOMAP, &[&(BANDS as u32).to_ne_bytes()[..], &map].concat());
            }
            if let Some(weights) = self.weights {
                into.put(WEIGHTS, &weights.map(u32::to_ne_bytes).concat());
            }
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        let priomap = options.get(PRIOMAP)?;
        let weights = options.get(WEIGHTS)?;
        let offloads = options.u32(OFFLOAD_HORIZON).is_some_and(|horizon| horizon != 0);
        if offloads || u32_at(priomap, 0)? != BANDS as u32 {
            return None;
        }
        Some(Config {
            limit: options.u32(PLIMIT)?,
            flow_limit: options.u32(FLOW_PLIMIT)?,
            buckets: 1_u32.checked_shl(options.u32(BUCKETS_LOG)?)?,
            orphan_mask: options.u32(ORPHAN_MASK)?,
            pacing: flag(options.u32(RATE_ENABLE)?)?,
            priomap: priomap.get(4..20)?.try_into().ok()?,
            weights: [u32_at(weights, 0)?, u32_at(weights, 4)?, u32_at(weights, 8)?],
            quantum: options.u32(QUANTUM)?,
            initial_quantum: options.u32(INITIAL_QUANTUM)?,
            max_rate: Some(options.u32(FLOW_MAX_RATE)?).filter(|rate| *rate != NONE).map(rate),
            low_rate_threshold: rate(options.u32(LOW_RATE_THRESHOLD)?),
            refill_delay: micros(options.u32(FLOW_REFILL_DELAY)?),
            ce_threshold: Some(options.u32(CE_THRESHOLD)?).filter(|time| *time != NONE).map(micros),
            timer_slack: Duration::from_nanos(options.u32(TIMER_SLACK)?.into()),
            horizon: micros(options.u32(HORIZON)?),
            horizon_drop: flag(options.u8(HORIZON_DROP)?.into())?,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = statistics.own?;
        let long = |offset| u64_at(own, offset).unwrap_or(0);
        Some(OwnStats::Fq(Stats {
            gc: long(0),
            highprio: long(8),
            throttled: long(24),
            flows_plimit: long(32),
            pkts_too_long: long(40),
            flows: count(own, 64),
            inactive: count(own, 68),
            throttled_flows: count(own, 72),
            ce_mark: long(80),
            horizon_drops: long(88),
            horizon_caps: long(96),
            band_drops: [long(112), long(120), long(128)],
            band_packets: [count(own, 136), count(own, 140), count(own, 144)],
        }))
    }
}
