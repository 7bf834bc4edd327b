//! The dumbbell at work: senders, the bottleneck, receivers, and the way back.

use std::collections::VecDeque;
use std::slice;
use std::time::Duration;

use dualq_qdisc::pool::Pool;
use dualq_qdisc::{Device as Interface, Discipline, Packet as _, Qdisc, Random, SplitMix64};
use dualq_tcp::{Ack, MIN_ACK_DELAY, Pacing, Sender, Tick, Transmission};
use dualq_units::Instant;
use prefetch_index::prefetch_index;

use crate::agenda::{Agenda, Cause};
use crate::connection::{Connection, Delayed, Device, Program, Side};
use crate::error::Unmodelled;
use crate::packet::Packet;
use crate::record::Record;
use crate::reverse::ReversePath;
use crate::shaper::Shaper;
use dualq_scenario::{Event, Loss, Outcome, RTT_SAMPLE_INTERVAL, Scenario, Seen, TIMER_SLACK};

/// From so many connections on the near caches do not hold them.
const MANY: usize = 512;
/// Acknowledgements themselves are asked for so many before their turn.
const LATER: usize = 8;
/// How often a run is looked at by whoever shows its progress.
const LOOKS: u64 = 500;
/// How much later than it wanted a program wakes at most.
const TIMER_SLACK_NS: u64 = TIMER_SLACK.as_nanos() as u64;
/// How often the smoothed round-trip times are sampled.
const SAMPLE_NS: u64 = RTT_SAMPLE_INTERVAL.as_nanos() as u64;

/// A scenario being simulated.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    now_ns: u64,
    agenda: Agenda,
    /// First the flows, then the probes.
    connections: Vec<Connection>,
    flows: usize,
    device: Device,
    /// What waits in the queues of the senders' interfaces.
    waiting: Pool<Transmission>,
    /// What leaves a sender just now.
    leaving: Vec<Transmission>,
    /// The senders' interfaces: one for each group of flows and each probe.
    interfaces: Vec<Delayed>,
    /// Senders that wait for what has left their interface's queue.
    woken: VecDeque<u32>,

    queue: Discipline<Packet>,
    shaper: Shaper,
    /// When the bottleneck next sends; never while its queue is empty.
    link_ns: u64,

    /// Packets on their way behind the bottleneck, in the order of arrival.
    forward_path: VecDeque<(u64, Packet)>,
    forward_ns: u64,
    /// Acknowledgements on their way.
    reverse: ReversePath,
    random: SplitMix64,
    /// What makes flows' hashes differ from seed to seed.
    salt: u32,
    warmup_ns: u64,
    /// When the smoothed round-trip times are next sampled.
    sample_ns: u64,
    /// How many changes of the link's rate have happened.
    steps: usize,
    /// When the interval of the series ends.
    interval_end_ns: u64,
    record: Record,
    watch: Option<&'a mut dyn FnMut(Event)>,
}

impl<'a> Simulation<'a> {
    /// A scenario at its start; everything random follows from `seed`.
    ///
    /// # Errors
    /// If the scenario asks for what the model does not have.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Result<Self, Unmodelled> {
        crate::check(scenario)?;
        let mut random = SplitMix64::new(seed);
        let mut draw = || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let interface = Interface::ethernet(scenario.link.mtu);
        let device = Device::of(&scenario.sender.qdisc)?;
        let spec = scenario.link.qdisc.spec();
        let queue = spec
            .build(&interface, SplitMix64::new(draw()), Instant::ZERO)
            .map_err(|missing| Unmodelled::Qdisc(missing.kind))?;
        let flows = scenario.flow.iter().map(|group| group.count as usize).sum::<usize>();
        let mut connections = Vec::with_capacity(flows + scenario.probe.len());
        for group in scenario.flow.iter().enumerate() {
            for transfer in group.1.transfers(group.0) {
                connections.push(Connection::flow(scenario, device, group, transfer, draw())?);
            }
        }
        for group in scenario.probe.iter().enumerate() {
            connections.push(Connection::probe(scenario, device, group, draw())?);
        }
        let mut reverse = ReversePath::new();
        let back = scenario.link.rtt - scenario.link.forward;
        for (number, connection) in connections.iter_mut().enumerate() {
            let group = scenario.flow.get(connection.group).filter(|_| number < flows);
            let extra = group.map_or(Duration::ZERO, |group| group.extra_rtt);
            connection.lane = reverse.lane(back + extra);
        }
        let mut agenda = Agenda::new(connections.len());
        for (number, connection) in (0..).zip(&connections) {
            agenda.arm(number, Cause::Program, connection.start_ns);
        }
        let groups = scenario.flow.len();
        let mut interfaces: Vec<Delayed> =
            (0..groups + scenario.probe.len()).map(|_| Delayed::default()).collect();
        for (number, connection) in (0..).zip(&mut connections) {
            let is_flow = (number as usize) < flows;
            connection.interface = connection.group + if is_flow { 0 } else { groups };
            interfaces[connection.interface].leader.get_or_insert(number);
        }
        Ok(Self {
            scenario,
            now_ns: 0,
            agenda,
            connections,
            flows,
            device,
            waiting: Pool::new(),
            leaving: Vec::new(),
            interfaces,
            woken: VecDeque::new(),
            queue,
            shaper: Shaper::new(scenario.link.rate),
            link_ns: u64::MAX,
            reverse,
            forward_path: VecDeque::new(),
            forward_ns: scenario.link.forward.as_nanos() as u64,
            random,
            salt: SplitMix64::new(!seed).next_u32(),
            warmup_ns: scenario.warmup.as_nanos() as u64,
            sample_ns: scenario.warmup.as_nanos() as u64,
            steps: 0,
            interval_end_ns: scenario.interval.as_nanos() as u64,
            record: Record::new(scenario),
            watch: None,
        })
    }

    /// Tells each packet that is seen.
    #[must_use]
    pub fn watched(mut self, watch: &'a mut dyn FnMut(Event)) -> Self {
        self.watch = Some(watch);
        self
    }

    #[inline]
    fn tell(&mut self, seen: Seen, packet: &Packet) {
        if let Some(watch) = &mut self.watch {
            watch(Event {
                at_ns: self.now_ns,
                seen,
                flow: packet.connection,
                seq: packet.data.seq,
                bytes: packet.data.payload.into(),
                ecn: packet.data.ecn.bits(),
                sacks: 0,
            });
        }
    }

    /// Puts another discipline at the bottleneck, in the place of the scenario's: one of another crate, as
    /// [`Discipline::Boxed`]. To be called before the first packet.
    #[must_use]
    pub fn with_queue(mut self, queue: Discipline<Packet>) -> Self {
        self.queue = queue;
        self
    }

    /// The time up to which all has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    /// The discipline at the bottleneck.
    #[must_use]
    pub const fn queue(&self) -> &Discipline<Packet> {
        &self.queue
    }

    /// The senders: of the flows in the order of their groups, then of the probes.
    pub fn senders(&self) -> impl ExactSizeIterator<Item = &Sender> {
        self.connections.iter().map(|connection| &connection.sender)
    }

    /// Lets all happen that happens before `until`, or before the end of the scenario if that is sooner.
    pub fn advance(&mut self, until: Instant) {
        let end_ns = self.end_ns();
        let until_ns = until.as_nanos().min(end_ns);
        while self.now_ns < until_ns {
            let step = self.scenario.link.step.get(self.steps).copied();
            let step_ns = step.map_or(u64::MAX, |step| step.at.as_nanos() as u64);
            let next_ns = self.interval_end_ns.min(self.sample_ns).min(step_ns).min(until_ns);
            self.run_until(next_ns);
            if next_ns == step_ns
                && let Some(step) = step
            {
                self.shaper = self.shaper.with_rate(step.rate);
                self.steps += 1;
            }
            if next_ns == self.sample_ns && next_ns < end_ns {
                self.take_sample();
            }
            if next_ns == self.interval_end_ns || next_ns == end_ns {
                let connections = self.connections.split_at(self.flows);
                self.record.end_interval(next_ns, connections, &self.queue);
                let interval_ns = self.scenario.interval.as_nanos() as u64;
                self.interval_end_ns = self.interval_end_ns.saturating_add(interval_ns);
            }
        }
    }

    /// Runs to the end and reports.
    #[must_use]
    pub fn run(self) -> Outcome {
        self.run_watched(&mut |_| ())
    }

    /// Runs to the end and reports. `look` is called now and then with the simulated time that has passed.
    #[must_use]
    pub fn run_watched(mut self, look: &mut dyn FnMut(Duration)) -> Outcome {
        let end_ns = self.end_ns();
        let look_ns = (end_ns / LOOKS).max(1);
        while self.now_ns < end_ns {
            self.advance(Instant::from_nanos(self.now_ns.saturating_add(look_ns)));
            look(Duration::from_nanos(self.now_ns));
        }
        for connection in &mut self.connections[..self.flows] {
            self.record.take_samples(connection);
        }
        self.record.close(end_ns, self.scenario, &self.connections, &self.queue)
    }

    fn end_ns(&self) -> u64 {
        self.scenario.duration.as_nanos() as u64
    }

    /// The first at the end of the warm-up.
    fn take_sample(&mut self) {
        if self.sample_ns == self.warmup_ns {
            self.record.mark_warmup(&self.queue);
            for connection in &mut self.connections {
                connection.at_warmup = connection.marker();
            }
        }
        self.record.sample_rtts();
        self.sample_ns += SAMPLE_NS;
    }

    /// Handles all that happens before `end_ns`.
    fn run_until(&mut self, end_ns: u64) {
        // What may wake late wakes with a timer, unless it is due behind the next one that may not, of those that were set when that
        // ran out. Seldom is anything near enough.
        let slack_ns = self.device.slack_ns.max(TIMER_SLACK_NS);
        let mut hard_ns = None;
        loop {
            let mut agenda_ns = self.agenda.next_ns();
            if let Some(hard_ns) = hard_ns
                && agenda_ns <= hard_ns
                && agenda_ns <= self.now_ns + slack_ns
            {
                self.wake_early(hard_ns);
                agenda_ns = self.agenda.next_ns();
            }
            let back_ns = self.reverse.next_ns();
            let there_ns = self.forward_path.front().map_or(u64::MAX, |entry| entry.0);
            let next_ns = self.link_ns.min(back_ns).min(agenda_ns).min(there_ns);
            if next_ns >= end_ns {
                self.now_ns = end_ns;
                return;
            }
            debug_assert!(
                next_ns >= self.now_ns,
                "time goes back from {} to {next_ns}",
                self.now_ns
            );
            self.now_ns = next_ns;
            let link_ns = self.link_ns;
            if next_ns == link_ns {
                hard_ns = Some(there_ns.min(back_ns));
                self.serve_link();
            } else if next_ns == there_ns {
                hard_ns = Some(link_ns.min(back_ns));
                if let Some((_, packet)) = self.forward_path.pop_front() {
                    self.arrive(&packet);
                }
            } else if next_ns == back_ns {
                // What queues let go is gone before anything that arrives is looked at (Linux: `net_tx_action`, `net_rx_action`).
                let first_ns = link_ns.min(there_ns);
                if agenda_ns <= first_ns && agenda_ns <= next_ns + slack_ns {
                    self.wake_early(first_ns);
                }
                hard_ns = None;
                self.take_back();
            } else {
                hard_ns = Some(link_ns.min(there_ns).min(back_ns));
                self.take_timer();
            }
        }
    }

    /// A timer has run out, and takes along those behind it that may run out a little later: up to the first one that may not yet
    /// (Linux: `__hrtimer_run_queues`). The next timer without such a slack, of those that were set then, is due at `hard_ns`.
    #[inline]
    fn wake_early(&mut self, hard_ns: u64) {
        while let Some((deadline_ns, number, cause)) = self.agenda.peek() {
            if deadline_ns > hard_ns {
                return;
            }
            let spare_ns = deadline_ns - self.now_ns;
            let connection = &self.connections[number as usize];
            let slack_ns = match cause {
                Cause::Receiver if connection.receiver.is_next_to_read() => TIMER_SLACK_NS,
                Cause::Departure => self.device.slack_ns,
                _ => 0,
            };
            if spare_ns > slack_ns {
                return;
            }
            self.take_timer();
        }
    }

    // Memory is slower than this loop: with many connections, what is known of each is asked for before its turn, and what
    // that points to a turn later.

    #[inline]
    fn read_ahead(&self, connection: u32, side: Side) {
        self.connections[connection as usize].read_ahead(side);
        self.agenda.read_ahead(connection);
    }

    #[inline]
    fn read_receivers_ahead(&self) {
        if self.connections.len() >= MANY
            && let Some(packet) = self.queue.upcoming()
        {
            self.read_ahead(packet.connection, Side::Receiver);
        }
    }

    #[inline]
    fn read_senders_ahead(&self) {
        if self.connections.len() < MANY {
            return;
        }
        if let Some((_, first, _)) = self.reverse.upcoming(0) {
            self.connections[*first as usize].sender.read_ahead();
        }
        if let Some((_, second, _)) = self.reverse.upcoming(1) {
            self.read_ahead(*second, Side::Sender);
        }
        if let Some(later) = self.reverse.upcoming(LATER) {
            prefetch_index(slice::from_ref(later), 0);
        }
    }

    #[inline]
    fn read_timers_ahead(&self) {
        if self.connections.len() < MANY {
            return;
        }
        if let Some((second, Cause::Departure)) = self.agenda.upcoming(1) {
            self.waiting.read_ahead(&self.connections[second as usize].device);
        }
        if let Some((third, cause)) = self.agenda.upcoming(2) {
            let receiver = cause == Cause::Receiver;
            self.read_ahead(third, if receiver { Side::Receiver } else { Side::Sender });
        }
    }

    /// The bottleneck sends what its tokens allow.
    fn serve_link(&mut self) {
        loop {
            let ready_ns = self.shaper.ready_ns(self.now_ns);
            if ready_ns > self.now_ns {
                self.link_ns = ready_ns;
                return;
            }
            self.update_queue();
            let Some(departure) = self.queue.dequeue(self.now(), &mut |_| ()) else {
                self.link_ns = self.queue.next_ready(self.now()).as_nanos();
                return;
            };
            self.read_receivers_ahead();
            self.tell(Seen::Out, &departure.packet);
            let bytes = departure.packet.length();
            self.shaper.charge(bytes);
            self.record.departed(self.now_ns, bytes, &departure);
            if !strikes(self.scenario.link.loss, &mut self.random) {
                if self.forward_ns == 0 {
                    self.arrive(&departure.packet);
                } else {
                    self.forward_path.push_back((self.now_ns + self.forward_ns, departure.packet));
                }
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
        // A flow's program is not worth a look.
        let is_probe = packet.connection as usize >= self.flows;
        let connection = &mut self.connections[packet.connection as usize];
        let (lane, now_ns) = (connection.lane, self.now_ns);
        let reverse = &mut self.reverse;
        if is_probe && matches!(connection.program, Program::Ping { .. }) {
            let answer = Ack { ack: packet.data.seq, ..Ack::default() };
            reverse.push(lane, now_ns, packet.connection, answer);
            return;
        }
        if is_probe && packet.data.payload == 0 && !packet.data.syn {
            // The acknowledgement of an answer.
            return;
        }
        connection.receiver.on_data(now, &packet.data, &mut |ack| {
            reverse.push(lane, now_ns, packet.connection, ack);
        });
        let deadline = connection.receiver.next_timer().as_nanos();
        self.agenda.arm(packet.connection, Cause::Receiver, deadline);
    }

    /// An acknowledgement reaches its sender.
    #[inline]
    fn take_back(&mut self) {
        let Some((_, number, ack)) = self.reverse.pop() else { return };
        self.read_senders_ahead();
        let now = self.now();
        if let Some(watch) = &mut self.watch {
            watch(Event {
                at_ns: self.now_ns,
                seen: Seen::Ack,
                flow: number,
                seq: ack.ack,
                bytes: ack.window,
                ecn: ack.ece.into(),
                sacks: ack.block_count,
            });
        }
        let connection = &mut self.connections[number as usize];
        if let Program::Ping { samples, .. } = &mut connection.program {
            connection.round_trip_ns = Some(self.now_ns - ack.ack);
            if self.now_ns >= self.warmup_ns {
                samples.push(self.now_ns - ack.ack);
            }
            return;
        }
        if let Program::Bulk { .. } = &connection.program {
            self.record.take_samples(connection);
        }
        connection.sender.on_ack(now, &ack);
        match &mut connection.program {
            Program::Bulk { done_ns, .. } => {
                if done_ns.is_none() && connection.sender.is_done() {
                    *done_ns = Some(self.now_ns);
                }
            }
            Program::Probe {
                interval,
                asked_ns,
                acknowledges,
                answered_ns,
                converses,
                samples,
            } => {
                // The answer travels with the acknowledgement of the question.
                if let Some(asked) = *asked_ns
                    && connection.sender.is_done()
                {
                    *asked_ns = None;
                    connection.round_trip_ns = Some(self.now_ns - asked);
                    if self.now_ns >= self.warmup_ns {
                        samples.push(self.now_ns - asked);
                    }
                    let next_ns = (now + *interval).as_nanos();
                    // Whoever asks soon after an answer is in a conversation (Linux: pingpong mode): the acknowledgement of
                    // the answer rides on the next question, unless that comes too late. Else it leaves as the answer is read.
                    let tick = Tick::new(self.scenario.tick);
                    *converses |= tick.is_within(*answered_ns, asked, MIN_ACK_DELAY);
                    *answered_ns = Some(self.now_ns);
                    let acknowledge_ns = if *converses {
                        tick.after(now, MIN_ACK_DELAY).as_nanos()
                    } else {
                        self.now_ns
                    };
                    if acknowledge_ns < next_ns {
                        *acknowledges = Some(next_ns);
                        *converses = false;
                    }
                    self.agenda.arm(number, Cause::Program, next_ns.min(acknowledge_ns));
                }
            }
            Program::Ping { .. } => {}
        }
        self.drive(number);
    }

    fn take_timer(&mut self) {
        self.read_timers_ahead();
        let Some((number, cause)) = self.agenda.pop() else { return };
        let now = self.now();
        let connection = &mut self.connections[number as usize];
        match cause {
            Cause::Sender => {
                connection.sender.on_timer(now);
                self.drive(number);
            }
            Cause::Receiver => {
                let (lane, now_ns) = (connection.lane, self.now_ns);
                let reverse = &mut self.reverse;
                let mut answer = |ack| reverse.push(lane, now_ns, number, ack);
                if connection.receiver.next_timer() > now {
                    connection.receiver.read_early(now, &mut answer);
                } else {
                    connection.receiver.on_timer(now, &mut answer);
                }
                let deadline = connection.receiver.next_timer().as_nanos();
                self.agenda.arm(number, Cause::Receiver, deadline);
            }
            Cause::Departure => {
                let interface = connection.interface;
                self.interfaces[interface].wakes_ns = None;
                self.release_due(interface);
                self.drive_woken();
            }
            Cause::Program => {
                if let Some(next_ns) = connection.run_program(self.now_ns, &mut self.leaving) {
                    self.agenda.arm(number, Cause::Program, next_ns);
                }
                // What ping sends is no TCP.
                if matches!(connection.program, Program::Ping { .. }) {
                    let interface = connection.interface;
                    self.release(number);
                    self.release_due(interface);
                } else {
                    self.drive(number);
                }
            }
        }
    }

    /// Lets a sender send, and its interface's queue let go what is due.
    #[inline]
    fn drive(&mut self, number: u32) {
        self.drive_one(number);
        self.drive_woken();
    }

    #[inline]
    fn drive_woken(&mut self) {
        while let Some(number) = self.woken.pop_front() {
            self.drive_one(number);
        }
    }

    #[inline]
    fn drive_one(&mut self, number: u32) {
        let now = self.now();
        loop {
            let leaving = &mut self.leaving;
            let sender = &mut self.connections[number as usize].sender;
            sender.transmit(now, &mut |transmission| leaving.push(transmission));
            // What is held back goes when more is put in, or with the queue's own timer.
            if self.leaving.is_empty() {
                break;
            }
            let more = self.release(number);
            self.release_due(self.connections[number as usize].interface);
            if !more {
                break;
            }
        }
        let deadline = self.connections[number as usize].sender.next_timer().as_nanos();
        self.agenda.arm(number, Cause::Sender, deadline);
    }

    /// The queue of an interface lets go what is due of all connections, and sets its timer (Linux: `fq_dequeue`).
    #[inline]
    fn release_due(&mut self, interface: usize) {
        while let Some(number) = self.interfaces[interface].take_due(self.now_ns) {
            self.connections[number as usize].is_delayed = false;
            if self.release(number) {
                self.woken.push_back(number);
            }
        }
        let slack_ns = self.device.slack_ns;
        let interface = &mut self.interfaces[interface];
        if let (Some(wakes_ns), Some(leader)) = (interface.schedule(slack_ns), interface.leader) {
            self.agenda.arm(leader, Cause::Departure, wakes_ns + slack_ns);
        }
    }

    /// The queue of a sender's interface lets go what is due of this connection. Returns whether the sender waits for that.
    #[inline]
    fn release(&mut self, number: u32) -> bool {
        let is_flow = (number as usize) < self.flows;
        let mut more = false;
        // Most packets pass the queue without waiting.
        let mut passed = 0;
        loop {
            let connection = &mut self.connections[number as usize];
            let waits = !connection.device.is_empty();
            let next = if waits {
                self.waiting.first(&connection.device)
            } else {
                self.leaving.get(passed)
            };
            let Some(transmission) = next.copied() else { break };
            // Only fq honours departure times.
            if self.device.pacing == Pacing::ByQueue
                && transmission.departure.as_nanos() > self.now_ns
            {
                break;
            }
            if waits {
                self.waiting.pop(&mut connection.device);
            } else {
                passed += 1;
            }
            connection.line_bytes += u64::from(transmission.data.wire_bytes());
            let is_tcp = is_flow || !matches!(connection.program, Program::Ping { .. });
            more |= is_tcp && connection.sender.on_departure(transmission.data.payload);
            self.forward(number, &transmission);
        }
        let connection = &mut self.connections[number as usize];
        for transmission in self.leaving.drain(..).skip(passed) {
            self.waiting.push(&mut connection.device, transmission);
        }
        if !connection.is_delayed
            && let Some(front) = self.waiting.first(&connection.device)
        {
            connection.is_delayed = true;
            self.interfaces[connection.interface].delay(front.departure.as_nanos(), number);
        }
        more
    }

    /// A packet leaves its sender and reaches the bottleneck's queue.
    #[inline]
    fn forward(&mut self, number: u32, transmission: &Transmission) {
        if strikes(self.device.loss, &mut self.random) {
            return;
        }
        let flow = if self.scenario.link.tunnel { 0 } else { number } ^ self.salt;
        let packet = Packet { connection: number, flow, data: transmission.data };
        if self.scenario.sender.gso {
            self.enqueue(packet);
        } else {
            packet.segments(&mut |segment| self.enqueue(segment));
        }
    }

    #[inline]
    fn enqueue(&mut self, packet: Packet) {
        self.update_queue();
        self.tell(Seen::In, &packet);
        self.queue.enqueue(self.now(), packet, &mut |_| ());
        if self.link_ns == u64::MAX {
            self.serve_link();
        }
    }

    /// Lets the discipline do what was due up to now. Nothing can see it do so later than it was due.
    #[inline]
    fn update_queue(&mut self) {
        let now = self.now();
        while self.queue.next_timer() <= now {
            let due = self.queue.next_timer();
            self.queue.on_timer(due);
        }
    }
}

/// Whether a packet is lost; draws only if it may be.
#[inline]
fn strikes(loss: Loss, random: &mut SplitMix64) -> bool {
    !loss.is_none() && loss.strikes(random.next_u32())
}
