//! `fq_pie` (`TCA_FQ_PIE_*`, `struct tc_fq_pie_xstats`).

use dualq_qdisc::kinds::fq_pie::{Config, Options, Stats};
use dualq_units::Bytes;

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count, flag, micros};
use crate::attributes::Writer;

const LIMIT: u16 = 1;
const FLOWS: u16 = 2;
const TARGET: u16 = 3;
const TUPDATE: u16 = 4;
const ALPHA: u16 = 5;
const BETA: u16 = 6;
const QUANTUM: u16 = 7;
const MEMORY_LIMIT: u16 = 8;
const ECN_PROB: u16 = 9;
const ECN: u16 = 10;
const BYTEMODE: u16 = 11;
const DQ_RATE_ESTIMATOR: u16 = 12;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            into.u32_if(LIMIT, self.limit);
            into.u32_if(FLOWS, self.flows);
            into.u32_if(TARGET, self.target_us);
            into.u32_if(TUPDATE, self.tupdate_us);
            into.u32_if(ALPHA, self.alpha);
            into.u32_if(BETA, self.beta);
            into.u32_if(QUANTUM, self.quantum);
            // The grammar lets no size pass that 32 bits do not hold.
            into.u32_if(MEMORY_LIMIT, self.memory_limit.map(|limit| limit.0 as u32));
            into.u32_if(ECN_PROB, self.ecn_prob);
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
            flows: options.u32(FLOWS)?,
            target: micros(options.u32(TARGET)?),
            tupdate: micros(options.u32(TUPDATE)?),
            alpha: options.u32(ALPHA)?,
            beta: options.u32(BETA)?,
            quantum: options.u32(QUANTUM)?,
            memory_limit: Bytes(options.u32(MEMORY_LIMIT)?.into()),
            ecn_prob: options.u32(ECN_PROB)?,
            ecn: flag(options.u32(ECN)?)?,
            bytemode: flag(options.u32(BYTEMODE)?)?,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = statistics.own?;
        Some(OwnStats::FqPie(Stats {
            pkts_in: count(own, 0).into(),
            dropped: count(own, 4).into(),
            overlimit: count(own, 8).into(),
            overmemory: count(own, 12).into(),
            ecn_mark: count(own, 16).into(),
            new_flow_count: count(own, 20).into(),
            new_flows_len: count(own, 24),
            old_flows_len: count(own, 28),
            memory_used: count(own, 32).into(),
        }))
    }
}
