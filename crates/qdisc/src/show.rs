//! What `tc qdisc show` shows: as text, and as JSON under the same keys.
//!
//! The text of a [`Config`] is its [`Display`](std::fmt::Display). A discipline of ours sits on no device, so its place
//! reads as tc shows one that was added with `root handle 1:` to a device with one queue.

use std::fmt::{self, Write as _};
use std::time::Duration;

use dualpi2::{DropPoint, EcnMask, Gain, Overload, StepThreshold};
use dualq_units::number::format_g;
use dualq_units::tc_time::format_micros;
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
    Dualpi2(dualpi2::Stats),
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
    // tc ends dualpi2's options, but not a FIFO's, with a space.
    let gap = if matches!(config, Config::Dualpi2(_)) { " " } else { "" };
    let backlog = dualq_units::Bytes(backlog_bytes);
    let mut text = format!(
        "{}{gap}\n \
         Sent {sent_bytes} bytes {sent_packets} pkt (dropped {drops}, overlimits {overlimits} requeues 0) \n \
         backlog {backlog} {backlog_packets}p requeues 0\n",
        self::text(config)
    );
    if let OwnStats::Dualpi2(own) = &stats.own {
        let queue = if own.credit > 0 { "C-queue" } else { "L-queue" };
        let _ = write!(
            text,
            "prob {:.6} delay_c {}us delay_l {}us\n\
             pkts_in_c {} pkts_in_l {} maxq {}\n\
             ecn_mark {} step_mark {}\n\
             credit {} ({queue})\n\
             memory_used {} (max {}) of memory limit {}\n\n",
            probability(own.probability),
            whole_micros(own.classic_delay),
            whole_micros(own.low_latency_delay),
            own.packets_in_classic,
            own.packets_in_low_latency,
            own.max_queue_length,
            own.ecn_marks,
            own.step_marks,
            own.credit,
            own.memory_used,
            own.max_memory_used,
            own.memory_limit
        );
    }
    text
}

/// The one object in the array of `tc -j qdisc show`.
#[must_use]
pub fn json(config: &Config) -> Map<String, Value> {
    let options = match config {
        Config::Dualpi2(parameters) => dualpi2_options(parameters),
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
    if let OwnStats::Dualpi2(own) = &stats.own {
        put("prob", six_digits(probability(own.probability)));
        put("delay-c", whole_micros(own.classic_delay).into());
        put("delay-l", whole_micros(own.low_latency_delay).into());
        put("pkts-in-c", own.packets_in_classic.into());
        put("pkts-in-l", own.packets_in_low_latency.into());
        put("maxq", own.max_queue_length.into());
        put("ecn-mark", own.ecn_marks.into());
        put("step-mark", own.step_marks.into());
        put("credit", own.credit.into());
        put("memory-used", own.memory_used.into());
        put("max-memory-used", own.max_memory_used.into());
        put("memory-limit", own.memory_limit.into());
    }
    object
}

impl Config {
    /// The kind, as tc names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Dualpi2(_) => "dualpi2",
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
            Self::Dualpi2(parameters) => write_dualpi2(f, parameters),
            Self::Fifo(FifoLimit::Packets(limit)) => write!(f, "limit {limit}p"),
            Self::Fifo(FifoLimit::Bytes(limit)) => write!(f, "limit {limit}"),
        }
    }
}

fn write_dualpi2(f: &mut fmt::Formatter<'_>, parameters: &dualpi2::Config) -> fmt::Result {
    let time = |time: Duration| format_micros(whole_micros(time));
    let step = match parameters.step_threshold {
        StepThreshold::Time(threshold) => time(threshold),
        StepThreshold::Packets(packets) => format!("{packets}p"),
    };
    write!(
        f,
        "limit {}p memlimit {}B target {} tupdate {} alpha {:.6} beta {:.6} step_thresh {step} \
         min_qlen_step {}p coupling_factor {} {} {} classic_protection {}% {} {}",
        parameters.limit,
        parameters.memory_limit,
        time(parameters.target),
        time(parameters.tupdate),
        hertz(parameters.alpha),
        hertz(parameters.beta),
        parameters.min_qlen_step,
        parameters.coupling_factor,
        match parameters.overload {
            Overload::Drop => "drop_on_overload",
            Overload::Overflow => "overflow",
        },
        match parameters.drop_point {
            DropPoint::Enqueue => "drop_enqueue",
            DropPoint::Dequeue => "drop_dequeue",
        },
        parameters.classic_protection,
        match parameters.ecn_mask {
            EcnMask::L4s => "l4s_ect",
            EcnMask::Any => "any_ect",
        },
        if parameters.split_gso { "split_gso" } else { "no_split_gso" }
    )
}

fn dualpi2_options(parameters: &dualpi2::Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    put("limit", parameters.limit.into());
    put("memory-limit", parameters.memory_limit.into());
    put("target", whole_micros(parameters.target).into());
    put("tupdate", whole_micros(parameters.tupdate).into());
    put("alpha", six_digits(hertz(parameters.alpha)));
    put("beta", six_digits(hertz(parameters.beta)));
    match parameters.step_threshold {
        StepThreshold::Time(time) => put("step-thresh-us", whole_micros(time).into()),
        StepThreshold::Packets(packets) => put("step-thresh-pkts", packets.into()),
    };
    put("min-qlen-step", parameters.min_qlen_step.into());
    put("coupling", parameters.coupling_factor.into());
    let overload = match parameters.overload {
        Overload::Drop => "drop",
        Overload::Overflow => "overflow",
    };
    put("drop-overload", overload.into());
    let point = match parameters.drop_point {
        DropPoint::Enqueue => "drop-enqueue",
        DropPoint::Dequeue => "drop-dequeue",
    };
    put("drop-early", point.into());
    put("c-protection", parameters.classic_protection.into());
    let mask = match parameters.ecn_mask {
        EcnMask::L4s => "l4s-ect",
        EcnMask::Any => "any-ect",
    };
    put("ecn-mask", mask.into());
    if parameters.split_gso {
        put("split-gso", Value::Null);
    }
    options.into()
}

/// A gain in single precision, as tc computes and shows it.
fn hertz(gain: Gain) -> f64 {
    f64::from(gain.as_256ths() as f32 / 256.0)
}

fn probability(units: u32) -> f64 {
    f64::from(units) / f64::from(u32::MAX)
}

/// A floating-point number as tc writes it into JSON: with `%g`.
fn six_digits(value: f64) -> Value {
    format_g(value, 6).parse::<Number>().map_or(Value::Null, Value::Number)
}

fn whole_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
