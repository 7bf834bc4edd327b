//! `pie` (tc-pie(8)).

use std::fmt;

use super::Options;
use super::about::{ABOUT, GAIN, PACKETS, TIME};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, exact_micros, unknown_option, write_flag, write_option,
};
use crate::kinds::Grammar;

const MAX_GAIN: u32 = 32;

impl Grammar for Options {
    const NAME: &'static str = "pie";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => options.limit = words.nonzero(word, Words::number, PACKETS)?,
                "target" => options.target_us = words.nonzero(word, Words::micros, TIME)?,
                "tupdate" => options.tupdate_us = words.nonzero(word, Words::micros, TIME)?,
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
                unknown => return Err(unknown_option::<Self>(unknown, words)),
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
