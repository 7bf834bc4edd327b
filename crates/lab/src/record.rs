//! What is written down while a scenario runs, and the outcome that is made of it.

use std::time::Duration;

use dualq_netlink::Queue;
use dualq_qdisc::show;
use dualq_scenario::summary::{
    Echoes, Looks, QueueCounts, QueueDelays, QueueLook, SeriesRecord, SmoothedRtts, megabits,
    millionths, thousandths,
};
use dualq_scenario::{
    AccurateEcn, Completions, EcnOption, EcnStyle, FlowGroup, FlowOutcome, OPTION_BYTES,
    OTHER_QUEUES, Outcome, ProbeOutcome, QueueOutcome, SEGMENT_HEADERS, Scenario, TESTED_QUEUE,
};
use dualq_socket::{EcnMode, TcpInfo};
use dualq_units::Instant;
use serde_json::{Map, Value};

use crate::repeats::Repeats;
use crate::sockets::BulkSender;
use crate::taps::Passed;

/// The books of an experiment. Times count from its start.
#[derive(Debug)]
pub(crate) struct Record {
    warmup: Duration,
    window: Duration,
    /// Of queues, by their numbers.
    queues: Vec<QueueBooks>,
    /// Smoothed round-trip times of each group.
    rtts: Vec<SmoothedRtts>,
    /// Round trips of each probe from the warm-up on, in nanoseconds.
    round_trips: Vec<Vec<u64>>,
    last_round_trip: Vec<Option<u64>>,
    series: SeriesRecord,
    /// Of each group's flows that make them again and again: their bytes and how long they took.
    transfers: Vec<Vec<(u64, Option<Duration>)>>,
    /// Of the groups that ask for Accurate ECN: whether their congestion control does not do without.
    accurate: Vec<Option<bool>>,
    /// Whether all packets of a group have Accurate ECN's option, if its flows may send it at all.
    always_tells: Vec<bool>,
    outcome: Outcome,
    distributions: bool,
}

/// The books of a queue.
#[derive(Debug, Default)]
struct QueueBooks {
    delays: QueueDelays,
    /// What it had counted at the end of the warm-up.
    at_warmup: QueueCounts,
}

impl QueueBooks {
    fn close(self, queue: &Queue, distributions: bool) -> QueueOutcome {
        let tc = match (&queue.config, &queue.stats) {
            (Some(config), Some(stats)) => show::json_with_stats(config, stats),
            _ => Map::from_iter([("kind".to_owned(), Value::from(queue.kind.clone()))]),
        };
        let mut outcome = QueueOutcome { tc, ..QueueOutcome::default() };
        counts(queue).since(self.at_warmup).tell(&mut outcome);
        self.delays.summarise(&mut outcome, distributions);
        outcome
    }
}

impl Record {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (groups, probes) = (scenario.flow.len(), scenario.probe.len());
        Self {
            warmup: scenario.warmup,
            window: scenario.duration - scenario.warmup,
            queues: (0..OTHER_QUEUES + scenario.link.other_bottlenecks().count())
                .map(|_| QueueBooks::default())
                .collect(),
            rtts: vec![SmoothedRtts::default(); groups],
            round_trips: vec![Vec::new(); probes],
            last_round_trip: vec![None; probes],
            series: SeriesRecord::new(scenario),
            transfers: vec![Vec::new(); groups],
            accurate: scenario.flow.iter().map(needs_accurate).collect(),
            always_tells: scenario
                .flow
                .iter()
                .map(|group| group.ecn_option == EcnOption::Full)
                .collect(),
            distributions: scenario.distributions,
            outcome: Outcome {
                flow: vec![FlowOutcome::default(); groups],
                probe: vec![ProbeOutcome::default(); probes],
                ..Outcome::default()
            },
        }
    }

    /// A packet passed the queue of that number; it left at `left` after the start.
    pub(crate) fn passed(&mut self, queue: usize, left: Duration, passed: &Passed) {
        let nanos = passed.sojourn.as_nanos() as u64;
        if left >= self.warmup {
            self.queues[queue].delays.record(nanos, passed.ecn);
        }
        if queue == TESTED_QUEUE {
            self.series.departed(nanos);
        }
    }

    /// A probe was answered.
    pub(crate) fn round_trip(&mut self, probe: usize, now: Duration, took: Duration) {
        let nanos = took.as_nanos() as u64;
        self.last_round_trip[probe] = Some(nanos);
        if now >= self.warmup {
            self.round_trips[probe].push(nanos);
        }
    }

    /// Looks at a flow's smoothed round-trip time.
    pub(crate) fn sample(&mut self, group: usize, info: &TcpInfo) {
        if info.srtt_us > 0 {
            self.rtts[group].record(u64::from(info.srtt_us), 1);
        }
    }

    /// Ends an interval of the series.
    pub(crate) fn end_interval(&mut self, now: Duration, groups: Vec<Looks>, queue: &Queue) {
        let look = QueueLook {
            packets: queue.counters.backlog_packets,
            counts: counts(queue),
            probability: queue.stats.as_ref().and_then(|stats| stats.own.probability()),
        };
        self.series.end_interval(now, groups, self.last_round_trip.iter().copied(), look);
    }

    /// Whether the interval under way has lasted at all.
    pub(crate) fn is_within_interval(&self, now: Duration) -> bool {
        self.series.is_within_interval(now)
    }

    /// A flow at its end.
    pub(crate) fn flow(&mut self, sender: &BulkSender, info: &TcpInfo) {
        let before = &sender.at_warmup;
        let flow = &mut self.outcome.flow[sender.group];
        let goodput = megabits(info.bytes_acked.saturating_sub(before.bytes_acked), self.window);
        // Of packets that have the option now and then nobody counts how many they are.
        let always_tells = self.always_tells[sender.group];
        let line_bytes = |info: &TcpInfo| {
            let tells = always_tells && info.has_ecn_option;
            let headers = SEGMENT_HEADERS + if tells { OPTION_BYTES } else { 0 };
            info.bytes_sent + u64::from(info.data_segs_out) * u64::from(headers)
        };
        flow.goodput_mbit.push(thousandths(goodput));
        flow.total_mbit += goodput;
        flow.line_mbit +=
            megabits(line_bytes(info).saturating_sub(line_bytes(before)), self.window);
        flow.retransmits += u64::from(info.retransmits.saturating_sub(before.retransmits));
        flow.timeouts += u64::from(info.timeouts.saturating_sub(before.timeouts));
        flow.srtt_ms.push(thousandths(f64::from(info.srtt_us) / 1e3));
        flow.rttvar_ms.push(thousandths(f64::from(info.rttvar_us) / 1e3));
        flow.cwnd.push(info.cwnd);
        let done = sender.repeats.as_ref().map_or(sender.done, Repeats::last);
        flow.completion_s.push(done.map(|took| millionths(took.as_secs_f64())));
        let transfers = sender.repeats.iter().flat_map(Repeats::transfers);
        self.transfers[sender.group].extend(transfers);
        if let Some(needed) = self.accurate[sender.group] {
            add_marks(flow.accurate_ecn.get_or_insert_default(), info, needed);
        }
        flow.data_packets += u64::from(info.data_segs_out.saturating_sub(before.data_segs_out));
        self.outcome.data_packets += u64::from(info.data_segs_out);
    }

    /// Segments of a group that arrived with CE.
    pub(crate) fn ce_marks(&mut self, group: usize, segments: u64) {
        self.outcome.flow[group].ce_marks += segments;
    }

    /// A probe at its end. `info` is that of its connection, if it has one.
    pub(crate) fn probe(&mut self, number: usize, info: Option<(&TcpInfo, u32)>) {
        let samples = std::mem::take(&mut self.round_trips[number]);
        let mut probe = ProbeOutcome::of_round_trips(samples, self.distributions);
        if let Some((info, retransmits_at_warmup)) = info {
            probe.kernel_srtt_ms = thousandths(f64::from(info.srtt_us) / 1e3);
            probe.kernel_rttvar_ms = thousandths(f64::from(info.rttvar_us) / 1e3);
            probe.retransmits = u64::from(info.retransmits.saturating_sub(retransmits_at_warmup));
        }
        self.outcome.probe[number] = probe;
    }

    /// A ping at its end.
    pub(crate) fn ping(&mut self, number: usize, echoes: &Echoes) {
        self.probe(number, None);
        let warmup = Instant::ZERO + self.warmup;
        echoes.tell(warmup, warmup + self.window, &mut self.outcome.probe[number]);
    }

    /// The warm-up ends: what the queues have counted so far is not for the outcome.
    pub(crate) fn mark_warmup(&mut self, queues: &[(usize, Queue)]) {
        for (number, queue) in queues {
            self.queues[*number].at_warmup = counts(queue);
        }
    }

    /// Closes the books.
    pub(crate) fn close(mut self, scenario: &Scenario, queues: &[(usize, Queue)]) -> Outcome {
        let mut outcome = self.outcome;
        outcome.summarise_flows(scenario);
        for (flow, transfers) in outcome.flow.iter_mut().zip(&self.transfers) {
            if !transfers.is_empty() {
                flow.completions = Completions::by_class(transfers, scenario.distributions);
            }
        }
        for (flow, rtts) in outcome.flow.iter_mut().zip(&self.rtts) {
            rtts.summarise(flow);
        }
        for (number, queue) in queues {
            let books = std::mem::take(&mut self.queues[*number]);
            let closed = books.close(queue, scenario.distributions);
            outcome.put_queue(&scenario.link, *number, closed);
        }
        outcome.series = self.series.finish();
        outcome
    }
}

fn needs_accurate(group: &FlowGroup) -> Option<bool> {
    group.asks_accurate().then(|| group.cc.ecn_style() == EcnStyle::Accurate)
}

/// What Accurate ECN told a sender, whose control may be Reno without it.
fn add_marks(all: &mut AccurateEcn, info: &TcpInfo, needed: bool) {
    let [ect0, ce, ect1] = info.delivered_bytes.map(u64::from);
    let is_accurate = info.ecn == EcnMode::Accurate;
    all.agreed += u32::from(is_accurate);
    all.reno += u32::from(needed && !is_accurate);
    all.delivered_ce += u64::from(info.delivered_ce);
    all.delivered_e0_bytes += ect0;
    all.delivered_e1_bytes += ect1;
    all.delivered_ce_bytes += ce;
}

/// What the queue has counted so far.
fn counts(queue: &Queue) -> QueueCounts {
    QueueCounts {
        sent_packets: queue.counters.sent_packets,
        sent_bytes: queue.counters.sent_bytes,
        drops: queue.counters.drops,
        marks: queue.stats.as_ref().map_or(0, |stats| stats.own.marks()),
    }
}
