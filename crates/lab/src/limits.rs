//! Limits of the machine, which no scenario speaks of: what the kernel counts where one was met.

use std::collections::BTreeMap;
use std::fs;

use dualq_namespace::Namespace;
use dualq_netlink::{Handle, Netlink};
use dualq_qdisc::Spec;
use dualq_scenario::{Limit, Scenario};

use crate::LabError;
use crate::network::{Hop, Network};

/// What TCP counts in a namespace (`TcpExt` of `/proc/net/netstat`) where it threw away, or held back, for want of room.
const TCP: [(&str, &str); 11] = [
    ("TCPBacklogDrop", "packets were dropped, as a busy socket's backlog was full"),
    ("TCPRcvQDrop", "packets were dropped, as a receive buffer was full"),
    ("TCPOFODrop", "packets were dropped, as there was no room for what is out of order"),
    ("RcvPruned", "packets were dropped, as a receive buffer was full even when it was pruned"),
    ("OfoPruned", "what was out of order was thrown away, as a receive buffer was full"),
    ("TCPZeroWindowDrop", "packets were dropped, as they came into a closed window"),
    ("TCPMemoryPressures", "TCP came under memory pressure (net.ipv4.tcp_mem)"),
    ("TCPAbortOnMemory", "connections were ended for want of memory"),
    ("PFMemallocDrop", "packets were dropped for want of memory"),
    ("TCPWqueueTooBig", "segments could not be split, as a send buffer was full"),
    ("ListenDrops", "connections were not accepted"),
];
/// The columns of `/proc/net/dev` behind the name: packets that a device dropped which came, and which went.
const DEVICE: [(usize, &str); 2] = [(3, "rx_dropped"), (11, "tx_dropped")];

/// What was counted, by place and counter, with the words for it.
type Counts = BTreeMap<(String, String), (&'static str, u64)>;

/// The books of limits.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Whether the senders' interfaces lose packets on purpose.
    senders_lose: bool,
    before: Counts,
}

/// Packets that nobody had room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    pub(crate) by_taps: u64,
    pub(crate) by_watcher: u64,
    pub(crate) udp: u64,
}

impl Limits {
    /// Opens the books: what was counted before is somebody else's.
    pub(crate) fn open(network: &Network, scenario: &Scenario) -> Result<Self, LabError> {
        let senders_lose =
            scenario.sender.qdisc.levels().any(|spec| matches!(spec, Spec::Netem(_)));
        Ok(Self { senders_lose, before: counts(network, senders_lose)? })
    }

    /// What was met since, of all that is counted.
    pub(crate) fn met(&self, network: &Network, unseen: Unseen) -> Result<Vec<Limit>, LabError> {
        let mut now = counts(network, self.senders_lose)?;
        for (at, counter, what, count) in [
            (
                "router",
                "PACKET_STATISTICS",
                "packets passed that its watch had no room for: delays lack them",
                unseen.by_taps,
            ),
            (
                "routers",
                "PACKET_STATISTICS",
                "packets passed that their watch had no room for: events and captures lack them",
                unseen.by_watcher,
            ),
            (
                "receiver of UDP",
                "SO_RXQ_OVFL",
                "UDP packets were dropped, as a receive buffer was full",
                unseen.udp,
            ),
        ] {
            now.insert((at.to_owned(), counter.to_owned()), (what, count));
        }
        let since = |(place, (what, count)): ((String, String), (&str, u64))| {
            let before = self.before.get(&place).map_or(0, |(_, before)| *before);
            let (at, counter) = place;
            Limit { at, what: what.to_owned(), counter, count: count.saturating_sub(before) }
        };
        Ok(now.into_iter().map(since).filter(|limit| limit.count > 0).collect())
    }
}

fn counts(network: &Network, senders_lose: bool) -> Result<Counts, LabError> {
    let mut counts = Counts::new();
    for (number, sender) in network.senders.iter().enumerate() {
        let at = format!("sender {number}");
        count_in(sender, &at, &mut counts)?;
        // Small queues and pacing keep TCP below what these disciplines hold, but not below every limit that one can be given.
        if !senders_lose {
            count_queue(sender, "eth0", &at, &mut counts)?;
        }
    }
    count_in(&network.router, "router", &mut counts)?;
    count_in(&network.receiver, "receiver", &mut counts)?;
    if network.receiver_delays {
        // It only delays. What is on the way there may be lost on purpose as well.
        count_queue(&network.receiver, "eth0", "receiver", &mut counts)?;
    }
    if let Some(receiver) = &network.near_receiver {
        count_in(receiver, "receiver of what goes up", &mut counts)?;
    }
    for Hop { name, namespace } in &network.hops {
        count_in(namespace, name, &mut counts)?;
    }
    counts.retain(|place, _| !network.holes.contains(place));
    let softnet = read(&network.router, "softnet_stat")?;
    let dropped = softnet
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok());
    let what = "packets were dropped, as too many waited for a CPU (net.core.netdev_max_backlog)";
    let place = ("machine".to_owned(), "softnet_stat dropped".to_owned());
    counts.insert(place, (what, dropped.sum()));
    Ok(counts)
}

/// What a namespace's TCP and devices have counted.
fn count_in(namespace: &Namespace, at: &str, counts: &mut Counts) -> Result<(), LabError> {
    let netstat = read(namespace, "netstat")?;
    let counted = tcp_ext(&netstat);
    for (counter, what) in TCP {
        // Kernels have more of them from version to version.
        if let Some(count) = counted.get(counter) {
            counts.insert((at.to_owned(), format!("TcpExt{counter}")), (what, *count));
        }
    }
    let devices = read(namespace, "dev")?;
    for line in devices.lines() {
        let Some((name, columns)) = line.split_once(':') else { continue };
        let columns: Vec<&str> = columns.split_whitespace().collect();
        for (column, counter) in DEVICE {
            let count = columns.get(column).and_then(|count| count.parse().ok()).unwrap_or(0);
            let place = (at.to_owned(), format!("{} {counter}", name.trim()));
            counts.insert(place, ("packets were dropped by a device", count));
        }
    }
    Ok(())
}

/// The names and values of `TcpExt`, which stand in two lines.
fn tcp_ext(netstat: &str) -> BTreeMap<&str, u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let values = values.split_whitespace().map(|value| value.parse().unwrap_or(0));
    names.split_whitespace().zip(values).collect()
}

/// What the outermost discipline of a device dropped.
fn count_queue(
    namespace: &Namespace,
    device: &str,
    at: &str,
    counts: &mut Counts,
) -> Result<(), LabError> {
    let queues = namespace.inside(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.link(device)?.index;
        netlink.qdiscs(index)
    })??;
    if let Some(root) = queues.iter().find(|queue| queue.parent == Handle::ROOT) {
        let place = (at.to_owned(), format!("{} dropped", root.kind));
        let what = "packets were dropped by the queue of an interface that is not the bottleneck";
        counts.insert(place, (what, root.counters.drops));
    }
    Ok(())
}

/// A table that the kernel shows of the thread's own namespace.
fn read(namespace: &Namespace, table: &str) -> Result<String, LabError> {
    let path = format!("/proc/thread-self/net/{table}");
    namespace.inside(|| fs::read_to_string(&path))?.map_err(|error| LabError::system(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_stand_in_two_lines() {
        let netstat = "TcpExt: SyncookiesSent RcvPruned TCPBacklogDrop\nTcpExt: 0 3 17\n\
                       IpExt: InNoRoutes RcvPruned\nIpExt: 5 6\n";
        let counted = tcp_ext(netstat);
        assert_eq!((counted["RcvPruned"], counted["TCPBacklogDrop"]), (3, 17));
        assert_eq!(counted.len(), 3);
        assert!(tcp_ext("").is_empty());
    }
}
