//! `dualpi2` (`TCA_DUALPI2_*`, `struct tc_dualpi2_xstats`).

use dualpi2::{
    Change as Options, Config, DropPoint, EcnMask, Gain, Overload, Stats, StepThreshold,
};

use super::{
    OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count, flag, micros, whole_micros,
};
use crate::attributes::Writer;

const LIMIT: u16 = 1;
const MEMORY_LIMIT: u16 = 2;
const TARGET: u16 = 3;
const TUPDATE: u16 = 4;
const ALPHA: u16 = 5;
const BETA: u16 = 6;
const STEP_THRESH_PKTS: u16 = 7;
const STEP_THRESH_US: u16 = 8;
const MIN_QLEN_STEP: u16 = 9;
const COUPLING: u16 = 10;
const DROP_OVERLOAD: u16 = 11;
const DROP_EARLY: u16 = 12;
const C_PROTECTION: u16 = 13;
const ECN_MASK: u16 = 14;
const SPLIT_GSO: u16 = 15;

const L4S_ECT: u8 = 1;
const ANY_ECT: u8 = 3;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            into.u32_if(LIMIT, self.limit);
            into.u32_if(MEMORY_LIMIT, self.memory_limit);
            into.u32_if(TARGET, self.target.map(whole_micros));
            into.u32_if(TUPDATE, self.tupdate.map(whole_micros));
            into.u32_if(ALPHA, self.alpha.map(Gain::as_256ths));
            into.u32_if(BETA, self.beta.map(Gain::as_256ths));
            match self.step_threshold {
                Some(StepThreshold::Packets(packets)) => into.u32(STEP_THRESH_PKTS, packets),
                Some(StepThreshold::Time(time)) => into.u32(STEP_THRESH_US, whole_micros(time)),
                None => {}
            }
            into.u32_if(MIN_QLEN_STEP, self.min_qlen_step);
            into.u8_if(COUPLING, self.coupling_factor);
            let drop = self.overload.map(|overload| u8::from(overload == Overload::Drop));
            into.u8_if(DROP_OVERLOAD, drop);
            let early = self.drop_point.map(|point| u8::from(point == DropPoint::Enqueue));
            into.u8_if(DROP_EARLY, early);
            into.u8_if(C_PROTECTION, self.classic_protection);
            into.u8_if(
                ECN_MASK,
                self.ecn_mask.map(|mask| match mask {
                    EcnMask::L4s => L4S_ECT,
                    EcnMask::Any => ANY_ECT,
                }),
            );
            into.u8_if(SPLIT_GSO, self.split_gso.map(u8::from));
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        let is_on = |kind| flag(options.u8(kind)?.into());
        Some(Config {
            limit: options.u32(LIMIT)?,
            memory_limit: options.u32(MEMORY_LIMIT)?,
            target: micros(options.u32(TARGET)?),
            tupdate: micros(options.u32(TUPDATE)?),
            alpha: Gain::from_256ths(options.u32(ALPHA)?),
            beta: Gain::from_256ths(options.u32(BETA)?),
            step_threshold: match options.u32(STEP_THRESH_PKTS) {
                Some(packets) => StepThreshold::Packets(packets),
                None => StepThreshold::Time(micros(options.u32(STEP_THRESH_US)?)),
            },
            min_qlen_step: options.u32(MIN_QLEN_STEP)?,
            coupling_factor: options.u8(COUPLING)?,
            overload: if is_on(DROP_OVERLOAD)? { Overload::Drop } else { Overload::Overflow },
            drop_point: if is_on(DROP_EARLY)? { DropPoint::Enqueue } else { DropPoint::Dequeue },
            classic_protection: options.u8(C_PROTECTION)?,
            ecn_mask: match options.u8(ECN_MASK)? {
                L4S_ECT => EcnMask::L4s,
                ANY_ECT => EcnMask::Any,
                _ => return None,
            },
            split_gso: is_on(SPLIT_GSO)?,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let (own, counters) = (statistics.own?, statistics.counters);
        Some(OwnStats::Dualpi2(Stats {
            probability: count(own, 0),
            classic_delay: micros(count(own, 4)),
            low_latency_delay: micros(count(own, 8)),
            packets_in_classic: count(own, 12).into(),
            packets_in_low_latency: count(own, 16).into(),
            max_queue_length: count(own, 20).into(),
            ecn_marks: count(own, 24).into(),
            step_marks: count(own, 28).into(),
            credit: count(own, 32).cast_signed(),
            memory_used: count(own, 36),
            max_memory_used: count(own, 40),
            memory_limit: count(own, 44),
            drops: counters.drops,
            overlimits: counters.overlimits,
            sent_packets: counters.sent_packets,
            sent_bytes: counters.sent_bytes,
            backlog_packets: counters.backlog_packets,
            backlog_bytes: counters.backlog_bytes,
        }))
    }
}
