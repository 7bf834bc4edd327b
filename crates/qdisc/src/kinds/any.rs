//! What is asked of a discipline, what it then is and what it counts, whatever its kind: generated from the registry.

use std::fmt;

use ::dualpi2::Random;
use dualq_units::Instant;
use serde_json::{Map, Value, json};

use super::{
    Counted, Grammar, Kind, Shown, bfifo, cake, codel, dualpi2, fq, fq_codel, fq_pie, htb, netem,
    pfifo, pfifo_fast, pie, prio, red, sfq, tbf,
};
use crate::about::About;
use crate::grammar::{ParseError, Words};
use crate::show::{Inside, Stats};
use crate::{Device, Discipline, FlowPacket};

/// The parameters of a discipline that is none of dualq's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its name.
    pub kind: &'static str,
    /// Its options, as it shows them.
    pub options: String,
}

impl Shown for Foreign {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.options)
    }

    fn json(&self) -> Value {
        json!({ "text": self.options })
    }
}

/// What a discipline that is none of dualq's counts beside [`Counters`](crate::show::Counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignStats {
    /// Packets that it marked.
    pub marks: u64,
}

impl Counted for ForeignStats {
    fn write(&self, text: &mut String) {
        text.push_str(&format!("\n  marks {}", self.marks));
    }

    fn put(&self, object: &mut Map<String, Value>) {
        object.insert("marks".to_owned(), self.marks.into());
    }

    fn marks(&self) -> Option<u64> {
        Some(self.marks)
    }
}

macro_rules! any {
    ($($Kind:ident $kind:ident [$($Stats:ident)?] $what:literal,)*) => {
        /// The disciplines that dualq can be asked for.
        pub const KINDS: &[&str] = &[$($kind::Options::NAME),*];

        /// What a command line asks for: a kind, and the options that it gave. What it left open is `None` and gets its
        /// default from [`Spec::configure`]. Made by [`grammar::parse`](crate::grammar::parse), which lets no value pass that
        /// is out of its bounds; printed as the line that asks for it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Spec {
            $(#[doc = $what] $Kind($kind::Options),)*
        }

        /// All parameters of a discipline, defaults filled in.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Config {
            $(#[doc = $what] $Kind($kind::Config),)*
            /// A discipline that is none of dualq's.
            Foreign(Foreign),
        }

        /// What a kind of discipline counts beside [`Counters`](crate::show::Counters).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum OwnStats {
            /// Nothing, as a FIFO.
            Nothing,
            /// A discipline that is none of dualq's.
            Foreign(ForeignStats),
            $($(#[doc = $what] $Kind($kind::$Stats),)?)*
        }

        /// Reads the options of `kind`; `None` if there is no such kind.
        pub(crate) fn parse(kind: &str, words: &mut Words<'_>) -> Option<Result<Spec, ParseError>> {
            match kind {
                $($kind::Options::NAME => Some($kind::Options::parse(words).map(Spec::$Kind)),)*
                _ => None,
            }
        }

        /// The name of `kind` and what there is to say of it; `None` if there is no such kind.
        pub(crate) fn about(kind: &str) -> Option<(&'static str, &'static About)> {
            match kind {
                $($kind::Options::NAME => Some(($kind::Options::NAME, $kind::Options::ABOUT)),)*
                _ => None,
            }
        }

        impl Spec {
            /// The kind, as tc names it.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$Kind(_) => $kind::Options::NAME,)*
                }
            }

            /// What is inside a shaper or a path, if it was given.
            #[must_use]
            pub fn leaf(&self) -> Option<&Self> {
                match self {
                    $(Self::$Kind(options) => options.leaf(),)*
                }
            }

            /// The same without what is inside.
            #[must_use]
            pub fn without_leaf(mut self) -> Self {
                let leaf = match &mut self {
                    $(Self::$Kind(options) => options.leaf_mut(),)*
                };
                if let Some(leaf) = leaf {
                    *leaf = None;
                }
                self
            }

            /// An empty discipline of this kind on `device` at time `now`. `random` rolls its dice, if it has any.
            ///
            /// # Panics
            /// If it did not come from the grammar and has a value that is out of bounds.
            pub fn build<P: FlowPacket, R: Random + Send + 'static>(
                &self,
                device: &Device,
                random: R,
                now: Instant,
            ) -> Discipline<P, R> {
                match self {
                    $(Self::$Kind(options) => options.build(device, random, now),)*
                }
            }

            /// What [`build`](Self::build) makes, as it reads back: with the kernel's rounding.
            ///
            /// # Panics
            /// If the spec did not come from the grammar and has a value that is out of bounds.
            #[must_use]
            pub fn configure(&self, device: &Device) -> Config {
                match self {
                    $(Self::$Kind(options) => Config::$Kind(options.configure(device)),)*
                }
            }

            fn grammar(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$Kind(options) => options.write(f),)*
                }
            }
        }

        impl Config {
            /// The kind, as tc names it.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$Kind(_) => $kind::Options::NAME,)*
                    Self::Foreign(foreign) => foreign.kind,
                }
            }

            pub(crate) fn shown(&self) -> &dyn Shown {
                match self {
                    $(Self::$Kind(config) => config,)*
                    Self::Foreign(config) => config,
                }
            }

            fn shown_mut(&mut self) -> &mut dyn Shown {
                match self {
                    $(Self::$Kind(config) => config,)*
                    Self::Foreign(config) => config,
                }
            }
        }

        impl OwnStats {
            pub(crate) fn counted(&self) -> Option<&dyn Counted> {
                match self {
                    Self::Nothing => None,
                    Self::Foreign(own) => Some(own),
                    $($(Self::$Kind(own) => {
                        let own: &$kind::$Stats = own;
                        Some(own)
                    })?)*
                }
            }
        }
    };
}

crate::for_each_kind!(any);

impl Spec {
    /// The discipline and those inside it, from the outside in.
    pub fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |spec| spec.leaf())
    }
}

impl fmt::Display for Spec {
    /// The line that asks for this: its kind and the options that were given, in tc's order.
    /// [`parse`](crate::grammar::parse) reads it back, but rounds gains above 65536 Hz to single precision, as tc does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        self.grammar(f)
    }
}

impl Config {
    /// The discipline inside, if one was given.
    #[must_use]
    pub fn leaf(&self) -> Option<&Self> {
        self.shown().leaf()
    }

    /// The same with another discipline inside, if there is room for one.
    #[must_use]
    pub fn with_leaf(mut self, inside: Option<Self>) -> Self {
        if let Some(leaf) = self.shown_mut().leaf_mut() {
            *leaf = inside.map(Box::new);
        }
        self
    }
}

impl fmt::Display for Config {
    /// The options, as tc shows them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().write(f)
    }
}

impl OwnStats {
    /// Those of the discipline inside.
    #[must_use]
    pub fn leaf(&self) -> Option<&Stats> {
        self.counted()?.leaf()
    }

    /// The marks that it, or what is inside it, has set: `dualpi2` counts two if a packet's queue is marked by its probability and
    /// by its step.
    #[must_use]
    pub fn marks(&self) -> u64 {
        let own = self.counted().and_then(Counted::marks);
        own.unwrap_or_else(|| self.leaf().map_or(0, |leaf| leaf.own.marks()))
    }

    /// The probability with which it drops or marks, from 0 to 1, if it or what is inside it works with one.
    #[must_use]
    pub fn probability(&self) -> Option<f64> {
        let own = self.counted().and_then(Counted::probability);
        own.or_else(|| self.leaf()?.own.probability())
    }

    /// The queues that it tells of one by one, without those of what is inside: both of `dualpi2`, the tins of `cake`, and the one of `codel`
    /// and `pie`.
    #[must_use]
    pub fn queues(&self) -> Vec<Inside> {
        self.counted().map_or_else(Vec::new, Counted::queues)
    }
}
