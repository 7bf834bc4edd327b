//! What is wished for.

use std::time::Duration;

use dualq_units::Rate;

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

/// What is wished for. What is left open follows from the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// What the machine is for.
    pub profile: Profile,
    /// The rate of the bottleneck: a shaper is put before it.
    pub rate: Option<Rate>,
    /// The interface; without it, that of the default route.
    pub dev: Option<String>,
    /// The congestion control; without it, the one there is, or the profile's.
    pub cc: Option<String>,
    /// A queue discipline in tc's grammar instead of the one that dualq would choose.
    pub qdisc: Option<String>,
    /// The round-trip time of the paths that matter; without it, what existing connections have seen.
    pub rtt: Option<Duration>,
    /// The folder of records that is to be used, if it is not the usual one: what runs at boot has to know of it.
    pub state: Option<String>,
    /// On FreeBSD, a route with a smaller MTU.
    pub route: Option<StaticRoute>,
}

/// A route that is put in place at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// The destination with its prefix length: `10.4.0.0/16`.
    pub to: String,
    /// The router's address.
    pub via: String,
    /// In bytes.
    pub mtu: u32,
}
