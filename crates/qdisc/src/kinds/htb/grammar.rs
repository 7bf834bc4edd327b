//! `htb` with one class (tc-htb(8)), on one line: `htb rate 50mbit [ceil …] [burst …] [cburst …] [leaf QDISC …]`. For tc
//! these are three commands, of which the first and the last have nothing to choose here:
//!
//! ```text
//! tc qdisc add dev … root handle 1: htb default 1
//! tc class add dev … parent 1: classid 1:1 htb rate 50mbit …
//! tc qdisc add dev … parent 1:1 QDISC …
//! ```

use std::fmt;

use dualq_units::{Bytes, Exact, Rate};

use super::about::ABOUT;
use super::{Options, default_burst};
use crate::about::About;
use crate::bucket::span;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, RefusedBy, parse_leaf, unknown_option, write_option};
use crate::kinds::Grammar;
use crate::kinds::tbf::about::{BURST, RATE};

impl Grammar for Options {
    const NAME: &'static str = "htb";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let (mut rate, mut ceil, mut burst, mut cburst, mut leaf) = (None, None, None, None, None);
        while let Some(word) = words.next() {
            match word {
                "rate" | "ceil" => {
                    let into = if word == "rate" { &mut rate } else { &mut ceil };
                    if into.is_some() {
                        return Err(words.refuse(RefusedBy::Tc, format!("{word} is given twice")));
                    }
                    *into = Some(words.whole_rate(word, RATE)?);
                }
                "burst" | "buffer" | "maxburst" => burst = Some(words.size_and_cell(word, BURST)?),
                "cburst" | "cbuffer" => cburst = Some(words.size_and_cell(word, BURST)?),
                "linklayer" => words.ethernet_only(word)?,
                "overhead" | "mpu" => return Err(words.no_framing(word)),
                "prio" | "quantum" | "mtu" | "default" | "r2q" | "direct_qlen" | "offload" => {
                    let message = format!("{word} has no effect with one class; leave it out");
                    return Err(words.refuse(RefusedBy::Dualq, message));
                }
                "leaf" => leaf = Some(parse_leaf("htb", words)?),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        let given = |rate: &Rate| rate.as_bits_per_second() > 0;
        let rate = rate.filter(given).ok_or_else(|| {
            let why = match rate {
                Some(_) => {
                    "less than a byte a second counts as no rate, and htb needs one, such as 50mbit"
                }
                None => "htb needs rate, such as 50mbit",
            };
            words.refuse_at(0, RefusedBy::Tc, why.to_owned())
        })?;
        // What is 0 counts as not given.
        let ceil = ceil.filter(given);
        let bytes =
            |size: Option<u32>| size.filter(|size| *size > 0).map(|size| Bytes(size.into()));
        let (burst, cburst) = (bytes(burst), bytes(cburst));
        for (rate, burst) in [(rate, burst), (ceil.unwrap_or(rate), cburst)] {
            let burst = burst.unwrap_or_else(|| default_burst(rate));
            if span(rate, burst.0).is_none() {
                let message =
                    format!("a burst of {} bytes is too large for {rate}: {BURST}", burst.0);
                return Err(words.refuse_at(0, RefusedBy::Tc, message));
            }
        }
        Ok(Options { rate, ceil, burst, cburst, leaf })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { rate, ceil, burst, cburst, leaf } = self;
        write!(f, " rate {}", Exact(*rate))?;
        write_option(f, "ceil", ceil.map(Exact))?;
        write_option(f, "burst", burst.map(Exact))?;
        write_option(f, "cburst", cburst.map(Exact))?;
        write_option(f, "leaf", leaf.as_ref())
    }
}
