//! What is shown on a terminal: each queue discipline, each congestion control, and how they went.

use std::collections::BTreeMap;

use dualq_units::Bytes;
use dualq_watch::{ControlFigures, Figures, Place, QdiscFigures};

use crate::history::{Row, Series};
use crate::screen::Size;

const HELP: &str = "q quit";

/// A queue discipline over time.
#[derive(Default)]
struct Qdisc {
    now: Option<QdiscFigures>,
    rate: Series,
    /// Of each queue inside that it tells of; and of what it does not, how long the backlog would take.
    delays: BTreeMap<String, Series>,
    drain: Series,
    marks: Series,
    drops: Series,
    /// Whether anything has left it since it is watched.
    is_used: bool,
}

/// The connections with one congestion control over time.
#[derive(Default)]
struct Control {
    now: Option<ControlFigures>,
    rate: Series,
    rtt: Series,
    inflation: Series,
    retransmitted: Series,
    marked: Series,
}

pub(crate) struct Display {
    /// Whether devices were named: of these all is shown, else what has been used.
    is_chosen: bool,
    qdiscs: Vec<(Place, Qdisc)>,
    controls: BTreeMap<String, Control>,
    /// Why there is nothing of TCP.
    not_read: Option<String>,
    looks: u64,
}

impl Display {
    pub(crate) fn new(is_chosen: bool) -> Self {
        let (qdiscs, controls) = (Vec::new(), BTreeMap::new());
        Self { is_chosen, qdiscs, controls, not_read: None, looks: 0 }
    }

    /// Takes what happened since the last look into account.
    pub(crate) fn add(&mut self, figures: &Figures) {
        self.looks += 1;
        self.not_read.clone_from(&figures.tcp_not_read);
        let mut earlier: BTreeMap<Place, Qdisc> =
            std::mem::take(&mut self.qdiscs).into_iter().collect();
        for figures_of in &figures.qdiscs {
            let mut qdisc = earlier.remove(&figures_of.place).unwrap_or_default();
            qdisc.add(figures_of, figures.seconds);
            self.qdiscs.push((figures_of.place.clone(), qdisc));
        }
        let is_there = |cc: &String| figures.tcp.iter().any(|control| control.cc == *cc);
        self.controls.retain(|cc, _| is_there(cc));
        for control in &figures.tcp {
            let shown = self.controls.entry(control.cc.clone()).or_default();
            shown.add(control, figures.seconds);
        }
    }

    /// All of it, with what the keys do, for a screen of that size.
    pub(crate) fn page(&self, size: &Size) -> Vec<String> {
        let lines = self.lines(size.columns);
        let room = size.rows.saturating_sub(1);
        let mut page = lines;
        let below = if page.len() > room {
            let hidden = page.len() - room;
            page.truncate(room);
            format!("{HELP}; {hidden} more lines: name devices, or make the terminal higher")
        } else {
            HELP.to_owned()
        };
        page.push(below);
        page
    }

    /// Lines of at most so many columns.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        if self.looks == 0 {
            return vec!["looking".to_owned()];
        }
        let mut lines = Vec::new();
        for (_, qdisc) in self.qdiscs.iter().filter(|(_, qdisc)| self.is_chosen || qdisc.is_used) {
            qdisc.write(columns, &mut lines);
        }
        if lines.is_empty() {
            lines.push("nothing has been sent through a queue discipline yet".to_owned());
        }
        for (cc, control) in &self.controls {
            control.write(cc, columns, &mut lines);
        }
        if let Some(why) = &self.not_read {
            lines.push(format!("nothing is told of TCP connections: {why}"));
        }
        lines.into_iter().map(|line| line.chars().take(columns).collect()).collect()
    }
}

impl Qdisc {
    fn add(&mut self, figures: &QdiscFigures, seconds: f64) {
        let per_second = |count: u64| count as f64 / seconds;
        self.rate.push(Some(figures.rate_mbit));
        self.drain.push(figures.drain_ms);
        self.marks.push(figures.marks.map(per_second));
        self.drops.push(Some(per_second(figures.drops)));
        for queue in &figures.queues {
            self.delays.entry(queue.name.clone()).or_default().push(queue.delay_ms);
        }
        self.is_used |= figures.packets > 0 || figures.backlog_packets > 0;
        self.now = Some(figures.clone());
    }

    fn write(&self, columns: usize, lines: &mut Vec<String>) {
        let Some(now) = &self.now else { return };
        let Place { dev, kind, handle, parent } = &now.place;
        let probability =
            now.probability.map(|share| format!(", probability {:.2} %", share * 100.0));
        lines.push(format!(
            "{dev}: {kind} {handle} {parent}, backlog {} {} packets{}",
            Bytes(now.backlog_bytes),
            now.backlog_packets,
            probability.unwrap_or_default()
        ));
        let mut row = Row::of(columns);
        row.add("rate", "Mbit/s", &self.rate);
        if now.queues.is_empty() {
            row.add("to drain", "ms", &self.drain);
        }
        for queue in &now.queues {
            let name = if queue.name.is_empty() { "delay" } else { &queue.name };
            row.add(name, "ms", &self.delays[&queue.name]);
        }
        if now.marks.is_some() {
            row.add("marks", "/s", &self.marks);
        }
        row.add("drops", "/s", &self.drops);
        lines.extend(row.lines());
    }
}

impl Control {
    fn add(&mut self, figures: &ControlFigures, seconds: f64) {
        let per_second = |count: u64| Some(count as f64 / seconds);
        self.rate.push(Some(figures.goodput_mbit));
        self.rtt.push(figures.rtt.map(|rtt| rtt.p50_ms));
        self.inflation.push(figures.inflation.map(|inflation| inflation.p50_ms));
        self.retransmitted.push(per_second(figures.retransmitted));
        self.marked.push(per_second(figures.delivered_ce));
        self.now = Some(figures.clone());
    }

    fn write(&self, cc: &str, columns: usize, lines: &mut Vec<String>) {
        let Some(now) = &self.now else { return };
        let worst = now.inflation.map(|inflation| {
            format!(
                ", above the smallest RTT p95 {:.1} ms, max {:.1} ms",
                inflation.p95_ms, inflation.max_ms
            )
        });
        lines.push(format!(
            "tcp {cc}: {} {}, {} active{}",
            now.connections,
            if now.connections == 1 { "connection" } else { "connections" },
            now.active,
            worst.unwrap_or_default()
        ));
        let mut row = Row::of(columns);
        row.add("goodput", "Mbit/s", &self.rate);
        row.add("retransmits", "/s", &self.retransmitted);
        row.add("RTT", "ms", &self.rtt);
        row.add("above min", "ms", &self.inflation);
        row.add("CE", "/s", &self.marked);
        lines.extend(row.lines());
    }
}
