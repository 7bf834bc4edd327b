//! MTU, transmit queue and offloads of interfaces; routes with properties.

use dualq_units::{Bytes, Rate};

use super::{Judge, Judgement, Verdict, qdisc};
use crate::facts::Interface;

/// `tcp: switch to GSO being always on`.
const GSO_ALWAYS_SINCE: (u32, u32) = (4, 17);
const IP_LINK: &str = "ip-link(8)";
/// The initial window of RFC 6928, in segments.
const INITIAL_WINDOW: u32 = 10;
/// What every link has to carry of IPv6.
const LEAST_MTU: u32 = 1280;
/// What every path carries of IPv4.
const LEAST_ROUTE_MTU: u32 = 576;
const MOST_MTU: u32 = 65_535;
/// Fewer are less than the first window of RFC 3390.
const LEAST_WINDOW: u32 = 4;
/// The largest packet that GSO makes, as long as nobody asks for larger ones.
const GSO_SIZE: Bytes = Bytes(65_536);
/// Linux's `txqueuelen` of Ethernet.
const USUAL_LENGTH: u32 = 1000;
/// Disciplines whose default limit is the length of the transmit queue.
const LIMITED_BY_LENGTH: [&str; 4] = ["pfifo_fast", "pfifo", "bfifo", "plug"];

impl Judge<'_> {
    pub(super) fn interface_property(
        &self,
        interface: Option<&Interface>,
        property: &str,
        value: &str,
    ) -> Judgement {
        if property == "mtu" {
            if interface.is_some_and(|interface| interface.mtu.to_string() == value) {
                return Judgement::new(Verdict::Applied, "It is so already.", IP_LINK);
            }
            let was = interface
                .map_or(String::new(), |found| format!("{} has {} now.", found.name, found.mtu));
            match value.parse::<u32>() {
                Ok(mtu) if mtu < LEAST_MTU => {
                    let why = format!(
                        "IPv6 is turned off on an interface that carries less than {LEAST_MTU} bytes, and each packet costs \
                         as much as a large one."
                    );
                    return Judgement::new(Verdict::Harmful, why, "RFC 8200 section 5").and(&was);
                }
                Ok(mtu) if mtu <= MOST_MTU => {}
                Ok(_) => {
                    let why = format!("No IP packet is longer than {MOST_MTU} bytes.");
                    return Judgement::new(Verdict::WrongHere, why, IP_LINK).and(&was);
                }
                Err(_) => {
                    let why = "Nothing tells which value it gets: it is no number.";
                    return Judgement::new(Verdict::Unknown, why, IP_LINK);
                }
            }
            let why = "It has to be what the path can carry; it has next to no effect on latency under load.";
            return Judgement::new(Verdict::Harmless, why, IP_LINK).and(&was);
        }
        let kind = self
            .qdiscs()
            .find(|(dev, _)| dev.is_none() || *dev == interface.map(|found| found.name.as_str()))
            .map(|(_, words)| qdisc::kind(words))
            .or_else(|| {
                Some(interface?.qdiscs.iter().find(|qdisc| qdisc.kind != "mq")?.kind.as_str())
            });
        let Ok(length) = value.parse::<u32>() else {
            let why = "Nothing tells which value it gets: it is no number.";
            return Judgement::new(Verdict::Unknown, why, IP_LINK);
        };
        let usual = interface.and_then(|found| found.tx_queue_len).unwrap_or(USUAL_LENGTH);
        match kind {
            Some(kind) if LIMITED_BY_LENGTH.contains(&kind) && length > usual => {
                let why = format!(
                    "It is how many packets {kind} holds, {usual} now: a longer one is a longer queue, and everybody waits \
                     behind it."
                );
                Judgement::new(Verdict::Harmful, why, IP_LINK)
            }
            Some(kind) if LIMITED_BY_LENGTH.contains(&kind) && length < INITIAL_WINDOW => {
                let why = format!(
                    "It is how many packets {kind} holds: less than the ten with which a connection may begin, so that most \
                     of them are dropped."
                );
                Judgement::new(Verdict::Harmful, why, "ip-link(8), RFC 6928")
            }
            Some(kind) if LIMITED_BY_LENGTH.contains(&kind) => {
                let why =
                    format!("It is how many packets {kind} holds: a longer one is a longer queue.");
                Judgement::new(Verdict::BearsOnLatency, why, IP_LINK)
            }
            Some(kind) => {
                let why = format!(
                    "{kind} has a limit of its own; the transmit queue's length does nothing to it."
                );
                Judgement::new(Verdict::Harmless, why, IP_LINK)
            }
            None => {
                let why = "It only counts for FIFOs; nothing tells what the interface has.";
                Judgement::new(Verdict::Unknown, why, IP_LINK)
            }
        }
    }

    pub(super) fn offload(
        &self,
        interface: Option<&Interface>,
        feature: &str,
        on: bool,
    ) -> Judgement {
        let source = "ethtool(8)";
        let short = match feature {
            "generic-segmentation-offload" => "gso",
            "tcp-segmentation-offload" => "tso",
            "generic-receive-offload" => "gro",
            "large-receive-offload" => "lro",
            other => other,
        };
        if interface.and_then(|found| found.offloads.get(short)) == Some(&on) {
            return Judgement::new(Verdict::Applied, "It is so already.", source);
        }
        match (short, on) {
            ("gso" | "tso" | "gro" | "lro", true) => {
                let why = "Large packets save the CPU work, and a queue that does not split them is less even.";
                Judgement::new(Verdict::Harmless, why, source)
            }
            ("gso" | "tso", false) => {
                if let Some(kind) = self.splits_gso(interface) {
                    let why = format!(
                        "{kind} splits large packets itself; this costs CPU and gains nothing."
                    );
                    return Judgement::new(Verdict::Harmless, why, source);
                }
                let rate = self.link.map_or(Rate::from_mbit(50), |link| link.rate);
                let time = rate.transmission_time(GSO_SIZE).as_secs_f64() * 1e3;
                if self.facts.kernel.version() < GSO_ALWAYS_SINCE {
                    let why = format!(
                        "One packet of 64 kB takes {time:.1} ms at {rate}, and others wait for it. Off, it costs CPU."
                    );
                    return Judgement::new(Verdict::BearsOnLatency, why, source);
                }
                let why = format!(
                    "One packet of 64 kB takes {time:.1} ms at {rate}, and others wait for it; but since Linux 4.17 TCP makes such packets all the \
                     same, and the kernel takes them apart behind the queue. `ip link set dev DEV gso_max_segs 1` is what keeps them single."
                );
                Judgement::new(Verdict::WrongHere, why, "net/core/sock.c: sk_setup_caps")
            }
            ("gro" | "lro", false) => {
                let why = "Packets that come in are no longer joined: a router then queues single ones, at the price of CPU.";
                Judgement::new(Verdict::Harmless, why, source)
            }
            _ => {
                let why = "It has no effect on latency under load that dualq knows of.";
                Judgement::new(Verdict::Harmless, why, source)
            }
        }
    }

    /// `ip route … mtu 1400 initcwnd 32`.
    pub(super) fn route(&self, properties: &[(String, String)]) -> Judgement {
        let source = "ip-route(8)";
        let property =
            |name: &str| properties.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        if let Some(window) = property("initcwnd").and_then(|window| window.parse::<u32>().ok())
            && window > INITIAL_WINDOW
        {
            let burst = Bytes(u64::from(window) * 1500);
            let rate = self.link.map_or(Rate::from_mbit(50), |link| link.rate);
            let why = format!(
                "Each connection begins with {window} segments at once: a queue of {:.1} ms at {rate}. Ten is what \
                 is agreed upon.",
                rate.transmission_time(burst).as_secs_f64() * 1e3
            );
            return Judgement::new(Verdict::Harmful, why, "ip-route(8), RFC 6928");
        }
        for window in ["initcwnd", "initrwnd", "cwnd"] {
            if let Some(size) = property(window).and_then(|size| size.parse::<u32>().ok())
                && (1..LEAST_WINDOW).contains(&size)
            {
                let why = format!(
                    "{window} {size}: connections begin with {size} segments instead of ten, and take more round trips for all \
                     that they carry."
                );
                return Judgement::new(Verdict::Harmful, why, "ip-route(8), RFC 6928");
            }
        }
        if let Some(mtu) = property("mtu").and_then(|mtu| mtu.parse::<u32>().ok())
            && mtu < LEAST_ROUTE_MTU
        {
            let why = format!(
                "No path needs packets of {mtu} bytes: each carries {LEAST_ROUTE_MTU} (RFC 791), and those of IPv6 {LEAST_MTU}."
            );
            return Judgement::new(Verdict::Harmful, why, "RFC 791, RFC 8200 section 5");
        }
        if let Some(control) = property("congctl") {
            let why =
                format!("Connections over this route use {control}, whatever the sysctl says.");
            return Judgement::new(Verdict::BearsOnLatency, why, source);
        }
        let why = "It changes packet sizes or windows on this route; it has next to no effect on latency under load.";
        Judgement::new(Verdict::Harmless, why, source)
    }
}
