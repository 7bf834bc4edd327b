//! What is simulated: the same object that result documents and reference files carry as JSON.

use std::fmt;
use std::time::Duration;

use dualq_units::{Bytes, Rate, tc_time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The congestion controls that there are, by the kernel's names.
pub const CONGESTION_CONTROLS: [&str; 4] = ["reno", "cubic", "dctcp", "bbr"];

/// The kinds of probes that there are.
pub const PROBE_KINDS: [&str; 2] = ["ssh", "ping"];

/// How much later than it wanted a program wakes that sleeps, in every world: Linux's default (`PR_SET_TIMERSLACK`, prctl(2)).
pub const TIMER_SLACK: Duration = Duration::from_micros(50);

/// A dumbbell: flows and probes from senders of their own, across one bottleneck, to one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// How long it runs.
    #[serde(with = "time")]
    pub duration: Duration,
    /// Figures are taken from here to the end.
    #[serde(with = "time")]
    pub warmup: Duration,
    /// The bottleneck.
    pub link: Link,
    /// The senders' interfaces.
    pub sender: SenderSide,
    /// The receiving program.
    pub receiver: ReceiverSide,
    /// Groups of flows.
    pub flow: Vec<FlowGroup>,
    /// Probes.
    pub probe: Vec<ProbeGroup>,
    /// The interval of the time series.
    #[serde(
        default = "default_interval",
        skip_serializing_if = "is_default_interval",
        with = "time"
    )]
    pub interval: Duration,
    /// The length of a jiffy: the senders' kernels look at some things only so often. The reference kernel's is 10 ms.
    #[serde(default = "default_tick", skip_serializing_if = "is_default_tick", with = "time")]
    pub tick: Duration,
}

pub(crate) const DEFAULT_TICK: Duration = Duration::from_millis(10);

pub(crate) const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

const fn default_interval() -> Duration {
    DEFAULT_INTERVAL
}

fn is_default_interval(interval: &Duration) -> bool {
    *interval == DEFAULT_INTERVAL
}

const fn default_tick() -> Duration {
    DEFAULT_TICK
}

fn is_default_tick(tick: &Duration) -> bool {
    *tick == DEFAULT_TICK
}

/// The bottleneck link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its rate, Ethernet headers included.
    #[serde(with = "text")]
    pub rate: Rate,
    /// The base round-trip time.
    #[serde(with = "time")]
    pub rtt: Duration,
    /// How much of it is on the way there, behind the queue; the rest is on the way back.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "time")]
    pub forward: Duration,
    /// The queue discipline, in tc's words.
    pub qdisc: String,
    /// Random loss of packets behind the queue.
    pub loss: Loss,
    /// The largest IP packet.
    pub mtu: u32,
}

/// The interface of each sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderSide {
    /// Its queue discipline, in tc's words: `fq`, `pfifo` or `netem loss`.
    pub qdisc: String,
    /// Whether whole aggregates reach the bottleneck.
    pub gso: bool,
}

/// The receiving program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverSide {
    /// It reads at most this often.
    #[serde(with = "time")]
    pub read_interval: Duration,
}

/// Flows that are alike; they start 50 ms apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowGroup {
    /// The congestion control, by the kernel's name.
    pub cc: String,
    /// How many.
    pub count: u32,
    /// Whether they ask for ECN.
    pub ecn: bool,
    /// Bytes to send; no end without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "size")]
    pub size: Option<Bytes>,
    /// When the first of them starts.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "time")]
    pub start: Duration,
    /// When they have nothing more to send; no end without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "end")]
    pub stop: Option<Duration>,
}

/// A connection that asks and is answered, as a person at a terminal does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeGroup {
    /// What kind: `ssh`, a small request and response over TCP, or `ping`, an ICMP echo.
    pub kind: String,
    /// The pause after each answer of `ssh`; between one `ping` and the next.
    #[serde(with = "time")]
    pub interval: Duration,
    /// The congestion control, by the kernel's name.
    pub cc: String,
    /// Whether it asks for ECN.
    pub ecn: bool,
}

/// A probability of loss, written as percent (`0.01%`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// In units of 2⁻³².
    threshold: u64,
}

impl Loss {
    /// No loss at all.
    pub const NONE: Self = Self { threshold: 0 };

    /// That many percent, within 0 and 100.
    #[must_use]
    pub fn from_percent(percent: f64) -> Self {
        let share = (percent / 100.0).clamp(0.0, 1.0);
        Self { threshold: (share * 4_294_967_296.0).round() as u64 }
    }

    /// That share of 2³² - 1, as netem counts probabilities.
    #[must_use]
    pub const fn from_threshold(threshold: u32) -> Self {
        Self { threshold: threshold as u64 }
    }

    /// In percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        self.threshold as f64 / 42_949_672.96
    }

    /// Whether a packet is lost whose random number is `random`.
    #[must_use]
    #[inline]
    pub const fn strikes(self, random: u32) -> bool {
        (random as u64) < self.threshold
    }

    /// Whether nothing is ever lost.
    #[must_use]
    #[inline]
    pub const fn is_none(self) -> bool {
        self.threshold == 0
    }

    /// Reads a percentage, with or without its sign.
    ///
    /// # Errors
    /// If `word` is none.
    pub fn parse(word: &str) -> Result<Self, String> {
        let number = word.trim().trim_end_matches('%');
        match number.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::from_percent(percent)),
            _ => Err(format!("{word:?} is not a loss rate: a percentage such as 0.1%")),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Seven digits are more than any loss rate is known to, and hide the binary rounding.
        let rounded = (self.percent() * 1e7).round() / 1e7;
        write!(f, "{rounded}%")
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::parse(&word).map_err(serde::de::Error::custom)
    }
}

/// A time without rounding: `2.5s`, `48.33ms`.
pub(crate) fn show_time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    if time.as_secs() > 0 { format!("{}s", nanos / 1e9) } else { format!("{}ms", nanos / 1e6) }
}

/// Quantities that read and write themselves in tc's words.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

/// A time such as `48.33ms`.
mod time {
    use super::{Deserialize, Deserializer, Duration, Serializer, show_time, tc_time};

    pub(super) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&show_time(*value))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let word = String::deserialize(deserializer)?;
        tc_time::parse(&word).map_err(serde::de::Error::custom)
    }
}

/// A time, if there is one.
mod end {
    use super::{Deserialize, Deserializer, Duration, Serializer, show_time, tc_time};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(time) => serializer.collect_str(&show_time(*time)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let word = Option::<String>::deserialize(deserializer)?;
        word.map(|word| tc_time::parse(&word).map_err(serde::de::Error::custom)).transpose()
    }
}

/// A size such as `10mb`, if there is one.
mod size {
    use super::{Bytes, Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(size) => serializer.collect_str(size),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let word = Option::<String>::deserialize(deserializer)?;
        word.map(|word| word.parse().map_err(serde::de::Error::custom)).transpose()
    }
}
