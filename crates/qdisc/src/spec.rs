//! What a discipline is asked to be, and what it then is.

use dualpi2::{Change, Random};
use dualq_units::{Bytes, Instant};

use crate::disciplines::cake;
use crate::disciplines::codel::{self, Codel};
use crate::disciplines::fq::{self, Fq};
use crate::disciplines::fq_codel::{self, FqCodel};
use crate::disciplines::htb::{self, Htb};
use crate::disciplines::netem::{self, Netem};
use crate::disciplines::pfifo_fast::{self, PfifoFast};
use crate::disciplines::pie::{self, Pie};
use crate::disciplines::tbf::{self, Tbf};
use crate::disciplines::{Discipline, Fifo, Other};
use crate::{FlowPacket, disciplines};

/// The device a discipline is put on, as far as its defaults depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The largest frame in bytes, link-layer header included (the kernel's `psched_mtu`).
    pub max_frame: u32,
    /// `txqueuelen`, in packets: the default limit of the FIFOs.
    pub tx_queue_length: u32,
}

impl Device {
    /// The 14 bytes before the IP header on Ethernet.
    pub const ETHERNET_HEADER: u32 = 14;

    /// An Ethernet device whose IP packets have at most `mtu` bytes, with Linux's `txqueuelen` of 1000.
    #[must_use]
    pub const fn ethernet(mtu: u32) -> Self {
        Self { max_frame: mtu.saturating_add(Self::ETHERNET_HEADER), tx_queue_length: 1000 }
    }
}

/// What a command line asks for: a kind, and the options that it gave. What it left open is `None` and gets its default
/// from [`Spec::configure`]. Made by [`grammar::parse`](crate::grammar::parse), which lets no value pass that is out of
/// its bounds; printed as the line that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// `dualpi2 …`
    Dualpi2(Change),
    /// `pfifo [limit PACKETS]`
    Pfifo {
        /// Packets.
        limit: Option<u32>,
    },
    /// `bfifo [limit SIZE]`
    Bfifo {
        /// Bytes.
        limit: Option<Bytes>,
    },
    /// `codel …`
    Codel(codel::Options),
    /// `fq_codel …`
    FqCodel(fq_codel::Options),
    /// `pie …`
    Pie(pie::Options),
    /// `tbf … [leaf …]`
    Tbf(tbf::Options),
    /// `htb … [leaf …]`
    Htb(htb::Options),
    /// `netem … [leaf …]`
    Netem(netem::Options),
    /// `pfifo_fast`
    PfifoFast(pfifo_fast::Options),
    /// `fq …`
    Fq(fq::Options),
    /// `cake …`, which only real kernels have.
    Cake(cake::Options),
}

/// A discipline that dualq can put on a host but not build itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} is not modelled; real kernels have it")]
pub struct Unmodelled {
    /// As tc names it.
    pub kind: &'static str,
}

/// All parameters of a discipline, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Config {
    /// DualPI2.
    Dualpi2(dualpi2::Config),
    /// One queue that drops what does not fit.
    Fifo(FifoLimit),
    /// One queue under CoDel.
    Codel(codel::Config),
    /// Flows in turn, each under CoDel.
    FqCodel(fq_codel::Config),
    /// One queue under PIE.
    Pie(pie::Config),
    /// A token bucket around a leaf.
    Tbf(tbf::Config),
    /// One class of `htb` around a leaf.
    Htb(htb::Config),
    /// A path that delays, loses and slows down.
    Netem(netem::Config),
    /// Three FIFOs, one before the other.
    PfifoFast(pfifo_fast::Config),
    /// Fair queueing with pacing.
    Fq(fq::Config),
    /// CAKE.
    Cake(cake::Config),
}

/// How much a FIFO holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FifoLimit {
    /// `pfifo`: that many packets.
    Packets(u32),
    /// `bfifo`: that many bytes.
    Bytes(Bytes),
}

impl Spec {
    /// The kind, as tc names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Dualpi2(_) => "dualpi2",
            Self::Pfifo { .. } => "pfifo",
            Self::Bfifo { .. } => "bfifo",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Tbf(_) => "tbf",
            Self::Htb(_) => "htb",
            Self::Netem(_) => "netem",
            Self::PfifoFast(_) => "pfifo_fast",
            Self::Fq(_) => "fq",
            Self::Cake(_) => "cake",
        }
    }

    /// The kind of it, or of what is inside it, that dualq can put on a host but not build itself.
    #[must_use]
    pub fn unmodelled(&self) -> Option<&'static str> {
        match self {
            Self::Cake(_) => Some(self.kind()),
            other => other.leaf().and_then(Self::unmodelled),
        }
    }

    /// The discipline and those inside it, from the outside in.
    pub fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |spec| spec.leaf())
    }

    /// What is inside a shaper or a path, if it was given.
    #[must_use]
    pub fn leaf(&self) -> Option<&Self> {
        match self {
            Self::Tbf(options) => options.leaf.as_deref(),
            Self::Htb(options) => options.leaf.as_deref(),
            Self::Netem(options) => options.leaf.as_deref(),
            _ => None,
        }
    }

    /// An empty discipline of this kind on `device` at time `now`. `random` rolls its dice, if it has any.
    ///
    /// # Errors
    /// If it is [`unmodelled`](Self::unmodelled).
    ///
    /// # Panics
    /// If it did not come from the grammar and has a value that is out of bounds.
    pub fn build<P: FlowPacket, R: Random>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Result<Discipline<P, R>, Unmodelled> {
        match self.unmodelled() {
            Some(kind) => Err(Unmodelled { kind }),
            None => Ok(self.build_modelled(device, random, now)),
        }
    }

    /// As [`build`](Self::build), where it is known that nothing inside is unmodelled.
    pub(crate) fn build_modelled<P: FlowPacket, R: Random>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        match self {
            Self::Dualpi2(change) => {
                Discipline::Dualpi2(disciplines::dualpi2(change, device, random, now))
            }
            Self::Pfifo { .. } | Self::Bfifo { .. } => {
                Discipline::Fifo(Fifo::new(self.fifo_limit(device)))
            }
            Self::Codel(options) => {
                Discipline::Other(Box::new(Other::Codel(Codel::new(options, device))))
            }
            Self::FqCodel(options) => {
                Discipline::Other(Box::new(Other::FqCodel(FqCodel::new(options, device))))
            }
            Self::Pie(options) => {
                Discipline::Other(Box::new(Other::Pie(Pie::new(options, device, random, now))))
            }
            Self::Tbf(options) => {
                Discipline::Other(Box::new(Other::Tbf(Tbf::new(options, device, random, now))))
            }
            Self::Htb(options) => {
                Discipline::Other(Box::new(Other::Htb(Htb::new(options, device, random, now))))
            }
            Self::Netem(options) => {
                Discipline::Other(Box::new(Other::Netem(Netem::new(options, device, random, now))))
            }
            Self::PfifoFast(_) => {
                Discipline::Other(Box::new(Other::PfifoFast(PfifoFast::new(device))))
            }
            Self::Fq(options) => Discipline::Other(Box::new(Other::Fq(Fq::new(options, device)))),
            Self::Cake(_) => unreachable!("Spec::build has refused it"),
        }
    }

    /// What [`build`](Self::build) makes, as it reads back: with the kernel's rounding.
    ///
    /// # Panics
    /// If the spec did not come from the grammar and has a value that is out of bounds.
    #[must_use]
    pub fn configure(&self, device: &Device) -> Config {
        match self {
            Self::Dualpi2(change) => Config::Dualpi2(disciplines::dualpi2_config(change, device)),
            Self::Pfifo { .. } | Self::Bfifo { .. } => Config::Fifo(self.fifo_limit(device)),
            Self::Codel(options) => Config::Codel(codel::Config::DEFAULT.with(options)),
            Self::FqCodel(options) => Config::FqCodel(fq_codel::Config::new(device).with(options)),
            Self::Pie(options) => Config::Pie(pie::Config::DEFAULT.with(options)),
            Self::Tbf(options) => Config::Tbf(tbf::Config::new(options, device)),
            Self::Htb(options) => Config::Htb(htb::Config::new(options, device)),
            Self::Netem(options) => Config::Netem(netem::Config::new(options, device)),
            Self::PfifoFast(_) => {
                Config::PfifoFast(pfifo_fast::Config { band_limit: device.tx_queue_length })
            }
            Self::Fq(options) => Config::Fq(fq::Config::new(device).with(options)),
            Self::Cake(options) => Config::Cake(cake::Config::new(options)),
        }
    }

    const fn fifo_limit(&self, device: &Device) -> FifoLimit {
        let packets = device.tx_queue_length;
        match *self {
            Self::Pfifo { limit: Some(limit) } => FifoLimit::Packets(limit),
            Self::Bfifo { limit: Some(limit) } => FifoLimit::Bytes(limit),
            Self::Bfifo { limit: None } => {
                FifoLimit::Bytes(Bytes(packets as u64 * device.max_frame as u64))
            }
            _ => FifoLimit::Packets(packets),
        }
    }
}
