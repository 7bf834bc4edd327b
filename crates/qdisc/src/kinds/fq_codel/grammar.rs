//! `fq_codel` (tc-fq_codel(8)).

use std::fmt;

use dualq_units::{Bytes, Exact};

use super::Options;
use super::about::{ABOUT, FLOWS, MEMORY, PACKETS, QUANTUM, SELECTOR, TIME};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, exact_micros, unknown_option, write_flag, write_option};
use crate::kinds::Grammar;

/// The kernel's bounds.
const MAX_FLOWS: u32 = 65_536;
const MAX_QUANTUM: u32 = 1 << 20;

impl Grammar for Options {
    const NAME: &'static str = "fq_codel";
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
                "quantum" => {
                    let quantum = words.number(word, QUANTUM)?;
                    if quantum > MAX_QUANTUM {
                        return Err(words.kernel_refuses(word, QUANTUM));
                    }
                    options.quantum = words.unless_zero(word, quantum);
                }
                "target" => options.target_us = words.nonzero(word, Words::micros, TIME)?,
                "interval" => options.interval_us = words.nonzero(word, Words::micros, TIME)?,
                "memory_limit" => {
                    options.memory_limit = Some(Bytes(words.size(word, MEMORY)?.into()));
                }
                "drop_batch" => options.drop_batch = words.nonzero(word, Words::number, PACKETS)?,
                "ce_threshold" => options.ce_threshold_us = Some(words.micros(word, TIME)?),
                "ce_threshold_selector" => {
                    options.ce_threshold_selector = Some(words.bits(word, SELECTOR)?);
                }
                "ecn" => options.ecn = Some(true),
                "noecn" => options.ecn = Some(false),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        write_option(f, "flows", self.flows)?;
        write_option(f, "quantum", self.quantum)?;
        write_option(f, "target", self.target_us.map(exact_micros))?;
        write_option(f, "interval", self.interval_us.map(exact_micros))?;
        write_option(f, "memory_limit", self.memory_limit.map(Exact))?;
        write_option(f, "ce_threshold", self.ce_threshold_us.map(exact_micros))?;
        let selector =
            self.ce_threshold_selector.map(|(value, mask)| format!("{value:#x}/{mask:#x}"));
        write_option(f, "ce_threshold_selector", selector)?;
        write_option(f, "drop_batch", self.drop_batch)?;
        write_flag(f, self.ecn, "ecn", "noecn")
    }
}
