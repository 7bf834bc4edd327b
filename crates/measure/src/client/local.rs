//! This host's own queue: whether packets wait in it while it sends.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use dualq_netlink::{Link, Netlink, Queue};

use crate::figures::quantile;
use crate::measurement::LocalQueue;

/// What a queue had sent, and what was in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    t_s: f64,
    backlog_bytes: u64,
    sent_bytes: u64,
    drops: u64,
}

/// The interface by which the server is reached.
pub(super) struct Local {
    netlink: Netlink,
    link: Link,
    qdisc: String,
}

impl Local {
    /// Nothing if the kernel does not tell.
    pub(super) fn open(to: SocketAddr) -> Option<Self> {
        let mut netlink = Netlink::open().ok()?;
        let link = netlink.way_to_socket(to).ok()?.link;
        let queues = netlink.qdiscs(link.index).ok()?;
        let qdisc = root(&queues)?.kind.clone();
        Some(Self { netlink, link, qdisc })
    }

    pub(super) fn look(&mut self, at: Duration) -> Option<Look> {
        let queues = self.netlink.qdiscs(self.link.index).ok()?;
        let root = root(&queues)?.counters;
        // What a classful root holds it may count, or leave to its leaves.
        let leaves = queues.iter().filter(|queue| queue.parent != dualq_netlink::Handle::ROOT);
        let in_leaves = leaves.map(|queue| queue.counters.backlog_bytes).sum();
        Some(Look {
            t_s: at.as_secs_f64(),
            backlog_bytes: root.backlog_bytes.max(in_leaves),
            sent_bytes: root.sent_bytes,
            drops: root.drops,
        })
    }

    /// What the looks from a time on come to, if there are enough.
    pub(super) fn figures(&self, looks: &[Look], from_s: f64) -> Option<LocalQueue> {
        let steady: Vec<&Look> = looks.iter().filter(|look| look.t_s >= from_s).collect();
        let (first, last) = (steady.first()?, steady.last()?);
        let spent_s = last.t_s - first.t_s;
        let mut backlogs: Vec<f64> = steady.iter().map(|look| look.backlog_bytes as f64).collect();
        backlogs.sort_unstable_by(f64::total_cmp);
        (spent_s > 0.0).then(|| LocalQueue {
            interface: self.link.name.clone(),
            speed_mbit: self.speed_mbit(),
            qdisc: self.qdisc.clone(),
            backlog_p50_bytes: quantile(&backlogs, 0.5),
            sent_mbit: last.sent_bytes.saturating_sub(first.sent_bytes) as f64 * 8e-6 / spent_s,
            drops: last.drops.saturating_sub(first.drops),
        })
    }

    /// What a device without a link of its own says means nothing: a TUN device says 10 Mbit/s, a veth 10 Gbit/s.
    fn speed_mbit(&self) -> Option<f64> {
        if self.link.kind.is_some() {
            return None;
        }
        let text = fs::read_to_string(format!("/sys/class/net/{}/speed", self.link.name)).ok()?;
        text.trim().parse().ok().filter(|mbit: &f64| *mbit > 0.0)
    }
}

fn root(queues: &[Queue]) -> Option<&Queue> {
    queues.iter().find(|queue| queue.parent == dualq_netlink::Handle::ROOT)
}
