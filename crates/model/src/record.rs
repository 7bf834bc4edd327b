//! What is written down while a scenario runs, and the outcome that is made of it.

use std::time::Duration;

use dualq_net::Queue as Link;
use dualq_qdisc::show::{self, Stats};
use dualq_qdisc::{Departure, Packet as _};
use dualq_scenario::summary::{
    Looks, QueueCounts, QueueDelays, QueueLook, SeriesRecord, SmoothedRtts, UdpRecord, megabits,
    millionths, thousandths,
};
use dualq_scenario::{
    AccurateEcn, Completions, FlowOutcome, OTHER_QUEUES, Outcome, ProbeOutcome, QueueOutcome,
    Scenario, TESTED_QUEUE,
};
use dualq_tcp::EcnStyle;
use dualq_units::Instant;
use dualq_units::hint::unlikely;

use crate::host::Connection;
use crate::packet::Packet;
use crate::program::Program;

/// The books of a simulation.
#[derive(Clone)]
pub(crate) struct Record {
    warmup_ns: u64,
    /// Of the queue under test, of that of the other direction, and of those of elements.
    queues: Vec<QueueRecord>,
    /// Of each group of UDP streams.
    udp: Vec<UdpRecord>,
    /// Smoothed round-trip times of each group of flows, and behind these of all others that send.
    rtts: Vec<SmoothedRtts>,
    /// How many samples of them are due so far.
    rtt_samples: u64,
    /// Groups of flows.
    groups: usize,
    series: SeriesRecord,
}

/// The books of a queue.
#[derive(Clone, Debug, Default)]
struct QueueRecord {
    delays: QueueDelays,
    /// What the queue has counted since the start.
    counted: QueueCounts,
    /// The same at the end of the warm-up.
    at_warmup: QueueCounts,
}

impl QueueRecord {
    fn close(self, end_ns: u64, queue: &Link<Packet>, distributions: bool) -> QueueOutcome {
        let stats = queue.stats(Instant::from_nanos(end_ns));
        let tc = show::json_with_stats(&queue.config(), &stats);
        let mut outcome = QueueOutcome { tc, ..QueueOutcome::default() };
        with_own(self.counted, &stats).since(self.at_warmup).tell(&mut outcome);
        self.delays.summarise(&mut outcome, distributions);
        outcome
    }
}

impl Record {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            warmup_ns: nanos(scenario.warmup),
            queues: vec![
                QueueRecord::default();
                OTHER_QUEUES + scenario.link.other_bottlenecks().count()
            ],
            udp: (0..scenario.udp.len()).map(|group| UdpRecord::new(scenario, group)).collect(),
            rtts: vec![SmoothedRtts::default(); scenario.groups()],
            rtt_samples: 0,
            groups: scenario.flow.len(),
            series: SeriesRecord::new(scenario),
        }
    }

    /// The books of a group of UDP streams.
    #[inline]
    pub(crate) fn udp(&mut self, group: usize) -> &mut UdpRecord {
        &mut self.udp[group]
    }

    /// A packet left a queue.
    #[inline]
    pub(crate) fn departed(&mut self, number: usize, now_ns: u64, departure: &Departure<Packet>) {
        let packet = &departure.packet;
        let waited_ns = departure.sojourn_ns;
        // As the kernel counts them: an aggregate by its segments.
        let queue = &mut self.queues[number];
        queue.counted.sent_packets += u64::from(packet.body.segments());
        queue.counted.sent_bytes += u64::from(packet.length());
        if number == TESTED_QUEUE {
            self.series.departed(waited_ns);
        }
        if now_ns >= self.warmup_ns {
            queue.delays.record(waited_ns, packet.ecn());
        }
    }

    /// The warm-up ends: what was counted so far is not for the outcome.
    pub(crate) fn mark_warmup<'q>(
        &mut self,
        queues: impl Iterator<Item = (usize, &'q Link<Packet>)>,
    ) {
        for (number, queue) in queues {
            let record = &mut self.queues[number];
            let stats = queue.stats(Instant::from_nanos(self.warmup_ns));
            record.at_warmup = with_own(record.counted, &stats);
        }
    }

    /// The flows' smoothed round-trip times are to be looked at now.
    pub(crate) const fn sample_rtts(&mut self) {
        self.rtt_samples += 1;
    }

    /// Takes the samples that are due of a connection, whose round-trip time is about to change. So the samples of many idle
    /// flows cost nothing.
    #[inline]
    pub(crate) fn take_samples(&mut self, connection: &mut Connection) {
        let due = self.rtt_samples - connection.rtt_samples;
        if unlikely(due > 0) {
            connection.rtt_samples = self.rtt_samples;
            if let Some((srtt_us, _)) = connection.sender.rtt_us() {
                self.rtts[connection.owner].record(srtt_us as u64, due);
            }
        }
    }

    /// Whether an interval of the series has begun that is not over.
    pub(crate) fn is_within_interval(&self, now_ns: u64) -> bool {
        self.series.is_within_interval(Duration::from_nanos(now_ns))
    }

    /// Ends an interval of the series.
    pub(crate) fn end_interval(
        &mut self,
        now_ns: u64,
        connections: &[Connection],
        queue: &Link<Packet>,
    ) {
        let mut groups = vec![Looks::default(); self.groups];
        let mut round_trips = Vec::new();
        for (number, connection) in (0..).zip(connections) {
            match &connection.program {
                Program::Bulk(_) if connection.started => {
                    groups[connection.owner].add(&connection.look());
                }
                _ if connection.is_accepted(number) => {}
                _ => {
                    let measured = connection.round_trips(connections);
                    round_trips.extend(measured.map(|all| all.last_ns));
                }
            }
        }
        let stats = queue.stats(Instant::from_nanos(now_ns));
        let look = QueueLook {
            packets: queue.len() as u64,
            counts: with_own(self.queues[TESTED_QUEUE].counted, &stats),
            probability: stats.own.probability(),
        };
        self.series.end_interval(
            Duration::from_nanos(now_ns),
            groups,
            round_trips.into_iter(),
            look,
        );
    }

    /// Closes the books at `end_ns`.
    pub(crate) fn close<'q>(
        mut self,
        end_ns: u64,
        scenario: &Scenario,
        connections: &[Connection],
        queues: impl Iterator<Item = (usize, &'q Link<Packet>)>,
    ) -> Outcome {
        let window = Duration::from_nanos(end_ns - self.warmup_ns);
        let megabits = |bytes: u64| megabits(bytes, window);
        let mut outcome = Outcome {
            flow: vec![FlowOutcome::default(); scenario.flow.len()],
            series: self.series.finish(),
            ..Outcome::default()
        };
        let mut repeated = vec![Vec::new(); scenario.flow.len()];
        for (number, connection) in (0..).zip(connections) {
            if connection.is_accepted(number) {
                continue;
            }
            let stats = connection.sender.stats();
            let before = &connection.at_warmup;
            let retransmits = stats.retransmissions - before.retransmissions;
            let rtt_us = connection.sender.rtt_us().unwrap_or_default();
            match &connection.program {
                Program::Bulk(bulk) => {
                    let flow = &mut outcome.flow[connection.owner];
                    let goodput = megabits(connection.sender.acknowledged() - before.acknowledged);
                    flow.goodput_mbit.push(thousandths(goodput));
                    flow.total_mbit += goodput;
                    flow.line_mbit += megabits(connection.line_bytes - before.line_bytes);
                    flow.retransmits += retransmits;
                    flow.timeouts += stats.timeouts - before.timeouts;
                    flow.ce_marks += connection.receiver.stats().ce_segments - before.ce_segments;
                    if scenario.flow[connection.owner].asks_accurate() {
                        add_marks(flow.accurate_ecn.get_or_insert_default(), connection);
                    }
                    flow.srtt_ms.push(thousandths(rtt_us.0 / 1e3));
                    flow.rttvar_ms.push(thousandths(rtt_us.1 / 1e3));
                    flow.cwnd.push(connection.sender.cwnd());
                    // What was only told to stop has no size to complete.
                    let sized = scenario.flow[connection.owner].size.is_some();
                    let took_ns = bulk.took_ns.last().filter(|_| sized);
                    flow.completion_s.push(took_ns.map(|nanos| millionths(*nanos as f64 / 1e9)));
                    repeated[connection.owner].extend(bulk.transfers());
                    flow.data_packets += stats.segments - before.segments;
                    outcome.data_packets += stats.segments;
                }
                Program::Udp(_) => {}
                Program::Ping(_) | Program::Ask(_) | Program::Answer(_) => {
                    let round_trips = connection.round_trips(connections);
                    let samples = round_trips.map_or_else(Vec::new, |all| all.samples.clone());
                    let mut probe = ProbeOutcome::of_round_trips(samples, scenario.distributions);
                    probe.kernel_srtt_ms = thousandths(rtt_us.0 / 1e3);
                    probe.kernel_rttvar_ms = thousandths(rtt_us.1 / 1e3);
                    probe.retransmits = retransmits;
                    if let Program::Ping(ping) = &connection.program {
                        let warmup = Instant::from_nanos(self.warmup_ns);
                        ping.echoes.tell(warmup, Instant::from_nanos(end_ns), &mut probe);
                    }
                    outcome.probe.push(probe);
                }
            }
        }
        outcome.summarise_flows(scenario);
        for (flow, rtts) in outcome.flow.iter_mut().zip(&self.rtts) {
            rtts.summarise(flow);
        }
        for (number, group) in scenario.flow.iter().enumerate() {
            if group.every.is_some() {
                outcome.flow[number].completions =
                    Completions::by_class(&repeated[number], scenario.distributions);
            }
        }
        outcome.udp = self.udp.into_iter().map(|record| record.finish(window)).collect();
        for (number, queue) in queues {
            let record = std::mem::take(&mut self.queues[number]);
            let closed = record.close(end_ns, queue, scenario.distributions);
            outcome.put_queue(&scenario.link, number, closed);
        }
        outcome
    }
}

/// What was counted here, and what the discipline counts itself, as it does on Linux.
fn with_own(counted: QueueCounts, stats: &Stats) -> QueueCounts {
    QueueCounts { drops: stats.counters.drops, marks: stats.own.marks(), ..counted }
}

/// What Accurate ECN told a sender.
fn add_marks(all: &mut AccurateEcn, connection: &Connection) {
    let sender = &connection.sender;
    let [ect0, ce, ect1] = sender.ecn_bytes();
    all.agreed += u32::from(sender.ecn() == EcnStyle::Accurate);
    all.reno += u32::from(sender.is_fallback());
    all.delivered_ce += sender.stats().ecn_echoes;
    all.delivered_e0_bytes += ect0;
    all.delivered_e1_bytes += ect1;
    all.delivered_ce_bytes += ce;
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
