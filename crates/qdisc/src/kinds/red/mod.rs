//! `red`: one FIFO, whose packets are dropped or marked at random as they arrive, by its average length (Floyd and Jacobson,
//! "Random Early Detection gateways for congestion avoidance", 1993; tc-red(8)).
//!
//! As Linux does it: lengths are bytes; the average has a weight of 2⁻ʷ and falls with idle time by a table that tc computes; the
//! random numbers are uniform between two drops (the paper's second method), and `adaptive` moves the probability every half
//! second (Floyd, Gummadi, Shenker, "Adaptive RED", 2001). Only who asks an empty queue for a packet makes it idle: behind a
//! shaper, which knows that it is empty, nobody does, and the average stays where it was.

mod about;
mod discipline;
mod grammar;
mod show;
mod tables;

use dualpi2::Random;
use dualq_units::{Bytes, Instant};

use self::discipline::Red;
use self::tables::Averaging;
use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket};

/// What a command line gives, as far as tc makes something of it: it computes the rest from these. The grammar lets none pass that
/// tc or the kernel would refuse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Bytes that it holds.
    pub limit: u32,
    /// The average length above which packets are dropped.
    pub min: u32,
    /// The average length from which all are.
    pub max: u32,
    /// The average length of packets.
    pub avpkt: u32,
    /// How many packets may come at once, which tells how slowly the average follows.
    pub burst: u32,
    /// Bytes per second, which tell how fast the average falls in idle time.
    pub bandwidth: u64,
    /// The probability of a drop where the average is about to reach `max`.
    pub probability: f64,
    /// What becomes of packets.
    pub flags: Flags,
}

// No value of it is NaN.
impl Eq for Options {}

/// What becomes of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of tc's")]
pub struct Flags {
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether they are dropped all the same where the average is above `max`.
    pub harddrop: bool,
    /// Whether the probability follows the average.
    pub adaptive: bool,
    /// Whether packets that are not ECN-capable are never dropped early.
    pub nodrop: bool,
}

/// All parameters, as the kernel tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that it holds.
    pub limit: Bytes,
    /// The average length above which packets are dropped.
    pub min: Bytes,
    /// The average length from which all are.
    pub max: Bytes,
    /// The weight of a packet in the average is 2 to the power of minus this.
    pub wlog: u8,
    /// The probability where the average is about to reach `max`, in units of 2⁻³².
    pub max_probability: u32,
    /// A cell of the table of idle time has so many microseconds: 2 to the power of this.
    pub cell_log: u8,
    /// What becomes of packets.
    pub flags: Flags,
}

impl Options {
    /// Which weight and which table these come to; the grammar has seen that they come to some.
    #[must_use]
    pub fn averaging(&self) -> Averaging {
        Averaging::new(self).unwrap_or(Averaging::SLOWEST)
    }

    fn config(&self) -> Config {
        let averaging = self.averaging();
        let delta = self.max - self.min;
        let given = dualq_units::number::c_unsigned(self.probability * 2_f64.powi(32));
        Config {
            limit: Bytes(self.limit.into()),
            min: Bytes(self.min.into()),
            max: Bytes(self.max.into()),
            wlog: averaging.wlog,
            // Where tc sends none, as for a probability of 1, the kernel takes the power of two that tc sends beside it.
            max_probability: match given {
                0 => (u32::MAX >> averaging.plog).wrapping_mul(delta.max(1)),
                given => given,
            },
            cell_log: averaging.cell_log,
            flags: self.flags,
        }
    }
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, _device: &Device) -> Config {
        self.config()
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        _device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        Discipline::boxed(Red::new(self, random, now))
    }
}

/// What `red` counts, under the names of `tc -s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets marked.
    pub marked: u64,
    /// Packets dropped early.
    pub early: u64,
    /// Packets that met a full queue.
    pub pdrop: u64,
    /// Packets dropped for other reasons, of which there are none.
    pub other: u64,
}
