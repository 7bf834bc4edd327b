//! `codel` (tc-codel(8)).

use std::fmt;

use super::Options;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, exact_micros, unknown_option, write_flag, write_option};
use crate::kinds::Grammar;

const OPTIONS: [&str; 7] = ["limit", "target", "interval", "ecn", "noecn", "ce_threshold", "help"];

const PACKETS: &str = "give a number of packets, such as 1000";
const TIME: &str = "give a time in s, ms or us, such as 5ms";

impl Grammar for Options {
    const NAME: &'static str = "codel";

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => {
                    let limit = words.number(word, PACKETS)?;
                    options.limit = words.unless_zero(word, limit);
                }
                "target" => {
                    let target = words.micros(word, TIME)?;
                    options.target_us = words.unless_zero(word, target);
                }
                "interval" => {
                    let interval = words.micros(word, TIME)?;
                    options.interval_us = words.unless_zero(word, interval);
                }
                "ce_threshold" => options.ce_threshold_us = Some(words.micros(word, TIME)?),
                "ecn" => options.ecn = Some(true),
                "noecn" => options.ecn = Some(false),
                unknown => return Err(unknown_option("codel", unknown, &OPTIONS, words)),
            }
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        write_option(f, "target", self.target_us.map(exact_micros))?;
        write_option(f, "interval", self.interval_us.map(exact_micros))?;
        write_option(f, "ce_threshold", self.ce_threshold_us.map(exact_micros))?;
        write_flag(f, self.ecn, "ecn", "noecn")
    }
}
