//! What flows carry beside bulk: transfers that arrive at random, sizes that differ, and UDP.

use std::time::Duration;

use dualq_qdisc::SplitMix64;
use dualq_units::{Bytes, Ecn, Exact, Rate};
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

/// How many bytes the transfers of a group have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All the same.
    Fixed(Bytes),
    /// Between two sizes, their logarithms being equally likely.
    LogUniform(Bytes, Bytes),
    /// As in a distribution that others measured.
    Measured(&'static Distribution),
}

/// A distribution of sizes that others measured.
#[derive(Debug, PartialEq, Eq)]
pub struct Distribution {
    name: &'static str,
    /// Sizes in bytes, with the share in thousandths of transfers that are no larger; straight lines between them.
    points: &'static [(u64, u16)],
}

/// The packets that these distributions are counted in.
const PACKET: u64 = 1460;

/// The distributions that are known by name.
const DISTRIBUTIONS: [Distribution; 2] = [
    // The flows of a cluster that answers web searches: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4, in the
    // points that simulations of "pFabric" (SIGCOMM 2013) made of it.
    Distribution {
        name: "web-search",
        points: &[
            (PACKET, 0),
            (6 * PACKET, 150),
            (13 * PACKET, 200),
            (19 * PACKET, 300),
            (33 * PACKET, 400),
            (53 * PACKET, 530),
            (133 * PACKET, 600),
            (667 * PACKET, 700),
            (1_333 * PACKET, 800),
            (3_333 * PACKET, 900),
            (6_667 * PACKET, 970),
            (20_000 * PACKET, 1000),
        ],
    },
    // The flows of a cluster that mines data: Greenberg et al., "VL2", SIGCOMM 2009, figure 2, in the points of the same simulations.
    Distribution {
        name: "data-mining",
        points: &[
            (PACKET, 500),
            (2 * PACKET, 600),
            (3 * PACKET, 700),
            (7 * PACKET, 800),
            (267 * PACKET, 900),
            (2_107 * PACKET, 950),
            (66_667 * PACKET, 990),
            (666_667 * PACKET, 1000),
        ],
    },
];

impl Distribution {
    /// The size below which a share of all transfers is, given in units of 2⁻⁶⁴.
    fn quantile(&self, share: u64) -> Bytes {
        let thousandths = share as f64 / 2_f64.powi(64) * 1000.0;
        let mut before = self.points[0];
        for point in self.points {
            if thousandths <= f64::from(point.1) {
                let width = f64::from(point.1 - before.1);
                let part =
                    if width > 0.0 { (thousandths - f64::from(before.1)) / width } else { 1.0 };
                let bytes = before.0 as f64 + (point.0 - before.0) as f64 * part.max(0.0);
                return Bytes(bytes.round() as u64);
            }
            before = *point;
        }
        Bytes(before.0)
    }
}

impl Size {
    /// The size of a transfer, drawn by a number each of which is equally likely.
    fn draw(self, random: u64) -> Bytes {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::LogUniform(Bytes(least), Bytes(most)) => {
                let part = random as f64 / 2_f64.powi(64);
                let bytes = least as f64 * libm::pow(most as f64 / least as f64, part);
                Bytes((bytes.round() as u64).clamp(least, most))
            }
            Self::Measured(distribution) => distribution.quantile(random),
        }
    }

    /// Whether all transfers are equally large.
    #[must_use]
    pub const fn is_fixed(self) -> bool {
        matches!(self, Self::Fixed(_))
    }
}

impl From<Bytes> for Size {
    fn from(bytes: Bytes) -> Self {
        Self::Fixed(bytes)
    }
}

impl Word for Size {
    fn read(word: &str) -> Result<Self, String> {
        if let Some(known) = DISTRIBUTIONS.iter().find(|known| known.name == word) {
            return Ok(Self::Measured(known));
        }
        let names = DISTRIBUTIONS.each_ref().map(|known| known.name).join(" or ");
        let read = |word: &str| {
            Bytes::read(word.trim())
                .map_err(|error| format!("{error}, a range such as 10kb..2mb, or {names}"))
        };
        let Some((least, most)) = word.split_once("..") else { return read(word).map(Self::Fixed) };
        let (least, most) = (read(least)?, read(most)?);
        if least >= most {
            let (least, most) = (Exact(least), Exact(most));
            return Err(format!("{least} is not less than {most}"));
        }
        Ok(Self::LogUniform(least, most))
    }

    fn write(&self) -> String {
        match self {
            Self::Fixed(bytes) => bytes.write(),
            Self::LogUniform(least, most) => format!("{}..{}", least.write(), most.write()),
            Self::Measured(distribution) => distribution.name.to_owned(),
        }
    }
}

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
            Transfer { start: next, size: self.size.map(|size| size.draw(random.next_u64())) }
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
        rate.transmission_time(Bytes(u64::from(packet + ETHERNET)))
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
        for distribution in &DISTRIBUTIONS {
            let sizes = sizes(Size::Measured(distribution));
            for (bytes, thousandths) in distribution.points {
                let (share, wanted) = (below(&sizes, *bytes), f64::from(*thousandths) / 1000.0);
                assert!((share - wanted).abs() < 0.015, "{}: {share} {wanted}", distribution.name);
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
    fn sizes_are_written_as_they_are_read() {
        for word in ["10Kb", "1Kb..2Mb", "web-search", "data-mining"] {
            assert_eq!(Size::read(word).unwrap().write(), word);
        }
        assert_eq!(Size::read("2mb..1mb").unwrap_err(), "2Mb is not less than 1Mb");
        assert!(Size::read("web").unwrap_err().ends_with("or web-search or data-mining"));
    }

    #[test]
    fn a_constant_rate_is_counted_as_links_count() {
        let interval = UdpGroup::interval_for(Rate::from_mbit(12), 1486);
        assert_eq!(interval, Duration::from_millis(1));
        let group = UdpGroup { count: 4, interval, ..UdpGroup::default() };
        assert_eq!(group.start_of(3), Duration::from_micros(750));
    }
}
