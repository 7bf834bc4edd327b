//! The kinds of queue disciplines, a folder each, and their registry.
//!
//! A folder has what a kind is asked and what it then is (`mod.rs`), tc's words for that (`grammar.rs`), what people want to know of
//! it and them (`about.rs`), what tc shows of it (`show.rs`) and what it does (`discipline.rs`). What every kind has to have is said by four traits here; what can be done with
//! any kind is generated from the registry, `for_each_kind`. So a new kind is its folder and a line there; hosts are told of it
//! by one file more, in `dualq-netlink`.

pub mod bfifo;
pub mod cake;
pub mod codel;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod htb;
pub mod netem;
pub mod pfifo;
pub mod pfifo_fast;
pub mod pie;
pub mod prio;
pub mod red;
pub mod sfq;
pub mod tbf;

mod any;
mod bands;

use std::fmt;

use ::dualpi2::Random;
use dualq_units::Instant;
use serde_json::{Map, Value};

pub use self::any::{Config, Foreign, ForeignStats, KINDS, OwnStats, Spec};
pub(crate) use self::any::{about, parse};
use crate::about::About;
use crate::grammar::{ParseError, Words};
use crate::show::{Inside, Place, Stats};
use crate::{Device, Discipline, FlowPacket};

/// Hands all kinds to the macro that it is given: the variant of each, its module, `Stats` if it counts something beside what every
/// discipline counts, and what it is.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_kind {
    ($then:ident) => {
        $then! {
            Dualpi2 dualpi2 [Stats] "DualPI2 (RFC 9332).",
            Fq fq [Stats] "Flows in turn, each packet at its time.",
            Codel codel [Stats] "One queue under CoDel.",
            FqCodel fq_codel [Stats] "Flows in turn, each under CoDel.",
            Pie pie [Stats] "One queue under PIE.",
            Pfifo pfifo [] "One queue, which drops what arrives when it holds so many packets.",
            Bfifo bfifo [] "One queue, which drops what arrives when it holds so many bytes.",
            PfifoFast pfifo_fast [] "Three FIFOs, one before the other.",
            FqPie fq_pie [Stats] "Flows in turn, each under PIE.",
            Red red [Stats] "One queue under RED.",
            Sfq sfq [] "Flows in turn, told apart by a hash that changes.",
            Htb htb [Stats] "One class of `htb` around a leaf.",
            Tbf tbf [Stats] "A token bucket around a leaf.",
            Netem netem [Stats] "A path that delays, loses and slows down.",
            Prio prio [] "FIFOs, one before the other.",
            Cake cake [Stats] "CAKE: a shaper, hosts and their flows in turn, each under COBALT.",
        }
    };
}

/// tc's words for a kind: what its options are made of, and what is written for them.
pub(crate) trait Grammar {
    /// The kind, as tc names it.
    const NAME: &'static str;

    /// What there is to say of it, its words too.
    const ABOUT: &'static About;

    /// Reads the options from all words that are left.
    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError>
    where
        Self: Sized;

    /// Writes the options that were given, in tc's order, each with a space before it.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// What options come to.
pub(crate) trait Kind: Grammar {
    /// All parameters.
    type Config: Shown;

    /// The parameters on `device`, defaults filled in.
    fn configure(&self, device: &Device) -> Self::Config;

    /// An empty discipline.
    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R>;

    /// The discipline inside, if one was given.
    fn leaf(&self) -> Option<&Spec> {
        None
    }

    /// The room for it, if the kind has any.
    fn leaf_mut(&mut self) -> Option<&mut Option<Box<Spec>>> {
        None
    }
}

/// Parameters as tc shows them.
pub(crate) trait Shown {
    /// The options.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// What stands in the line of the discipline, if the options are those of its class.
    fn line(&self) -> Option<String> {
        None
    }

    /// Whether tc ends the options with a space where counters follow.
    fn ends_with_space(&self) -> bool {
        true
    }

    /// The value of `options` in JSON.
    fn json(&self) -> Value;

    /// The lines about its class, with counters if there are any, if it has a class.
    fn class_text(&self, _place: Place, _own: Option<&OwnStats>) -> String {
        String::new()
    }

    /// The object about its class.
    fn class_json(&self, _place: Place, _own: Option<&OwnStats>) -> Option<Value> {
        None
    }

    /// The parameters of the discipline inside, if there is one.
    fn leaf(&self) -> Option<&Config> {
        None
    }

    /// The room for them, if the kind has any.
    fn leaf_mut(&mut self) -> Option<&mut Option<Box<Config>>> {
        None
    }
}

/// What a kind counts, as tc shows it.
pub(crate) trait Counted {
    /// The lines after those that every discipline has.
    fn write(&self, _text: &mut String) {}

    /// The keys beside those that every discipline has.
    fn put(&self, _object: &mut Map<String, Value>) {}

    /// The marks that were set by itself, if it sets any.
    fn marks(&self) -> Option<u64> {
        None
    }

    /// The probability with which it drops or marks, from 0 to 1, if it works with one.
    fn probability(&self) -> Option<f64> {
        None
    }

    /// The queues that it tells of one by one.
    fn queues(&self) -> Vec<Inside> {
        Vec::new()
    }

    /// What the discipline inside counts, if there is one.
    fn leaf(&self) -> Option<&Stats> {
        None
    }
}
