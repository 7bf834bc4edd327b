//! The dumbbell at work: senders, the bottleneck, receivers, and the way back.

use std::collections::VecDeque;

use dualpi2::{Random, SplitMix64};
use dualq_tcp::{Ack, ETHERNET_BYTES, Transmission};
use dualq_units::Instant;

use crate::agenda::{Agenda, Cause};
use crate::connection::{Connection, Device, Program};
use crate::discipline;
use crate::error::ScenarioError;
use crate::outcome::{FlowOutcome, Outcome, QueueOutcome, summarise};
use crate::packet::Packet;
use crate::queues::{Frame, Queue};
use crate::scenario::{Loss, Scenario};
use crate::shaper::Shaper;

/// Flows of a group start this far apart.
const FLOW_SPACING_NS: u64 = 50_000_000;
/// How often the smoothed round-trip times are sampled.
const SAMPLE_NS: u64 = 100_000_000;

/// Sums of sampled round-trip times of a group, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct RttSamples {
    sum: f64,
    count: u64,
    max: f64,
}

/// A scenario being simulated.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    now_ns: u64,
    agenda: Agenda,
    connections: Vec<Connection>,
    device: Device,

    queue: Queue<Packet>,
    shaper: Shaper,
    /// When the bottleneck next sends; never while its queue is empty.
    link_ns: u64,
    sent_packets: u64,
    sent_bytes: u64,
    delay_sum_ns: u128,
    delay_count: u64,

    /// Acknowledgements on their way, in the order of arrival.
    way_back: VecDeque<(u64, u32, Ack)>,
    rtt_ns: u64,
    random: SplitMix64,
    rtt_samples: Vec<RttSamples>,
    warmup_ns: u64,
}

fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    let out_of_bounds =
        |what, value: String, right| Err(ScenarioError::OutOfBounds { what, value, right });
    if scenario.link.rate.as_bits_per_second() == 0 {
        return out_of_bounds("link.rate", scenario.link.rate.to_string(), "it must be above 0");
    }
    if scenario.warmup >= scenario.duration {
        let warmup = format!("{:?}", scenario.warmup);
        return out_of_bounds("warmup", warmup, "it must be shorter than the duration");
    }
    if !(576..=65_535).contains(&scenario.link.mtu) {
        let right = "it must be within 576 and 65535";
        return out_of_bounds("link.mtu", scenario.link.mtu.to_string(), right);
    }
    Ok(())
}

impl<'a> Simulation<'a> {
    /// A scenario at its start; everything random follows from `seed`.
    ///
    /// # Errors
    /// If the scenario makes no sense.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Result<Self, ScenarioError> {
        check(scenario)?;
        let mut random = SplitMix64::new(seed);
        let mut draw = || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let device = Device::parse(&scenario.sender.qdisc)?;
        let frame = scenario.link.mtu + ETHERNET_BYTES;
        let queue = discipline::parse(&scenario.link.qdisc, frame, scenario.tick, draw())?;
        let mut connections = Vec::new();
        for group in scenario.flow.iter().enumerate() {
            for number in 0..u64::from(group.1.count) {
                let start_ns = number * FLOW_SPACING_NS;
                connections.push(Connection::flow(scenario, device, group, start_ns, draw())?);
            }
        }
        for group in scenario.probe.iter().enumerate() {
            connections.push(Connection::probe(scenario, device, group, draw())?);
        }
        let mut agenda = Agenda::new(connections.len());
        for (number, connection) in (0..).zip(&connections) {
            agenda.arm(number, Cause::Program, connection.start_ns);
        }
        Ok(Self {
            scenario,
            now_ns: 0,
            agenda,
            connections,
            device,
            queue,
            shaper: Shaper::new(scenario.link.rate),
            link_ns: u64::MAX,
            sent_packets: 0,
            sent_bytes: 0,
            delay_sum_ns: 0,
            delay_count: 0,
            way_back: VecDeque::new(),
            rtt_ns: scenario.link.rtt.as_nanos() as u64,
            random,
            rtt_samples: vec![RttSamples::default(); scenario.flow.len()],
            warmup_ns: scenario.warmup.as_nanos() as u64,
        })
    }

    /// Runs to the end and reports.
    #[must_use]
    pub fn run(mut self) -> Outcome {
        let end_ns = self.scenario.duration.as_nanos() as u64;
        self.run_until(self.warmup_ns);
        for connection in &mut self.connections {
            connection.warmup_acknowledged = connection.sender.acknowledged();
            connection.warmup_retransmissions = connection.sender.stats().retransmissions;
            connection.warmup_marks = connection.receiver.stats().ce_segments;
        }
        let mut sample_ns = self.warmup_ns;
        while sample_ns < end_ns {
            self.sample_rtts();
            sample_ns = (sample_ns + SAMPLE_NS).min(end_ns);
            self.run_until(sample_ns);
        }
        self.report(end_ns)
    }

    /// Handles all that happens before `end_ns`.
    fn run_until(&mut self, end_ns: u64) {
        loop {
            let back_ns = self.way_back.front().map_or(u64::MAX, |entry| entry.0);
            let agenda_ns = self.agenda.next_ns();
            let next_ns = self.link_ns.min(back_ns).min(agenda_ns);
            if next_ns >= end_ns {
                self.now_ns = end_ns;
                return;
            }
            self.now_ns = next_ns;
            if next_ns == self.link_ns {
                self.serve_link();
            } else if next_ns == back_ns {
                self.take_back();
            } else {
                self.take_timer();
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    /// The bottleneck sends what its tokens allow.
    fn serve_link(&mut self) {
        loop {
            let ready_ns = self.shaper.ready_ns(self.now_ns);
            if ready_ns > self.now_ns {
                self.link_ns = ready_ns;
                return;
            }
            let Some(departure) = self.queue.dequeue(self.now_ns) else {
                self.link_ns = u64::MAX;
                return;
            };
            let bytes = departure.packet.length();
            self.shaper.charge(bytes);
            self.sent_packets += 1;
            self.sent_bytes += u64::from(bytes);
            if self.now_ns >= self.warmup_ns {
                self.delay_sum_ns += u128::from(departure.sojourn_ns);
                self.delay_count += 1;
            }
            if !strikes(self.scenario.link.loss, &mut self.random) {
                self.arrive(&departure.packet);
            }
            if self.queue.is_empty() {
                self.link_ns = u64::MAX;
                return;
            }
        }
    }

    /// A packet reaches its receiver.
    #[inline]
    fn arrive(&mut self, packet: &Packet) {
        let now = self.now();
        let connection = &mut self.connections[packet.connection as usize];
        let back_ns = self.now_ns + self.rtt_ns;
        let way_back = &mut self.way_back;
        connection.receiver.on_data(now, &packet.data, &mut |ack| {
            way_back.push_back((back_ns, packet.connection, ack));
        });
        let deadline = connection.receiver.next_timer().as_nanos();
        if deadline != u64::MAX {
            self.agenda.arm(packet.connection, Cause::Receiver, deadline);
        }
    }

    /// An acknowledgement reaches its sender.
    #[inline]
    fn take_back(&mut self) {
        let Some((_, number, ack)) = self.way_back.pop_front() else { return };
        let now = self.now();
        let connection = &mut self.connections[number as usize];
        connection.sender.on_ack(now, &ack);
        match &mut connection.program {
            Program::Bulk { done_ns } => {
                if done_ns.is_none() && connection.sender.is_done() {
                    *done_ns = Some(self.now_ns);
                }
            }
            Program::Probe { interval, asked_ns, samples } => {
                // The answer travels with the acknowledgement of the question.
                if let Some(asked) = *asked_ns
                    && connection.sender.is_done()
                {
                    *asked_ns = None;
                    if self.now_ns >= self.warmup_ns {
                        samples.push(self.now_ns - asked);
                    }
                    let next_ns = (now + *interval).as_nanos();
                    self.agenda.arm(number, Cause::Program, next_ns);
                }
            }
        }
        self.drive(number);
    }

    fn take_timer(&mut self) {
        let Some((number, cause)) = self.agenda.pop() else { return };
        let now = self.now();
        let connection = &mut self.connections[number as usize];
        match cause {
            Cause::Sender => {
                if connection.sender.next_timer() <= now {
                    connection.sender.on_timer(now);
                    self.drive(number);
                } else {
                    let deadline = connection.sender.next_timer().as_nanos();
                    self.agenda.arm(number, Cause::Sender, deadline);
                }
            }
            Cause::Receiver => {
                if connection.receiver.next_timer() <= now {
                    let back_ns = self.now_ns + self.rtt_ns;
                    let way_back = &mut self.way_back;
                    connection.receiver.on_timer(now, &mut |ack| {
                        way_back.push_back((back_ns, number, ack));
                    });
                }
                let deadline = connection.receiver.next_timer().as_nanos();
                self.agenda.arm(number, Cause::Receiver, deadline);
            }
            Cause::Departure => self.drive(number),
            Cause::Program => {
                connection.run_program(self.now_ns);
                self.drive(number);
            }
        }
    }

    /// Lets a sender send, and its interface's queue let go what is due.
    #[inline]
    fn drive(&mut self, number: u32) {
        let now = self.now();
        loop {
            let connection = &mut self.connections[number as usize];
            let device = &mut connection.device;
            connection.sender.transmit(now, &mut |transmission| device.push_back(transmission));
            let mut more = false;
            while let Some(front) = self.connections[number as usize].device.front().copied() {
                if front.departure > now {
                    break;
                }
                let connection = &mut self.connections[number as usize];
                connection.device.pop_front();
                more |= connection.sender.on_departure(front.data.payload);
                self.forward(number, &front);
            }
            if !more {
                break;
            }
        }
        let connection = &self.connections[number as usize];
        if let Some(front) = connection.device.front() {
            self.agenda.arm(number, Cause::Departure, front.departure.as_nanos());
        }
        let deadline = connection.sender.next_timer().as_nanos();
        if deadline != u64::MAX {
            self.agenda.arm(number, Cause::Sender, deadline);
        }
    }

    /// A packet leaves its sender and reaches the bottleneck's queue.
    #[inline]
    fn forward(&mut self, number: u32, transmission: &Transmission) {
        if strikes(self.device.loss, &mut self.random) {
            return;
        }
        let mut packet = Packet { connection: number, data: transmission.data };
        if !self.scenario.sender.gso {
            while packet.segments() > 1 {
                let first = packet.split_first();
                self.queue.enqueue(self.now_ns, first);
                self.wake_link();
            }
        }
        self.queue.enqueue(self.now_ns, packet);
        self.wake_link();
    }

    #[inline]
    fn wake_link(&mut self) {
        if self.link_ns == u64::MAX {
            self.serve_link();
        }
    }

    fn sample_rtts(&mut self) {
        for connection in self.connections.iter().filter(|connection| !connection.is_probe()) {
            if let Some((srtt_us, _)) = connection.sender.rtt_us() {
                let samples = &mut self.rtt_samples[connection.group];
                samples.sum += srtt_us;
                samples.count += 1;
                samples.max = samples.max.max(srtt_us);
            }
        }
    }

    fn report(self, end_ns: u64) -> Outcome {
        let seconds = (end_ns - self.warmup_ns) as f64 / 1e9;
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        let mut outcome = Outcome {
            flow: vec![FlowOutcome::default(); self.scenario.flow.len()],
            ..Outcome::default()
        };
        for connection in self.connections {
            let stats = *connection.sender.stats();
            let retransmits = stats.retransmissions - connection.warmup_retransmissions;
            match connection.program {
                Program::Bulk { done_ns } => {
                    let flow = &mut outcome.flow[connection.group];
                    let bytes = connection.sender.acknowledged() - connection.warmup_acknowledged;
                    let goodput = bytes as f64 * 8.0 / seconds / 1e6;
                    flow.goodput_mbit.push(thousandths(goodput));
                    flow.total_mbit += goodput;
                    flow.retransmits += retransmits;
                    flow.ce_marks +=
                        connection.receiver.stats().ce_segments - connection.warmup_marks;
                    flow.completion_s.push(done_ns.map(|nanos| nanos as f64 / 1e9));
                    outcome.goodput_mbit += goodput;
                    outcome.data_packets += stats.segments;
                }
                Program::Probe { samples, .. } => {
                    let mut probe = summarise(samples);
                    if let Some((srtt_us, deviation_us)) = connection.sender.rtt_us() {
                        probe.kernel_srtt_ms = thousandths(srtt_us / 1e3);
                        probe.kernel_rttvar_ms = thousandths(deviation_us / 1e3);
                    }
                    probe.retransmits = retransmits;
                    outcome.probe.push(probe);
                }
            }
        }
        outcome.goodput_mbit = thousandths(outcome.goodput_mbit);
        for (flow, samples) in outcome.flow.iter_mut().zip(&self.rtt_samples) {
            flow.total_mbit = thousandths(flow.total_mbit);
            flow.srtt_ms_mean = thousandths(samples.sum / samples.count.max(1) as f64 / 1e3);
            flow.srtt_ms_max = thousandths(samples.max / 1e3);
        }
        let stats = self.queue.stats();
        let mean_ns = self.delay_sum_ns as f64 / self.delay_count.max(1) as f64;
        outcome.queue = QueueOutcome {
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            drops: stats.drops,
            marks: stats.marks,
            delay_mean_ms: thousandths(mean_ns / 1e6),
        };
        outcome
    }
}

/// Whether a packet is lost; draws only if it may be.
#[inline]
fn strikes(loss: Loss, random: &mut SplitMix64) -> bool {
    !loss.is_none() && loss.strikes(random.next_u32())
}
