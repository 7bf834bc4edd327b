//! `netem` (tc-netem(8)), with a word of our own: what follows `leaf` is the discipline that packets go through after their
//! delay, which tc attaches with a second command, `tc qdisc add … parent 1:1 …`.

use std::fmt;

use dualq_units::number::{format_g, strtod};
use dualq_units::{Exact, Rate};

use super::about::{
    ABOUT, BYTES, CELL, COUNT, DISTRIBUTION, GAP, OVERHEAD, PACKETS, PERCENT, RATE, SEED, TIME,
};
use super::dice::units;
use super::{CERTAIN, Chance, Distance, Distribution, Framing, Loss, Options, Slots};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, did_you_mean, exact_nanos, parse_leaf, unknown_option, write_option,
};
use crate::kinds::Grammar;

impl Grammar for Options {
    const NAME: &'static str = "netem";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => options.limit = Some(words.size(word, PACKETS)?),
                "delay" | "latency" => {
                    options.delay = Some(words.long_nanos(word, TIME)?);
                    (options.jitter, options.delay_correlation) = (None, None);
                    if words.number_follows() {
                        options.jitter = Some(words.long_nanos("jitter", TIME)?);
                        options.delay_correlation = correlation(words)?.filter(|share| *share > 0);
                    }
                }
                "distribution" => options.distribution = Some(distribution(words)?),
                "loss" | "drop" => {
                    if options.loss.is_some() {
                        return Err(words.refuse(RefusedBy::Tc, format!("{word} is given twice")));
                    }
                    options.loss = Some(loss(word, words)?);
                }
                "ecn" => options.ecn = true,
                "duplicate" => options.duplicate = Some(chance(word, words)?),
                "corrupt" => options.corrupt = Some(chance(word, words)?),
                "reorder" => options.reorder = Some(chance(word, words)?),
                "gap" => options.gap = Some(words.number(word, GAP)?),
                "rate" => {
                    let rate = words.whole_rate(word, RATE)?;
                    let bits = words.unless_zero(word, rate.as_bits_per_second());
                    options.rate = bits.map(Rate::from_bits_per_second);
                    // Without a rate it says nothing.
                    options.framing = framing(words)?.filter(|_| options.rate.is_some());
                }
                "slot" => slots(words, &mut options)?,
                "seed" => options.seed = Some(words.u64(word, SEED)?),
                "leaf" => options.leaf = Some(parse_leaf("netem", words)?),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        match options.contradiction() {
            Some(message) => Err(words.refuse_at(0, RefusedBy::Tc, message.to_owned())),
            None => {
                if options.duplicate != Some(options.duplicate_sent())
                    && options.duplicate.is_some()
                {
                    let notice = "tc does not send the correlation of duplicate, unless delay or loss has one";
                    words.notices.push(notice.to_owned());
                }
                Ok(options)
            }
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        if let Some(delay) = self.delay {
            write!(f, " delay {}", exact_nanos(delay))?;
            if let Some(jitter) = self.jitter {
                write!(f, " {}", exact_nanos(jitter))?;
            }
            if let Some(correlation) = self.delay_correlation {
                write!(f, " {}", percent(correlation))?;
            }
        }
        write_option(f, "distribution", self.distribution.map(Distribution::name))?;
        match self.loss {
            None => {}
            Some(Loss::Random(chance)) => write_chance(f, "loss", Some(chance))?,
            Some(Loss::State { p13, p31, p32, p23, p14 }) => {
                f.write_str(" loss state")?;
                write_percents(f, &[p13, p31, p32, p23, p14])?;
            }
            Some(Loss::Gemodel { p, r, h, one_minus_k }) => {
                f.write_str(" loss gemodel")?;
                write_percents(f, &[p, r, CERTAIN - h, one_minus_k])?;
            }
        }
        if self.ecn {
            f.write_str(" ecn")?;
        }
        write_chance(f, "duplicate", self.duplicate)?;
        write_chance(f, "corrupt", self.corrupt)?;
        write_chance(f, "reorder", self.reorder)?;
        write_option(f, "gap", self.gap)?;
        write_option(f, "rate", self.rate.map(Exact))?;
        if let (Some(framing), Some(_)) = (self.framing, self.rate) {
            let Framing { packet_overhead, cell_size, cell_overhead } = framing;
            write!(f, " {packet_overhead} {cell_size} {cell_overhead}")?;
        }
        if let Some(slots) = self.slots {
            match slots.distance {
                Distance::Uniform(least, most) => {
                    write!(f, " slot {} {}", exact_nanos(least), exact_nanos(most))?;
                }
                Distance::Distributed(mean, deviation) => {
                    let name = self.slot_distribution.map_or("normal", Distribution::name);
                    let (mean, deviation) = (exact_nanos(mean), exact_nanos(deviation));
                    write!(f, " slot distribution {name} {mean} {deviation}")?;
                }
            }
            write_option(f, "packets", Some(slots.packets).filter(|packets| *packets > 0))?;
            write_option(f, "bytes", Some(slots.bytes).filter(|bytes| *bytes > 0))?;
        }
        write_option(f, "seed", self.seed)?;
        write_option(f, "leaf", self.leaf.as_ref())
    }
}

impl Options {
    /// What tc refuses once it has read all.
    fn contradiction(&self) -> Option<&'static str> {
        let has = |time: Option<std::time::Duration>| time.is_some_and(|time| !time.is_zero());
        if self.ecn && self.loss.is_none_or(|loss| loss.is_nothing()) {
            return Some("ecn marks what would be lost: give loss as well, such as loss 1%");
        }
        if self.distribution.is_some() && !(has(self.delay) && has(self.jitter)) {
            return Some("a distribution is of the jitter: give both, such as delay 20ms 5ms");
        }
        let reorders = self.reorder.is_some_and(|reorder| reorder.share > 0);
        if reorders && !has(self.delay) {
            return Some("who is reordered has no delay: give others one, such as delay 20ms");
        }
        if self.gap.is_some_and(|gap| gap > 0) && !reorders {
            return Some("gap says whom reorder may take: give that as well, such as reorder 25%");
        }
        None
    }
}

fn loss(word: &str, words: &mut Words<'_>) -> Result<Loss, ParseError> {
    let next = |words: &mut Words<'_>, what: &str, default: u32| {
        if words.number_follows() { share(what, words) } else { Ok(default) }
    };
    match words.peek() {
        Some("random") => {
            words.next();
            chance(word, words).map(Loss::Random)
        }
        Some("state") => {
            words.next();
            let p13 = share("loss state", words)?;
            Ok(Loss::State {
                p13,
                p31: next(words, "p31", CERTAIN - p13)?,
                p32: next(words, "p32", 0)?,
                p23: next(words, "p23", CERTAIN)?,
                p14: next(words, "p14", 0)?,
            })
        }
        Some("gemodel") => {
            words.next();
            let p = share("loss gemodel", words)?;
            Ok(Loss::Gemodel {
                p,
                r: next(words, "r", CERTAIN - p)?,
                h: CERTAIN - next(words, "1-h", CERTAIN)?,
                one_minus_k: next(words, "1-k", 0)?,
            })
        }
        _ => chance(word, words).map(Loss::Random),
    }
}

fn framing(words: &mut Words<'_>) -> Result<Option<Framing>, ParseError> {
    if !words.signed_number_follows() {
        return Ok(None);
    }
    let mut framing = Framing {
        packet_overhead: words.integer("packet overhead", OVERHEAD)?,
        ..Framing::default()
    };
    if words.number_follows() {
        framing.cell_size = words.number("cell size", CELL)?;
    }
    if words.signed_number_follows() {
        framing.cell_overhead = words.integer("cell overhead", OVERHEAD)?;
    }
    Ok(Some(framing))
}

fn slots(words: &mut Words<'_>, options: &mut Options) -> Result<(), ParseError> {
    options.slot_distribution = None;
    let distance = if words.peek() == Some("distribution") {
        words.next();
        options.slot_distribution = Some(distribution(words)?);
        let mean = words.bare_nanos("slot's mean distance", TIME)?;
        let deviation = words.bare_nanos("slot's deviation", TIME)?;
        if deviation.is_zero() {
            let message = format!("no distribution without a deviation: {TIME}");
            return Err(words.refuse(RefusedBy::Tc, message));
        }
        Distance::Distributed(mean, deviation)
    } else {
        let least = words.bare_nanos("slot", TIME)?;
        let most = if words.number_follows() {
            words.bare_nanos("slot's greatest distance", TIME)?
        } else {
            least
        };
        if most < least {
            let message = "the greatest distance of slots is no less than the least";
            return Err(words.refuse(RefusedBy::Tc, message.to_owned()));
        }
        Distance::Uniform(least, most)
    };
    let mut slots = Slots { distance, packets: 0, bytes: 0 };
    if words.peek() == Some("packets") {
        words.next();
        present(words, "packets", COUNT)?;
        let packets = words.integer("slot's packets", COUNT)?;
        slots.packets =
            u32::try_from(packets).map_err(|_| words.kernel_refuses("number of packets", COUNT))?;
    }
    if words.peek() == Some("bytes") {
        words.next();
        present(words, "bytes", BYTES)?;
        slots.bytes = words.size("slot's bytes", BYTES)?;
        if i32::try_from(slots.bytes).is_err() {
            return Err(words.kernel_refuses("number of bytes", BYTES));
        }
    }
    options.slots = Some(slots);
    Ok(())
}

/// Of these tc reads what is not there as an empty word.
fn present(words: &Words<'_>, option: &str, expected: &str) -> Result<(), ParseError> {
    if !words.is_at_end() {
        return Ok(());
    }
    let message = format!("{option} needs a value: {expected}");
    Err(words.refuse(RefusedBy::Tc, message))
}

fn distribution(words: &mut Words<'_>) -> Result<Distribution, ParseError> {
    let word = words.value("distribution", DISTRIBUTION)?;
    if let Some(known) = Distribution::ALL.into_iter().find(|known| known.name() == word) {
        return Ok(known);
    }
    if word == "experimental" {
        let message = format!("dualq has none of others' measurements: {DISTRIBUTION}");
        return Err(words.refuse(RefusedBy::Dualq, message));
    }
    let hint = did_you_mean(word, &Distribution::ALL.map(Distribution::name));
    let message = format!("{word:?} is no distribution; {hint}{DISTRIBUTION}");
    Err(words.refuse(RefusedBy::Tc, message))
}

fn share(option: &str, words: &mut Words<'_>) -> Result<u32, ParseError> {
    words.fraction(option, PERCENT).map(units)
}

fn correlation(words: &mut Words<'_>) -> Result<Option<u32>, ParseError> {
    if words.number_follows() { share("correlation", words).map(Some) } else { Ok(None) }
}

fn chance(option: &str, words: &mut Words<'_>) -> Result<Chance, ParseError> {
    let share = share(option, words)?;
    Ok(Chance { share, correlation: correlation(words)?.unwrap_or(0) })
}

/// As short as it can be without becoming another number.
fn percent(share: u32) -> String {
    let percent = 100.0 * f64::from(share) / f64::from(CERTAIN);
    let short = format_g(percent, 6);
    let is_exact = strtod(&short).is_some_and(|(value, _)| units(value / 100.0) == share);
    if is_exact { format!("{short}%") } else { format!("{percent}%") }
}

fn write_percents(f: &mut fmt::Formatter<'_>, shares: &[u32]) -> fmt::Result {
    shares.iter().try_for_each(|share| write!(f, " {}", percent(*share)))
}

fn write_chance(f: &mut fmt::Formatter<'_>, name: &str, chance: Option<Chance>) -> fmt::Result {
    let Some(Chance { share, correlation }) = chance else { return Ok(()) };
    write!(f, " {name} {}", percent(share))?;
    if correlation > 0 { write!(f, " {}", percent(correlation)) } else { Ok(()) }
}
