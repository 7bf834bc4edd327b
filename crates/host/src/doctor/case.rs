//! The facts, as the checks ask for them.

use std::time::Duration;

use dualq_units::{Bytes, Rate, tc_time};

use crate::facts::{Availability, Facts, Interface, Qdisc, Setting, Tunnel};

/// Disciplines that hold what they have room for.
pub(super) const FIFOS: [&str; 3] = ["pfifo_fast", "pfifo", "bfifo"];
/// Disciplines that drop or mark before their queue is full.
const MANAGING: [&str; 8] =
    ["cake", "codel", "dualpi2", "fq_codel", "fq_pie", "pie", "red", "cake_mq"];

/// Disciplines in which each flow has a queue of its own.
pub(super) const APART: [&str; 5] = ["cake", "cake_mq", "fq", "fq_codel", "fq_pie"];

/// Drivers of devices that send through another, or to a program, beside those that [`Facts::tunnels`] knows.
const OTHER_TUNNELS: [&str; 2] = ["ppp", "ipvlan"];

/// A machine, and what its user knows of its bottleneck.
pub(super) struct Case<'a> {
    pub(super) facts: &'a Facts,
    pub(super) rate: Option<Rate>,
}

impl<'a> Case<'a> {
    pub(super) fn sysctl(&self, key: &str) -> Option<&'a str> {
        self.facts.sysctls.get(key).map(String::as_str)
    }

    /// The last number of a sysctl: of the three of `tcp_rmem`, the largest.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.sysctl(key)?.split(' ').next_back()?.parse().ok()
    }

    pub(super) fn congestion_control(&self) -> &'a str {
        self.sysctl("net.ipv4.tcp_congestion_control").unwrap_or_default()
    }

    /// How many connections are under a congestion control.
    pub(super) fn connections(&self, control: &str) -> u32 {
        let connections = self.facts.connections.as_ref();
        let count = connections.and_then(|known| known.by_congestion_control.get(control));
        count.copied().unwrap_or(0)
    }

    pub(super) fn qdisc_available(&self, kind: &str) -> Option<Availability> {
        self.facts.qdiscs.get(kind).copied()
    }

    /// The interface of the preferred default route.
    pub(super) fn uplink(&self) -> Option<&'a Interface> {
        let route = self.facts.default_routes.first()?;
        self.facts.interfaces.iter().find(|interface| interface.name == route.dev)
    }

    /// The uplink, if it has a queue: and the discipline that is at its root.
    pub(super) fn root(&self) -> Option<(&'a Interface, &'a Qdisc)> {
        let uplink = self.uplink()?;
        Some((uplink, root(uplink)?))
    }

    /// Devices that are up and make the path's MTU smaller than the link's.
    pub(super) fn tunnels(&self) -> impl Iterator<Item = &'a Interface> {
        let facts = self.facts;
        facts.interfaces.iter().filter(move |interface| {
            let other = |driver: &str| OTHER_TUNNELS.contains(&driver);
            interface.up
                && (facts.tunnel(interface).is_some()
                    || interface.driver.as_deref().is_some_and(other))
        })
    }

    /// The tunnel inside of which all traffic is, if a queue sees one flow of it.
    pub(super) fn hidden(&self) -> Option<Tunnel<'a>> {
        self.facts.hidden_in()
    }

    /// The settings of a key that are read at a start; the last wins.
    pub(super) fn settings(&self, key: &str) -> impl Iterator<Item = &'a Setting> {
        self.facts.settings.iter().filter(move |setting| setting.key == key)
    }
}

pub(super) fn root(interface: &Interface) -> Option<&Qdisc> {
    interface.qdiscs.iter().find(|qdisc| qdisc.parent == "root")
}

/// The disciplines that packets wait in: those in which there is no other.
pub(super) fn leaves(interface: &Interface) -> impl Iterator<Item = &Qdisc> {
    // Disciplines that the kernel put into `mq` by itself name no parent but their queue.
    let outer = ["mq", "mqprio", "htb", "tbf", "hfsc", "prio", "netem"];
    let several = interface.leaving().count() > 1;
    interface.leaving().filter(move |qdisc| !(several && outer.contains(&qdisc.kind.as_str())))
}

/// The kind of the discipline that packets wait in, if all of them are of one.
pub(super) fn leaf_kind(interface: &Interface) -> Option<&str> {
    let mut kinds = leaves(interface).map(|qdisc| qdisc.kind.as_str());
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// The rate to which the machine itself holds what an interface sends.
pub(super) fn shaped(interface: &Interface) -> Option<Rate> {
    interface.qdiscs.iter().find_map(|qdisc| {
        let key = match qdisc.kind.as_str() {
            "htb" | "tbf" | "netem" => "rate",
            "cake" => "bandwidth",
            _ => return None,
        };
        let mut words = qdisc.options.as_deref()?.split_whitespace();
        words.find(|word| *word == key)?;
        words.next()?.to_ascii_lowercase().parse().ok()
    })
}

/// Whether something shapes, at whatever rate: dualq does not read the options of all kinds.
pub(super) fn has_shaper(interface: &Interface) -> bool {
    let kinds = ["htb", "tbf", "hfsc", "cake"];
    interface.qdiscs.iter().any(|qdisc| match qdisc.kind.as_str() {
        "cake" => !qdisc.options.as_deref().unwrap_or_default().contains("unlimited"),
        kind => kinds.contains(&kind),
    })
}

/// Whether a discipline drops or marks before its queue is full.
pub(super) fn manages(kind: &str) -> bool {
    MANAGING.contains(&kind)
}

pub(super) fn speed(interface: &Interface) -> Option<Rate> {
    interface.speed.as_deref()?.parse().ok()
}

/// What to put where a queue is to be managed: the first that the kernel has.
pub(super) fn better<'k>(case: &Case<'_>, kinds: &[&'k str]) -> Option<&'k str> {
    let has = |kind: &&&str| {
        matches!(case.qdisc_available(kind), Some(Availability::Ready | Availability::Module))
    };
    kinds.iter().find(has).copied()
}

/// A time as tc shows it.
pub(super) fn shown(time: Duration) -> String {
    tc_time::format_micros(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

/// How many bytes are on the way at `rate` in `time`.
pub(super) fn in_flight(rate: Rate, time: Duration) -> u64 {
    let bits = u128::from(rate.as_bits_per_second()) * time.as_micros() / 1_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// How long a full FIFO of `packets` is.
pub(super) fn drain(rate: Rate, packets: u32, frame: u32) -> Duration {
    rate.transmission_time(Bytes(u64::from(packets) * u64::from(frame)))
}
