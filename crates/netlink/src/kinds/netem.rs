//! `netem` (`struct tc_netem_qopt` and `TCA_NETEM_*` behind it, `struct tc_netem_xstats`).

use std::time::Duration;

use dualq_qdisc::kinds::netem::{Config, Options, Stats};
use dualq_units::{Bytes, Rate};

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire};
use crate::attributes::{Attributes, Writer, u32_at, u64_at};

const CORR: u16 = 1;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const ECN: u16 = 7;
const RATE64: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const SLOT: u16 = 12;
const PRNG_SEED: u16 = 14;

/// The bytes of the structure that comes before the attributes.
const HEAD: usize = 24;
/// tc's default.
const LIMIT: u32 = 1000;

/// Writes the options of one that sends packets twice at random, and does nothing else to them.
pub(crate) fn write_duplication(share: u32, seed: u64, into: &mut Writer) {
    let head = [0, LIMIT, 0, 0, share, 0];
    let mut bytes = Writer::after(head.map(u32::to_ne_bytes).concat());
    bytes.u64(PRNG_SEED, seed);
    into.put(TCA_OPTIONS, &bytes.finish());
}

/// What `netem slot` is told: packets gather and leave in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The least and the greatest time that a burst gathers.
    pub delays: [Duration; 2],
    /// Packets of a burst at most.
    pub packets: Option<u32>,
    /// Bytes of a burst at most, but for the packet that exceeds them.
    pub bytes: Option<Bytes>,
}

/// Writes the options of one that has slots for at most `limit` packets, and does nothing else to them.
pub(crate) fn write_slots(slots: &Slots, limit: u32, seed: u64, into: &mut Writer) {
    let head = [0, limit, 0, 0, 0, 0];
    let mut bytes = Writer::after(head.map(u32::to_ne_bytes).concat());
    // `struct tc_netem_slot`: two delays, what fits, and a distribution's mean and deviation, which there is none of.
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let most = |most: Option<u64>| most.map_or(0, |most| i32::try_from(most).unwrap_or(i32::MAX));
    let mut slot = slots.delays.map(|delay| nanos(delay).to_ne_bytes()).concat();
    slot.extend(most(slots.packets.map(u64::from)).to_ne_bytes());
    slot.extend(most(slots.bytes.map(|Bytes(bytes)| bytes)).to_ne_bytes());
    slot.extend([0; 16]);
    bytes.put(SLOT, &slot);
    bytes.u64(PRNG_SEED, seed);
    into.put(TCA_OPTIONS, &bytes.finish());
}

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        // Delay, limit, loss, gap, duplicates, jitter. The delays are told by attributes.
        let head = [0, self.limit.unwrap_or(LIMIT), self.loss.unwrap_or(0), 0, 0, 0];
        let mut bytes = Writer::after(head.map(u32::to_ne_bytes).concat());
        // The grammar lets no time pass that 63 bits do not hold.
        for (kind, time) in [(LATENCY64, self.delay), (JITTER64, self.jitter)] {
            if let Some(time) = time {
                bytes.u64(kind, time.as_nanos() as u64);
            }
        }
        if self.ecn {
            bytes.u32(ECN, 1);
        }
        if let Some(rate) = self.rate {
            let per_second = rate.as_bits_per_second() / 8;
            let short = u32::try_from(per_second).unwrap_or(u32::MAX);
            // Its overhead and its cells: none.
            bytes.put(RATE, &[short, 0, 0, 0].map(u32::to_ne_bytes).concat());
            if per_second > u32::MAX.into() {
                bytes.u64(RATE64, per_second);
            }
        }
        if let Some(seed) = self.seed {
            bytes.u64(PRNG_SEED, seed);
        }
        into.put(TCA_OPTIONS, &bytes.finish());
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.options;
        let head = |index: usize| u32_at(options, 4 * index);
        let attributes = Attributes::read(options.get(HEAD..)?);
        let nothing = |kind| attributes.get(kind).is_none_or(|bytes| bytes.iter().all(|b| *b == 0));
        let (gap, duplicate) = (head(3)?, head(4)?);
        let framing = attributes.get(RATE).and_then(|rate| rate.get(4..)).unwrap_or_default();
        let is_ours = gap == 0
            && duplicate == 0
            && [CORR, REORDER, CORRUPT].into_iter().all(nothing)
            && [LOSS, SLOT].into_iter().all(|kind| attributes.get(kind).is_none())
            && framing.iter().all(|byte| *byte == 0);
        if !is_ours {
            return None;
        }
        let rate = attributes.u64(RATE64).or(attributes.u32(RATE).map(u64::from)).unwrap_or(0);
        Some(Config {
            limit: head(1)?,
            delay: Duration::from_nanos(attributes.u64(LATENCY64)?),
            jitter: Duration::from_nanos(attributes.u64(JITTER64)?),
            loss: head(2)?,
            ecn: attributes.u32(ECN).is_some_and(|ecn| ecn != 0),
            rate: Some(Rate::from_bits_per_second(rate.checked_mul(8)?)).filter(|_| rate > 0),
            seed: attributes.u64(PRNG_SEED),
            leaf: None,
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        // It did not count before Linux 7.
        let own = statistics.own.unwrap_or_default();
        let long = |offset| u64_at(own, offset).unwrap_or(0);
        Some(OwnStats::Netem(Stats {
            delayed: long(0),
            dropped: long(8),
            reordered: long(32),
            ecn_marked: long(40),
            leaf: statistics.leaf.map(Box::new),
        }))
    }
}
