//! DualPI2 as tc shows it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use dualpi2::{Config, DropPoint, EcnMask, Gain, Overload, Stats, StepThreshold};
use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use crate::kinds::{Counted, Shown};
use crate::show::{Inside, six_digits, whole_micros};

/// A gain in single precision, as tc computes and shows it.
fn hertz(gain: Gain) -> f64 {
    f64::from(gain.as_256ths() as f32 / 256.0)
}

fn probability(units: u32) -> f64 {
    f64::from(units) / f64::from(u32::MAX)
}

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Duration| format_micros(whole_micros(time));
        let step = match self.step_threshold {
            StepThreshold::Time(threshold) => time(threshold),
            StepThreshold::Packets(packets) => format!("{packets}p"),
        };
        write!(
            f,
            "limit {}p memlimit {}B target {} tupdate {} alpha {:.6} beta {:.6} step_thresh {step} \
             min_qlen_step {}p coupling_factor {} {} {} classic_protection {}% {} {}",
            self.limit,
            self.memory_limit,
            time(self.target),
            time(self.tupdate),
            hertz(self.alpha),
            hertz(self.beta),
            self.min_qlen_step,
            self.coupling_factor,
            match self.overload {
                Overload::Drop => "drop_on_overload",
                Overload::Overflow => "overflow",
            },
            match self.drop_point {
                DropPoint::Enqueue => "drop_enqueue",
                DropPoint::Dequeue => "drop_dequeue",
            },
            self.classic_protection,
            match self.ecn_mask {
                EcnMask::L4s => "l4s_ect",
                EcnMask::Any => "any_ect",
            },
            if self.split_gso { "split_gso" } else { "no_split_gso" }
        )
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        put("limit", self.limit.into());
        put("memory-limit", self.memory_limit.into());
        put("target", whole_micros(self.target).into());
        put("tupdate", whole_micros(self.tupdate).into());
        put("alpha", six_digits(hertz(self.alpha)));
        put("beta", six_digits(hertz(self.beta)));
        match self.step_threshold {
            StepThreshold::Time(time) => put("step-thresh-us", whole_micros(time).into()),
            StepThreshold::Packets(packets) => put("step-thresh-pkts", packets.into()),
        };
        put("min-qlen-step", self.min_qlen_step.into());
        put("coupling", self.coupling_factor.into());
        let overload = match self.overload {
            Overload::Drop => "drop",
            Overload::Overflow => "overflow",
        };
        put("drop-overload", overload.into());
        let point = match self.drop_point {
            DropPoint::Enqueue => "drop-enqueue",
            DropPoint::Dequeue => "drop-dequeue",
        };
        put("drop-early", point.into());
        put("c-protection", self.classic_protection.into());
        let mask = match self.ecn_mask {
            EcnMask::L4s => "l4s-ect",
            EcnMask::Any => "any-ect",
        };
        put("ecn-mask", mask.into());
        if self.split_gso {
            put("split-gso", Value::Null);
        }
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        let queue = if self.credit > 0 { "C-queue" } else { "L-queue" };
        let _ = write!(
            text,
            "prob {:.6} delay_c {}us delay_l {}us\n\
             pkts_in_c {} pkts_in_l {} maxq {}\n\
             ecn_mark {} step_mark {}\n\
             credit {} ({queue})\n\
             memory_used {} (max {}) of memory limit {}\n\n",
            probability(self.probability),
            whole_micros(self.classic_delay),
            whole_micros(self.low_latency_delay),
            self.packets_in_classic,
            self.packets_in_low_latency,
            self.max_queue_length,
            self.ecn_marks,
            self.step_marks,
            self.credit,
            self.memory_used,
            self.max_memory_used,
            self.memory_limit
        );
    }

    fn queues(&self) -> Vec<Inside> {
        [
            ("L", self.low_latency_delay, self.packets_in_low_latency),
            ("C", self.classic_delay, self.packets_in_classic),
        ]
        .map(|(name, delay, packets)| Inside { packets: Some(packets), ..Inside::new(name, delay) })
        .to_vec()
    }

    fn marks(&self) -> Option<u64> {
        Some(self.ecn_marks)
    }

    fn probability(&self) -> Option<f64> {
        Some(probability(self.probability))
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("prob", six_digits(probability(self.probability)));
        put("delay-c", whole_micros(self.classic_delay).into());
        put("delay-l", whole_micros(self.low_latency_delay).into());
        put("pkts-in-c", self.packets_in_classic.into());
        put("pkts-in-l", self.packets_in_low_latency.into());
        put("maxq", self.max_queue_length.into());
        put("ecn-mark", self.ecn_marks.into());
        put("step-mark", self.step_marks.into());
        put("credit", self.credit.into());
        put("memory-used", self.memory_used.into());
        put("max-memory-used", self.max_memory_used.into());
        put("memory-limit", self.memory_limit.into());
    }
}
