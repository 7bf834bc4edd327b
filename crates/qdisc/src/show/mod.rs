//! What `tc qdisc show` shows: as text, and as JSON under the same keys.
//!
//! The text of a [`Config`] is its [`Display`](std::fmt::Display). A discipline of ours sits on no device, so its place
//! reads as tc shows one that was added with `root handle 1:` to a device with one queue.

mod codel;
mod dualpi2;
mod fq;
mod fq_codel;
mod pie;

use std::fmt;
use std::time::Duration;

use dualq_units::number::format_g;
use serde_json::{Map, Number, Value, json};

use crate::{Config, FifoLimit};

/// The counters that every discipline has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets that met a full queue, where the discipline counts these apart.
    pub overlimits: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// Packets waiting.
    pub backlog_packets: u64,
}

impl Counters {
    pub(crate) const ZERO: Self = Self {
        sent_bytes: 0,
        sent_packets: 0,
        drops: 0,
        overlimits: 0,
        backlog_bytes: 0,
        backlog_packets: 0,
    };

    /// Counts a packet that leaves.
    #[inline]
    pub(crate) fn left(&mut self, length: u32) {
        self.backlog_packets -= 1;
        self.backlog_bytes -= u64::from(length);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(length);
    }
}

/// All counters of a discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Those that every discipline has.
    pub counters: Counters,
    /// Those of its kind.
    pub own: OwnStats,
}

/// What a kind of discipline counts beside [`Counters`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnStats {
    /// Nothing: a FIFO.
    Nothing,
    /// DualPI2's.
    Dualpi2(::dualpi2::Stats),
    /// `codel`'s.
    Codel(crate::disciplines::codel::Stats),
    /// `fq_codel`'s.
    FqCodel(crate::disciplines::fq_codel::Stats),
    /// `pie`'s.
    Pie(crate::disciplines::pie::Stats),
    /// `fq`'s.
    Fq(crate::disciplines::fq::Stats),
}

const PLACE: &str = "1: root refcnt 2";

/// `tc qdisc show`: one line, without its end.
#[must_use]
pub fn text(config: &Config) -> String {
    format!("qdisc {} {PLACE} {config}", config.kind())
}

/// `tc -s qdisc show`, each line with its end.
#[must_use]
pub fn text_with_stats(config: &Config, stats: &Stats) -> String {
    let Counters { sent_bytes, sent_packets, drops, overlimits, backlog_bytes, backlog_packets } =
        stats.counters;
    // tc ends the options of most kinds with a space.
    let gap = if matches!(config, Config::Fifo(_)) { "" } else { " " };
    let backlog = dualq_units::Bytes(backlog_bytes);
    let mut text = format!(
        "{}{gap}\n \
         Sent {sent_bytes} bytes {sent_packets} pkt (dropped {drops}, overlimits {overlimits} requeues 0) \n \
         backlog {backlog} {backlog_packets}p requeues 0\n",
        self::text(config)
    );
    match &stats.own {
        OwnStats::Nothing => {}
        OwnStats::Dualpi2(own) => dualpi2::write_stats(&mut text, own),
        OwnStats::Codel(own) => codel::write_stats(&mut text, own),
        OwnStats::FqCodel(own) => fq_codel::write_stats(&mut text, own),
        OwnStats::Pie(own) => pie::write_stats(&mut text, own),
        OwnStats::Fq(own) => fq::write_stats(&mut text, own),
    }
    text
}

/// The one object in the array of `tc -j qdisc show`.
#[must_use]
pub fn json(config: &Config) -> Map<String, Value> {
    let options = match config {
        Config::Dualpi2(parameters) => dualpi2::options(parameters),
        Config::Codel(parameters) => codel::options(parameters),
        Config::FqCodel(parameters) => fq_codel::options(parameters),
        Config::Pie(parameters) => pie::options(parameters),
        Config::Fq(parameters) => fq::options(parameters),
        Config::Fifo(FifoLimit::Packets(limit)) => json!({ "limit": limit }),
        Config::Fifo(FifoLimit::Bytes(limit)) => json!({ "limit": limit.0 }),
    };
    let mut object = Map::new();
    object.insert("kind".into(), config.kind().into());
    object.insert("handle".into(), "1:".into());
    object.insert("root".into(), true.into());
    object.insert("refcnt".into(), 2.into());
    object.insert("options".into(), options);
    object
}

/// The one object in the array of `tc -j -s qdisc show`.
#[must_use]
pub fn json_with_stats(config: &Config, stats: &Stats) -> Map<String, Value> {
    let mut object = json(config);
    let counters = &stats.counters;
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("bytes", counters.sent_bytes.into());
    put("packets", counters.sent_packets.into());
    put("drops", counters.drops.into());
    put("overlimits", counters.overlimits.into());
    put("requeues", 0.into());
    put("backlog", counters.backlog_bytes.into());
    put("qlen", counters.backlog_packets.into());
    match &stats.own {
        OwnStats::Nothing => {}
        OwnStats::Dualpi2(own) => dualpi2::put_stats(&mut object, own),
        OwnStats::Codel(own) => codel::put_stats(&mut object, own),
        OwnStats::FqCodel(own) => fq_codel::put_stats(&mut object, own),
        OwnStats::Pie(own) => pie::put_stats(&mut object, own),
        OwnStats::Fq(own) => fq::put_stats(&mut object, own),
    }
    object
}

impl Config {
    /// The kind, as tc names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Dualpi2(_) => "dualpi2",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Fq(_) => "fq",
            Self::Fifo(limit) => limit.kind(),
        }
    }
}

impl FifoLimit {
    /// The kind of FIFO, as tc names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Packets(_) => "pfifo",
            Self::Bytes(_) => "bfifo",
        }
    }
}

impl fmt::Display for Config {
    /// The options, as tc shows them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dualpi2(parameters) => dualpi2::write(f, parameters),
            Self::Codel(parameters) => codel::write(f, parameters),
            Self::FqCodel(parameters) => fq_codel::write(f, parameters),
            Self::Pie(parameters) => pie::write(f, parameters),
            Self::Fq(parameters) => fq::write(f, parameters),
            Self::Fifo(FifoLimit::Packets(limit)) => write!(f, "limit {limit}p"),
            Self::Fifo(FifoLimit::Bytes(limit)) => write!(f, "limit {limit}"),
        }
    }
}

/// A floating-point number as tc writes it into JSON: with `%g`.
fn six_digits(value: f64) -> Value {
    format_g(value, 6).parse::<Number>().map_or(Value::Null, Value::Number)
}

fn whole_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
