//! What is written down while a scenario runs, and the outcome that is made of it.

use dualq_qdisc::show::{self, OwnStats};
use dualq_qdisc::{Departure, Discipline, Qdisc};
use dualq_scenario::{FlowOutcome, Outcome, ProbeOutcome, QueueOutcome, Scenario, Series};
use dualq_units::Instant;
use hdrhistogram::Histogram;

use crate::connection::{Connection, Program};
use crate::packet::Packet;

/// How exact percentiles are.
const DIGITS: u8 = 3;
/// Longer times count as this long in percentiles: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Round-trip times are kept in microseconds, as the kernel has them.
const LONGEST_US: u64 = LONGEST_NS / 1000;

/// The books of a simulation.
pub(crate) struct Record {
    warmup_ns: u64,
    /// Times in the queue, in nanoseconds.
    delays: Histogram<u64>,
    delay_sum_ns: u128,
    delay_max_ns: u64,
    sent_packets: u64,
    sent_bytes: u64,
    marks: u64,
    /// Smoothed round-trip times of each group, in microseconds.
    rtts: Vec<Histogram<u64>>,
    /// How many samples of them are due so far.
    rtt_samples: u64,
    series: Series,
    /// What the series needs of the interval that is under way.
    interval_delay_ns: u128,
    interval_packets: u64,
    /// Bytes acknowledged, by group.
    interval_acknowledged: Vec<u64>,
}

impl Record {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let groups = scenario.flow.len();
        let histogram = |longest| {
            Histogram::new_with_bounds(1, longest, DIGITS).expect("bounds and digits are right")
        };
        Self {
            warmup_ns: nanos(scenario.warmup),
            delays: histogram(LONGEST_NS),
            delay_sum_ns: 0,
            delay_max_ns: 0,
            sent_packets: 0,
            sent_bytes: 0,
            marks: 0,
            rtts: vec![histogram(LONGEST_US); groups],
            rtt_samples: 0,
            series: Series {
                interval_s: scenario.interval.as_secs_f64(),
                goodput_mbit: vec![Vec::new(); groups],
                rtt_ms: vec![Vec::new(); scenario.probe.len()],
                ..Series::default()
            },
            interval_delay_ns: 0,
            interval_packets: 0,
            interval_acknowledged: vec![0; groups],
        }
    }

    /// A packet left the bottleneck's queue.
    #[inline]
    pub(crate) fn departed(&mut self, now_ns: u64, bytes: u32, departure: &Departure<Packet>) {
        let waited_ns = nanos(departure.sojourn);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(bytes);
        self.marks += u64::from(departure.marked_by_probability || departure.marked_by_step);
        self.interval_delay_ns += u128::from(waited_ns);
        self.interval_packets += 1;
        if now_ns >= self.warmup_ns {
            self.delays.saturating_record(waited_ns);
            self.delay_sum_ns += u128::from(waited_ns);
            self.delay_max_ns = self.delay_max_ns.max(waited_ns);
        }
    }

    /// The flows' smoothed round-trip times are to be looked at now.
    pub(crate) const fn sample_rtts(&mut self) {
        self.rtt_samples += 1;
    }

    /// Takes the samples that are due of a flow, whose round-trip time is about to change. So the samples of many idle
    /// flows cost nothing.
    #[inline]
    pub(crate) fn take_samples(&mut self, connection: &mut Connection) {
        let due = self.rtt_samples - connection.rtt_samples;
        if due > 0 {
            connection.rtt_samples = self.rtt_samples;
            if let Some((srtt_us, _)) = connection.sender.rtt_us() {
                self.rtts[connection.group].saturating_record_n(srtt_us as u64, due);
            }
        }
    }

    /// More bytes of a group of flows were acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&mut self, group: usize, bytes: u64) {
        self.interval_acknowledged[group] += bytes;
    }

    /// Ends an interval of the series.
    pub(crate) fn end_interval(
        &mut self,
        now_ns: u64,
        probes: &[Connection],
        queue: &Discipline<Packet>,
    ) {
        let series = &mut self.series;
        let started_s = series.t_s.last().copied().unwrap_or(0.0);
        let now_s = now_ns as f64 / 1e9;
        series.t_s.push(now_s);
        for (goodputs, bytes) in series.goodput_mbit.iter_mut().zip(&mut self.interval_acknowledged)
        {
            let bits = std::mem::take(bytes) as f64 * 8.0;
            let goodput = if now_s > started_s { bits / (now_s - started_s) / 1e6 } else { 0.0 };
            goodputs.push(thousandths(goodput));
        }
        for probe in probes {
            let last = probe.samples().last().map(|nanos| millis(*nanos as f64));
            series.rtt_ms[probe.group].push(last);
        }
        let mean_ns = (self.interval_packets > 0)
            .then(|| self.interval_delay_ns as f64 / self.interval_packets as f64);
        series.queue_delay_ms.push(mean_ns.map(millis));
        series.queue_packets.push(queue.len() as u64);
        let probability = match queue.stats(Instant::from_nanos(now_ns)).own {
            OwnStats::Dualpi2(own) => Some(f64::from(own.probability) / f64::from(u32::MAX)),
            _ => None,
        };
        series.probability.push(probability.map(|share| (share * 1e6).round() / 1e6));
        self.interval_delay_ns = 0;
        self.interval_packets = 0;
    }

    /// Closes the books at `end_ns`.
    pub(crate) fn close(
        self,
        end_ns: u64,
        scenario: &Scenario,
        connections: &[Connection],
        queue: &Discipline<Packet>,
    ) -> Outcome {
        let seconds = (end_ns - self.warmup_ns) as f64 / 1e9;
        let megabits = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
        let mut outcome = Outcome {
            flow: vec![FlowOutcome::default(); scenario.flow.len()],
            series: self.series,
            ..Outcome::default()
        };
        for connection in connections {
            let stats = connection.sender.stats();
            let before = &connection.at_warmup;
            let retransmits = stats.retransmissions - before.retransmissions;
            let rtt_us = connection.sender.rtt_us().unwrap_or_default();
            match &connection.program {
                Program::Bulk { done_ns, .. } => {
                    let flow = &mut outcome.flow[connection.group];
                    let goodput = megabits(connection.sender.acknowledged() - before.acknowledged);
                    flow.goodput_mbit.push(thousandths(goodput));
                    flow.total_mbit += goodput;
                    flow.line_mbit += megabits(connection.line_bytes - before.line_bytes);
                    flow.retransmits += retransmits;
                    flow.timeouts += stats.timeouts - before.timeouts;
                    flow.ce_marks += connection.receiver.stats().ce_segments - before.ce_segments;
                    flow.srtt_ms.push(thousandths(rtt_us.0 / 1e3));
                    flow.rttvar_ms.push(thousandths(rtt_us.1 / 1e3));
                    flow.cwnd.push(connection.sender.cwnd());
                    let took_ns = done_ns.map(|done| done - connection.start_ns);
                    flow.completion_s.push(took_ns.map(|nanos| thousandths(nanos as f64 / 1e9)));
                    outcome.goodput_mbit += goodput;
                    outcome.data_packets += stats.segments;
                }
                Program::Probe { samples, .. } | Program::Ping { samples, .. } => {
                    let mut probe = summarise(samples.clone());
                    probe.kernel_srtt_ms = thousandths(rtt_us.0 / 1e3);
                    probe.kernel_rttvar_ms = thousandths(rtt_us.1 / 1e3);
                    probe.retransmits = retransmits;
                    outcome.probe.push(probe);
                }
            }
        }
        outcome.goodput_mbit = thousandths(outcome.goodput_mbit);
        outcome.fairness = jain(&outcome.flow).map(thousandths);
        for (flow, rtts) in outcome.flow.iter_mut().zip(&self.rtts) {
            flow.total_mbit = thousandths(flow.total_mbit);
            flow.line_mbit = thousandths(flow.line_mbit);
            if !rtts.is_empty() {
                let at = |quantile| thousandths(rtts.value_at_quantile(quantile) as f64 / 1e3);
                flow.srtt_ms_mean = thousandths(rtts.mean() / 1e3);
                flow.srtt_ms_p50 = at(0.5);
                flow.srtt_ms_p95 = at(0.95);
                flow.srtt_ms_p99 = at(0.99);
                flow.srtt_ms_max = at(1.0);
            }
        }
        let stats = queue.stats(Instant::from_nanos(end_ns));
        let at = |quantile| {
            millis(self.delays.value_at_quantile(quantile).min(self.delay_max_ns) as f64)
        };
        let mean_ns = self.delay_sum_ns as f64 / self.delays.len().max(1) as f64;
        outcome.queue = QueueOutcome {
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            drops: stats.counters.drops,
            marks: self.marks,
            delay_mean_ms: millis(mean_ns),
            delay_p50_ms: at(0.5),
            delay_p95_ms: at(0.95),
            delay_p99_ms: at(0.99),
            delay_max_ms: millis(self.delay_max_ns as f64),
            tc: show::json_with_stats(&queue.config(), &stats),
        };
        outcome
    }
}

/// Jain's fairness index of all flows (Jain, Chiu, Hawe: DEC-TR-301, 1984).
fn jain(groups: &[FlowOutcome]) -> Option<f64> {
    let all: Vec<f64> = groups.iter().flat_map(|flow| flow.goodput_mbit.iter().copied()).collect();
    let (sum, squares) = (all.iter().sum::<f64>(), all.iter().map(|x| x * x).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (all.len() as f64 * squares))
}

/// Summarises round trips, given in nanoseconds.
fn summarise(mut samples: Vec<u64>) -> ProbeOutcome {
    if samples.is_empty() {
        return ProbeOutcome::default();
    }
    samples.sort_unstable();
    let count = samples.len();
    let at = |share: f64| millis(samples[((count as f64 * share) as usize).min(count - 1)] as f64);
    let mean = samples.iter().map(|&sample| sample as f64).sum::<f64>() / count as f64;
    let squares = samples.iter().map(|&sample| (sample as f64 - mean).powi(2)).sum::<f64>();
    ProbeOutcome {
        n: count as u64,
        mean_ms: millis(mean),
        min_ms: millis(samples[0] as f64),
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: millis(samples[count - 1] as f64),
        std_ms: millis((squares / count as f64).sqrt()),
        ..ProbeOutcome::default()
    }
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds of nanoseconds, to the microsecond.
fn millis(nanos: f64) -> f64 {
    thousandths(nanos / 1e6)
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
