//! The options and statistics of each kind of queue discipline, as the kernel writes them.
//!
//! Only options that were given are sent, as tc does. What is read must say all that dualq's own type says, and nothing
//! that it cannot say; otherwise there is no [`Config`]. Statistics that an older kernel does not have count as 0.

mod cake;
mod codel;
mod dualpi2;
mod fifo;
mod fq;
mod fq_codel;
mod htb;
mod netem;
mod pfifo_fast;
mod pie;
mod ratespec;
mod tbf;
#[cfg(test)]
mod tests;

use std::time::Duration;

use dualq_qdisc::show::{Counters, OwnStats, Stats};
use dualq_qdisc::{Config, FifoLimit, Spec};
use dualq_units::Bytes;

pub(crate) use self::htb::{config as htb_config, write_class};
use crate::attributes::{Attributes, Writer, u32_at};

pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_OPTIONS: u16 = 2;

/// The options of `spec` without what is inside it.
pub(crate) fn write(spec: &Spec, into: &mut Writer) {
    match spec {
        Spec::Dualpi2(change) => into.nest(TCA_OPTIONS, |nest| dualpi2::write(change, nest)),
        Spec::Codel(options) => into.nest(TCA_OPTIONS, |nest| codel::write(options, nest)),
        Spec::FqCodel(options) => into.nest(TCA_OPTIONS, |nest| fq_codel::write(options, nest)),
        Spec::Pie(options) => into.nest(TCA_OPTIONS, |nest| pie::write(options, nest)),
        Spec::Fq(options) => into.nest(TCA_OPTIONS, |nest| fq::write(options, nest)),
        Spec::Cake(options) => into.nest(TCA_OPTIONS, |nest| cake::write(options, nest)),
        Spec::Tbf(options) => into.nest(TCA_OPTIONS, |nest| tbf::write(options, nest)),
        Spec::Htb(_) => into.nest(TCA_OPTIONS, htb::write),
        Spec::Netem(options) => into.put(TCA_OPTIONS, &netem::write(options)),
        Spec::Pfifo { limit } => fifo::write(*limit, into),
        // The grammar lets no size pass that 32 bits do not hold.
        Spec::Bfifo { limit } => fifo::write(limit.map(|limit| limit.0 as u32), into),
        Spec::PfifoFast(_) => {}
    }
}

/// The parameters of a discipline that is no `htb`, without what is inside it.
pub(crate) fn config(kind: &str, options: Option<&[u8]>, tx_queue_length: u32) -> Option<Config> {
    let bytes = options?;
    let attributes = || Attributes::read(bytes);
    Some(match kind {
        "dualpi2" => Config::Dualpi2(dualpi2::config(&attributes())?),
        "codel" => Config::Codel(codel::config(&attributes())?),
        "fq_codel" => Config::FqCodel(fq_codel::config(&attributes())?),
        "pie" => Config::Pie(pie::config(&attributes())?),
        "fq" => Config::Fq(fq::config(&attributes())?),
        "cake" => Config::Cake(cake::config(&attributes())?),
        "tbf" => Config::Tbf(tbf::config(&attributes())?),
        "netem" => Config::Netem(netem::config(bytes)?),
        "pfifo" => Config::Fifo(FifoLimit::Packets(fifo::limit(bytes)?)),
        "bfifo" => Config::Fifo(FifoLimit::Bytes(Bytes(fifo::limit(bytes)?.into()))),
        "pfifo_fast" => Config::PfifoFast(pfifo_fast::config(bytes, tx_queue_length)?),
        _ => return None,
    })
}

/// What only a kind counts. `own` is what the kernel tells of that, and `counters` what every discipline counts, for `htb` those of
/// its class; `leaf` is what the discipline inside counts.
pub(crate) fn own_stats(
    kind: &str,
    own: Option<&[u8]>,
    counters: &Counters,
    leaf: Option<Stats>,
) -> Option<OwnStats> {
    // The FIFO that is inside if nothing else was put there does not tell; the outer one counts its packets.
    let leaf_or_fifo = |leaf: Option<Stats>| {
        Box::new(leaf.unwrap_or(Stats { counters: *counters, own: OwnStats::Nothing }))
    };
    Some(match kind {
        "pfifo" | "bfifo" | "pfifo_fast" => OwnStats::Nothing,
        "dualpi2" => OwnStats::Dualpi2(dualpi2::stats(own?, counters)),
        "codel" => OwnStats::Codel(codel::stats(own?)),
        "fq_codel" => OwnStats::FqCodel(fq_codel::stats(own?)?),
        "pie" => OwnStats::Pie(pie::stats(own?)),
        "fq" => OwnStats::Fq(fq::stats(own?)),
        "tbf" => OwnStats::Tbf(leaf_or_fifo(leaf)),
        "htb" => OwnStats::Htb(htb::stats(own?, counters, leaf_or_fifo(leaf))),
        // It did not count before Linux 7.
        "netem" => OwnStats::Netem(netem::stats(own.unwrap_or_default(), leaf.map(Box::new))),
        _ => return None,
    })
}

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
