//! `pfifo`: a FIFO that counts packets (tc-bfifo(8)).

use std::fmt;

use dualpi2::Random;
use dualq_units::Instant;
use serde_json::{Value, json};

use super::fifo::{Fifo, FifoLimit, limit_only};
use super::{Grammar, Kind, Shown};
use crate::about::{About, Parameter};
use crate::grammar::{ParseError, Words, write_option};
use crate::{Device, Discipline, FlowPacket};

const LIMIT: &str = "give a number of packets, such as 1000";

const ABOUT: About = About {
    title: "a FIFO that counts packets",
    what: "One queue, first in, first out. What arrives when it holds its limit is dropped.",
    acts_on: "Length in packets only. It drops whatever the codepoint, and never marks.",
    source: "tc-bfifo(8); Linux net/sched/sch_fifo.c",
    not_for: "Not for low delay under load: its senders fill it, and a full one is limit over rate long.",
    parameters: &[Parameter::new(
        &["limit"],
        LIMIT,
        "packets that it holds; by default the device's txqueuelen",
    )],
};

/// What a command line gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Packets.
    pub limit: Option<u32>,
}

/// All parameters of `pfifo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
}

impl Grammar for Options {
    const NAME: &'static str = "pfifo";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        Ok(Self { limit: limit_only::<Self>(words, LIMIT)? })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit)
    }
}

impl Kind for Options {
    type Config = Config;

    /// The default is `txqueuelen`.
    fn configure(&self, device: &Device) -> Config {
        Config { limit: self.limit.unwrap_or(device.tx_queue_length) }
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        _random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        let limit = self.configure(device).limit;
        Discipline::Fifo(Fifo::new(FifoLimit::Packets(limit)))
    }
}

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}p", self.limit)
    }

    fn ends_with_space(&self) -> bool {
        false
    }

    fn json(&self) -> Value {
        json!({ "limit": self.limit })
    }
}
