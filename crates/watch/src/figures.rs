//! What happened between two looks at a host.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use dualq_netlink::{Connection, Queue, Sent};
use serde::Serialize;

use crate::{Look, Place, Seen};

/// What a host did between two looks. Counts are those of the time between, all else is of the second look.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// When the second look was, in seconds since 1970.
    pub time: f64,
    /// The time between, in seconds.
    pub seconds: f64,
    /// The queue disciplines, in the kernel's order of devices.
    pub qdiscs: Vec<QdiscFigures>,
    /// Established TCP connections to other machines, by congestion control.
    pub tcp: Vec<ControlFigures>,
    /// Why there is nothing of TCP, if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_not_read: Option<String>,
}

/// A queue discipline.
#[derive(Clone, Debug, Serialize)]
pub struct QdiscFigures {
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// What left it, in Mbit/s.
    pub rate_mbit: f64,
    /// Packets that left.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked; `None` if those of another discipline are all that could be told.
    pub marks: Option<u64>,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// Packets waiting.
    pub backlog_packets: u64,
    /// How long what waits would take at that rate, in milliseconds; `None` if something waits and nothing left.
    pub drain_ms: Option<f64>,
    /// The probability with which it drops or marks, if it works with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The queues inside that it tells of: `L` and `C` of dualpi2, the tins of cake, the one of codel and pie, and of fq_codel the flow whose
    /// packets wait longest.
    pub queues: Vec<QueueFigures>,
}

/// A queue inside a discipline.
#[derive(Clone, Debug, Serialize)]
pub struct QueueFigures {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// How long packets wait, in milliseconds; `None` if none waits in `fq_codel`.
    pub delay_ms: Option<f64>,
    /// Packets that came in, if that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Packets marked, if they are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<u64>,
    /// Packets dropped, if they are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drops: Option<u64>,
    /// Bytes waiting, if they are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_bytes: Option<u64>,
}

/// All connections with one congestion control.
#[derive(Clone, Debug, Serialize)]
pub struct ControlFigures {
    /// Its name.
    pub cc: String,
    /// How many there are.
    pub connections: u64,
    /// Of how many something arrived between the looks: only these tell round trips.
    pub active: u64,
    /// Payload that was acknowledged, in bytes.
    pub acked_bytes: u64,
    /// The same in Mbit/s.
    pub goodput_mbit: f64,
    /// Segments with payload that were sent.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments that arrived.
    pub delivered: u64,
    /// Segments that arrived with CE.
    pub delivered_ce: u64,
    /// The smoothed round-trip times of the active ones.
    pub rtt: Option<Spread>,
    /// How much that is above the smallest that each has seen.
    pub inflation: Option<Spread>,
    #[serde(skip)]
    pub(crate) times: Vec<(Duration, Duration)>,
}

/// Times of several connections, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub p50_ms: f64,
    /// Nineteen of twenty are no longer.
    pub p95_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        // The smallest that so many are no longer than.
        let at = |share: f64| {
            let rank = (times.len() as f64 * share).ceil() as usize;
            times.get(rank.saturating_sub(1)).copied().map(millis)
        };
        Some(Self { p50_ms: at(0.5)?, p95_ms: at(0.95)?, max_ms: at(1.0)? })
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// What was counted since. A counter that is lower than it was has begun again.
fn since(before: u64, now: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl Figures {
    /// What happened from one look to the next.
    #[must_use]
    pub fn between(before: &Look, now: &Look) -> Self {
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let earlier: BTreeMap<&Place, &Queue> =
            before.queues.iter().map(|seen| (&seen.place, &seen.queue)).collect();
        // One that was put there meanwhile began with nothing.
        let qdiscs = now
            .queues
            .iter()
            .map(|seen| QdiscFigures::between(earlier.get(&seen.place).copied(), seen, seconds));
        let (tcp, tcp_not_read) = match (&before.connections, &now.connections) {
            (Ok(before), Ok(now)) => (controls(before, now, seconds), None),
            (_, Err(why)) | (Err(why), _) => (Vec::new(), Some(why.clone())),
        };
        Self {
            time: now.since_1970.as_secs_f64(),
            seconds,
            qdiscs: qdiscs.collect(),
            tcp,
            tcp_not_read,
        }
    }
}

impl QdiscFigures {
    fn between(before: Option<&Queue>, seen: &Seen, seconds: f64) -> Self {
        let queue = &seen.queue;
        let was = before.map(|before| before.counters).unwrap_or_default();
        let now = queue.counters;
        let bytes = since(was.sent_bytes, now.sent_bytes);
        let rate = bytes as f64 * 8.0 / seconds;
        let drain = match (now.backlog_bytes, bytes) {
            (0, _) => Some(0.0),
            (_, 0) => None,
            (backlog, _) => Some(backlog as f64 * 8.0 / rate * 1e3),
        };
        let marks_before = before.and_then(marks).unwrap_or(0);
        Self {
            place: seen.place.clone(),
            rate_mbit: rate / 1e6,
            packets: since(was.sent_packets, now.sent_packets),
            drops: since(was.drops, now.drops),
            marks: marks(queue).map(|marks| since(marks_before, marks)),
            backlog_bytes: now.backlog_bytes,
            backlog_packets: now.backlog_packets,
            drain_ms: drain,
            probability: probability(queue),
            queues: queues(before, queue),
        }
    }
}

/// Those that a discipline itself set: what is inside another is there by itself.
pub(crate) fn marks(queue: &Queue) -> Option<u64> {
    let own = &queue.stats.as_ref()?.own;
    own.leaf().is_none().then(|| own.marks())
}

/// The same of the probability.
pub(crate) fn probability(queue: &Queue) -> Option<f64> {
    let own = &queue.stats.as_ref()?.own;
    own.probability().filter(|_| own.leaf().is_none())
}

fn queues(before: Option<&Queue>, now: &Queue) -> Vec<QueueFigures> {
    if now.kind == "fq_codel" {
        let longest = now.flow_delays.iter().max().copied();
        return vec![QueueFigures {
            name: "flows".to_owned(),
            delay_ms: longest.map(millis),
            packets: None,
            marks: None,
            drops: None,
            backlog_bytes: None,
        }];
    }
    let inside = |queue: &Queue| queue.stats.as_ref().map(|stats| stats.own.queues());
    let before = before.and_then(inside).unwrap_or_default();
    let figures = |(at, queue): (usize, &dualq_qdisc::show::Inside)| {
        let was = before.get(at).filter(|before| before.name == queue.name);
        let counted = |of: fn(&dualq_qdisc::show::Inside) -> Option<u64>| {
            Some(since(was.and_then(of).unwrap_or(0), of(queue)?))
        };
        QueueFigures {
            name: queue.name.clone(),
            delay_ms: Some(millis(queue.delay)),
            packets: counted(|queue| queue.packets),
            marks: counted(|queue| queue.marks),
            drops: counted(|queue| queue.drops),
            backlog_bytes: queue.backlog_bytes,
        }
    };
    inside(now).unwrap_or_default().iter().enumerate().map(figures).collect()
}

fn controls(before: &[Connection], now: &[Connection], seconds: f64) -> Vec<ControlFigures> {
    let earlier: HashMap<[u8; 8], Sent> =
        before.iter().map(|connection| (connection.cookie, connection.sent)).collect();
    let mut by_name: BTreeMap<&str, ControlFigures> = BTreeMap::new();
    for connection in now {
        let name = connection.congestion_control.as_deref().unwrap_or_default();
        let figures = by_name.entry(name).or_insert_with(|| ControlFigures::new(name));
        // One that came meanwhile began with nothing.
        let was = earlier.get(&connection.cookie).copied().unwrap_or_default();
        figures.add(&was, connection);
    }
    let mut all: Vec<_> = by_name.into_values().collect();
    for figures in &mut all {
        figures.goodput_mbit = figures.acked_bytes as f64 * 8.0 / 1e6 / seconds;
        figures.rtt = Spread::of(figures.times.iter().map(|(rtt, _)| *rtt).collect());
        figures.inflation = Spread::of(figures.times.iter().map(|(_, above)| *above).collect());
    }
    all
}

impl ControlFigures {
    fn new(cc: &str) -> Self {
        Self {
            cc: cc.to_owned(),
            connections: 0,
            active: 0,
            acked_bytes: 0,
            goodput_mbit: 0.0,
            sent: 0,
            retransmitted: 0,
            delivered: 0,
            delivered_ce: 0,
            rtt: None,
            inflation: None,
            times: Vec::new(),
        }
    }

    fn add(&mut self, was: &Sent, connection: &Connection) {
        let now = connection.sent;
        // These are of 32 bits, and begin again.
        let since = |was: u32, now: u32| u64::from(now.wrapping_sub(was));
        let delivered = since(was.delivered, now.delivered);
        self.connections += 1;
        self.sent += since(was.segments, now.segments);
        self.retransmitted += since(was.retransmitted, now.retransmitted);
        self.delivered += delivered;
        self.delivered_ce += since(was.delivered_ce, now.delivered_ce);
        self.acked_bytes += now.acked_bytes.saturating_sub(was.acked_bytes);
        if delivered == 0 {
            // Its round trip is as old as what it sent last.
            return;
        }
        self.active += 1;
        if let (Some(rtt), Some(min_rtt)) = (connection.rtt, connection.min_rtt) {
            self.times.push((rtt, rtt.saturating_sub(min_rtt)));
        }
    }
}
