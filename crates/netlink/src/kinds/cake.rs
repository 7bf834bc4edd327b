//! `cake` (`TCA_CAKE_*`, `TCA_CAKE_STATS_*`, `TCA_CAKE_TIN_STATS_*`).

use std::time::Duration;

use dualq_qdisc::kinds::cake::{
    AckFilter, Atm, Config, Diffserv, FlowMode, Options, Stats, TinStats,
};
use dualq_units::{Bytes, Rate};

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, flag};
use crate::attributes::{Attributes, Writer};

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

const STATS_CAPACITY_ESTIMATE64: u16 = 2;
const STATS_MEMORY_LIMIT: u16 = 3;
const STATS_MEMORY_USED: u16 = 4;
const STATS_AVG_NETOFF: u16 = 5;
const STATS_MIN_NETLEN: u16 = 6;
const STATS_MAX_NETLEN: u16 = 7;
const STATS_MIN_ADJLEN: u16 = 8;
const STATS_MAX_ADJLEN: u16 = 9;
const STATS_TIN_STATS: u16 = 10;

const TIN_SENT_PACKETS: u16 = 2;
const TIN_SENT_BYTES64: u16 = 3;
const TIN_DROPPED_PACKETS: u16 = 4;
const TIN_ACKS_DROPPED_PACKETS: u16 = 6;
const TIN_ECN_MARKED_PACKETS: u16 = 8;
const TIN_BACKLOG_BYTES: u16 = 11;
const TIN_THRESHOLD_RATE64: u16 = 12;
const TIN_TARGET_US: u16 = 13;
const TIN_INTERVAL_US: u16 = 14;
const TIN_WAY_INDIRECT_HITS: u16 = 15;
const TIN_WAY_MISSES: u16 = 16;
const TIN_WAY_COLLISIONS: u16 = 17;
const TIN_PEAK_DELAY_US: u16 = 18;
const TIN_AVG_DELAY_US: u16 = 19;
const TIN_BASE_DELAY_US: u16 = 20;
const TIN_SPARSE_FLOWS: u16 = 21;
const TIN_BULK_FLOWS: u16 = 22;
const TIN_UNRESPONSIVE_FLOWS: u16 = 23;
const TIN_MAX_SKBLEN: u16 = 24;
const TIN_FLOW_QUANTUM: u16 = 25;

/// `TC_CAKE_MAX_TINS`.
const MOST_TINS: u16 = 8;

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

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = Attributes::read(statistics.own?);
        let number = |kind| own.u32(kind).unwrap_or(0);
        let tins = own.get(STATS_TIN_STATS).map(Attributes::read)?;
        // They are numbered from 1.
        let tins = (1..=MOST_TINS).map_while(|number| tins.get(number));
        Some(OwnStats::Cake(Stats {
            memory_used: number(STATS_MEMORY_USED).into(),
            memory_limit: number(STATS_MEMORY_LIMIT).into(),
            capacity_estimate: own.u64(STATS_CAPACITY_ESTIMATE64).unwrap_or(0),
            min_network_size: number(STATS_MIN_NETLEN),
            max_network_size: number(STATS_MAX_NETLEN),
            min_adj_size: number(STATS_MIN_ADJLEN),
            max_adj_size: number(STATS_MAX_ADJLEN),
            avg_hdr_offset: number(STATS_AVG_NETOFF),
            tins: tins.map(|tin| tin_stats(&Attributes::read(tin))).collect(),
        }))
    }
}

fn tin_stats(tin: &Attributes<'_>) -> TinStats {
    let number = |kind| tin.u32(kind).unwrap_or(0);
    let count = |kind| u64::from(number(kind));
    TinStats {
        threshold_rate: tin.u64(TIN_THRESHOLD_RATE64).unwrap_or(0),
        sent_bytes: tin.u64(TIN_SENT_BYTES64).unwrap_or(0),
        backlog_bytes: count(TIN_BACKLOG_BYTES),
        target_us: number(TIN_TARGET_US),
        interval_us: number(TIN_INTERVAL_US),
        peak_delay_us: number(TIN_PEAK_DELAY_US),
        avg_delay_us: number(TIN_AVG_DELAY_US),
        base_delay_us: number(TIN_BASE_DELAY_US),
        sent_packets: count(TIN_SENT_PACKETS),
        way_indirect_hits: count(TIN_WAY_INDIRECT_HITS),
        way_misses: count(TIN_WAY_MISSES),
        way_collisions: count(TIN_WAY_COLLISIONS),
        drops: count(TIN_DROPPED_PACKETS),
        ecn_mark: count(TIN_ECN_MARKED_PACKETS),
        ack_drops: count(TIN_ACKS_DROPPED_PACKETS),
        sparse_flows: number(TIN_SPARSE_FLOWS),
        bulk_flows: number(TIN_BULK_FLOWS),
        unresponsive_flows: number(TIN_UNRESPONSIVE_FLOWS),
        max_pkt_len: number(TIN_MAX_SKBLEN),
        flow_quantum: number(TIN_FLOW_QUANTUM),
    }
}
