//! `codel` (tc-codel(8)).

use std::fmt;

use super::Options;
use super::about::{ABOUT, PACKETS, TIME};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, exact_micros, unknown_option, write_flag, write_option};
use crate::kinds::Grammar;

impl Grammar for Options {
    const NAME: &'static str = "codel";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => options.limit = words.nonzero(word, Words::number, PACKETS)?,
                "target" => options.target_us = words.nonzero(word, Words::micros, TIME)?,
                "interval" => options.interval_us = words.nonzero(word, Words::micros, TIME)?,
                "ce_threshold" => options.ce_threshold_us = Some(words.micros(word, TIME)?),
                "ecn" => options.ecn = Some(true),
                "noecn" => options.ecn = Some(false),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
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
