//! `htb` and its class (`TCA_HTB_*`, `struct tc_htb_glob`, `struct tc_htb_opt`, `struct tc_htb_xstats`).

use dualq_qdisc::Device;
use dualq_qdisc::kinds::htb::{Config, Options, Stats};

use super::ratespec::{self, span, ticks};
use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count};
use crate::attributes::{Attributes, Writer, i32_at, u32_at};

const PARMS: u16 = 1;
const INIT: u16 = 2;
const DIRECT_QLEN: u16 = 5;
const RATE64: u16 = 6;
const CEIL64: u16 = 7;
const OFFLOAD: u16 = 9;

const VERSION: u32 = 3;
/// tc's default of `r2q`, which only matters if classes share.
const RATE_TO_QUANTUM: u32 = 10;
/// `default 1`: the class that takes all packets.
const DEFAULT_CLASS: u32 = 1;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |nest| {
            let numbers = [VERSION, RATE_TO_QUANTUM, DEFAULT_CLASS, 0, 0];
            nest.put(INIT, &numbers.map(u32::to_ne_bytes).concat());
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let (qdisc, class) = (parameters.attributes(), Attributes::read(parameters.class?));
        let init = qdisc.get(INIT)?;
        let parameters = class.get(PARMS)?;
        let number = |index: usize| u32_at(parameters, 2 * ratespec::LENGTH + 4 * index);
        let priority = number(4)?;
        let is_ours = u32_at(init, 4)? == RATE_TO_QUANTUM
            && u32_at(init, 8)? == DEFAULT_CLASS
            && qdisc.get(OFFLOAD).is_none()
            && priority == 0;
        if !is_ours {
            return None;
        }
        Some(Config {
            rate: ratespec::read(parameters, class.u64(RATE64))?,
            ceil: ratespec::read(parameters.get(ratespec::LENGTH..)?, class.u64(CEIL64))?,
            buffer: span(number(0)?),
            cbuffer: span(number(1)?),
            direct_queue_length: qdisc.u32(DIRECT_QLEN)?,
            leaf: None,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let (own, class) = (statistics.own?, *statistics.counters);
        let tokens = |offset| i32_at(own, offset).unwrap_or(0).into();
        let lended = count(own, 0).into();
        Some(OwnStats::Htb(Stats {
            class,
            lended,
            tokens: tokens(12),
            ctokens: tokens(16),
            leaf: statistics.leaf_or_fifo(),
        }))
    }
}

/// The rate that a class has for itself, of its options; `None` also where frames count otherwise than as they are.
pub(crate) fn class_rate(options: &[u8]) -> Option<dualq_units::Rate> {
    let class = Attributes::read(options);
    ratespec::read(class.get(PARMS)?, class.u64(RATE64))
}

/// The options of the class.
pub(crate) fn write_class(options: &Options, into: &mut Writer) {
    // What it comes to does not depend on the device.
    let options = Options { leaf: None, ..options.clone() };
    let config = Config::new(&options, &Device::ethernet(1500));
    let (rate, ceil) = (ratespec::write(config.rate), ratespec::write(config.ceil));
    let numbers = [ticks(config.buffer), ticks(config.cbuffer), 0, 0, 0];
    let numbers = numbers.map(u32::to_ne_bytes).concat();
    into.nest(TCA_OPTIONS, |nest| {
        nest.put(PARMS, &[&rate[..], &ceil, &numbers].concat());
        for (kind, rate) in [(RATE64, config.rate), (CEIL64, config.ceil)] {
            if let Some(rate) = ratespec::beyond(rate) {
                nest.u64(kind, rate);
            }
        }
    });
}
