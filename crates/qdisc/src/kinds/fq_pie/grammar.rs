//! `fq_pie` (tc-fq_pie(8)).

use std::fmt;

use dualq_units::{Bytes, Exact};

use super::Options;
use super::about::{ABOUT, FLOWS, GAIN, MEMORY, PACKETS, PERCENT, QUANTUM, TIME};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, exact_micros, unknown_option, write_flag, write_option,
};
use crate::kinds::Grammar;

/// tc's and the kernel's bounds.
const MAX_FLOWS: u32 = 65_536;
const MAX_GAIN: u32 = 32;
const MAX_QUANTUM: u32 = 1 << 20;
const MAX_PERCENT: u32 = 99;

impl Grammar for Options {
    const NAME: &'static str = "fq_pie";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => options.limit = words.nonzero(word, Words::number, PACKETS)?,
                "flows" => {
                    let flows = words.number(word, FLOWS)?;
                    if flows > MAX_FLOWS {
                        return Err(words.kernel_refuses(word, FLOWS));
                    }
                    options.flows = words.unless_zero(word, flows);
                }
                "target" => options.target_us = words.nonzero(word, Words::micros, TIME)?,
                "tupdate" => options.tupdate_us = words.nonzero(word, Words::micros, TIME)?,
                "alpha" | "beta" => {
                    let gain = words.at_most(word, MAX_GAIN, GAIN)?;
                    let gain = words.unless_zero(word, gain);
                    *(if word == "alpha" { &mut options.alpha } else { &mut options.beta }) = gain;
                }
                "quantum" => {
                    let quantum = words.size(word, QUANTUM)?;
                    if quantum > MAX_QUANTUM {
                        return Err(words.kernel_refuses(word, QUANTUM));
                    }
                    options.quantum = words.unless_zero(word, quantum);
                }
                "memory_limit" => {
                    let limit = words.nonzero(word, Words::size, MEMORY)?;
                    options.memory_limit = limit.map(|limit| Bytes(limit.into()));
                }
                "ecn_prob" => {
                    let percent = words.at_most(word, MAX_PERCENT, PERCENT)?;
                    options.ecn_prob = words.unless_zero(word, percent);
                }
                "ecn" => options.ecn = Some(true),
                "noecn" => options.ecn = Some(false),
                "bytemode" => options.bytemode = Some(true),
                "nobytemode" => options.bytemode = Some(false),
                "no_dq_rate_estimator" => {}
                "dq_rate_estimator" => {
                    let message = "dualq measures the delay of each packet, as Linux does by default, \
                                   and has no estimator of rates; leave it out";
                    return Err(words.refuse(RefusedBy::Dualq, message.to_owned()));
                }
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        write_option(f, "flows", self.flows)?;
        write_option(f, "target", self.target_us.map(exact_micros))?;
        write_option(f, "tupdate", self.tupdate_us.map(exact_micros))?;
        write_option(f, "alpha", self.alpha)?;
        write_option(f, "beta", self.beta)?;
        write_option(f, "quantum", self.quantum)?;
        write_option(f, "memory_limit", self.memory_limit.map(Exact))?;
        write_option(f, "ecn_prob", self.ecn_prob)?;
        write_flag(f, self.ecn, "ecn", "noecn")?;
        write_flag(f, self.bytemode, "bytemode", "nobytemode")
    }
}
