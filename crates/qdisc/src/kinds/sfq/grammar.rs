//! `sfq` (tc-sfq(8)).

use std::fmt;

use super::Options;
use super::about::{ABOUT, DIVISOR, NUMBER, PACKETS, QUANTUM, SECONDS};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, RefusedBy, unknown_option, write_option};
use crate::kinds::Grammar;

/// What only means something beside `redflowlimit`.
const RED: [&str; 8] =
    ["redflowlimit", "min", "max", "burst", "avpkt", "probability", "ecn", "harddrop"];

/// The kernel's bounds.
const MOST_SECONDS: i32 = i32::MAX / 100;
const MOST_QUANTUM: u32 = 1 << 20;
const MOST_DIVISOR: u32 = 65_536;

impl Grammar for Options {
    const NAME: &'static str = "sfq";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let start = words.position();
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => {
                    let limit = words.number(word, PACKETS)?;
                    if limit < 2 {
                        let message = format!("{limit} is no limit: {PACKETS}");
                        return Err(words.refuse(RefusedBy::Tc, message));
                    }
                    options.limit = Some(limit);
                }
                "perturb" => {
                    let seconds = words.integer(word, SECONDS)?;
                    if !(0..=MOST_SECONDS).contains(&seconds) {
                        return Err(words.kernel_refuses(word, SECONDS));
                    }
                    options.perturb_s = Some(seconds.unsigned_abs());
                }
                "quantum" => {
                    let quantum = words.size(word, QUANTUM)?;
                    if quantum > MOST_QUANTUM {
                        return Err(words.kernel_refuses(word, QUANTUM));
                    }
                    options.quantum = words.unless_zero(word, quantum);
                }
                "divisor" => {
                    let divisor = words.number(word, DIVISOR)?;
                    if divisor > 0 && !(divisor.is_power_of_two() && divisor <= MOST_DIVISOR) {
                        return Err(words.kernel_refuses(word, DIVISOR));
                    }
                    options.divisor = words.unless_zero(word, divisor);
                }
                "flows" => options.flows = words.nonzero(word, Words::number, NUMBER)?,
                "depth" => options.depth = words.nonzero(word, Words::number, NUMBER)?,
                "headdrop" => options.headdrop = true,
                word if RED.contains(&word) => {
                    let message = format!(
                        "{word} is for a RED inside of sfq, which dualq does not have; leave it out, or take red or fq_codel"
                    );
                    return Err(words.refuse(RefusedBy::Dualq, message));
                }
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        if let (depth, flows, 1) = options.bounds() {
            let message = format!(
                "the kernel refuses a limit of one packet, which is all that flows {flows} depth {depth} allow; give more of one"
            );
            return Err(words.refuse_at(start, RefusedBy::Kernel, message));
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)?;
        write_option(f, "quantum", self.quantum)?;
        write_option(f, "depth", self.depth)?;
        if self.headdrop {
            f.write_str(" headdrop")?;
        }
        write_option(f, "flows", self.flows)?;
        write_option(f, "divisor", self.divisor)?;
        write_option(f, "perturb", self.perturb_s)
    }
}
