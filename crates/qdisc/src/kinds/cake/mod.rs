//! `cake` (tc-cake(8)): what it is told and how it reads back, for hosts that have it. dualq's model does not.

mod grammar;
mod show;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Bytes, Instant, Rate};

use crate::kinds::{Grammar, Kind};
use crate::{Device, Discipline, FlowPacket, Unmodelled};

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
    /// Linux's defaults, but for what `options` give.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self {
            bandwidth: options.bandwidth.filter(|rate| rate.as_bits_per_second() > 0),
            autorate: options.autorate.unwrap_or(false),
            diffserv: options.diffserv.unwrap_or(Diffserv::Diffserv3),
            flow_mode: options.flow_mode.unwrap_or(FlowMode::TripleIsolate),
            nat: options.nat.unwrap_or(false),
            wash: options.wash.unwrap_or(false),
            ingress: options.ingress.unwrap_or(false),
            ack_filter: options.ack_filter.unwrap_or(AckFilter::No),
            split_gso: options.split_gso.unwrap_or(true),
            rtt: Duration::from_micros(options.rtt_us.unwrap_or(100_000).into()),
            raw: options.raw || options.overhead.is_none(),
            atm: options.atm.unwrap_or(Atm::Noatm),
            overhead: options.overhead.unwrap_or(0),
            mpu: options.mpu.unwrap_or(0),
            memory_limit: options.memory_limit,
            fwmark: options.fwmark.unwrap_or(0),
        }
    }
}

impl Kind for Options {
    type Config = Config;

    const IS_MODELLED: bool = false;

    fn configure(&self, _device: &Device) -> Config {
        Config::new(self)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        _device: &Device,
        _random: R,
        _now: Instant,
    ) -> Result<Discipline<P, R>, Unmodelled> {
        Err(Unmodelled { kind: Self::NAME })
    }
}
