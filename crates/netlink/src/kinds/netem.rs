//! `netem` (`struct tc_netem_qopt` and `TCA_NETEM_*` behind it, `struct tc_netem_xstats`).

use std::time::Duration;

use dualq_qdisc::kinds::netem::{
    Chance, Config, Distance, Distribution, Framing, Loss, Options, Slots, Stats,
};
use dualq_units::Rate;

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire};
use crate::attributes::{Attributes, Writer, u32_at, u64_at};

const CORR: u16 = 1;
const DELAY_DIST: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const ECN: u16 = 7;
const RATE64: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const SLOT: u16 = 12;
const SLOT_DIST: u16 = 13;
const PRNG_SEED: u16 = 14;

/// The bytes of the structure that comes before the attributes.
const HEAD: usize = 24;
/// tc's default.
const LIMIT: u32 = 1000;

/// A model of losses by its attribute and its values.
const GI: u16 = 1;
const GE: u16 = 2;

/// `struct tc_netem_slot`: two delays, what fits, and a distribution's mean and deviation.
fn slot(slots: &Slots) -> Vec<u8> {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let [least, most, mean, deviation] = match slots.distance {
        Distance::Uniform(least, most) => [least, most, Duration::ZERO, Duration::ZERO],
        Distance::Distributed(mean, deviation) => [Duration::ZERO, Duration::ZERO, mean, deviation],
    }
    .map(|time| nanos(time).to_ne_bytes());
    let fits = [slots.packets, slots.bytes].map(u32::to_ne_bytes);
    [&least[..], &most, &fits[0], &fits[1], &mean, &deviation].concat()
}

fn read_slot(bytes: &[u8]) -> Option<Slots> {
    let time = |offset| u64_at(bytes, offset).map(Duration::from_nanos);
    let (mean, deviation) = (time(24)?, time(32)?);
    let distance = if deviation.is_zero() {
        Distance::Uniform(time(0)?, time(8)?)
    } else {
        Distance::Distributed(mean, deviation)
    };
    Some(Slots { distance, packets: u32_at(bytes, 16)?, bytes: u32_at(bytes, 20)? })
}

/// The table of a distribution, as the kernel takes it.
fn table(distribution: Distribution) -> Vec<u8> {
    distribution.table().iter().flat_map(|deviation| deviation.to_ne_bytes()).collect()
}

fn model(attributes: &Attributes<'_>) -> Option<Loss> {
    let nested = attributes.nested(LOSS)?;
    let at = |bytes: &[u8], index: usize| u32_at(bytes, 4 * index);
    if let Some(gi) = nested.get(GI) {
        let (p13, p31, p32) = (at(gi, 0)?, at(gi, 1)?, at(gi, 2)?);
        return Some(Loss::State { p13, p31, p32, p14: at(gi, 3)?, p23: at(gi, 4)? });
    }
    let ge = nested.get(GE)?;
    Some(Loss::Gemodel { p: at(ge, 0)?, r: at(ge, 1)?, h: at(ge, 2)?, one_minus_k: at(ge, 3)? })
}

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        let (loss, loss_correlation) = match self.loss {
            Some(Loss::Random(chance)) => (chance.share, chance.correlation),
            _ => (0, 0),
        };
        let duplicate = self.duplicate_sent();
        // Delay, limit, loss, gap, duplicates, jitter. The delays are told by attributes.
        let head = [0, self.limit.unwrap_or(LIMIT), loss, self.gap_sent(), duplicate.share, 0];
        let mut bytes = Writer::after(head.map(u32::to_ne_bytes).concat());
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut put = |kind, values: &[u32]| {
            let values: Vec<u8> = words(values);
            bytes.put(kind, &values);
        };
        let delay_correlation = self.delay_correlation.unwrap_or(0);
        if delay_correlation > 0 || loss_correlation > 0 {
            put(CORR, &[delay_correlation, loss_correlation, duplicate.correlation]);
        }
        for (kind, chance) in [(REORDER, self.reorder), (CORRUPT, self.corrupt)] {
            if let Some(chance) = chance.filter(|chance| chance.share > 0) {
                put(kind, &[chance.share, chance.correlation]);
            }
        }
        let model: Option<(u16, Vec<u8>)> = match self.loss {
            Some(Loss::State { p13, p31, p32, p23, p14 }) => {
                Some((GI, words(&[p13, p31, p32, p14, p23])))
            }
            Some(Loss::Gemodel { p, r, h, one_minus_k }) => {
                Some((GE, words(&[p, r, h, one_minus_k])))
            }
            _ => None,
        };
        if let Some((kind, values)) = model {
            bytes.nest(LOSS, |nested| nested.put(kind, &values));
        }
        // The grammar lets no time pass that 63 bits do not hold.
        for (kind, time) in [(LATENCY64, self.delay), (JITTER64, self.jitter)] {
            if let Some(time) = time {
                bytes.u64(kind, time.as_nanos() as u64);
            }
        }
        if let Some(distribution) = self.distribution {
            bytes.put(DELAY_DIST, &table(distribution));
        }
        if self.ecn {
            bytes.u32(ECN, 1);
        }
        if let Some(rate) = self.rate {
            let per_second = rate.as_bits_per_second() / 8;
            let short = u32::try_from(per_second).unwrap_or(u32::MAX);
            let Framing { packet_overhead, cell_size, cell_overhead } =
                self.framing.unwrap_or_default();
            let signed = i32::cast_unsigned;
            let values = [short, signed(packet_overhead), cell_size, signed(cell_overhead)];
            bytes.put(RATE, &values.map(u32::to_ne_bytes).concat());
            if per_second > u32::MAX.into() {
                bytes.u64(RATE64, per_second);
            }
        }
        if let Some(slots) = self.slots.filter(|slots| !slots.is_nothing()) {
            bytes.put(SLOT, &slot(&slots));
            if let Some(distribution) = self.slot_distribution {
                bytes.put(SLOT_DIST, &table(distribution));
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
        let word = |kind, index: usize| {
            attributes.get(kind).map_or(Some(0), |bytes| u32_at(bytes, 4 * index))
        };
        let chance = |kind| Some(Chance { share: word(kind, 0)?, correlation: word(kind, 1)? });
        // A correlation of what never happens says nothing.
        let said = |chance: Chance| if chance.share > 0 { chance } else { Chance::default() };
        let rate = attributes.u64(RATE64).or(attributes.u32(RATE).map(u64::from)).unwrap_or(0);
        let random = said(Chance { share: head(2)?, correlation: word(CORR, 1)? });
        let loss = match attributes.get(LOSS) {
            Some(_) => Some(model(&attributes)?),
            None => Some(Loss::Random(random)).filter(|loss| !loss.is_nothing()),
        };
        let slots = match attributes.get(SLOT) {
            Some(slot) => Some(read_slot(slot)?).filter(|slots| !slots.is_nothing()),
            None => None,
        };
        Some(Config {
            limit: head(1)?,
            delay: Duration::from_nanos(attributes.u64(LATENCY64)?),
            jitter: Duration::from_nanos(attributes.u64(JITTER64)?),
            delay_correlation: word(CORR, 0)?,
            loss,
            ecn: attributes.u32(ECN).is_some_and(|ecn| ecn != 0),
            duplicate: Chance { share: head(4)?, correlation: word(CORR, 2)? },
            corrupt: said(chance(CORRUPT)?),
            reorder: said(chance(REORDER)?),
            gap: head(3)?,
            rate: Some(Rate::from_bits_per_second(rate.checked_mul(8)?)).filter(|_| rate > 0),
            framing: Framing {
                packet_overhead: word(RATE, 1)?.cast_signed(),
                cell_size: word(RATE, 2)?,
                cell_overhead: word(RATE, 3)?.cast_signed(),
            },
            slots,
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
            corrupted: long(16),
            duplicated: long(24),
            reordered: long(32),
            ecn_marked: long(40),
            leaf: statistics.leaf.map(Box::new),
        }))
    }
}
