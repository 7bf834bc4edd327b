//! `fq_codel` (`TCA_FQ_CODEL_*`, `struct tc_fq_codel_xstats`).

use std::time::Duration;

use dualq_qdisc::kinds::fq_codel::{Config, Options, Selector, Stats};
use dualq_units::Bytes;

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count, flag, micros};
use crate::attributes::{Writer, u32_at};

const TARGET: u16 = 1;
const LIMIT: u16 = 2;
const INTERVAL: u16 = 3;
const ECN: u16 = 4;
const FLOWS: u16 = 5;
const QUANTUM: u16 = 6;
const CE_THRESHOLD: u16 = 7;
const DROP_BATCH_SIZE: u16 = 8;
const MEMORY_LIMIT: u16 = 9;
const CE_THRESHOLD_SELECTOR: u16 = 10;
const CE_THRESHOLD_MASK: u16 = 11;

/// Whether statistics are those of the discipline, or of one of its flows (`TCA_FQ_CODEL_XSTATS_*`).
const OF_QDISC: u32 = 0;
const OF_FLOW: u32 = 1;

/// How long the packet last taken from a flow had waited (`ldelay` of `struct tc_fq_codel_cl_stats`).
pub(crate) fn flow_delay(own: &[u8]) -> Option<Duration> {
    (u32_at(own, 0)? == OF_FLOW).then(|| micros(count(own, 8)))
}

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            into.u32_if(LIMIT, self.limit);
            into.u32_if(FLOWS, self.flows);
            into.u32_if(QUANTUM, self.quantum);
            into.u32_if(INTERVAL, self.interval_us);
            into.u32_if(TARGET, self.target_us);
            into.u32_if(ECN, self.ecn.map(u32::from));
            into.u32_if(CE_THRESHOLD, self.ce_threshold_us);
            let (value, mask) = self.ce_threshold_selector.unzip();
            into.u8_if(CE_THRESHOLD_SELECTOR, value);
            into.u8_if(CE_THRESHOLD_MASK, mask);
            // The grammar lets no size pass that 32 bits do not hold.
            into.u32_if(MEMORY_LIMIT, self.memory_limit.map(|limit| limit.0 as u32));
            into.u32_if(DROP_BATCH_SIZE, self.drop_batch);
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        let selector = options.u8(CE_THRESHOLD_SELECTOR).zip(options.u8(CE_THRESHOLD_MASK));
        Some(Config {
            limit: options.u32(LIMIT)?,
            flows: options.u32(FLOWS)?,
            quantum: options.u32(QUANTUM)?,
            target: micros(options.u32(TARGET)?),
            interval: micros(options.u32(INTERVAL)?),
            memory_limit: Bytes(options.u32(MEMORY_LIMIT)?.into()),
            ecn: flag(options.u32(ECN)?)?,
            ce_threshold: options.u32(CE_THRESHOLD).map(micros),
            ce_threshold_selector: selector
                .filter(|(_, mask)| *mask > 0)
                .map(|(value, mask)| Selector { value, mask }),
            drop_batch: options.u32(DROP_BATCH_SIZE)?,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = statistics.own?;
        if u32_at(own, 0)? != OF_QDISC {
            return None;
        }
        Some(OwnStats::FqCodel(Stats {
            maxpacket: count(own, 4),
            drop_overlimit: count(own, 8).into(),
            ecn_mark: count(own, 12).into(),
            new_flow_count: count(own, 16).into(),
            new_flows_len: count(own, 20),
            old_flows_len: count(own, 24),
            ce_mark: count(own, 28).into(),
            memory_used: count(own, 32).into(),
            drop_overmemory: count(own, 36).into(),
        }))
    }
}
