//! `tbf` (`TCA_TBF_*`, `struct tc_tbf_qopt`).

use dualq_qdisc::Device;
use dualq_qdisc::kinds::tbf::{Config, Options, Stats};
use dualq_units::Bytes;

use super::ratespec::{self, span, ticks};
use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire};
use crate::attributes::{Writer, u32_at};

const PARMS: u16 = 1;
const RATE64: u16 = 4;
const PRATE64: u16 = 5;
const BURST: u16 = 6;
const PBURST: u16 = 7;

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            // What it comes to does not depend on the device.
            let config =
                Config::new(&Options { leaf: None, ..self.clone() }, &Device::ethernet(1500));
            let peak = config.peak.map_or([0; ratespec::LENGTH], |(rate, _)| ratespec::write(rate));
            let peak_ticks = config.peak.map_or(0, |(_, buffer)| ticks(buffer));
            // The grammar lets no size pass that 32 bits do not hold.
            let numbers = [config.limit.0 as u32, ticks(config.buffer), peak_ticks];
            let numbers = numbers.map(u32::to_ne_bytes).concat();
            into.put(PARMS, &[&ratespec::write(config.rate)[..], &peak, &numbers].concat());
            into.u32(BURST, self.burst.0 as u32);
            if let Some(rate) = ratespec::beyond(config.rate) {
                into.u64(RATE64, rate);
            }
            if let Some(peak) = self.peak {
                into.u32(PBURST, peak.mtu.0 as u32);
                if let Some(rate) = ratespec::beyond(peak.rate) {
                    into.u64(PRATE64, rate);
                }
            }
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        let parameters = options.get(PARMS)?;
        let number = |index: usize| u32_at(parameters, 2 * ratespec::LENGTH + 4 * index);
        let rate = ratespec::read(parameters, options.u64(RATE64))?;
        let peak = ratespec::read(parameters.get(ratespec::LENGTH..)?, options.u64(PRATE64))?;
        let (limit, buffer, peak_buffer) = (number(0)?, span(number(1)?), span(number(2)?));
        let peak = (peak.as_bits_per_second() > 0).then_some((peak, peak_buffer));
        Some(Config::of_buckets(rate, buffer, peak, Bytes(limit.into())))
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        Some(OwnStats::Tbf(Stats { leaf: statistics.leaf_or_fifo() }))
    }
}
