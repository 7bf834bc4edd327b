//! `netem` (tc-netem(8)), with a word of our own: what follows `leaf` is the discipline that packets go through after their
//! delay, which tc attaches with a second command, `tc qdisc add … parent 1:1 …`.

use std::fmt;

use dualq_units::number::{format_g, strtod};
use dualq_units::{Exact, Rate};

use super::Options;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, exact_nanos, parse_leaf, unknown_option, write_option,
};
use crate::kinds::Grammar;

const OPTIONS: [&str; 8] = ["limit", "delay", "loss", "ecn", "rate", "seed", "leaf", "help"];

const PACKETS: &str = "give a number of packets, such as 1000";
const TIME: &str = "give a time in s, ms, us or ns, such as 20ms";
const PERCENT: &str = "give a percentage from 0% to 100%, such as 1%";
const RATE: &str = "give a rate, such as 10mbit";
const SEED: &str = "give a whole number of 64 bits";

impl Grammar for Options {
    const NAME: &'static str = "netem";

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        let dualq =
            |words: &Words<'_>, message: String| Err(words.refuse(RefusedBy::Dualq, message));
        while let Some(word) = words.next() {
            match word {
                "limit" => options.limit = Some(words.size(word, PACKETS)?),
                "delay" | "latency" => {
                    options.delay = Some(words.long_nanos(word, TIME)?);
                    options.jitter = None;
                    if words.number_follows() {
                        options.jitter = Some(words.long_nanos("jitter", TIME)?);
                        uncorrelated(words)?;
                    }
                }
                "loss" | "drop" => {
                    if options.loss.is_some() {
                        return Err(words.refuse(RefusedBy::Tc, format!("{word} is given twice")));
                    }
                    if let Some(model @ ("state" | "gemodel")) = words.peek() {
                        let message = format!(
                            "dualq loses packets independently of each other and has no {model}; give \
                             loss PERCENT"
                        );
                        return dualq(words, message);
                    }
                    if words.peek() == Some("random") {
                        words.next();
                    }
                    let loss = words.fraction(word, PERCENT)?;
                    options.loss = Some(units(loss));
                    uncorrelated(words)?;
                }
                "ecn" => options.ecn = true,
                "rate" => {
                    let rate = words.whole_rate(word, RATE)?;
                    let bits = words.unless_zero(word, rate.as_bits_per_second());
                    options.rate = bits.map(Rate::from_bits_per_second);
                    if words.number_follows() {
                        words.next();
                        return Err(words.no_framing("packet overhead"));
                    }
                }
                "seed" => options.seed = Some(words.u64(word, SEED)?),
                "leaf" => options.leaf = Some(parse_leaf("netem", words)?),
                "distribution" => {
                    return dualq(
                        words,
                        "dualq's jitter is uniform; leave distribution out".to_owned(),
                    );
                }
                "corrupt" | "duplicate" | "reorder" | "gap" | "slot" => {
                    return dualq(words, format!("dualq's netem has no {word}; leave it out"));
                }
                unknown => return Err(unknown_option("netem", unknown, &OPTIONS, words)),
            }
        }
        if options.ecn && options.loss.is_none() {
            let message = "ecn marks what would be lost: give loss as well, such as loss 1%";
            return Err(words.refuse_at(0, RefusedBy::Tc, message.to_owned()));
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        if let Some(delay) = self.delay {
            write!(f, " delay {}", exact_nanos(delay))?;
            if let Some(jitter) = self.jitter {
                write!(f, " {}", exact_nanos(jitter))?;
            }
        }
        let percent = |loss: u32| {
            // As short as it can be without becoming another number.
            let percent = 100.0 * f64::from(loss) / f64::from(u32::MAX);
            let short = format_g(percent, 6);
            let is_exact = strtod(&short).is_some_and(|(value, _)| units(value / 100.0) == loss);
            if is_exact { format!("{short}%") } else { format!("{percent}%") }
        };
        write_option(f, "loss", self.loss.map(percent))?;
        if self.ecn {
            f.write_str(" ecn")?;
        }
        write_option(f, "rate", self.rate.map(Exact))?;
        write_option(f, "seed", self.seed)?;
        write_option(f, "leaf", self.leaf.as_ref())
    }
}

/// A probability in tc's units.
fn units(fraction: f64) -> u32 {
    (fraction * f64::from(u32::MAX)).round_ties_even() as u32
}

/// Passes over a correlation of nothing.
fn uncorrelated(words: &mut Words<'_>) -> Result<(), ParseError> {
    if words.number_follows() && words.fraction("correlation", PERCENT)? > 0.0 {
        let message = "dualq's dice do not remember; leave the correlation out";
        return Err(words.refuse(RefusedBy::Dualq, message.to_owned()));
    }
    Ok(())
}
