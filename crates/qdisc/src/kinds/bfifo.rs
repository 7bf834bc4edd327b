//! `bfifo`: a FIFO that counts bytes (tc-bfifo(8)).

use std::fmt;

use dualpi2::Random;
use dualq_units::{Bytes, Instant};
use serde_json::{Value, json};

use super::fifo::{Fifo, FifoLimit, limit_only};
use super::{Grammar, Kind, Shown};
use crate::about::{About, Parameter};
use crate::grammar::{ParseError, Words, write_option};
use crate::{Device, Discipline, FlowPacket};

const LIMIT: &str = "give a size of at most 4gb, such as 100000 or 100kb";

const ABOUT: About = About {
    title: "a FIFO that counts bytes",
    what: "One queue, first in, first out. What arrives when it holds its limit is dropped.",
    acts_on: "Length in bytes only. It drops whatever the codepoint, and never marks.",
    source: "tc-bfifo(8); Linux net/sched/sch_fifo.c",
    not_for: "Not for low delay under load: its senders fill it, and a full one is limit over rate long.",
    parameters: &[Parameter::new(
        &["limit"],
        LIMIT,
        "bytes that it holds; by default txqueuelen times the largest frame",
    )],
};

/// What a command line gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bytes.
    pub limit: Option<Bytes>,
}

/// All parameters of `bfifo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that it holds.
    pub limit: Bytes,
}

impl Grammar for Options {
    const NAME: &'static str = "bfifo";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let limit = limit_only::<Self>(words, LIMIT)?;
        Ok(Self { limit: limit.map(|bytes| Bytes(bytes.into())) })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "limit", self.limit.map(|limit| limit.0))
    }
}

impl Kind for Options {
    type Config = Config;

    /// The default is `txqueuelen` of the largest frames.
    fn configure(&self, device: &Device) -> Config {
        let frames = u64::from(device.tx_queue_length) * u64::from(device.max_frame);
        Config { limit: self.limit.unwrap_or(Bytes(frames)) }
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        _random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        let limit = self.configure(device).limit;
        Discipline::Fifo(Fifo::new(FifoLimit::Bytes(limit)))
    }
}

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}", self.limit)
    }

    fn ends_with_space(&self) -> bool {
        false
    }

    fn json(&self) -> Value {
        json!({ "limit": self.limit.0 })
    }
}
