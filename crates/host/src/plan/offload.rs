//! What puts packets together, where others wait for it.
//!
//! An aggregate of up to 64 KB passes a shaper whole, unless its discipline takes it apart. What reaches a queue in aggregates does not hang
//! on the offloads of the interface that it leaves by: since Linux 4.17 TCP makes them whatever `ethtool -K … tso off gso off` says, and the
//! kernel takes them apart behind the queue. How many packets are in one is the interface's `gso_max_segs`; and of what is forwarded, or
//! arrives, that of the interface where it came in (GRO).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dualq_qdisc::{QdiscLine, Spec};
use dualq_units::Rate;

use super::ingress::Down;
use super::linux::Draft;
use super::queue::{FULL_FRAME, bytes_in, rate_words, shaper_rate};
use super::{Requirements, What, boot};
use crate::Facts;
use crate::facts::Interface;

/// For how long one aggregate may keep others waiting.
const PATIENCE: Duration = Duration::from_millis(1);
/// `GSO_MAX_SEGS` of Linux: what `gso_max_segs` is by default and at most.
const MOST_SEGMENTS: u32 = 65535;

/// Something that puts packets together, which a plan may limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offload {
    /// How many packets TCP puts into one aggregate: `ip link set DEV gso_max_segs`.
    GsoMaxSegs,
    /// Generic receive offload: the kernel puts together what arrives.
    Gro,
    /// The same by the device.
    GroHw,
    /// Large receive offload: the device does so, and what it forgets is gone.
    Lro,
}

impl Offload {
    const ALL: [Self; 4] = [Self::GsoMaxSegs, Self::Gro, Self::GroHw, Self::Lro];

    /// As ip-link(8) and ethtool(8) name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GsoMaxSegs => "gso_max_segs",
            Self::Gro => "gro",
            Self::GroHw => "rx-gro-hw",
            Self::Lro => "lro",
        }
    }

    /// Refuses what is no value of it.
    pub(crate) fn check(self, value: &str) -> Result<(), String> {
        let is_one = match self {
            Self::GsoMaxSegs => value
                .parse::<u32>()
                .is_ok_and(|segs| (1..=MOST_SEGMENTS).contains(&segs) && segs.to_string() == value),
            Self::Gro | Self::GroHw | Self::Lro => matches!(value, "on" | "off"),
        };
        if is_one { Ok(()) } else { Err(format!("{value:?} is no value of {self}")) }
    }

    /// Refuses what limits nothing: plans switch nothing on.
    pub(crate) fn check_limit(self, value: &str) -> Result<(), String> {
        self.check(value)?;
        match value {
            "on" => Err(format!("{self} on: plans switch nothing on")),
            _ => Ok(()),
        }
    }

    /// What it is now, as far as the facts tell.
    fn now(self, interface: &Interface) -> Option<String> {
        match self {
            Self::GsoMaxSegs => interface.gso_max_segs.map(|segs| segs.to_string()),
            Self::Gro | Self::GroHw | Self::Lro => {
                let on = *interface.offloads.get(self.name())?;
                Some(if on { "on" } else { "off" }.to_owned())
            }
        }
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Offload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|offload| offload.name() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is nothing that a plan limits: these are {all}")
        })
    }
}

/// Reads what rules say: `gso_max_segs 1 gro off`.
pub(crate) fn line(text: &str) -> Result<Vec<(Offload, &str)>, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let mut all: Vec<(Offload, &str)> = Vec::new();
    for pair in words.chunks(2) {
        let [key, value] = pair else { return Err(format!("{text:?} ends in the middle")) };
        let key: Offload = key.parse()?;
        key.check_limit(value)?;
        if all.iter().any(|(other, _)| *other == key) {
            return Err(format!("{text:?} has {key} twice"));
        }
        all.push((key, value));
    }
    Ok(all)
}

/// A value that should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    key: Offload,
    after: String,
    why: String,
    source: &'static str,
}

/// What in a line takes aggregates apart before it sends them, if anything does.
pub(super) fn splitter(spec: &Spec) -> Option<&'static str> {
    let all = spec.levels().find(|level| match level {
        Spec::Cake(_) | Spec::Tbf(_) => !level.to_string().contains("no-split-gso"),
        Spec::Dualpi2(_) => !level.to_string().contains("no_split_gso"),
        _ => false,
    });
    all.map(Spec::kind)
}

/// For how long one aggregate holds a line with this shaper; nothing if that is too short to be felt, or the line takes it apart.
fn held(line: &QdiscLine) -> Option<(Rate, Duration)> {
    let rate = line.spec().levels().find_map(shaper_rate)?;
    let time = rate.transmission_time(super::options::AGGREGATE);
    (splitter(line.spec()).is_none() && time >= PATIENCE).then_some((rate, time))
}

fn forwards(facts: &Facts) -> bool {
    facts.sysctls.get("net.ipv4.ip_forward").is_some_and(|value| value.trim() == "1")
}

/// What should be limited at an interface, whatever it is now, and what is to be known of that.
pub(super) fn choose(
    facts: &Facts,
    requirements: &Requirements,
    interface: &Interface,
    leaving: Option<&QdiscLine>,
    down: Option<&Down<'_>>,
) -> (Vec<Wanted>, Vec<String>) {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    if !requirements.offloads {
        return (all, notes);
    }
    let dev = &interface.name;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    if let Some((rate, time)) = leaving.and_then(held) {
        let frame = u64::from(interface.mtu).max(1) + (FULL_FRAME - 1500);
        let segments = (bytes_in(rate, PATIENCE) / frame).clamp(1, MOST_SEGMENTS.into());
        all.push(Wanted {
            key: Offload::GsoMaxSegs,
            after: segments.to_string(),
            why: format!(
                "an aggregate of 64 KB would hold the line of {} for {:.1} ms, and this discipline does not take it apart; tso and gso off \
                 would change nothing: TCP makes aggregates all the same",
                rate_words(rate),
                milliseconds(time)
            ),
            source: "net/core/sock.c: sk_setup_caps, net/ipv4/tcp_output.c: tcp_tso_segs, ip-link(8)",
        });
        if interface.gso_max_segs.is_some_and(|now| u64::from(now) > segments) {
            notes.push(format!(
                "gso_max_segs costs CPU time: {segments} of TCP's packets go down at once, not up to 44; connections that are there keep what they \
                 have until they end"
            ));
        }
        if forwards(facts) {
            let is_joined = |name: &str, other: &Interface| other.offloads.get(name) == Some(&true);
            let others = facts
                .interfaces
                .iter()
                .filter(|other| other.up && other.name != *dev && is_joined("gro", other));
            let names: Vec<&str> = others.map(|other| other.name.as_str()).collect();
            if !names.is_empty() {
                notes.push(format!(
                    "what is forwarded to {dev} was put together where it arrived: `ethtool -K DEV gro off` for {} keeps packets single, at the \
                     price of CPU time; cake and dualpi2 take them apart",
                    names.join(", ")
                ));
            }
        }
    }
    let arriving = down.and_then(|down| held(&down.line));
    for key in [Offload::Gro, Offload::GroHw, Offload::Lro] {
        let (why, source) = match arriving {
            Some((rate, time)) => (
                format!(
                    "what {dev} puts together passes the shaper of what arrives whole: 64 KB hold {} for {:.1} ms, and its discipline does not \
                     take them apart",
                    rate_words(rate),
                    milliseconds(time)
                ),
                "ethtool(8), Documentation/networking/segmentation-offloads.rst",
            ),
            None if key == Offload::Lro && forwards(facts) => (
                "this machine forwards, and packets that the device has put together cannot be what they were".to_owned(),
                "Documentation/networking/ip-sysctl.rst: ip_forward; net/core/dev.c: dev_disable_lro",
            ),
            None => continue,
        };
        all.push(Wanted { key, after: "off".to_owned(), why, source });
    }
    if all.is_empty() {
        let lines = leaving.into_iter().chain(down.map(|down| &down.line));
        let why = match lines.filter_map(|line| splitter(line.spec())).next() {
            Some(kind) => format!("{kind} takes aggregates apart itself"),
            None => "nothing that is put together there keeps others waiting for a millisecond"
                .to_owned(),
        };
        notes.push(format!("--offloads changes nothing at {dev}: {why}"));
    }
    (all, notes)
}

impl Draft<'_> {
    /// Limits what is not so yet, and has it come back with the interface; what an earlier plan limited stays until that is taken back.
    pub(super) fn offloads(&mut self, interface: &Interface, wanted: &[Wanted]) {
        let dev = &interface.name;
        let earlier = boot::offloads(self.facts, dev).unwrap_or_default();
        let earlier = line(&earlier).unwrap_or_default();
        let mut lasting: Vec<(Offload, String)> = Vec::new();
        for Wanted { key, after, why, source } in wanted {
            let Some(before) = key.now(interface) else {
                if *key != Offload::GroHw {
                    self.notes
                        .push(format!("the facts do not tell {key} of {dev}: it stays as it is"));
                }
                continue;
            };
            let is_ours = earlier.iter().any(|(other, _)| other == key);
            let number = |text: &str| text.parse::<u32>().unwrap_or(MOST_SEGMENTS);
            let serves = match key {
                Offload::GsoMaxSegs => number(&before) <= number(after),
                Offload::Gro | Offload::GroHw | Offload::Lro => before == *after,
            };
            if before != *after && (is_ours || !serves) {
                let (dev, after) = (dev.clone(), after.clone());
                self.push(What::Offload { dev, key: *key, before, after }, why.clone(), *source);
            } else if !is_ours {
                continue;
            }
            lasting.push((*key, after.clone()));
        }
        let kept = earlier.iter().filter(|(key, _)| lasting.iter().all(|(other, _)| other != key));
        let kept: Vec<(Offload, String)> =
            kept.map(|(key, value)| (*key, (*value).to_owned())).collect();
        lasting.extend(kept);
        if wanted.is_empty() || lasting.is_empty() {
            return;
        }
        lasting.sort();
        let words: Vec<String> =
            lasting.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let at = boot::At { dev, part: boot::Part::Offloads };
        let about = format!("On {dev}, what puts packets together is limited.");
        self.call_at_boot(at, &words.join(" "), &about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_limit_nothing_else() {
        assert_eq!(
            line("gso_max_segs 1 gro off"),
            Ok(vec![(Offload::GsoMaxSegs, "1"), (Offload::Gro, "off")])
        );
        for wrong in [
            "",
            "gro",
            "gro off ",
            "gro off gro off",
            "gro  off",
            "gro maybe",
            "lro on",
            "tso off",
            "rx-all on",
            "gso_max_segs 0",
            "gso_max_segs 01",
            "gso_max_segs +1",
            "gso_max_segs 65536",
        ] {
            assert!(line(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_splits_is_known() {
        for (words, expected) in [
            ("htb rate 10mbit leaf fq_codel", None),
            ("htb rate 10mbit leaf dualpi2", Some("dualpi2")),
            ("htb rate 10mbit leaf dualpi2 no_split_gso", None),
            ("cake bandwidth 10mbit", Some("cake")),
            ("cake bandwidth 10mbit no-split-gso", None),
        ] {
            let parsed: QdiscLine = words.parse().unwrap();
            assert_eq!(splitter(parsed.spec()), expected, "{words}");
        }
    }
}
