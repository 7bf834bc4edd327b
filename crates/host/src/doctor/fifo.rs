//! Queues that grow until they are full.

use std::time::Duration;

use dualq_units::{Bytes, Rate};

use super::case::{Case, FIFOS, better, has_shaper, leaves, shaped, shown, speed};
use super::{Finding, Harm};
use crate::facts::{Interface, Qdisc};

/// Packets from which a FIFO is called long, whatever its rate: Linux's default `txqueuelen`.
pub(crate) const LONG: u64 = 1000;
/// A queue as long as this is felt.
const LATE: Duration = Duration::from_millis(50);
/// Less can hardly be held: no sender keeps fewer packets on the way.
const FEW: u64 = 12;
/// The rate in an example.
const SLOW: Rate = Rate::from_mbit(50);

/// Disciplines whose classes get a `pfifo` of the kernel's own, which `tc qdisc show` does not show, if nobody gives them another.
const CLASSFUL: [&str; 2] = ["htb", "hfsc"];

/// How much a FIFO holds: in its own words, and in bytes.
fn capacity(interface: &Interface, qdisc: &Qdisc) -> Option<(String, u64)> {
    let frame = u64::from(interface.mtu.saturating_add(14));
    let mut options = qdisc.options.as_deref().unwrap_or_default().split_whitespace();
    let limit = options.find(|word| *word == "limit").and_then(|_| options.next());
    let packets = |packets: u64| (format!("{packets} packets"), packets.saturating_mul(frame));
    let usual = || interface.tx_queue_len.map(|length| packets(length.into()));
    match (qdisc.kind.as_str(), limit) {
        ("pfifo", Some(limit)) => limit.trim_end_matches('p').parse().ok().map(packets),
        ("bfifo", Some(limit)) => {
            let Bytes(bytes) = limit.to_ascii_lowercase().parse().ok()?;
            Some((limit.to_owned(), bytes))
        }
        (kind, _) if FIFOS.contains(&kind) || CLASSFUL.contains(&kind) => usual(),
        _ => None,
    }
}

/// From when on a queue that is emptied at this rate is felt. A few packets take that long themselves where the link is slow.
pub(crate) fn late(rate: Rate, packet: u64) -> Duration {
    LATE.max(rate.transmission_time(Bytes(FEW * packet)))
}

pub(super) fn long_fifo(case: &Case<'_>) -> Option<Finding> {
    let (uplink, root) = case.root()?;
    let name = &uplink.name;
    let (leaf, (holds, bytes)) =
        leaves(uplink).find_map(|leaf| Some((leaf, capacity(uplink, leaf)?)))?;
    let late = |rate: Rate| late(rate, u64::from(uplink.mtu.saturating_add(14)));
    let long = bytes >= LONG * u64::from(uplink.mtu);
    let at = |rate: Rate| rate.transmission_time(Bytes(bytes));
    let (harm, how_long) = match shaped(uplink).or_else(|| speed(uplink)) {
        Some(rate) if at(rate) >= late(rate) => {
            (Harm::High, format!("{} at {rate}", shown(at(rate))))
        }
        _ if !long => return None,
        Some(rate) => (Harm::Low, format!("{} at {rate}", shown(at(rate)))),
        // How fast a virtual device is, it does not say.
        None => {
            let rate = case.rate.unwrap_or(SLOW);
            (Harm::Medium, format!("{} at {rate}, if that is how fast it is", shown(at(rate))))
        }
    };
    let classful = CLASSFUL.contains(&leaf.kind.as_str());
    let kind = &leaf.kind;
    let cure = match better(case, &["fq_codel", "fq", "dualpi2", "pie"]) {
        None => {
            let module =
                case.facts.buildable().map_or(String::new(), |it| format!(" Or {}.", it.advice()));
            format!(
                "A kernel with fq_codel or dualpi2, for this one has nothing that manages a queue.{module} A shorter FIFO (`ip link set {name} txqueuelen 100`) lets \
                 packets wait less and loses more of them at once: `dualq plan --rate` simulates one, and leaves the queue alone where it would be worse."
            )
        }
        Some(better) if classful => {
            format!(
                "`tc qdisc add dev {name} parent CLASS {better}` for each class that sends, or `dualq plan`."
            )
        }
        Some(better) if root.kind == "mq" => format!(
            "`dualq plan` puts one below mq for each transmit queue; by hand, `tc qdisc replace dev {name} parent CLASS {better}` for each \
             (`tc class show dev {name}`)."
        ),
        Some(better) if has_shaper(uplink) && leaf != root => {
            format!(
                "`tc qdisc replace dev {name} parent {} {better}`, or `dualq plan`.",
                leaf.parent
            )
        }
        Some(better) => format!("`tc qdisc replace dev {name} root {better}`, or `dualq plan`."),
    };
    Some(Finding {
        id: "long-fifo",
        harm,
        seen: if classful {
            format!(
                "{name} has {kind} with nothing inside, so that each class is a FIFO of {holds}."
            )
        } else {
            format!("{name} has {kind}, which holds {holds}.")
        },
        why: format!(
            "A FIFO lets its queue grow until it is full, and everybody waits behind it: this one holds {how_long}."
        ),
        cure,
        source: "RFC 7567 section 2",
    })
}
