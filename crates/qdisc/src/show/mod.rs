//! What `tc qdisc show` shows: as text, and as JSON under the same keys.
//!
//! The text of a [`Config`] is its [`Display`](std::fmt::Display). A discipline of ours sits on no device, so its place
//! reads as tc shows one that was added with `root handle 1:` to a device with one queue.

mod cake;
mod codel;
mod dualpi2;
mod fq;
mod fq_codel;
mod htb;
mod netem;
mod pfifo_fast;
mod pie;
mod tbf;

use std::fmt::{self, Write as _};
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
    /// What the leaf of a `tbf` counts.
    Tbf(Box<Stats>),
    /// `htb`'s.
    Htb(crate::disciplines::htb::Stats),
    /// `netem`'s.
    Netem(crate::disciplines::netem::Stats),
    /// `fq`'s.
    Fq(crate::disciplines::fq::Stats),
}

/// `tc qdisc show`: a line, without its end. A discipline with a leaf has a line for that too, and `htb` one for its class.
#[must_use]
pub fn text(config: &Config) -> String {
    let mut text = String::new();
    write_text(&mut text, config, None, &Handles(&[]), 1);
    text.truncate(text.trim_end().len());
    text
}

/// `tc -s qdisc show`, each line with its end.
#[must_use]
pub fn text_with_stats(config: &Config, stats: &Stats) -> String {
    text_at(config, stats, &[])
}

/// The same of disciplines that sit on a device, with their numbers there: what is outside first.
#[must_use]
pub fn text_at(config: &Config, stats: &Stats, majors: &[u16]) -> String {
    let mut text = String::new();
    write_text(&mut text, config, Some(stats), &Handles(majors), 1);
    text
}

/// The object in the array of `tc -j qdisc show`. A leaf, which tc would put into the array as well, is under the key
/// `leaf`, and the class of `htb` under `class`.
#[must_use]
pub fn json(config: &Config) -> Map<String, Value> {
    object(config, None, &Handles(&[]), 1)
}

/// The object in the array of `tc -j -s qdisc show`, as [`json()`].
#[must_use]
pub fn json_with_stats(config: &Config, stats: &Stats) -> Map<String, Value> {
    json_at(config, stats, &[])
}

/// The same of disciplines that sit on a device, with their numbers there: what is outside first.
#[must_use]
pub fn json_at(config: &Config, stats: &Stats, majors: &[u16]) -> Map<String, Value> {
    object(config, Some(stats), &Handles(majors), 1)
}

/// The numbers of disciplines by how deep they are inside others, from 1; where none is known, that itself.
struct Handles<'a>(&'a [u16]);

impl Handles<'_> {
    fn at(&self, depth: u16) -> u16 {
        self.0.get(usize::from(depth) - 1).copied().unwrap_or(depth)
    }
}

fn write_text(
    text: &mut String,
    config: &Config,
    stats: Option<&Stats>,
    handles: &Handles<'_>,
    depth: u16,
) {
    let handle = handles.at(depth);
    let place = match depth {
        1 => "root refcnt 2".to_owned(),
        _ => format!("parent {:x}:1", handles.at(depth - 1)),
    };
    let options = match config {
        Config::Htb(class) => htb::qdisc_text(class),
        other => other.to_string(),
    };
    // tc ends the options of most kinds with a space.
    let gap = match config {
        Config::Fifo(_) | Config::PfifoFast(_) | Config::Htb(_) | Config::Netem(_) => "",
        _ if stats.is_some() => " ",
        _ => "",
    };
    let _ = writeln!(text, "qdisc {} {handle:x}: {place} {options}{gap}", config.kind());
    if let Some(stats) = stats {
        text.push_str(&counted(&stats.counters));
        match &stats.own {
            OwnStats::Nothing | OwnStats::Tbf(_) | OwnStats::Htb(_) => {}
            OwnStats::Dualpi2(own) => dualpi2::write_stats(text, own),
            OwnStats::Codel(own) => codel::write_stats(text, own),
            OwnStats::FqCodel(own) => fq_codel::write_stats(text, own),
            OwnStats::Pie(own) => pie::write_stats(text, own),
            OwnStats::Netem(own) => netem::write_stats(text, own),
            OwnStats::Fq(own) => fq::write_stats(text, own),
        }
    }
    let leaf = config.leaf();
    if let Config::Htb(class) = config {
        let _ = writeln!(
            text,
            "{}",
            htb::class_text(class, handle, leaf.map(|_| handles.at(depth + 1)))
        );
        if let Some(Stats { own: OwnStats::Htb(own), .. }) = stats {
            htb::class_stats(text, own);
        }
    }
    if let Some(leaf) = leaf {
        write_text(text, leaf, stats.and_then(|stats| stats.own.leaf()), handles, depth + 1);
    }
}

/// The two lines of counters that every discipline has.
fn counted(counters: &Counters) -> String {
    let Counters { sent_bytes, sent_packets, drops, overlimits, backlog_bytes, backlog_packets } =
        counters;
    let backlog = dualq_units::Bytes(*backlog_bytes);
    format!(
        " Sent {sent_bytes} bytes {sent_packets} pkt (dropped {drops}, overlimits {overlimits} requeues 0) \n \
         backlog {backlog} {backlog_packets}p requeues 0\n"
    )
}

fn put_counters(object: &mut Map<String, Value>, counters: &Counters) {
    let mut put = |key: &str, value: u64| object.insert(key.to_owned(), value.into());
    put("bytes", counters.sent_bytes);
    put("packets", counters.sent_packets);
    put("drops", counters.drops);
    put("overlimits", counters.overlimits);
    put("requeues", 0);
    put("backlog", counters.backlog_bytes);
    put("qlen", counters.backlog_packets);
}

fn object(
    config: &Config,
    stats: Option<&Stats>,
    handles: &Handles<'_>,
    depth: u16,
) -> Map<String, Value> {
    let handle = handles.at(depth);
    let options = match config {
        Config::Dualpi2(parameters) => dualpi2::options(parameters),
        Config::Tbf(parameters) => tbf::options(parameters),
        Config::Htb(parameters) => htb::options(parameters),
        Config::Codel(parameters) => codel::options(parameters),
        Config::FqCodel(parameters) => fq_codel::options(parameters),
        Config::Pie(parameters) => pie::options(parameters),
        Config::Netem(parameters) => netem::options(parameters),
        Config::PfifoFast(parameters) => pfifo_fast::options(parameters),
        Config::Fq(parameters) => fq::options(parameters),
        Config::Cake(parameters) => cake::options(parameters),
        Config::Fifo(FifoLimit::Packets(limit)) => json!({ "limit": limit }),
        Config::Fifo(FifoLimit::Bytes(limit)) => json!({ "limit": limit.0 }),
    };
    let mut object = Map::new();
    object.insert("kind".into(), config.kind().into());
    object.insert("handle".into(), format!("{handle:x}:").into());
    if depth == 1 {
        object.insert("root".into(), true.into());
        object.insert("refcnt".into(), 2.into());
    } else {
        object.insert("parent".into(), format!("{:x}:1", handles.at(depth - 1)).into());
    }
    object.insert("options".into(), options);
    if let Some(stats) = stats {
        put_counters(&mut object, &stats.counters);
        match &stats.own {
            OwnStats::Nothing | OwnStats::Tbf(_) | OwnStats::Htb(_) => {}
            OwnStats::Dualpi2(own) => dualpi2::put_stats(&mut object, own),
            OwnStats::Codel(own) => codel::put_stats(&mut object, own),
            OwnStats::FqCodel(own) => fq_codel::put_stats(&mut object, own),
            OwnStats::Pie(own) => pie::put_stats(&mut object, own),
            OwnStats::Netem(own) => netem::put_stats(&mut object, own),
            OwnStats::Fq(own) => fq::put_stats(&mut object, own),
        }
    }
    let leaf = config.leaf();
    if let Config::Htb(class) = config {
        let stats = stats.and_then(|stats| match &stats.own {
            OwnStats::Htb(own) => Some(own),
            _ => None,
        });
        let class = htb::class_json(class, handle, leaf.map(|_| handles.at(depth + 1)), stats);
        object.insert("class".into(), class);
    }
    if let Some(leaf) = leaf {
        let stats = stats.and_then(|stats| stats.own.leaf());
        object.insert("leaf".into(), self::object(leaf, stats, handles, depth + 1).into());
    }
    object
}

impl OwnStats {
    /// Those of the discipline inside.
    #[must_use]
    pub fn leaf(&self) -> Option<&Stats> {
        match self {
            Self::Tbf(leaf) => Some(leaf),
            Self::Htb(own) => Some(&own.leaf),
            Self::Netem(own) => own.leaf.as_deref(),
            _ => None,
        }
    }

    /// The marks that it, or what is inside it, has set: `dualpi2` counts two if a packet's queue is marked by its probability and
    /// by its step.
    #[must_use]
    pub fn marks(&self) -> u64 {
        match self {
            Self::Dualpi2(own) => own.ecn_marks,
            Self::Codel(own) => own.ecn_mark + own.ce_mark,
            Self::FqCodel(own) => own.ecn_mark + own.ce_mark,
            Self::Pie(own) => own.ecn_mark,
            Self::Fq(own) => own.ce_mark,
            other => other.leaf().map_or(0, |leaf| leaf.own.marks()),
        }
    }

    /// The probability with which it drops or marks, from 0 to 1, if it or what is inside it works with one.
    #[must_use]
    pub fn probability(&self) -> Option<f64> {
        match self {
            Self::Dualpi2(own) => Some(f64::from(own.probability) / f64::from(u32::MAX)),
            Self::Pie(own) => Some(own.probability()),
            other => other.leaf()?.own.probability(),
        }
    }
}

impl Config {
    /// The discipline inside, if one was given.
    #[must_use]
    pub fn leaf(&self) -> Option<&Self> {
        match self {
            Self::Tbf(config) => config.leaf.as_deref(),
            Self::Htb(config) => config.leaf.as_deref(),
            Self::Netem(config) => config.leaf.as_deref(),
            _ => None,
        }
    }

    /// The kind, as tc names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Dualpi2(_) => "dualpi2",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Tbf(_) => "tbf",
            Self::Htb(_) => "htb",
            Self::Netem(_) => "netem",
            Self::PfifoFast(_) => "pfifo_fast",
            Self::Fq(_) => "fq",
            Self::Cake(_) => "cake",
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
            Self::Tbf(parameters) => tbf::write(f, parameters),
            Self::Htb(parameters) => htb::write(f, parameters),
            Self::Netem(parameters) => netem::write(f, parameters),
            Self::PfifoFast(parameters) => pfifo_fast::write(f, parameters),
            Self::Fq(parameters) => fq::write(f, parameters),
            Self::Cake(parameters) => cake::write(f, parameters),
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
