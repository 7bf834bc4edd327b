//! `cake` (`TCA_CAKE_*`).

use std::time::Duration;

use dualq_qdisc::kinds::cake::{AckFilter, Atm, Config, Diffserv, FlowMode, Options};
use dualq_units::{Bytes, Rate};

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, flag};
use crate::attributes::Writer;

const BASE_RATE64: u16 = 2;
const DIFFSERV_MODE: u16 = 3;
const ATM: u16 = 4;
const FLOW_MODE: u16 = 5;
const OVERHEAD: u16 = 6;
const RTT: u16 = 7;
const TARGET: u16 = 8;
const AUTORATE: u16 = 9;
const MEMORY: u16 = 10;
const NAT: u16 = 11;
const RAW: u16 = 12;
const WASH: u16 = 13;
const MPU: u16 = 14;
const INGRESS: u16 = 15;
const ACK_FILTER: u16 = 16;
const SPLIT_GSO: u16 = 17;
const FWMARK: u16 = 18;

/// The target delay is that share of the round-trip time, but at least 1 us.
const TARGET_SHARE: u32 = 20;

/// The kernel's number for one of `all`.
fn number<T: PartialEq>(all: &[T], one: &T) -> u32 {
    all.iter().position(|other| other == one).unwrap_or_default() as u32
}

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        into.nest(TCA_OPTIONS, |into| {
            if let Some(rate) = self.bandwidth {
                into.put(BASE_RATE64, &(rate.as_bits_per_second() / 8).to_ne_bytes());
            }
            into.u32_if(DIFFSERV_MODE, self.diffserv.map(|mode| number(Diffserv::ALL, &mode)));
            into.u32_if(ATM, self.atm.map(|atm| number(Atm::ALL, &atm)));
            into.u32_if(FLOW_MODE, self.flow_mode.map(|mode| number(FlowMode::ALL, &mode)));
            into.u32_if(OVERHEAD, self.overhead.map(i32::cast_unsigned));
            into.u32_if(RAW, self.raw.then_some(0));
            into.u32_if(MPU, self.mpu);
            into.u32_if(RTT, self.rtt_us);
            into.u32_if(TARGET, self.rtt_us.map(|rtt| (rtt / TARGET_SHARE).max(1)));
            into.u32_if(AUTORATE, self.autorate.map(u32::from));
            // The grammar lets no size pass that 32 bits do not hold.
            into.u32_if(MEMORY, self.memory_limit.map(|limit| limit.0 as u32));
            into.u32_if(FWMARK, self.fwmark);
            into.u32_if(NAT, self.nat.map(u32::from));
            into.u32_if(WASH, self.wash.map(u32::from));
            into.u32_if(INGRESS, self.ingress.map(u32::from));
            into.u32_if(ACK_FILTER, self.ack_filter.map(|filter| number(AckFilter::ALL, &filter)));
            into.u32_if(SPLIT_GSO, self.split_gso.map(u32::from));
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        let at = |kind| Some(options.u32(kind)? as usize);
        let rate = options.u64(BASE_RATE64)?.saturating_mul(8);
        Some(Config {
            bandwidth: (rate > 0).then(|| Rate::from_bits_per_second(rate)),
            autorate: flag(options.u32(AUTORATE)?)?,
            diffserv: *Diffserv::ALL.get(at(DIFFSERV_MODE)?)?,
            flow_mode: *FlowMode::ALL.get(at(FLOW_MODE)?)?,
            nat: flag(options.u32(NAT)?)?,
            wash: flag(options.u32(WASH)?)?,
            ingress: flag(options.u32(INGRESS)?)?,
            ack_filter: *AckFilter::ALL.get(at(ACK_FILTER)?)?,
            split_gso: flag(options.u32(SPLIT_GSO)?)?,
            rtt: Duration::from_micros(options.u32(RTT)?.into()),
            raw: options.get(RAW).is_some(),
            atm: *Atm::ALL.get(at(ATM)?)?,
            overhead: options.u32(OVERHEAD)?.cast_signed(),
            mpu: options.u32(MPU)?,
            memory_limit: options
                .u32(MEMORY)
                .filter(|limit| *limit > 0)
                .map(|limit| Bytes(limit.into())),
            // It came with Linux 5.1.
            fwmark: options.u32(FWMARK).unwrap_or(0),
        })
    }

    /// They are not read.
    fn stats(_statistics: Statistics<'_>) -> Option<OwnStats> {
        None
    }
}
