//! `netem`: a path that delays, loses, copies, spoils and slows packets down (tc-netem(8)).
//!
//! Delays without a `distribution` are uniform, from delay - jitter to delay + jitter, and a packet that draws a short one
//! overtakes others. With a rate, each packet is sent when the one before it has been, and no sooner than its delay allows.
//! Packets whose time has come wait for their slot, if there are slots, and go through the leaf, if there is one.
//!
//! As Linux does it: a correlation mixes the last random number into the next; the copy of a packet passes everything anew, but is
//! copied no more; a spoiled packet has one wrong bit, which its receiver finds. What cannot be told anew: what the kernel was told of
//! distributions, which it does not tell.

mod about;
mod dice;
mod discipline;
mod distribution;
mod grammar;
mod show;
mod slots;

use std::time::Duration;

use dualpi2::Random;
use dualq_units::{Instant, Rate};

use self::discipline::Netem;
pub use self::distribution::Distribution;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket, Spec};

/// A probability of 1, in the units of all here.
pub const CERTAIN: u32 = u32::MAX;

/// A probability, and how much of the last random number is in the next, both in units of 1/(2³² - 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// The probability.
    pub share: u32,
    /// The correlation.
    pub correlation: u32,
}

impl Chance {
    /// One whose random numbers do not depend on each other.
    #[must_use]
    pub const fn independent(share: u32) -> Self {
        Self { share, correlation: 0 }
    }
}

/// How packets are lost; probabilities in units of 1/(2³² - 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each with a probability.
    Random(Chance),
    /// A Markov chain of four states, the GI model (Salsano, Ludovici, Ordine, "Definition of a general and intuitive loss model for
    /// packet networks", 2009): 1 passes packets, 3 loses bursts in which 2 passes some, and 4 loses one alone.
    State {
        /// From passing to a burst of losses.
        p13: u32,
        /// From that back.
        p31: u32,
        /// From losing within a burst to passing within it.
        p32: u32,
        /// From that back.
        p23: u32,
        /// From passing to an isolated loss.
        p14: u32,
    },
    /// The Gilbert-Elliott model: a good and a bad state.
    Gemodel {
        /// From good to bad.
        p: u32,
        /// From bad to good.
        r: u32,
        /// Of a packet to pass in the bad state.
        h: u32,
        /// Of a packet to be lost in the good state, 1 - k.
        one_minus_k: u32,
    },
}

impl Loss {
    /// Whether there is none, as far as tc sees it: models are sent whatever they say.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Self::Random(Chance { share: 0, .. }))
    }
}

/// What the link below a rate makes of a packet's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each packet.
    pub packet_overhead: i32,
    /// The payload of the cells that packets are cut into; 0 for none.
    pub cell_size: u32,
    /// Bytes added to each cell.
    pub cell_overhead: i32,
}

/// Slots, in which packets leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// How far apart they are.
    pub distance: Distance,
    /// Packets of a slot at most; 0 for any number.
    pub packets: u32,
    /// After how many bytes it is over; 0 for never.
    pub bytes: u32,
}

/// How far apart slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Between two times, each equally likely.
    Uniform(Duration, Duration),
    /// By a distribution with a mean and a deviation.
    Distributed(Duration, Duration),
}

impl Slots {
    /// Whether they are never apart, which is as if there were none.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        match self.distance {
            Distance::Uniform(_, most) => most.is_zero(),
            Distance::Distributed(_, deviation) => deviation.is_zero(),
        }
    }
}

/// What a command line gives; `None` is for what it leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub delay: Option<Duration>,
    pub jitter: Option<Duration>,
    pub delay_correlation: Option<u32>,
    /// Of the jitter.
    pub distribution: Option<Distribution>,
    pub loss: Option<Loss>,
    pub ecn: bool,
    pub duplicate: Option<Chance>,
    pub corrupt: Option<Chance>,
    pub reorder: Option<Chance>,
    pub gap: Option<u32>,
    pub rate: Option<Rate>,
    pub framing: Option<Framing>,
    pub slots: Option<Slots>,
    /// Of the slots' distances.
    pub slot_distribution: Option<Distribution>,
    pub seed: Option<u64>,
    pub leaf: Option<Box<Spec>>,
}

/// All parameters of `netem`, but for distributions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may be under way.
    pub limit: u32,
    /// The mean delay.
    pub delay: Duration,
    /// By how much it varies to either side; with a distribution, its deviation.
    pub jitter: Duration,
    /// How much of one delay's random number is in the next.
    pub delay_correlation: u32,
    /// How packets are lost.
    pub loss: Option<Loss>,
    /// Whether ECN-capable packets are marked instead of lost.
    pub ecn: bool,
    /// How many packets are sent twice.
    pub duplicate: Chance,
    /// How many have a wrong bit.
    pub corrupt: Chance,
    /// How many pass without any delay.
    pub reorder: Chance,
    /// Of so many packets, the last may do so; 0 if there is no reordering.
    pub gap: u32,
    /// The rate of the path.
    pub rate: Option<Rate>,
    /// What it makes of a packet's length.
    pub framing: Framing,
    /// The slots that packets leave in.
    pub slots: Option<Slots>,
    /// What the dice begin with, if that was given.
    pub seed: Option<u64>,
    /// The discipline that packets go through after their delay.
    pub leaf: Option<Box<crate::Config>>,
}

/// The kernel holds no more jitter (`netem_change`).
pub(crate) const MOST_JITTER: Duration = Duration::from_nanos(i32::MAX as u64);

impl Options {
    /// The correlation of copies as tc sends it: with another correlation of the same structure, or not at all.
    #[must_use]
    pub fn duplicate_sent(&self) -> Chance {
        let duplicate = self.duplicate.unwrap_or_default();
        let random = matches!(self.loss, Some(Loss::Random(Chance { correlation: 1.., .. })));
        if random || self.delay_correlation.is_some() {
            duplicate
        } else {
            Chance::independent(duplicate.share)
        }
    }

    /// The gap: 1 where packets may be reordered and none is given, as tc does.
    #[must_use]
    pub fn gap_sent(&self) -> u32 {
        let reorders = self.reorder.is_some_and(|reorder| reorder.share > 0);
        let gap = self.gap.unwrap_or(0);
        if reorders { gap.max(1) } else { gap }
    }
}

impl Config {
    /// What `options` come to on `device`.
    #[must_use]
    pub fn new(options: &Options, device: &Device) -> Self {
        let reorder = options.reorder.filter(|reorder| reorder.share > 0).unwrap_or_default();
        Self {
            limit: options.limit.unwrap_or(1000),
            delay: options.delay.unwrap_or_default(),
            jitter: options.jitter.unwrap_or_default().min(MOST_JITTER),
            delay_correlation: options.delay_correlation.unwrap_or(0),
            loss: options.loss.filter(|loss| !loss.is_nothing()),
            ecn: options.ecn,
            duplicate: options.duplicate_sent(),
            corrupt: options.corrupt.filter(|corrupt| corrupt.share > 0).unwrap_or_default(),
            reorder,
            gap: options.gap_sent(),
            rate: options.rate,
            framing: options.framing.unwrap_or_default(),
            slots: options.slots.filter(|slots| !slots.is_nothing()),
            seed: options.seed,
            leaf: options.leaf.as_ref().map(|leaf| Box::new(leaf.configure(device))),
        }
    }
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, device: &Device) -> Config {
        Config::new(self, device)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(Netem::new(self, device, random, now))
    }

    fn leaf(&self) -> Option<&Spec> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<Spec>>> {
        Some(&mut self.leaf)
    }
}

/// What `netem` counts, under the names of `tc -s`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that were held back.
    pub delayed: u64,
    /// Packets that were lost.
    pub dropped: u64,
    /// Packets that have a wrong bit.
    pub corrupted: u64,
    /// Packets that were sent twice.
    pub duplicated: u64,
    /// Packets that overtook others.
    pub reordered: u64,
    /// Packets that were marked instead of lost.
    pub ecn_marked: u64,
    /// The leaf's counters.
    pub leaf: Option<Box<crate::show::Stats>>,
}
