//! `codel` (`TCA_CODEL_*`, `struct tc_codel_xstats`).

use dualq_qdisc::disciplines::codel::{Config, Options, Stats};

use super::{count, flag, micros};
use crate::attributes::{Attributes, Writer};

const TARGET: u16 = 1;
const LIMIT: u16 = 2;
const INTERVAL: u16 = 3;
const ECN: u16 = 4;
const CE_THRESHOLD: u16 = 5;

pub(super) fn write(options: &Options, into: &mut Writer) {
    into.u32_if(LIMIT, options.limit);
    into.u32_if(INTERVAL, options.interval_us);
    into.u32_if(TARGET, options.target_us);
    into.u32_if(ECN, options.ecn.map(u32::from));
    into.u32_if(CE_THRESHOLD, options.ce_threshold_us);
}

pub(super) fn config(options: &Attributes<'_>) -> Option<Config> {
    Some(Config {
        limit: options.u32(LIMIT)?,
        target: micros(options.u32(TARGET)?),
        interval: micros(options.u32(INTERVAL)?),
        ecn: flag(options.u32(ECN)?)?,
        ce_threshold: options.u32(CE_THRESHOLD).map(micros),
    })
}

pub(super) fn stats(own: &[u8]) -> Stats {
    Stats {
        maxpacket: count(own, 0),
        count: count(own, 4),
        lastcount: count(own, 8),
        ldelay: micros(count(own, 12)),
        drop_next_us: count(own, 16).cast_signed().into(),
        drop_overlimit: count(own, 20).into(),
        ecn_mark: count(own, 24).into(),
        dropping: count(own, 28) != 0,
        ce_mark: count(own, 32).into(),
    }
}
