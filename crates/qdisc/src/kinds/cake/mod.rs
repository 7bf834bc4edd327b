//! `cake`: a shaper, tins by DSCP, flows of hosts in turn, and each under COBALT (Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: A
//! Comprehensive Queue Management Solution for Home Gateways", LANMAN 2018; tc-cake(8)).
//!
//! As Linux 7.3 does it (`sch_cake.c`, which is under a BSD licence too). What packets do not tell here is not there: `nat` finds no
//! other addresses, `fwmark` no marks, and `wash` no DSCP to clear in packets that have none.

mod about;
mod acks;
mod cobalt;
mod counted;
mod discipline;
mod flows;
mod grammar;
mod link;
mod show;
mod tin;
mod tins;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant, Rate};

use self::discipline::Cake;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket};

/// How many tins there are, and which packets go to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for tc's words")]
pub enum Diffserv {
    Diffserv3,
    Diffserv4,
    Diffserv8,
    Besteffort,
    Precedence,
}

/// Among whom the link is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for tc's words")]
pub enum FlowMode {
    Flowblind,
    Srchost,
    Dsthost,
    Hosts,
    Flows,
    DualSrchost,
    DualDsthost,
    TripleIsolate,
}

/// Which acknowledgements are dropped because a later one says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for tc's words")]
pub enum AckFilter {
    No,
    Filter,
    Aggressive,
}

/// What the link below makes of a packet's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for tc's words")]
pub enum Atm {
    Noatm,
    Atm,
    Ptm,
}

macro_rules! words {
    ($type:ident, [$($variant:ident $word:literal),*]) => {
        impl $type {
            /// All of them, in the order of the kernel's numbers, which begin with 0.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// tc's word for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

words!(Diffserv, [
    Diffserv3 "diffserv3", Diffserv4 "diffserv4", Diffserv8 "diffserv8",
    Besteffort "besteffort", Precedence "precedence"
]);
words!(FlowMode, [
    Flowblind "flowblind", Srchost "srchost", Dsthost "dsthost", Hosts "hosts", Flows "flows",
    DualSrchost "dual-srchost", DualDsthost "dual-dsthost", TripleIsolate "triple-isolate"
]);
words!(AckFilter, [
    No "no-ack-filter", Filter "ack-filter", Aggressive "ack-filter-aggressive"
]);
words!(Atm, [Noatm "noatm", Atm "atm", Ptm "ptm"]);

/// What a command line gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The rate to shape to; 0 for none.
    pub bandwidth: Option<Rate>,
    /// Whether that rate follows what arrives.
    pub autorate: Option<bool>,
    /// Tins.
    pub diffserv: Option<Diffserv>,
    /// Among whom the link is shared.
    pub flow_mode: Option<FlowMode>,
    /// Whether hosts are told apart behind address translation.
    pub nat: Option<bool>,
    /// Whether the DSCP is cleared.
    pub wash: Option<bool>,
    /// Whether dropped packets have used the link already.
    pub ingress: Option<bool>,
    /// Acknowledgements.
    pub ack_filter: Option<AckFilter>,
    /// Whether aggregates are split.
    pub split_gso: Option<bool>,
    /// The round-trip time that it is tuned for, in microseconds.
    pub rtt_us: Option<u32>,
    /// Whether the overhead is relative to what the device reports.
    pub raw: bool,
    /// The link below.
    pub atm: Option<Atm>,
    /// Bytes that the link below adds to each packet.
    pub overhead: Option<i32>,
    /// The fewest bytes that a packet takes on the link.
    pub mpu: Option<u32>,
    /// How much memory waiting packets may take.
    pub memory_limit: Option<Bytes>,
    /// The bits of the firewall's mark that choose the tin.
    pub fwmark: Option<u32>,
}

/// All parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in the options")]
pub struct Config {
    pub bandwidth: Option<Rate>,
    pub autorate: bool,
    pub diffserv: Diffserv,
    pub flow_mode: FlowMode,
    pub nat: bool,
    pub wash: bool,
    pub ingress: bool,
    pub ack_filter: AckFilter,
    pub split_gso: bool,
    pub rtt: Duration,
    pub raw: bool,
    pub atm: Atm,
    pub overhead: i32,
    pub mpu: u32,
    pub memory_limit: Option<Bytes>,
    pub fwmark: u32,
}

impl Config {
    /// Linux's defaults.
    pub const DEFAULT: Self = Self {
        bandwidth: None,
        autorate: false,
        diffserv: Diffserv::Diffserv3,
        flow_mode: FlowMode::TripleIsolate,
        nat: false,
        wash: false,
        ingress: false,
        ack_filter: AckFilter::No,
        split_gso: true,
        rtt: Duration::from_millis(100),
        raw: true,
        atm: Atm::Noatm,
        overhead: 0,
        mpu: 0,
        memory_limit: None,
        fwmark: 0,
    };

    /// Linux's defaults, but for what `options` give.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self::DEFAULT.with(options)
    }

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        let bandwidth = match options.bandwidth {
            Some(rate) => Some(rate).filter(|rate| rate.as_bits_per_second() > 0),
            None => self.bandwidth,
        };
        Self {
            bandwidth,
            autorate: options.autorate.unwrap_or(self.autorate),
            diffserv: options.diffserv.unwrap_or(self.diffserv),
            flow_mode: options.flow_mode.unwrap_or(self.flow_mode),
            nat: options.nat.unwrap_or(self.nat),
            wash: options.wash.unwrap_or(self.wash),
            ingress: options.ingress.unwrap_or(self.ingress),
            ack_filter: options.ack_filter.unwrap_or(self.ack_filter),
            split_gso: options.split_gso.unwrap_or(self.split_gso),
            rtt: options.rtt_us.map_or(self.rtt, |rtt| Duration::from_micros(rtt.into())),
            raw: options.raw || (self.raw && options.overhead.is_none()),
            atm: options.atm.unwrap_or(self.atm),
            overhead: options.overhead.unwrap_or(self.overhead),
            mpu: options.mpu.unwrap_or(self.mpu),
            memory_limit: options.memory_limit.or(self.memory_limit),
            fwmark: options.fwmark.unwrap_or(self.fwmark),
        }
    }

    /// The target, which tc makes of the round-trip time: a twentieth of it, at least 1 us.
    #[must_use]
    pub fn target_us(&self) -> u32 {
        (u32::try_from(self.rtt.as_micros()).unwrap_or(u32::MAX) / 20).max(1)
    }
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, _device: &Device) -> Config {
        Config::new(self)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(Cake::new(Config::new(self), device, random))
    }
}

/// What `cake` counts, under the names of `tc -j -s`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The most memory that waiting packets took.
    pub memory_used: u64,
    /// How much they may take.
    pub memory_limit: u64,
    /// Bytes per second that it shapes to, or found with `autorate-ingress`.
    pub capacity_estimate: u64,
    /// The shortest packet, without what is before the network layer unless `raw` counts that.
    pub min_network_size: u32,
    /// The longest.
    pub max_network_size: u32,
    /// The shortest as it is on the link.
    pub min_adj_size: u32,
    /// The longest.
    pub max_adj_size: u32,
    /// Bytes before the network layer, on average.
    pub avg_hdr_offset: u32,
    /// Each tin, in the order in which tc shows them.
    pub tins: Vec<TinStats>,
}

/// What a tin counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinStats {
    /// Bytes per second up to which it comes first.
    pub threshold_rate: u64,
    /// Bytes that came in.
    pub sent_bytes: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// CoDel's target.
    pub target_us: u32,
    /// CoDel's interval.
    pub interval_us: u32,
    /// A moving average of delays that follows longer ones fast.
    pub peak_delay_us: u32,
    /// A moving average of delays.
    pub avg_delay_us: u32,
    /// One that follows shorter ones fast.
    pub base_delay_us: u32,
    /// Packets that came in.
    pub sent_packets: u64,
    /// Packets whose flow has another queue than the first of its eight.
    pub way_indirect_hits: u64,
    /// Packets whose flow had none.
    pub way_misses: u64,
    /// Packets of flows that have to share one.
    pub way_collisions: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked.
    pub ecn_mark: u64,
    /// Acknowledgements filtered out.
    pub ack_drops: u64,
    /// Flows that have not used up their first quantum, and those that are remembered.
    pub sparse_flows: u32,
    /// Flows that take turns.
    pub bulk_flows: u32,
    /// Flows that BLUE drops packets of.
    pub unresponsive_flows: u32,
    /// The longest packet that came in.
    pub max_pkt_len: u32,
    /// Bytes that a flow may send in its turn.
    pub flow_quantum: u32,
}
