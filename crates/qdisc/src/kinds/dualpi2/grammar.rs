//! `dualpi2` (tc-dualpi2(8)).

use std::fmt;
use std::time::Duration;

use dualpi2::{DropPoint, EcnMask, Gain, MAX_GAIN, Overload, StepThreshold};
use dualq_units::tc_time::format_micros;

use super::Options;
use super::about::{ABOUT, BYTES, FACTOR, GAIN, PACKETS, PERCENT, TIME, TIME_OR_PACKETS};
use crate::about::About;
use crate::grammar::words::{MicrosOrPackets, Position, Words};
use crate::grammar::{ParseError, RefusedBy, exact_time, unknown_option};
use crate::kinds::Grammar;

/// Gains go to the kernel in units of 1/256 Hz.
const GAIN_SCALE: f32 = 256.0;
/// The most that tc itself lets pass; the kernel's bound, [`MAX_GAIN`], is half of it.
const TC_MAX_GAIN: f32 = 16_777_215.0;
/// tc takes the typical RTT for this fraction of the maximum, if only one of them is given.
const MAX_RTT_PER_TYPICAL: u32 = 6;

impl Grammar for Options {
    const NAME: &'static str = "dualpi2";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let mut change = Self::default();
        let (mut max_rtt, mut typical_rtt) = (0, 0);
        // Values that only the kernel judges, once it is known which of them count.
        let mut coupling: Option<(u8, Position)> = None;
        let mut alpha: Option<(Gain, Position)> = None;
        let mut beta: Option<(Gain, Position)> = None;

        while let Some(word) = words.next() {
            match word {
                "limit" => change.limit = words.nonzero(word, Words::u32, PACKETS)?,
                "memlimit" => change.memory_limit = words.nonzero(word, Words::u32, BYTES)?,
                "target" => change.target = words.nonzero(word, Words::micros, TIME)?.map(micros),
                "tupdate" => change.tupdate = words.nonzero(word, Words::micros, TIME)?.map(micros),
                "alpha" => alpha = Some((gain(word, words)?, words.position())),
                "beta" => beta = Some((gain(word, words)?, words.position())),
                "coupling_factor" => coupling = Some((words.u8(word, FACTOR)?, words.position())),
                "step_thresh" => {
                    change.step_threshold = match words.micros_or_packets(word, TIME_OR_PACKETS)? {
                        MicrosOrPackets::Micros(time) => {
                            words.unless_zero(word, time).map(micros).map(StepThreshold::Time)
                        }
                        MicrosOrPackets::Packets(packets) => {
                            words.unless_zero(word, packets).map(StepThreshold::Packets)
                        }
                    };
                }
                "min_qlen_step" => change.min_qlen_step = Some(words.u32(word, PACKETS)?),
                "drop_on_overload" => change.overload = Some(Overload::Drop),
                "overflow" => change.overload = Some(Overload::Overflow),
                "drop_enqueue" => change.drop_point = Some(DropPoint::Enqueue),
                "drop_dequeue" => change.drop_point = Some(DropPoint::Dequeue),
                "l4s_ect" => change.ecn_mask = Some(EcnMask::L4s),
                "any_ect" => change.ecn_mask = Some(EcnMask::Any),
                "classic_protection" => {
                    change.classic_protection = Some(words.percent(word, PERCENT)?);
                }
                "max_rtt" => max_rtt = words.micros(word, TIME)?,
                "typical_rtt" => typical_rtt = words.micros(word, TIME)?,
                "split_gso" => change.split_gso = Some(true),
                "no_split_gso" => change.split_gso = Some(false),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }

        if max_rtt != 0 || typical_rtt != 0 {
            let derived = derive(max_rtt, typical_rtt)
                .map_err(|message| words.refuse_at(0, RefusedBy::Tc, message))?;
            let overridden = [
                ("alpha", alpha.is_some()),
                ("beta", beta.is_some()),
                ("tupdate", change.tupdate.is_some()),
                ("target", change.target.is_some()),
            ];
            let ignored: Vec<&str> =
                overridden.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
            if !ignored.is_empty() {
                let names = ignored.join(", ");
                words
                    .notices
                    .push(format!("max_rtt or typical_rtt is given and overrides {names}"));
            }
            words.notices.push(derived.notice);
            change.target = Some(micros(derived.target));
            change.tupdate = Some(micros(derived.tupdate));
            (alpha, beta) = (Some((derived.alpha, 0)), Some((derived.beta, 0)));
        }

        for (name, gain, into) in
            [("alpha", alpha, &mut change.alpha), ("beta", beta, &mut change.beta)]
        {
            let Some((gain, position)) = gain else { continue };
            if gain < Gain::MIN || gain > MAX_GAIN {
                let message = format!("the kernel refuses this {name}: {GAIN}");
                return Err(words.refuse_at(position, RefusedBy::Kernel, message));
            }
            *into = Some(gain);
        }
        if let Some((factor, position)) = coupling {
            if factor == 0 {
                let message = format!("the kernel refuses this coupling_factor: {FACTOR}");
                return Err(words.refuse_at(position, RefusedBy::Kernel, message));
            }
            change.coupling_factor = Some(factor);
        }
        Ok(change)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut option = |name: &str, value: Option<String>| match value {
            Some(value) => write!(f, " {name} {value}"),
            None => Ok(()),
        };
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let gain = |gain: Option<Gain>| {
            gain.map(|gain| (f64::from(gain.as_256ths()) / f64::from(GAIN_SCALE)).to_string())
        };
        option("limit", number(self.limit))?;
        option("memlimit", number(self.memory_limit))?;
        option("target", self.target.map(exact_time))?;
        option("tupdate", self.tupdate.map(exact_time))?;
        option("alpha", gain(self.alpha))?;
        option("beta", gain(self.beta))?;
        let step = self.step_threshold.map(|step| match step {
            StepThreshold::Time(time) => exact_time(time),
            StepThreshold::Packets(packets) => format!("{packets}p"),
        });
        option("step_thresh", step)?;
        option("min_qlen_step", number(self.min_qlen_step))?;
        option("coupling_factor", number(self.coupling_factor.map(u32::from)))?;
        let protection = self.classic_protection.map(|percent| format!("{percent}%"));
        option("classic_protection", protection)?;
        let flags = [
            self.overload.map(|overload| match overload {
                Overload::Drop => "drop_on_overload",
                Overload::Overflow => "overflow",
            }),
            self.drop_point.map(|point| match point {
                DropPoint::Enqueue => "drop_enqueue",
                DropPoint::Dequeue => "drop_dequeue",
            }),
            self.ecn_mask.map(|mask| match mask {
                EcnMask::L4s => "l4s_ect",
                EcnMask::Any => "any_ect",
            }),
            self.split_gso.map(|split| if split { "split_gso" } else { "no_split_gso" }),
        ];
        flags.into_iter().flatten().try_for_each(|flag| write!(f, " {flag}"))
    }
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(micros.into())
}

/// A gain, rounded to single precision before it is scaled, as tc does.
fn gain(option: &str, words: &mut Words<'_>) -> Result<Gain, ParseError> {
    let (value, word) = words.float(option, TC_MAX_GAIN, GAIN)?;
    let scaled = Gain::from_256ths((value * GAIN_SCALE) as u32);
    if scaled <= MAX_GAIN {
        return Ok(scaled);
    }
    // The largest gains that the kernel knows lie between two of tc's numbers and tc rounds them out of range. They are
    // exact in double precision, and there is no reason not to let them be said.
    let exact = word.parse::<f64>().map(|value| value * f64::from(GAIN_SCALE));
    let exact = exact.map(|units| Gain::from_256ths(units as u32));
    Ok(exact.ok().filter(|gain| *gain <= MAX_GAIN).unwrap_or(scaled))
}

struct Derived {
    target: u32,
    tupdate: u32,
    alpha: Gain,
    beta: Gain,
    notice: String,
}

/// The controller's parameters from the largest and the typical round-trip time, in microseconds, one of which may be 0
/// for 'not given' (RFC 9332 Figure 2, lines 8 to 14). The mixture of integers, single and double precision is tc's.
fn derive(mut max_rtt: u32, mut typical_rtt: u32) -> Result<Derived, String> {
    if typical_rtt == 0 {
        typical_rtt = (max_rtt / MAX_RTT_PER_TYPICAL).max(1);
    } else if max_rtt == 0 {
        max_rtt = typical_rtt.wrapping_mul(MAX_RTT_PER_TYPICAL);
    } else if typical_rtt > max_rtt {
        return Err(format!(
            "typical_rtt is {}, above max_rtt, {}; it must be at most that",
            format_micros(typical_rtt),
            format_micros(max_rtt)
        ));
    }
    let max = f64::from(max_rtt);
    let target = typical_rtt;
    let third = max / 3.0;
    let tupdate = if f64::from(typical_rtt) < third { typical_rtt } else { third as u32 }.max(1);
    let per_second = 1e6;
    let alpha = f64::from(tupdate) / max / max * per_second * f64::from(0.1_f32);
    let beta = f64::from(0.3_f32) / max * per_second;
    if beta > f64::from(TC_MAX_GAIN) {
        return Err(format!("max_rtt {} is too short", format_micros(max_rtt)));
    }
    let least = 1.0 / f64::from(GAIN_SCALE);
    if alpha < least || beta < least {
        return Err(format!(
            "max_rtt {} with typical_rtt {} is too long: alpha {alpha:.6} or beta {beta:.6} would round to nothing; \
             shorten max_rtt, or set target, tupdate, alpha and beta instead",
            format_micros(max_rtt),
            format_micros(typical_rtt)
        ));
    }
    let notice = format!(
        "from max_rtt {} and typical_rtt {}: target {}, tupdate {}, alpha {alpha:.6}, beta {beta:.6}",
        format_micros(max_rtt),
        format_micros(typical_rtt),
        format_micros(target),
        format_micros(tupdate)
    );
    let scale = |gain: f64| Gain::from_256ths((gain * f64::from(GAIN_SCALE)) as u32);
    Ok(Derived { target, tupdate, alpha: scale(alpha), beta: scale(beta), notice })
}
