//! `pie` (tc-pie(8)).

use std::fmt;

use super::Options;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, exact_micros, unknown_option, write_flag, write_option,
};
use crate::kinds::Grammar;

const OPTIONS: [&str; 11] = [
    "limit",
    "target",
    "tupdate",
    "alpha",
    "beta",
    "ecn",
    "noecn",
    "bytemode",
    "nobytemode",
    "no_dq_rate_estimator",
    "help",
];

const PACKETS: &str = "give a number of packets, such as 1000";
const TIME: &str = "give a time in s, ms or us, such as 15ms";
const GAIN: &str = "give a whole number from 1 to 32, in units of 1/16 Hz, such as 2";
const MAX_GAIN: u32 = 32;

impl Grammar for Options {
    const NAME: &'static str = "pie";

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
                "tupdate" => {
                    let tupdate = words.micros(word, TIME)?;
                    options.tupdate_us = words.unless_zero(word, tupdate);
                }
                "alpha" | "beta" => {
                    let gain = words.at_most(word, MAX_GAIN, GAIN)?;
                    let gain = words.unless_zero(word, gain);
                    *(if word == "alpha" { &mut options.alpha } else { &mut options.beta }) = gain;
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
                unknown => return Err(unknown_option("pie", unknown, &OPTIONS, words)),
            }
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        write_option(f, "target", self.target_us.map(exact_micros))?;
        write_option(f, "tupdate", self.tupdate_us.map(exact_micros))?;
        write_option(f, "alpha", self.alpha)?;
        write_option(f, "beta", self.beta)?;
        write_flag(f, self.ecn, "ecn", "noecn")?;
        write_flag(f, self.bytemode, "bytemode", "nobytemode")
    }
}
