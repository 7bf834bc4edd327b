//! The options and statistics of each kind of queue discipline, as the kernel writes them.
//!
//! Only options that were given are sent, as tc does. What is read must say all that dualq's own type says, and nothing
//! that it cannot say; otherwise there is no [`Config`]. Statistics that an older kernel does not have count as 0.

mod bfifo;
mod cake;
mod codel;
mod dualpi2;
mod fq;
pub(crate) mod fq_codel;
mod fq_pie;
pub(crate) mod htb;
mod netem;
mod pfifo;
mod pfifo_fast;
mod pie;
mod prio;
mod ratespec;
mod red;
mod sfq;
mod tbf;
#[cfg(test)]
mod tests;

use std::time::Duration;

use dualq_qdisc::show::{Counters, OwnStats, Stats};
use dualq_qdisc::{Config, Spec};

pub(crate) use self::htb::write_class;
use crate::attributes::{Attributes, Writer, u32_at};

pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_OPTIONS: u16 = 2;

/// What the kernel tells of the parameters of a discipline.
#[derive(Clone, Copy)]
pub(crate) struct Parameters<'a> {
    pub(crate) options: &'a [u8],
    /// The options of the one class that it has, if it has one.
    pub(crate) class: Option<&'a [u8]>,
    /// `txqueuelen` of its device.
    pub(crate) tx_queue_length: u32,
}

impl<'a> Parameters<'a> {
    fn attributes(&self) -> Attributes<'a> {
        Attributes::read(self.options)
    }
}

/// What the kernel tells of the counters of a discipline; for `htb` those of its class.
pub(crate) struct Statistics<'a> {
    /// What only its kind counts.
    pub(crate) own: Option<&'a [u8]>,
    /// What every discipline counts.
    pub(crate) counters: &'a Counters,
    /// What the discipline inside counts.
    pub(crate) leaf: Option<Stats>,
}

impl Statistics<'_> {
    /// The FIFO that is inside if nothing else was put there does not tell; the outer one counts its packets.
    fn leaf_or_fifo(self) -> Box<Stats> {
        let fifo = Stats { counters: *self.counters, own: OwnStats::Nothing };
        Box::new(self.leaf.unwrap_or(fifo))
    }
}

/// A kind's options and counters in the kernel's bytes, by the type of its options.
trait Wire {
    /// All its parameters.
    type Config;

    /// The options without what is inside.
    fn write(&self, into: &mut Writer);

    /// The parameters without what is inside.
    fn config(parameters: &Parameters<'_>) -> Option<Self::Config>;

    /// What only this kind counts.
    fn stats(_statistics: Statistics<'_>) -> Option<OwnStats> {
        Some(OwnStats::Nothing)
    }
}

macro_rules! wire {
    ($($Kind:ident $kind:ident [$($Stats:ident)?] $what:literal,)*) => {
        /// The options of `spec` without what is inside it.
        pub(crate) fn write(spec: &Spec, into: &mut Writer) {
            match spec {
                $(Spec::$Kind(options) => Wire::write(options, into),)*
            }
        }

        /// The parameters of a discipline without what is inside it.
        pub(crate) fn config(kind: &str, parameters: &Parameters<'_>) -> Option<Config> {
            $(if kind == stringify!($kind) {
                return dualq_qdisc::kinds::$kind::Options::config(parameters).map(Config::$Kind);
            })*
            None
        }

        /// What only a kind counts.
        pub(crate) fn own_stats(kind: &str, statistics: Statistics<'_>) -> Option<OwnStats> {
            $(if kind == stringify!($kind) {
                return dualq_qdisc::kinds::$kind::Options::stats(statistics);
            })*
            None
        }
    };
}

dualq_qdisc::for_each_kind!(wire);

/// The field at `offset` of what a kind counts.
fn count(own: &[u8], offset: usize) -> u32 {
    u32_at(own, offset).unwrap_or(0)
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(micros.into())
}

/// A time that the grammar keeps in 32 bits of microseconds.
fn whole_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// A flag, which is 0 or 1.
fn flag(value: u32) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
