//! `red` (tc-red(8)).

use std::fmt;

use dualq_units::{Bytes, Exact, Rate};

use super::about::{ABOUT, PACKETS, PROBABILITY, RATE, SIZE};
use super::tables::{Averaging, NoAveraging};
use super::{Flags, Options};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, RefusedBy, unknown_option, write_option};
use crate::kinds::Grammar;

/// tc's defaults.
const BANDWIDTH: u64 = 10_000_000 / 8;
const MAX_PROBABILITY: f64 = 0.02;
/// tc warns of weights from here on.
const SMALL_WEIGHT: u8 = 10;

/// The options as they were read, zeros for what is open.
#[derive(Default)]
struct Given {
    limit: u32,
    min: u32,
    max: u32,
    avpkt: u32,
    burst: u32,
    bandwidth: u64,
    probability: Option<f64>,
    flags: Flags,
}

impl Given {
    fn read(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut given = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => given.limit = words.size(word, SIZE)?,
                "min" => given.min = words.size(word, SIZE)?,
                "max" => given.max = words.size(word, SIZE)?,
                "avpkt" => given.avpkt = words.size(word, SIZE)?,
                "burst" => given.burst = words.number(word, PACKETS)?,
                "bandwidth" => {
                    let bytes = words.rate(word, RATE)?.as_bits_per_second() / 8;
                    if bytes > u32::MAX.into() {
                        return Err(words.refuse(RefusedBy::Tc, format!("too much: {RATE}")));
                    }
                    given.bandwidth = bytes;
                }
                "probability" => given.probability = Some(words.double(word, PROBABILITY)?),
                "ecn" => given.flags.ecn = true,
                "harddrop" => given.flags.harddrop = true,
                "nodrop" => given.flags.nodrop = true,
                "adaptive" | "adaptative" => given.flags.adaptive = true,
                "qevent" => {
                    let message = "dualq has no filters for qevents; leave it out";
                    return Err(words.refuse(RefusedBy::Dualq, message.to_owned()));
                }
                unknown => return Err(unknown_option::<Options>(unknown, words)),
            }
        }
        Ok(given)
    }

    /// What tc takes for what is open.
    fn filled(&self) -> Options {
        let max = match (self.max, self.min) {
            (0, 0) => self.limit / 4,
            (0, min) => min.wrapping_mul(3),
            (max, _) => max,
        };
        let min = if self.min == 0 { max / 3 } else { self.min };
        let burst = match self.burst {
            0 => min.wrapping_mul(2).wrapping_add(max) / self.avpkt.wrapping_mul(3).max(1),
            burst => burst,
        };
        Options {
            limit: self.limit,
            min,
            max,
            avpkt: self.avpkt,
            burst,
            bandwidth: if self.bandwidth == 0 { BANDWIDTH } else { self.bandwidth },
            probability: self.probability.unwrap_or(MAX_PROBABILITY),
            flags: self.flags,
        }
    }
}

impl Grammar for Options {
    const NAME: &'static str = "red";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let start = words.position();
        let given = Given::read(words)?;
        let refuse = |words: &Words<'_>, message: &str| {
            Err(words.refuse_at(start, RefusedBy::Tc, message.to_owned()))
        };
        if given.limit == 0 || given.avpkt == 0 {
            let message = "red needs limit and avpkt, such as red limit 400kb avpkt 1500";
            return refuse(words, message);
        }
        let options = given.filled();
        if given.bandwidth == 0 {
            words.notices.push("red takes a bandwidth of 10Mbit, as none is given".to_owned());
        }
        let averaging = match Averaging::new(&options) {
            Ok(averaging) => averaging,
            Err(NoAveraging::ShortBurst(enough)) => {
                let message = format!(
                    "a burst of {} packets does not reach min; give burst {enough} or more",
                    options.burst
                );
                return refuse(words, &message);
            }
            Err(NoAveraging::Weight) => {
                return refuse(words, "no weight averages such a burst; give a smaller burst");
            }
            Err(NoAveraging::Thresholds) => {
                let message =
                    "the kernel cannot hold the average of such a burst; give a smaller one";
                return Err(words.refuse_at(start, RefusedBy::Kernel, message.to_owned()));
            }
            Err(NoAveraging::Probability) => {
                let message = "the probability does not fit min and max: give a larger one, and a max not below min";
                return refuse(words, message);
            }
        };
        if averaging.wlog >= SMALL_WEIGHT {
            words.notices.push(format!("a burst of {} seems to be too large", options.burst));
        }
        if options.flags.nodrop && !options.flags.ecn {
            let message = "nodrop means nothing without ecn; give both".to_owned();
            return Err(words.refuse_at(start, RefusedBy::Kernel, message));
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: u32| Some(Exact(Bytes(bytes.into())));
        write_option(f, "limit", size(self.limit))?;
        write_option(f, "min", size(self.min))?;
        write_option(f, "max", size(self.max))?;
        write_option(f, "avpkt", size(self.avpkt))?;
        write_option(f, "burst", Some(self.burst))?;
        let bandwidth = Rate::from_bits_per_second(self.bandwidth * 8);
        write_option(f, "bandwidth", Some(Exact(bandwidth)))?;
        let open = Some(self.probability).filter(|given| *given != MAX_PROBABILITY);
        write_option(f, "probability", open)?;
        for word in self.flags.words() {
            write!(f, " {word}")?;
        }
        Ok(())
    }
}

impl Flags {
    /// tc's words for those that are set, in its order.
    pub(super) fn words(self) -> impl Iterator<Item = &'static str> {
        let Self { ecn, harddrop, adaptive, nodrop } = self;
        [("ecn", ecn), ("harddrop", harddrop), ("adaptive", adaptive), ("nodrop", nodrop)]
            .into_iter()
            .filter_map(|(word, is_set)| is_set.then_some(word))
    }
}
