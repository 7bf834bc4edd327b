//! What is asked of a plan.

use std::net::IpAddr;
use std::time::Duration;

use dualq_units::Rate;
use serde::{Deserialize, Serialize};

use super::{ClassId, Destination};
use crate::Facts;

/// What a machine is mostly for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Short answers while large transfers run beside them.
    #[default]
    LowLatency,
    /// Large transfers.
    Bulk,
    /// DCTCP and marking, in a network whose every host and switch is one's own.
    Datacenter,
    /// Forwarding for others: only the queue matters.
    Gateway,
}

impl Profile {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowLatency => "low-latency",
            Self::Bulk => "bulk",
            Self::Datacenter => "datacenter",
            Self::Gateway => "gateway",
        }
    }

    /// Whether the machine's own TCP matters.
    pub(super) const fn sends(self) -> bool {
        !matches!(self, Self::Gateway)
    }
}

impl Profile {
    /// The profile that fits a machine about which nothing else is said: a router forwards for others.
    #[must_use]
    pub fn fitting(facts: &Facts) -> Self {
        let forwards = |key: &str| facts.sysctls.get(key).is_some_and(|value| value.trim() == "1");
        let router = facts.distribution.id == "openwrt" || forwards("net.ipv4.ip_forward");
        if router { Self::Gateway } else { Self::LowLatency }
    }
}

/// What the choice of a queue discipline is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// The shortest answers under load, as long as no more than a twentieth of the throughput is lost.
    #[default]
    Latency,
    /// The most throughput, and among equals the shortest answers.
    Throughput,
    /// Equal shares, and among equals the shortest answers.
    Fair,
}

impl Aim {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Fair => "fair",
        }
    }

    /// Whether it is the one that nobody has to name.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// What kind of link the bottleneck is: what it adds to each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// VDSL2 with PPPoE.
    Dsl,
    /// Cable.
    Docsis,
    /// Ethernet.
    Ethernet,
}

impl LinkKind {
    /// cake's word for it (tc-cake(8)).
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Dsl => "pppoe-ptm",
            Self::Docsis => "docsis",
            Self::Ethernet => "ethernet",
        }
    }
}

/// What is asked of a plan. What is left open follows from the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// What the machine is for.
    pub profile: Profile,
    /// What the queue discipline is chosen for.
    pub aim: Aim,
    /// The rate of the bottleneck, wherever it is. The shaper that is put before it is a little slower.
    pub rate: Option<Rate>,
    /// The rate of the bottleneck of what arrives. What is put behind it here is a little slower.
    pub down: Option<Rate>,
    /// The interface; without it, that of the default route.
    pub dev: Option<String>,
    /// The class below which the queue discipline is put, of a tree that somebody else made: that stays, and what it limits is not shaped
    /// again. Without it, the discipline is the interface's own.
    pub parent: Option<ClassId>,
    /// The congestion control; without it, the one there is, or the profile's.
    pub cc: Option<String>,
    /// A queue discipline in tc's grammar instead of the one that dualq would choose.
    pub qdisc: Option<String>,
    /// The same for what arrives.
    pub down_qdisc: Option<String>,
    /// The round-trip time of the paths that matter; without it, what existing connections have seen.
    pub rtt: Option<Duration>,
    /// The folder of records that is to be used, if it is not the usual one: what runs at boot has to know of it.
    pub state: Option<String>,
    /// Whether all that matters travels inside one tunnel, so that a queue sees one flow.
    pub tunnel: bool,
    /// Whether the senders are scalable: Prague, or DCTCP in a network of one's own.
    pub scalable: bool,
    /// What kind of link the bottleneck is.
    pub link: Option<LinkKind>,
    /// Whether what puts packets together may be limited, where others wait for it.
    pub offloads: bool,
    /// On FreeBSD, a route with a smaller MTU.
    pub route: Option<StaticRoute>,
    /// Further interfaces; everything above that is not theirs holds for them too.
    pub others: Vec<Wish>,
}

/// What is asked of a further interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The interface.
    pub dev: String,
    /// As [`Requirements::parent`].
    pub parent: Option<ClassId>,
    /// As [`Requirements::rate`].
    pub rate: Option<Rate>,
    /// As [`Requirements::down`].
    pub down: Option<Rate>,
    /// As [`Requirements::qdisc`].
    pub qdisc: Option<String>,
    /// As [`Requirements::down_qdisc`].
    pub down_qdisc: Option<String>,
}

impl Requirements {
    /// What is asked of each interface, as if it were the only one.
    pub(super) fn each(&self) -> Vec<Self> {
        let alone = Self { others: Vec::new(), ..self.clone() };
        let others = self.others.iter().map(|wish| {
            let Wish { dev, parent, rate, down, qdisc, down_qdisc } = wish.clone();
            Self { dev: Some(dev), parent, rate, down, qdisc, down_qdisc, ..alone.clone() }
        });
        std::iter::once(alone.clone()).chain(others).collect()
    }
}

/// A route that is put in place at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// The destination.
    pub to: Destination,
    /// The router's address.
    pub via: IpAddr,
    /// In bytes.
    pub mtu: u32,
}
