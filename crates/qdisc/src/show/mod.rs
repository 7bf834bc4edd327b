//! What `tc qdisc show` shows: as text, and as JSON under the same keys.
//!
//! The text of a [`Config`] is its [`Display`](std::fmt::Display). A discipline of ours sits on no device, so its place
//! reads as tc shows one that was added with `root handle 1:` to a device with one queue.

use std::fmt::Write as _;
use std::time::Duration;

use dualq_units::Rate;
use dualq_units::number::format_g;
use serde_json::{Map, Number, Value};

pub use crate::kinds::OwnStats;
use crate::{Config, FlowPacket};

/// The counters that every discipline has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that left, of an aggregate each of its segments, as the kernel counts them (`bstats_update`). All other counters have it as one.
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
    pub(crate) fn left(&mut self, packet: &impl FlowPacket) {
        self.backlog_packets -= 1;
        self.backlog_bytes -= u64::from(packet.length());
        self.sent(packet);
    }

    /// The same where what waits is counted otherwise.
    #[inline]
    pub(crate) fn sent(&mut self, packet: &impl FlowPacket) {
        self.sent_packets += u64::from(packet.segments().0);
        self.sent_bytes += u64::from(packet.length());
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

/// A queue of a discipline that tells of it by itself. What it does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// What it is called: `L` and `C` of `dualpi2`, the tins of `cake`; empty if it is the only one.
    pub name: String,
    /// How long packets wait in it, as its kind tells: the first one so far (`dualpi2`), the last one that left (`codel`, `pie`), on average (`cake`).
    pub delay: Duration,
    /// Packets that came in.
    pub packets: Option<u64>,
    /// Bytes waiting.
    pub backlog_bytes: Option<u64>,
    /// Packets that it marked.
    pub marks: Option<u64>,
    /// Packets that it dropped.
    pub drops: Option<u64>,
}

impl Inside {
    /// One that tells no more than its delay.
    pub(crate) fn new(name: impl Into<String>, delay: Duration) -> Self {
        let name = name.into();
        Self { name, delay, packets: None, backlog_bytes: None, marks: None, drops: None }
    }
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

/// Where a discipline with a class sits: its number, and that of what is inside.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) handle: u16,
    pub(crate) leaf: Option<u16>,
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
    let parent = match depth {
        1 => "root refcnt 2".to_owned(),
        _ => format!("parent {:x}:1", handles.at(depth - 1)),
    };
    let shown = config.shown();
    let gap = if stats.is_some() && shown.ends_with_space() { " " } else { "" };
    let options = shown.line().unwrap_or_else(|| config.to_string());
    let _ = writeln!(text, "qdisc {} {handle:x}: {parent} {options}{gap}", config.kind());
    if let Some(stats) = stats {
        text.push_str(&counted(&stats.counters));
        if let Some(own) = stats.own.counted() {
            own.write(text);
        }
    }
    let leaf = config.leaf();
    let place = Place { handle, leaf: leaf.map(|_| handles.at(depth + 1)) };
    text.push_str(&shown.class_text(place, stats.map(|stats| &stats.own)));
    if let Some(leaf) = leaf {
        write_text(text, leaf, stats.and_then(|stats| stats.own.leaf()), handles, depth + 1);
    }
}

/// The two lines of counters that every discipline has.
pub(crate) fn counted(counters: &Counters) -> String {
    let Counters { sent_bytes, sent_packets, drops, overlimits, backlog_bytes, backlog_packets } =
        counters;
    let backlog = dualq_units::Bytes(*backlog_bytes);
    format!(
        " Sent {sent_bytes} bytes {sent_packets} pkt (dropped {drops}, overlimits {overlimits} requeues 0) \n \
         backlog {backlog} {backlog_packets}p requeues 0\n"
    )
}

pub(crate) fn put_counters(object: &mut Map<String, Value>, counters: &Counters) {
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
    let mut object = Map::new();
    object.insert("kind".into(), config.kind().into());
    object.insert("handle".into(), format!("{handle:x}:").into());
    if depth == 1 {
        object.insert("root".into(), true.into());
        object.insert("refcnt".into(), 2.into());
    } else {
        object.insert("parent".into(), format!("{:x}:1", handles.at(depth - 1)).into());
    }
    object.insert("options".into(), config.shown().json());
    if let Some(stats) = stats {
        put_counters(&mut object, &stats.counters);
        if let Some(own) = stats.own.counted() {
            own.put(&mut object);
        }
    }
    let leaf = config.leaf();
    let place = Place { handle, leaf: leaf.map(|_| handles.at(depth + 1)) };
    if let Some(class) = config.shown().class_json(place, stats.map(|stats| &stats.own)) {
        object.insert("class".into(), class);
    }
    if let Some(leaf) = leaf {
        let stats = stats.and_then(|stats| stats.own.leaf());
        object.insert("leaf".into(), self::object(leaf, stats, handles, depth + 1).into());
    }
    object
}

/// A floating-point number as tc writes it into JSON: with `%g`.
pub(crate) fn six_digits(value: f64) -> Value {
    format_g(value, 6).parse::<Number>().map_or(Value::Null, Value::Number)
}

pub(crate) fn whole_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// A time to the nanosecond, three significant digits, as tc shows such (`sprint_time64`).
pub(crate) fn format_nanos(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (unit, name) = match time.as_nanos() {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        1_000.. => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{}{name}", format_g(nanos / unit, 3))
}

/// The bytes per second of a rate, as tc writes rates into JSON.
pub(crate) fn per_second(rate: Rate) -> u64 {
    rate.as_bits_per_second() / 8
}
