//! `tbf` (tc-tbf(8)), with a word of our own: what follows `leaf` is the discipline inside, which tc attaches with a second
//! command, `tc qdisc add … parent 1:1 …`.

use std::fmt;

use dualq_units::{Bytes, Exact, Rate};

use super::about::{ABOUT, BURST, LATENCY, LIMIT, RATE};
use super::{Limit, Options, Peak};
use crate::about::About;
use crate::bucket::span;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, RefusedBy, exact_time, parse_leaf, unknown_option, write_option};
use crate::kinds::Grammar;

impl Grammar for Options {
    const NAME: &'static str = "tbf";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
        let (mut peak_rate, mut mtu, mut leaf) = (None, None, None);
        let twice = |words: &Words<'_>, word: &str, given: bool| {
            let refusal = words.refuse(RefusedBy::Tc, format!("{word} is given twice"));
            if given { Err(refusal) } else { Ok(()) }
        };
        let both = |words: &Words<'_>, other: bool| {
            let message = "limit and latency say the same; give one of them";
            let refusal = words.refuse(RefusedBy::Tc, message.to_owned());
            if other { Err(refusal) } else { Ok(()) }
        };
        while let Some(word) = words.next() {
            match word {
                "rate" => {
                    twice(words, word, rate.is_some())?;
                    rate = Some(words.whole_rate(word, RATE)?);
                }
                "peakrate" => {
                    twice(words, word, peak_rate.is_some())?;
                    peak_rate = Some(words.whole_rate(word, RATE)?);
                }
                "burst" | "buffer" | "maxburst" => {
                    twice(words, word, burst.is_some())?;
                    burst = Some(words.size_and_cell(word, BURST)?);
                }
                "mtu" | "minburst" => {
                    twice(words, word, mtu.is_some())?;
                    mtu = Some(words.size_and_cell(word, BURST)?);
                }
                "limit" => {
                    twice(words, word, limit.is_some())?;
                    both(words, latency.is_some())?;
                    limit = Some(words.size(word, LIMIT)?).filter(|limit| *limit > 0);
                }
                "latency" => {
                    twice(words, word, latency.is_some())?;
                    both(words, limit.is_some())?;
                    latency = Some(words.time(word, LATENCY)?).filter(|time| !time.is_zero());
                }
                "linklayer" => words.ethernet_only(word)?,
                "overhead" | "mpu" => return Err(words.no_framing(word)),
                "leaf" => leaf = Some(parse_leaf("tbf", words)?),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }

        let missing = |what: &str| words.refuse_at(0, RefusedBy::Tc, format!("tbf needs {what}"));
        let zero = |rate: &Rate| rate.as_bits_per_second() == 0;
        let rate =
            rate.filter(|rate| !zero(rate)).ok_or_else(|| missing("rate, such as 10mbit"))?;
        let burst =
            burst.filter(|burst| *burst > 0).ok_or_else(|| missing("burst, such as 10kb"))?;
        let limit = match (limit, latency) {
            (Some(limit), _) => Limit::Bytes(Bytes(limit.into())),
            (None, Some(latency)) => Limit::Latency(latency),
            (None, None) => return Err(missing("latency, such as 50ms, or limit, such as 100kb")),
        };
        let peak = match (peak_rate.filter(|rate| !zero(rate)), mtu.filter(|mtu| *mtu > 0)) {
            (Some(peak), _) if peak <= rate => {
                let message = format!("peakrate {peak} must be above rate {rate}");
                return Err(words.refuse_at(0, RefusedBy::Kernel, message));
            }
            (Some(rate), Some(mtu)) => Some(Peak { rate, mtu: Bytes(mtu.into()) }),
            (Some(_), None) => return Err(missing("mtu beside peakrate, such as 1514b")),
            (None, _) => None,
        };
        let bucket =
            [(rate, burst)].into_iter().chain(peak.map(|peak| (peak.rate, peak.mtu.0 as u32)));
        for (rate, bytes) in bucket {
            if span(rate, bytes.into()).is_none() {
                let message = format!("a burst of {bytes} bytes is too large for {rate}: {BURST}");
                return Err(words.refuse_at(0, RefusedBy::Tc, message));
            }
        }
        Ok(Options { rate, burst: Bytes(burst.into()), limit, peak, leaf })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { rate, burst, limit, peak, leaf } = self;
        write!(f, " rate {} burst {}", Exact(*rate), Exact(*burst))?;
        match limit {
            Limit::Bytes(limit) => write!(f, " limit {}", Exact(*limit))?,
            Limit::Latency(latency) => write!(f, " latency {}", exact_time(*latency))?,
        }
        if let Some(Peak { rate, mtu }) = peak {
            write!(f, " peakrate {} mtu {}", Exact(*rate), Exact(*mtu))?;
        }
        write_option(f, "leaf", leaf.as_ref())
    }
}
