//! What packets pass on their way, beside the queue under test.

use std::time::Duration;

use dualq_qdisc::QdiscLine;
use dualq_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

use crate::loss::Loss;
use crate::scenario::{Link, RateStep};
use crate::words::{Word, named, optional_word, word};

/// One of the two directions of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the senders of downloads, through the queue under test, to their receiver.
    #[default]
    Down,
    /// The other way.
    Up,
}

impl Direction {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Down, Self::Up];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    /// Whether it is [`Direction::Down`], the default.
    #[must_use]
    pub const fn is_down(&self) -> bool {
        matches!(self, Self::Down)
    }
}

named!(Direction, "direction");

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_no_loss(loss: &Loss) -> bool {
    loss.is_none()
}

/// What packets pass upwards. Without one, the direction only delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpLink {
    /// The rate of its bottleneck, Ethernet headers included; without one there is no queue.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub rate: Option<Rate>,
    /// The queue discipline of its bottleneck; that of the other direction without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub qdisc: Option<QdiscLine>,
    /// Random loss of packets behind the queue.
    #[serde(default, skip_serializing_if = "is_no_loss", with = "word")]
    pub loss: Loss,
    /// Other rates that its bottleneck has later, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<RateStep>,
    /// What packets pass before its queue, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Element>,
    /// What packets pass behind its queue, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<Element>,
}

impl Link {
    /// All queue disciplines on the path, with what each is asked for by, the one under test first.
    pub fn qdiscs(&self) -> impl Iterator<Item = (&'static str, &QdiscLine)> {
        let up = self.up.iter();
        let elements = up.clone().flat_map(|up| up.before.iter().chain(&up.behind));
        let elements = self.before.iter().chain(&self.behind).chain(elements);
        let elements = elements.filter_map(|element| match element {
            Element::Queue { qdisc, .. } => Some(("an element's qdisc", qdisc)),
            _ => None,
        });
        let up = up.filter_map(|up| Some(("link.up.qdisc", up.qdisc.as_ref()?)));
        [("link.qdisc", &self.qdisc)].into_iter().chain(up).chain(elements)
    }
}

/// What packets pass beside the queue under test: one thing that a path does to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub enum Element {
    /// Takes time (netem's `delay`).
    Delay {
        /// The mean.
        delay: Duration,
        /// How much shorter or longer it may be, all values within being equally likely.
        jitter: Duration,
        /// Whether a packet may overtake another one that is delayed more.
        reorder: bool,
    },
    /// Lets packets gather and leave in bursts, as on Wi-Fi (netem's `slot`).
    Slot {
        /// A packet that finds nothing waiting waits at least so long, and those that come meanwhile leave with it.
        least: Duration,
        /// It waits at most so long, all values between being equally likely.
        most: Duration,
        /// So many packets leave at once, the others wait anew.
        packets: Option<u32>,
        /// No more leave once so many bytes have left.
        bytes: Option<Bytes>,
    },
    /// Loses packets at random.
    Loss(Loss),
    /// Sends packets twice at random.
    Duplicate(Loss),
    /// Another bottleneck.
    Queue {
        /// Its rate, Ethernet headers included.
        rate: Rate,
        /// Its queue discipline.
        qdisc: QdiscLine,
    },
    /// Lets no larger packets pass.
    Mtu {
        /// The largest IP packet, in bytes.
        mtu: u32,
        /// Whether the sender is told (RFC 1191); else it is a black hole.
        icmp: bool,
    },
    /// Clears the ECN field (RFC 3168 §18 tells of such routers).
    Bleach,
    /// Drops what exceeds a rate.
    Police {
        /// The rate, Ethernet headers included.
        rate: Rate,
        /// What may exceed it at once.
        burst: Bytes,
    },
}

/// What a policer lets pass at once unless it is told.
const POLICE_BURST: Bytes = Bytes(32 << 10);

/// An element as it is written: one of its keys tells which it is, others belong to that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Fields {
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) delay: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) jitter: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reorder: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) slot: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) slot_max: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) loss: Option<Loss>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) duplicate: Option<Loss>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) qdisc: Option<QdiscLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) icmp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bleach: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) police: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub(crate) burst: Option<Bytes>,
}

/// What each element is told by, and what else it may say.
const KEYS: [(&str, &[&str]); 8] = [
    ("delay", &["jitter", "reorder"]),
    ("slot", &["slot_max", "packets", "bytes"]),
    ("loss", &[]),
    ("duplicate", &[]),
    ("rate", &["qdisc"]),
    ("mtu", &["icmp"]),
    ("bleach", &[]),
    ("police", &["burst"]),
];

impl Fields {
    /// The keys that are there.
    fn given(&self) -> Vec<&'static str> {
        let Self { delay, jitter, reorder, loss, duplicate, rate, qdisc, mtu, icmp, .. } = self;
        let all = [
            ("delay", delay.is_some()),
            ("jitter", jitter.is_some()),
            ("reorder", reorder.is_some()),
            ("slot", self.slot.is_some()),
            ("slot_max", self.slot_max.is_some()),
            ("packets", self.packets.is_some()),
            ("bytes", self.bytes.is_some()),
            ("loss", loss.is_some()),
            ("duplicate", duplicate.is_some()),
            ("rate", rate.is_some()),
            ("qdisc", qdisc.is_some()),
            ("mtu", mtu.is_some()),
            ("icmp", icmp.is_some()),
            ("bleach", self.bleach.is_some()),
            ("police", self.police.is_some()),
            ("burst", self.burst.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
    }
}

impl TryFrom<Fields> for Element {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let given = fields.given();
        let kinds: Vec<_> = KEYS.iter().filter(|(kind, _)| given.contains(kind)).collect();
        let [(kind, options)] = kinds[..] else {
            let names: Vec<&str> = KEYS.iter().map(|(kind, _)| *kind).collect();
            let names = names.join(", ");
            return Err(format!("an element of a path has exactly one of {names}"));
        };
        if let Some(key) = given.iter().find(|key| *key != kind && !options.contains(key)) {
            return Err(format!("{key} does not belong to {kind}"));
        }
        Ok(match fields {
            Fields { delay: Some(delay), jitter, reorder, .. } => Self::Delay {
                delay,
                jitter: jitter.unwrap_or_default(),
                reorder: reorder.unwrap_or(true),
            },
            Fields { slot: Some(least), slot_max, packets, bytes, .. } => {
                Self::Slot { least, most: slot_max.unwrap_or(least), packets, bytes }
            }
            Fields { loss: Some(loss), .. } => Self::Loss(loss),
            Fields { duplicate: Some(duplicate), .. } => Self::Duplicate(duplicate),
            Fields { rate: Some(rate), qdisc, .. } => {
                let qdisc = qdisc.map_or_else(|| QdiscLine::read("pfifo"), Ok)?;
                Self::Queue { rate, qdisc }
            }
            Fields { mtu: Some(mtu), icmp, .. } => Self::Mtu { mtu, icmp: icmp.unwrap_or(true) },
            Fields { police: Some(rate), burst, .. } => {
                Self::Police { rate, burst: burst.unwrap_or(POLICE_BURST) }
            }
            Fields { bleach: Some(true), .. } => Self::Bleach,
            _ => return Err("bleach is true, or not there".to_owned()),
        })
    }
}

impl From<Element> for Fields {
    fn from(element: Element) -> Self {
        let none = Self::default();
        match element {
            Element::Delay { delay, jitter, reorder } => Self {
                delay: Some(delay),
                jitter: Some(jitter).filter(|jitter| !jitter.is_zero()),
                reorder: (!reorder).then_some(false),
                ..none
            },
            Element::Slot { least, most, packets, bytes } => Self {
                slot: Some(least),
                slot_max: Some(most).filter(|most| *most != least),
                packets,
                bytes,
                ..none
            },
            Element::Loss(loss) => Self { loss: Some(loss), ..none },
            Element::Duplicate(duplicate) => Self { duplicate: Some(duplicate), ..none },
            Element::Queue { rate, qdisc } => Self { rate: Some(rate), qdisc: Some(qdisc), ..none },
            Element::Mtu { mtu, icmp } => {
                Self { mtu: Some(mtu), icmp: (!icmp).then_some(false), ..none }
            }
            Element::Bleach => Self { bleach: Some(true), ..none },
            Element::Police { rate, burst } => {
                Self { police: Some(rate), burst: Some(burst), ..none }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_back_as_what_they_were() {
        for json in [
            r#"{"delay":"5ms"}"#,
            r#"{"delay":"5ms","jitter":"2ms","reorder":false}"#,
            r#"{"slot":"2ms"}"#,
            r#"{"slot":"2ms","slot_max":"5ms","packets":32,"bytes":"64Kb"}"#,
            r#"{"loss":"1%"}"#,
            r#"{"duplicate":"0.1%"}"#,
            r#"{"rate":"100Mbit","qdisc":"pfifo limit 100"}"#,
            r#"{"mtu":1400}"#,
            r#"{"mtu":1400,"icmp":false}"#,
            r#"{"bleach":true}"#,
            r#"{"police":"20Mbit","burst":"32Kb"}"#,
        ] {
            let element: Element = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&element).unwrap(), json);
        }
    }

    #[test]
    fn what_is_no_element_is_refused() {
        for (json, message) in [
            (
                "{}",
                "an element of a path has exactly one of delay, slot, loss, duplicate, rate, mtu, bleach, police",
            ),
            (r#"{"loss":"1%","mtu":1400}"#, "an element of a path has exactly one of"),
            (r#"{"delay":"1ms","packets":3}"#, "packets does not belong to delay"),
            (r#"{"jitter":"1ms"}"#, "an element of a path has exactly one of"),
            (r#"{"loss":"1%","icmp":true}"#, "icmp does not belong to loss"),
            (r#"{"bleach":false}"#, "bleach is true, or not there"),
            (r#"{"dealy":"1ms"}"#, "unknown field `dealy`"),
        ] {
            let refused = serde_json::from_str::<Element>(json).unwrap_err().to_string();
            assert!(refused.starts_with(message), "{refused}");
        }
    }
}
