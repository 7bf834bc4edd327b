//! DualPI2 as tc shows it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use dualpi2::{Config, DropPoint, EcnMask, Gain, Overload, Stats, StepThreshold};
use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{six_digits, whole_micros};

pub(super) fn write_stats(text: &mut String, own: &Stats) {
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

pub(super) fn put_stats(object: &mut Map<String, Value>, own: &Stats) {
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
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

pub(super) fn write(f: &mut fmt::Formatter<'_>, parameters: &Config) -> fmt::Result {
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

pub(super) fn options(parameters: &Config) -> Value {
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
