//! `cake` (tc-cake(8)).

use std::fmt;

use dualq_units::{Bytes, Exact, Rate};

use super::about::{ABOUT, MARK, MEMORY, MPU, OVERHEAD, RATE, RTT};
use super::{AckFilter, Atm, Diffserv, FlowMode, Options};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{
    ParseError, RefusedBy, exact_micros, unknown_option, write_flag, write_option,
};
use crate::kinds::Grammar;

/// Names for round-trip times, in microseconds.
const ROUND_TRIPS: [(&str, u32); 8] = [
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 1_000_000_000),
];

/// Names for links: the bytes they add to a packet, what they make of its length, and its least length.
const LINKS: [(&str, i32, Option<Atm>, Option<u32>); 13] = [
    ("pppoa-vcmux", 10, Some(Atm::Atm), None),
    ("pppoa-llc", 14, Some(Atm::Atm), None),
    ("pppoe-vcmux", 32, Some(Atm::Atm), None),
    ("pppoe-llcsnap", 40, Some(Atm::Atm), None),
    ("bridged-vcmux", 24, Some(Atm::Atm), None),
    ("bridged-llcsnap", 32, Some(Atm::Atm), None),
    ("ipoa-vcmux", 8, Some(Atm::Atm), None),
    ("ipoa-llcsnap", 16, Some(Atm::Atm), None),
    ("pppoe-ptm", 30, Some(Atm::Ptm), None),
    ("bridged-ptm", 22, Some(Atm::Ptm), None),
    ("docsis", 18, Some(Atm::Noatm), Some(64)),
    ("ethernet", 38, None, Some(84)),
    ("ether-vlan", 4, None, None),
];

const MOST_OVERHEAD: i32 = 256;

impl Grammar for Options {
    const NAME: &'static str = "cake";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut options = Options::default();
        let mut round_trip = None;
        while let Some(word) = words.next() {
            match word {
                "bandwidth" => {
                    options.bandwidth = Some(words.whole_rate(word, RATE)?);
                    options.autorate = Some(false);
                }
                "unlimited" => {
                    options.bandwidth = Some(Rate::from_bits_per_second(0));
                    options.autorate = Some(false);
                }
                "autorate-ingress" => options.autorate = Some(true),
                "rtt" => {
                    let rtt = words.micros(word, RTT)?;
                    if rtt == 0 {
                        let message = format!("tc makes a target of 1us of it: {RTT}");
                        return Err(words.refuse(RefusedBy::Dualq, message));
                    }
                    options.rtt_us = Some(rtt);
                }
                "nat" | "nonat" => options.nat = Some(word == "nat"),
                "wash" | "nowash" => options.wash = Some(word == "wash"),
                "ingress" | "egress" => options.ingress = Some(word == "ingress"),
                "split-gso" | "no-split-gso" => options.split_gso = Some(word == "split-gso"),
                "memlimit" => {
                    let limit = words.nonzero(word, Words::size, MEMORY)?;
                    options.memory_limit = limit.map(|limit| Bytes(limit.into()));
                }
                "fwmark" => options.fwmark = Some(words.number(word, MARK)?),
                "overhead" => {
                    options.overhead = Some(words.i32_within(word, -64..=256, OVERHEAD)?);
                }
                "mpu" => options.mpu = Some(words.i32_within(word, 0..=256, MPU)?.unsigned_abs()),
                "raw" => {
                    (options.raw, options.atm, options.overhead) =
                        (true, Some(Atm::Noatm), Some(0));
                }
                "conservative" => (options.atm, options.overhead) = (Some(Atm::Atm), Some(48)),
                // tc knows it, and does nothing.
                "via-ethernet" => {}
                other => {
                    if ROUND_TRIPS.iter().any(|(name, _)| *name == other)
                        && let Some(first) = round_trip.replace(other)
                    {
                        let message = format!("{first} says the round trip already");
                        return Err(words.refuse(RefusedBy::Tc, message));
                    }
                    named(other, &mut options, words)?;
                }
            }
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |f: &mut fmt::Formatter<'_>, word: Option<&str>| {
            word.map_or(Ok(()), |word| write!(f, " {word}"))
        };
        match self.bandwidth {
            Some(rate) if rate.as_bits_per_second() == 0 => f.write_str(" unlimited")?,
            rate => write_option(f, "bandwidth", rate.map(Exact))?,
        }
        word(f, self.autorate.filter(|auto| *auto).map(|_| "autorate-ingress"))?;
        word(f, self.diffserv.map(Diffserv::word))?;
        word(f, self.flow_mode.map(FlowMode::word))?;
        write_flag(f, self.nat, "nat", "nonat")?;
        write_flag(f, self.wash, "wash", "nowash")?;
        write_flag(f, self.ingress, "ingress", "egress")?;
        word(f, self.ack_filter.map(AckFilter::word))?;
        write_flag(f, self.split_gso, "split-gso", "no-split-gso")?;
        write_option(f, "rtt", self.rtt_us.map(exact_micros))?;
        // What `raw` says besides need not be said again.
        word(f, self.raw.then_some("raw"))?;
        let atm = self.atm.filter(|atm| !(self.raw && *atm == Atm::Noatm));
        word(f, atm.map(Atm::word))?;
        let overhead = self.overhead.filter(|overhead| !(self.raw && *overhead == 0));
        write_option(f, "overhead", overhead)?;
        write_option(f, "mpu", self.mpu)?;
        write_option(f, "memlimit", self.memory_limit.map(Exact))?;
        write_option(f, "fwmark", self.fwmark)
    }
}

/// A word that stands for itself.
fn named(word: &str, options: &mut Options, words: &Words<'_>) -> Result<(), ParseError> {
    if let Some((_, rtt)) = ROUND_TRIPS.iter().find(|(name, _)| *name == word) {
        options.rtt_us = Some(*rtt);
    } else if let Some(mode) = Diffserv::ALL.iter().find(|mode| mode.word() == word) {
        options.diffserv = Some(*mode);
    } else if let Some(mode) = FlowMode::ALL.iter().find(|mode| mode.word() == word) {
        options.flow_mode = Some(*mode);
    } else if let Some(filter) = AckFilter::ALL.iter().find(|filter| filter.word() == word) {
        options.ack_filter = Some(*filter);
    } else if let Some(atm) = Atm::ALL.iter().find(|atm| atm.word() == word) {
        options.atm = Some(*atm);
    } else if let Some((_, bytes, atm, mpu)) = LINKS.iter().find(|(name, ..)| *name == word) {
        let overhead = options.overhead.unwrap_or(0) + bytes;
        if overhead > MOST_OVERHEAD {
            let message = format!("the overheads add up to {overhead} bytes: {OVERHEAD}");
            return Err(words.refuse(RefusedBy::Dualq, message));
        }
        options.overhead = Some(overhead);
        options.atm = atm.or(options.atm);
        options.mpu = mpu.or(options.mpu);
    } else {
        return Err(unknown_option::<Options>(word, words));
    }
    Ok(())
}
