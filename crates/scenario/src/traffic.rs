//! What flows carry beside bulk: transfers that arrive at random, and UDP.

use std::time::Duration;

use dualq_qdisc::SplitMix64;
use dualq_units::{Bytes, Ecn, Rate};
use serde::{Deserialize, Serialize};

use crate::path::Direction;
use crate::scenario::{FlowGroup, Setup};
use crate::words::{Word, known, named, optional_word, word};

/// When the flows of a group start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrivals {
    /// Each as long after the one before as the spacing says.
    #[default]
    Even,
    /// At random, the spacing being the mean: a Poisson process.
    Poisson,
}

impl Arrivals {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Even, Self::Poisson];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }

    pub(crate) const fn is_even(&self) -> bool {
        matches!(self, Self::Even)
    }
}

named!(Arrivals, "kind of arrivals");

/// When a flow starts, and how much it has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When it starts.
    pub start: Duration,
    /// Its bytes; none if it has no end.
    pub size: Option<Bytes>,
}

impl FlowGroup {
    /// When each flow of the group starts, and its size. What is random in it is the same in every world and in every run: it follows
    /// from the group's number.
    pub fn transfers(&self, number: usize) -> impl Iterator<Item = Transfer> {
        let mut random = SplitMix64::new(number as u64 + 1);
        let mut next = self.start;
        (0..self.count).map(move |flow| {
            if flow > 0 {
                let gap = match self.arrivals {
                    Arrivals::Even => self.spacing,
                    Arrivals::Poisson => exponential(self.spacing, random.next_u64()),
                };
                next = next.saturating_add(gap);
            }
            Transfer {
                start: next,
                size: self.size.as_ref().map(|size| size.draw(random.next_u64())),
            }
        })
    }
}

/// A time of an exponential distribution, drawn by a number each of which is equally likely.
fn exponential(mean: Duration, random: u64) -> Duration {
    // Within (0, 1].
    let share = (random as f64 + 1.0) / 2_f64.powi(64);
    // One library for all platforms: their own logarithms differ in the last bit.
    mean.mul_f64(-libm::log(share))
}

/// What UDP packets are sent for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UdpKind {
    /// A constant rate, whatever the path does.
    #[default]
    Cbr,
    /// A call: 20 ms of G.711 speech in each packet (RFC 3551 §4.5.14: 160 bytes, and 40 of IP, UDP and RTP).
    Voice,
    /// A game that tells its state 60 times a second, in packets of 128 bytes.
    Game,
}

impl UdpKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cbr, Self::Voice, Self::Game];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cbr => "cbr",
            Self::Voice => "voice",
            Self::Game => "game",
        }
    }

    /// Its packets and how often it sends one, unless it is told.
    pub(crate) const fn pattern(self) -> (u32, Option<Duration>) {
        match self {
            Self::Cbr => (1500, None),
            Self::Voice => (200, Some(Duration::from_millis(20))),
            Self::Game => (128, Some(Duration::from_nanos(16_666_667))),
        }
    }
}

named!(UdpKind, "kind of UDP traffic");

/// The codepoints that a sender may give its packets, with the words for them.
const CODEPOINTS: [(Ecn, &str); 3] =
    [(Ecn::NotEct, "not-ect"), (Ecn::Ect0, "ect0"), (Ecn::Ect1, "ect1")];

impl Word for Ecn {
    fn read(word: &str) -> Result<Self, String> {
        let name = |(_, name): (Self, &'static str)| name;
        known("ECN codepoint", word, &CODEPOINTS, name).map(|(ecn, _)| ecn)
    }

    fn write(&self) -> String {
        let found = CODEPOINTS.iter().find(|(ecn, _)| ecn == self);
        found.map_or("ce", |(_, name)| name).to_owned()
    }
}

/// What the link layer adds to an IP packet where rates are counted.
const ETHERNET: u32 = dualq_tcp::ETHERNET_BYTES;

/// Streams of UDP packets that are alike. They heed nothing that the path does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpGroup {
    /// What for.
    #[serde(with = "word")]
    pub kind: UdpKind,
    /// The length of each IP packet, in bytes.
    pub packet: u32,
    /// How long after one packet the next is sent.
    #[serde(with = "word")]
    pub interval: Duration,
    /// How many streams.
    pub count: u32,
    /// What is in their ECN field.
    #[serde(with = "word")]
    pub ecn: Ecn,
    /// Which way they go.
    #[serde(default, skip_serializing_if = "Direction::is_down", with = "word")]
    pub direction: Direction,
    /// When they start: each a part of the interval after the one before, so that they do not send at the same moment.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "word")]
    pub start: Duration,
    /// When they stop; no end without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub stop: Option<Duration>,
}

impl Default for UdpGroup {
    fn default() -> Self {
        let (packet, interval) = UdpKind::Voice.pattern();
        Self {
            kind: UdpKind::Voice,
            packet,
            interval: interval.unwrap_or_default(),
            count: 1,
            ecn: Ecn::NotEct,
            direction: Direction::Down,
            start: Duration::ZERO,
            stop: None,
        }
    }
}

impl UdpGroup {
    /// The interval at which packets of this size make up `rate`, Ethernet headers included.
    #[must_use]
    pub fn interval_for(rate: Rate, packet: u32) -> Duration {
        rate.transmission_time(Self::bytes_on_the_wire(packet))
    }

    pub(crate) fn bytes_on_the_wire(packet: u32) -> Bytes {
        Bytes(u64::from(packet + ETHERNET))
    }

    /// When the stream of a number starts.
    #[must_use]
    pub fn start_of(&self, number: u32) -> Duration {
        self.start + self.interval * number / self.count.max(1)
    }
}

impl Setup {
    /// The groups of flows, the streams of UDP and the probes, all of which have an address of their own.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.flow.len() + self.udp.len() + self.probe.len()
    }
}

#[cfg(test)]
mod tests {
    use dualq_tcp::Algorithm;

    use super::*;
    use crate::sizes::Size;

    fn web(size: Size) -> FlowGroup {
        FlowGroup {
            count: 20_000,
            arrivals: Arrivals::Poisson,
            spacing: Duration::from_millis(10),
            size: Some(size),
            ..FlowGroup::of(Algorithm::Cubic)
        }
    }

    #[test]
    fn arrivals_have_their_mean_and_spread() {
        let starts: Vec<f64> = web(Size::Fixed(Bytes(1)))
            .transfers(0)
            .map(|transfer| transfer.start.as_secs_f64())
            .collect();
        let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // An exponential distribution's deviation is its mean; of 20,000 both are known to about a hundredth.
        assert!((mean / 0.01 - 1.0).abs() < 0.03, "{mean}");
        assert!((square.sqrt() / 0.01 - 1.0).abs() < 0.05, "{}", square.sqrt());
    }

    #[test]
    fn sizes_are_distributed_as_measured() {
        let sizes = |size: Size| -> Vec<u64> {
            web(size).transfers(3).filter_map(|transfer| transfer.size).map(|b| b.0).collect()
        };
        let below = |sizes: &[u64], bytes: u64| {
            sizes.iter().filter(|size| **size <= bytes).count() as f64 / sizes.len() as f64
        };
        for word in ["web-search", "data-mining", "1000:0.25 2000:0.5 1000000:1"] {
            let size = Size::read(word).unwrap();
            let sizes = sizes(size.clone());
            let Size::Measured(distribution) = size else { unreachable!("it is one") };
            for (bytes, wanted) in distribution.points() {
                let share = below(&sizes, bytes.0);
                assert!((share - wanted).abs() < 0.015, "{word}: {share} {wanted}");
            }
        }
        let sizes = sizes(Size::read("1kb..1mb").unwrap());
        assert!((below(&sizes, 32 << 10) - 0.5).abs() < 0.015);
        assert!(sizes.iter().all(|size| (1 << 10..=1 << 20).contains(size)));
    }

    #[test]
    fn groups_draw_differently_and_always_the_same() {
        let group = web(Size::read("1kb..1mb").unwrap());
        let of = |number| group.transfers(number).take(5).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn a_constant_rate_is_counted_as_links_count() {
        let interval = UdpGroup::interval_for(Rate::from_mbit(12), 1486);
        assert_eq!(interval, Duration::from_millis(1));
        let group = UdpGroup { count: 4, interval, ..UdpGroup::default() };
        assert_eq!(group.start_of(3), Duration::from_micros(750));
    }
}
