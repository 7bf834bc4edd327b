//! The same for Prometheus: counters since they began, and how times were distributed over all looks.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use dualq_netlink::Queue;
use dualq_qdisc::show::Inside;

use crate::figures::{marks, probability};
use crate::histogram::Histogram;
use crate::{ControlFigures, Figures, Look, Place, Seen};

/// What a host's queues and connections count, in the form that Prometheus reads.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    seen: Vec<Seen>,
    /// The delays of each queue of the disciplines that are there now.
    delays: BTreeMap<(Place, String), Histogram>,
    tcp: BTreeMap<String, Control>,
}

/// What the connections with one congestion control did since the first look.
#[derive(Clone, Debug, Default)]
struct Control {
    connections: u64,
    sent: u64,
    retransmitted: u64,
    delivered: u64,
    delivered_ce: u64,
    acked_bytes: u64,
    rtt: Histogram,
    inflation: Histogram,
}

/// A metric: its name, what it is, what is said of it, and where it stands.
type Metric<T> = (&'static str, Kind, &'static str, fn(&T) -> Option<u64>);

/// What each discipline tells.
const QDISC: [Metric<Queue>; 8] = [
    (
        "dualq_qdisc_sent_bytes_total",
        Kind::Counter,
        "Bytes that left the queue discipline.",
        |queue| Some(queue.counters.sent_bytes),
    ),
    (
        "dualq_qdisc_sent_packets_total",
        Kind::Counter,
        "Packets that left the queue discipline.",
        |queue| Some(queue.counters.sent_packets),
    ),
    ("dualq_qdisc_dropped_packets_total", Kind::Counter, "Packets that it dropped.", |queue| {
        Some(queue.counters.drops)
    }),
    (
        "dualq_qdisc_marked_packets_total",
        Kind::Counter,
        "CE marks that it set, if it sets any itself.",
        marks,
    ),
    ("dualq_qdisc_overlimits_total", Kind::Counter, "Overlimits, as tc calls them.", |queue| {
        Some(queue.counters.overlimits)
    }),
    (
        "dualq_qdisc_requeued_packets_total",
        Kind::Counter,
        "Packets that the device did not take.",
        |queue| Some(queue.requeues),
    ),
    (
        "dualq_qdisc_backlog_bytes",
        Kind::Gauge,
        "Bytes that wait in the queue discipline.",
        |queue| Some(queue.counters.backlog_bytes),
    ),
    ("dualq_qdisc_backlog_packets", Kind::Gauge, "Packets that wait in it.", |queue| {
        Some(queue.counters.backlog_packets)
    }),
];

/// What some disciplines tell of each queue inside them.
const INSIDE: [Metric<Inside>; 4] = [
    (
        "dualq_qdisc_queue_packets_total",
        Kind::Counter,
        "Packets that came into a queue inside: L and C of dualpi2, a tin of cake.",
        |queue| queue.packets,
    ),
    (
        "dualq_qdisc_queue_marked_packets_total",
        Kind::Counter,
        "Packets that were marked in a tin of cake.",
        |queue| queue.marks,
    ),
    (
        "dualq_qdisc_queue_dropped_packets_total",
        Kind::Counter,
        "Packets that were dropped in a tin of cake.",
        |queue| queue.drops,
    ),
    (
        "dualq_qdisc_queue_backlog_bytes",
        Kind::Gauge,
        "Bytes that wait in a tin of cake.",
        |queue| queue.backlog_bytes,
    ),
];

/// What is told of the connections with one congestion control.
const TCP: [Metric<Control>; 6] = [
    (
        "dualq_tcp_connections",
        Kind::Gauge,
        "Established connections to other machines.",
        |control| Some(control.connections),
    ),
    (
        "dualq_tcp_sent_segments_total",
        Kind::Counter,
        "Segments with payload that they sent.",
        |control| Some(control.sent),
    ),
    (
        "dualq_tcp_retransmitted_segments_total",
        Kind::Counter,
        "Segments that they sent again.",
        |control| Some(control.retransmitted),
    ),
    (
        "dualq_tcp_delivered_segments_total",
        Kind::Counter,
        "Segments of theirs that arrived.",
        |control| Some(control.delivered),
    ),
    (
        "dualq_tcp_delivered_ce_segments_total",
        Kind::Counter,
        "Segments of theirs that arrived with CE, as the other end echoed.",
        |control| Some(control.delivered_ce),
    ),
    (
        "dualq_tcp_acked_bytes_total",
        Kind::Counter,
        "Payload of theirs that was acknowledged.",
        |control| Some(control.acked_bytes),
    ),
];

impl Metrics {
    /// Takes another look into account, with what happened since the one before; of the first look there is none.
    pub fn add(&mut self, look: &Look, figures: Option<&Figures>) {
        self.seen.clone_from(&look.queues);
        if let Some(figures) = figures {
            self.add_delays(figures);
            for control in self.tcp.values_mut() {
                control.connections = 0;
            }
            for figures in &figures.tcp {
                self.tcp.entry(figures.cc.clone()).or_default().add(figures);
            }
        }
        let seen = &self.seen;
        self.delays.retain(|(place, _), _| seen.iter().any(|seen| seen.place == *place));
    }

    fn add_delays(&mut self, figures: &Figures) {
        for qdisc in &figures.qdiscs {
            for queue in &qdisc.queues {
                let delays =
                    self.delays.entry((qdisc.place.clone(), queue.name.clone())).or_default();
                // What is not there does not wait.
                let millis = queue.delay_ms.unwrap_or(0.0);
                delays.add(Duration::from_secs_f64(millis / 1e3));
            }
        }
    }

    /// The text that Prometheus reads (format 0.0.4). `version` is that of the program.
    #[must_use]
    pub fn text(&self, version: &str) -> String {
        let mut page = Page::default();
        let mut family = page.family("dualq_build_info", Kind::Gauge, "The version of dualq.");
        family.sample(&[("version", version)], 1);
        self.write_qdiscs(&mut page);
        self.write_tcp(&mut page);
        page.0
    }

    fn write_qdiscs(&self, page: &mut Page) {
        for (name, kind, help, of) in QDISC {
            let mut family = page.family(name, kind, help);
            for seen in &self.seen {
                if let Some(value) = of(&seen.queue) {
                    family.sample(&labels(&seen.place), value);
                }
            }
        }
        let help = "The probability with which it drops or marks, from 0 to 1.";
        let mut family = page.family("dualq_qdisc_probability_ratio", Kind::Gauge, help);
        for seen in &self.seen {
            if let Some(value) = probability(&seen.queue) {
                family.sample(&labels(&seen.place), value);
            }
        }
        for (name, kind, help, of) in INSIDE {
            let mut family = page.family(name, kind, help);
            for seen in &self.seen {
                let own = seen.queue.stats.as_ref().map(|stats| stats.own.queues());
                for queue in own.unwrap_or_default() {
                    if let Some(value) = of(&queue) {
                        family.sample(&inside(&seen.place, &queue.name), value);
                    }
                }
            }
        }
        let help = "How long packets wait in a queue inside, looked at again and again.";
        let mut family = page.family("dualq_qdisc_queue_delay_seconds", Kind::Histogram, help);
        for ((place, name), delays) in &self.delays {
            family.histogram(&inside(place, name), delays);
        }
    }

    fn write_tcp(&self, page: &mut Page) {
        for (name, kind, help, of) in TCP {
            let mut family = page.family(name, kind, help);
            for (cc, control) in &self.tcp {
                if let Some(value) = of(control) {
                    family.sample(&[("cc", cc)], value);
                }
            }
        }
        let help =
            "Smoothed round-trip times of the connections of which something had just arrived.";
        let mut family = page.family("dualq_tcp_rtt_seconds", Kind::Histogram, help);
        for (cc, control) in &self.tcp {
            family.histogram(&[("cc", cc)], &control.rtt);
        }
        let help = "How much these are above the smallest round-trip time of their connection.";
        let mut family = page.family("dualq_tcp_rtt_inflation_seconds", Kind::Histogram, help);
        for (cc, control) in &self.tcp {
            family.histogram(&[("cc", cc)], &control.inflation);
        }
    }
}

impl Control {
    fn add(&mut self, figures: &ControlFigures) {
        self.connections = figures.connections;
        self.sent += figures.sent;
        self.retransmitted += figures.retransmitted;
        self.delivered += figures.delivered;
        self.delivered_ce += figures.delivered_ce;
        self.acked_bytes += figures.acked_bytes;
        for (rtt, inflation) in &figures.times {
            self.rtt.add(*rtt);
            self.inflation.add(*inflation);
        }
    }
}

fn labels(place: &Place) -> [(&'static str, &str); 4] {
    [
        ("dev", &place.dev),
        ("kind", &place.kind),
        ("handle", &place.handle),
        ("parent", &place.parent),
    ]
}

fn inside<'a>(place: &'a Place, queue: &'a str) -> [(&'static str, &'a str); 5] {
    let [dev, kind, handle, parent] = labels(place);
    [dev, kind, handle, parent, ("queue", queue)]
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A text of metrics.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family<'p>(&'p mut self, name: &'p str, kind: Kind, help: &'p str) -> Family<'p> {
        Family { page: self, name, kind, help, is_named: false }
    }
}

/// All samples of one metric. It is not named where there are none.
struct Family<'p> {
    page: &'p mut Page,
    name: &'p str,
    kind: Kind,
    help: &'p str,
    is_named: bool,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, value);
    }

    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let count = histogram.count();
        let ends = histogram.up_to().map(|(end, count)| (end.as_secs_f64().to_string(), count));
        for (end, count) in ends.chain([("+Inf".to_owned(), count)]) {
            self.line("_bucket", &[labels, &[("le", &end)]].concat(), count);
        }
        self.line("_sum", labels, histogram.sum().as_secs_f64());
        self.line("_count", labels, count);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let Self { name, help, kind, .. } = *self;
        let text = &mut self.page.0;
        if !std::mem::replace(&mut self.is_named, true) {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {}\n", kind.word());
        }
        // A label without a value is as good as none.
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> =
            labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(text, "{name}{suffix}{{{}}} {value}", labels.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_families_named_once() {
        let mut page = Page::default();
        let mut family = page.family("a_total", Kind::Counter, "All.");
        family.sample(&[("dev", "a\"b\\c\nd"), ("queue", "")], 1);
        family.sample(&[("dev", "eth0"), ("queue", "L")], 0.5);
        let _none = page.family("b_total", Kind::Counter, "None.");
        assert_eq!(
            page.0,
            "# HELP a_total All.\n# TYPE a_total counter\na_total{dev=\"a\\\"b\\\\c\\nd\"} 1\n\
             a_total{dev=\"eth0\",queue=\"L\"} 0.5\n"
        );
    }
}
