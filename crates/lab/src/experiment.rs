//! An experiment: the network, the programs on it, and the one loop that drives them all.
//!
//! One thread drives all programs but the receivers: sockets stay in the namespace in which they were made, whoever uses
//! them. That costs the fewest system calls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::time::Duration;

use dualq_link::Urgent;
use dualq_scenario::summary::Looks;
use dualq_scenario::{
    CongestionControl, Direction, Outcome, ProbeKind, RTT_SAMPLE_INTERVAL, SETTLING, Scenario,
    TIMER_SLACK, Transfer, Watch,
};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use socket2::Socket;

use crate::LabError;
use crate::clock::Began;
use crate::controls::Controls;
use crate::limits::{Limits, Unseen};
use crate::live;
use crate::network::{Network, RECEIVER, tells_flows_apart};
use crate::record::Record;
use crate::sockets::{
    BulkReceiver, BulkSender, Exchange, Opening, Ping, Probe, Receivers, Responder, accept, listen,
};
use crate::taps::Taps;
use crate::udp::{self, UdpStreams};
use crate::watch::Watcher;
use crate::way;

/// A receiver's ports, one for each group of flows, one for each probe, and one for each group of UDP streams.
const FLOW_PORT: u16 = 5001;
const PROBE_PORT: u16 = 6001;
const UDP_PORT: u16 = 7001;
/// How often connections are looked at by whoever watches these.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How often the receivers of UDP look what has come. Packets know when that was.
const UDP_READ_INTERVAL: Duration = Duration::from_millis(100);

/// What is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Figures are taken from now on.
    Warmup,
    /// Look at round-trip times and passed packets.
    Sample,
    /// Look at connections, for whoever watches these.
    Look,
    /// Read the UDP packets that have come.
    Udp,
    /// An interval of the series ends.
    Interval,
    /// Somebody wants to know how far it is.
    Second,
    /// A flow starts.
    Start {
        group: usize,
        number: usize,
        /// Its bytes, if it has an end.
        size: Option<u64>,
    },
    /// This flow makes its transfer once more.
    Again(usize),
    /// This flow has nothing more to send.
    Stop(usize),
    /// This probe asks.
    Ask(usize),
    /// The link's rate changes for this time, and that of the other direction.
    Rate(usize),
    UpRate(usize),
    /// It is over.
    End,
}

/// Whose socket is ready.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Timer,
    FlowListener(usize),
    ProbeListener(usize),
    Sender(usize),
    Prober(usize),
    Responder(usize),
    /// Who asks for a large answer.
    Asker(usize),
}

impl Ready {
    fn token(self) -> u64 {
        let (kind, number) = match self {
            Self::Timer => (0, 0),
            Self::FlowListener(number) => (1, number),
            Self::ProbeListener(number) => (2, number),
            Self::Sender(number) => (3, number),
            Self::Prober(number) => (4, number),
            Self::Responder(number) => (5, number),
            Self::Asker(number) => (6, number),
        };
        kind << 32 | number as u64
    }

    fn of(token: u64) -> Self {
        let number = token as u32 as usize;
        match token >> 32 {
            1 => Self::FlowListener(number),
            2 => Self::ProbeListener(number),
            3 => Self::Sender(number),
            4 => Self::Prober(number),
            5 => Self::Responder(number),
            6 => Self::Asker(number),
            _ => Self::Timer,
        }
    }
}

/// Who asks.
#[derive(Debug)]
enum Prober {
    Ssh(Probe),
    Ping(Ping),
    Request(Exchange),
}

struct Experiment<'a> {
    scenario: &'a Scenario,
    network: Network,
    controls: Controls,
    /// Who looks at queues from outside, by their numbers.
    taps: Vec<(usize, Taps)>,
    limits: Limits,
    record: Record,
    /// When it began.
    began: Began,
    agenda: BinaryHeap<Reverse<(Duration, Task)>>,
    epoll: Epoll,
    timer: TimerFd,
    flow_listeners: Vec<Socket>,
    probe_listeners: Vec<Option<Socket>>,
    senders: Vec<BulkSender>,
    receivers: Receivers,
    probers: Vec<Prober>,
    responders: Vec<Responder>,
    udp: Vec<UdpStreams>,
    watcher: Option<Watcher<'a>>,
}

/// Says why no real Linux can run a scenario, if none can.
#[must_use]
pub fn refusal(scenario: &Scenario) -> Option<String> {
    let fixed = || {
        let lines = scenario.link.qdiscs().filter(|_| scenario.link.tunnel);
        let kind = lines.map(|(_, line)| line.spec()).find_map(tells_flows_apart)?;
        Some(format!(
            "link.tunnel: on real Linux nothing makes {kind} take all packets for one flow; the model can"
        ))
    };
    model_only(scenario)
        .or_else(|| way::refusal(scenario))
        .or_else(|| udp::refusal(scenario))
        .or_else(fixed)
}

/// What flows can ask of the model alone.
pub(crate) fn model_only(scenario: &Scenario) -> Option<String> {
    let flows = || scenario.flow.iter().enumerate();
    let low = flows().find(|(_, flow)| flow.ecn_low).map(|(group, _)| {
        format!("flow[{group}].ecn_low: on real Linux that is a feature of routes which is not in stock kernels")
    });
    let fallback = || {
        let (group, _) = flows().find(|(_, flow)| flow.ecn_fallback)?;
        Some(format!(
            "flow[{group}].ecn_fallback: on real Linux that is a parameter of the module tcp_prague, for all flows"
        ))
    };
    low.or_else(fallback).map(|refusal| format!("{refusal}; the model has it"))
}

/// Runs `scenario` on this kernel, in network namespaces of its own, and reports. All that is random in the network that it
/// builds follows from `seed`; what is random in the kernel does not. `on_second` is called with the time since the start,
/// once for each second of the kernel's clock.
///
/// # Errors
/// If the kernel refuses something, or the scenario asks for what it does not have.
pub fn run(
    place: Where,
    scenario: &Scenario,
    seed: u64,
    on_second: &mut dyn FnMut(Duration) -> ControlFlow<()>,
) -> Result<Outcome, LabError> {
    let _urgent = (place == Where::Live).then(Urgent::new);
    Experiment::prepare(scenario, network(place, scenario, seed)?)?.run(on_second)
}

/// The same, and what happens is told, as far as that is wanted and seen: packets at routers, and how connections are each
/// 10 ms. That is slower.
///
/// # Errors
/// As for [`run`].
pub fn run_watched<'a>(
    place: Where,
    scenario: &'a Scenario,
    seed: u64,
    on_second: &mut dyn FnMut(Duration) -> ControlFlow<()>,
    watch: &'a mut dyn Watch,
) -> Result<Outcome, LabError> {
    let _urgent = (place == Where::Live).then(Urgent::new);
    let mut experiment = Experiment::prepare(scenario, network(place, scenario, seed)?)?;
    let watcher = Watcher::open(&experiment.network, scenario, watch)?;
    if watcher.wants_connections() {
        experiment.agenda.push(Reverse((Duration::ZERO, Task::Look)));
    }
    experiment.watcher = Some(watcher);
    experiment.run(on_second)
}

/// What the network of a scenario is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// The kernel's own queue disciplines, netem and veth pairs.
    Kernel,
    /// dualq's own link between two TUN devices, in real time.
    Live,
}

fn network(place: Where, scenario: &Scenario, seed: u64) -> Result<Network, LabError> {
    let refusal = match place {
        Where::Kernel => refusal(scenario),
        Where::Live => live::refusal(scenario),
    };
    match (refusal, place) {
        (Some(refusal), _) => Err(LabError::Scenario(refusal)),
        (None, Where::Kernel) => Network::build(scenario, seed),
        (None, Where::Live) => live::build(scenario, seed),
    }
}

impl<'a> Experiment<'a> {
    fn prepare(scenario: &'a Scenario, network: Network) -> Result<Self, LabError> {
        // A kernel that has just started has no timers finer than its tick: what is on its way would wait for that.
        std::thread::sleep(SETTLING);
        let taps = network.middle.taps(scenario)?;
        let limits = Limits::open(&network, scenario)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|error| LabError::system("epoll", error))?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)
            .map_err(|error| LabError::system("timerfd", error))?;
        let mut experiment = Self {
            scenario,
            network,
            controls: Controls::of_this_kernel(),
            taps,
            limits,
            record: Record::new(scenario),
            began: Began::soon()?,
            agenda: BinaryHeap::new(),
            epoll,
            timer,
            flow_listeners: Vec::new(),
            probe_listeners: Vec::new(),
            senders: Vec::new(),
            receivers: Receivers::default(),
            probers: Vec::new(),
            responders: Vec::new(),
            udp: Vec::new(),
            watcher: None,
        };
        experiment.listen()?;
        experiment.start_udp()?;
        experiment.plan();
        Ok(experiment)
    }

    /// The receiver waits for all who will come.
    fn listen(&mut self) -> Result<(), LabError> {
        watch(&self.epoll, &self.timer, EpollFlags::EPOLLIN, Ready::Timer)?;
        for (group, flows) in self.scenario.flow.iter().enumerate() {
            let host = self.network.receiver(flows.direction);
            let port = FLOW_PORT + group as u16;
            let listener = listen(host, port, flows.cc, flows.receive_buffer)?;
            watch(&self.epoll, &listener, EpollFlags::EPOLLIN, Ready::FlowListener(group))?;
            self.flow_listeners.push(listener);
        }
        for (number, probe) in self.scenario.probe.iter().enumerate() {
            let listener = match probe.kind {
                ProbeKind::Ping => None,
                ProbeKind::Ssh | ProbeKind::Request => {
                    let port = PROBE_PORT + number as u16;
                    let host = self.network.receiver(Direction::Down);
                    let listener = listen(host, port, probe.cc, None)?;
                    let when = EpollFlags::EPOLLIN;
                    watch(&self.epoll, &listener, when, Ready::ProbeListener(number))?;
                    Some(listener)
                }
            };
            self.probe_listeners.push(listener);
        }
        Ok(())
    }

    /// Starts the streams of UDP, which need nobody from then on.
    fn start_udp(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        let others = scenario.flow.len() + scenario.probe.len();
        for (number, group) in scenario.udp.iter().enumerate() {
            let (host, address) = self.network.receiver(group.direction);
            let to = (host, SocketAddrV4::new(address, UDP_PORT + number as u16));
            let from = &self.network.senders[others + number];
            self.udp.push(UdpStreams::start(scenario, number, from, to, self.began)?);
        }
        Ok(())
    }

    fn read_udp(&mut self) -> Result<(), LabError> {
        self.udp.iter_mut().try_for_each(|streams| streams.read(self.began))
    }

    /// Puts on the agenda what is known beforehand.
    fn plan(&mut self) {
        let scenario = self.scenario;
        let mut at = |time, task| self.agenda.push(Reverse((time, task)));
        at(scenario.warmup, Task::Warmup);
        at(scenario.warmup, Task::Sample);
        at(scenario.interval, Task::Interval);
        at(Duration::from_secs(1), Task::Second);
        at(scenario.duration, Task::End);
        for (group, flows) in scenario.flow.iter().enumerate() {
            for (number, Transfer { start, size }) in flows.transfers(group).enumerate() {
                at(start, Task::Start { group, number, size: size.map(|size| size.0) });
            }
        }
        for (number, step) in scenario.link.step.iter().enumerate() {
            at(step.at, Task::Rate(number));
        }
        let up_steps = scenario.link.up.iter().flat_map(|up| &up.step);
        for (number, step) in up_steps.enumerate() {
            at(step.at, Task::UpRate(number));
        }
        if !scenario.udp.is_empty() {
            at(UDP_READ_INTERVAL, Task::Udp);
        }
        for probe in 0..scenario.probe.len() {
            at(Duration::ZERO, Task::Ask(probe));
        }
    }

    fn run(
        mut self,
        on_second: &mut dyn FnMut(Duration) -> ControlFlow<()>,
    ) -> Result<Outcome, LabError> {
        self.began.wait()?;
        let mut armed = Duration::MAX;
        let mut events = [EpollEvent::empty(); 64];
        loop {
            while let Some(Reverse((time, task))) = self.agenda.peek().copied() {
                if time > self.now()? {
                    break;
                }
                self.agenda.pop();
                match task {
                    Task::End => return self.close(time),
                    task => self.perform(time, task, on_second)?,
                }
            }
            // There is always an end on the agenda.
            if let Some(Reverse((next, _))) = self.agenda.peek()
                && *next != armed
            {
                armed = *next;
                let expiration = Expiration::OneShot((self.began.monotonic + armed).into());
                self.timer
                    .set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
                    .map_err(|error| LabError::system("timerfd", error))?;
            }
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => 0,
                ready => ready.map_err(|error| LabError::system("epoll", error))?,
            };
            for event in &events[..ready] {
                self.serve(Ready::of(event.data()), event.events())?;
            }
        }
    }

    /// Since the beginning.
    fn now(&self) -> Result<Duration, LabError> {
        self.began.elapsed()
    }

    fn perform(
        &mut self,
        time: Duration,
        task: Task,
        on_second: &mut dyn FnMut(Duration) -> ControlFlow<()>,
    ) -> Result<(), LabError> {
        match task {
            Task::Second => {
                if on_second(time).is_break() {
                    return Err(LabError::Interrupted);
                }
                self.agenda.push(Reverse((time + Duration::from_secs(1), task)));
                Ok(())
            }
            Task::Warmup => self.mark_warmup(),
            Task::Sample => {
                self.sample()?;
                self.agenda.push(Reverse((time + RTT_SAMPLE_INTERVAL, task)));
                Ok(())
            }
            Task::Look => {
                self.look(time)?;
                self.agenda.push(Reverse((time + LOOK_INTERVAL, task)));
                Ok(())
            }
            Task::Udp => {
                self.read_udp()?;
                self.agenda.push(Reverse((time + UDP_READ_INTERVAL, task)));
                Ok(())
            }
            Task::Interval => {
                self.end_interval(time)?;
                self.agenda.push(Reverse((time + self.scenario.interval, task)));
                Ok(())
            }
            Task::Start { group, size, .. } => self.start(group, size, time),
            Task::Again(number) => self.again(number, time),
            Task::Stop(number) => self.senders[number].stop(),
            Task::Ask(number) => self.ask(number, time),
            Task::Rate(number) => {
                let rate = self.scenario.link.step[number].rate;
                self.network.middle.set_rate(Direction::Down, rate)
            }
            Task::UpRate(number) => match &self.scenario.link.up {
                Some(up) => self.network.middle.set_rate(Direction::Up, up.step[number].rate),
                None => Ok(()),
            },
            Task::End => Ok(()),
        }
    }

    fn serve(&mut self, ready: Ready, what: EpollFlags) -> Result<(), LabError> {
        match ready {
            Ready::Timer => {
                // Only so that it is not ready any more: the agenda is looked at in any case.
                let _ = self.timer.wait();
                Ok(())
            }
            Ready::FlowListener(group) => {
                while let Some(socket) = accept(&self.flow_listeners[group])? {
                    let own = self.scenario.flow[group].read_interval;
                    let pause = own.unwrap_or(self.scenario.receiver.read_interval);
                    let receiver = BulkReceiver::start(socket, group, pause)?;
                    self.receivers.0.push(receiver);
                }
                Ok(())
            }
            Ready::ProbeListener(number) => {
                let Some(listener) = &self.probe_listeners[number] else { return Ok(()) };
                while let Some(socket) = accept(listener)? {
                    if let Prober::Request(exchange) = &mut self.probers[number] {
                        let when = EpollFlags::EPOLLIN;
                        watch(&self.epoll, &socket, when, Ready::Asker(number))?;
                        exchange.accepted(socket, self.began.elapsed()?)?;
                        continue;
                    }
                    let whom = Ready::Responder(self.responders.len());
                    watch(&self.epoll, &socket, EpollFlags::EPOLLIN, whom)?;
                    self.responders.push(Responder::of(socket)?);
                }
                Ok(())
            }
            Ready::Sender(number) => {
                let now = self.now()?;
                let sender = &mut self.senders[number];
                sender.check_end(now)?;
                sender.check_repeats(self.began.real)?;
                // Who is woken for a timestamp is not woken to write: there may be room, but not so much that a program would be.
                if what.contains(EpollFlags::EPOLLOUT) { sender.write() } else { Ok(()) }
            }
            Ready::Prober(number) => match &mut self.probers[number] {
                Prober::Request(exchange) => exchange.answer(),
                Prober::Ssh(_) | Prober::Ping(_) => self.answered(number),
            },
            Ready::Responder(number) => self.responders[number].answer(),
            Ready::Asker(number) => self.answered(number),
        }
    }

    /// How connections under `cc` are opened.
    fn opening(&self, cc: CongestionControl) -> Opening {
        let cc = self.controls.name_of(cc);
        Opening { cc, paces_itself: self.network.paces_itself, fast: false, buffer: None }
    }

    fn start(&mut self, group: usize, size: Option<u64>, now: Duration) -> Result<(), LabError> {
        let flows = &self.scenario.flow[group];
        let namespace = &self.network.senders[group];
        let (_, receiver) = self.network.receiver(flows.direction);
        let to = SocketAddrV4::new(receiver, FLOW_PORT + group as u16);
        let opening =
            Opening { fast: flows.fast_open, buffer: flows.send_buffer, ..self.opening(flows.cc) };
        let mut sender = BulkSender::open(namespace, to, opening, (group, size, now))?;
        sender.limit_unsent(flows.notsent_lowat)?;
        let number = self.senders.len();
        if let Some(every) = flows.every {
            sender.repeat()?;
            self.agenda.push(Reverse((now + every, Task::Again(number))));
        }
        let when = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        watch(&self.epoll, &sender.socket, when, Ready::Sender(number))?;
        self.senders.push(sender);
        if let Some(stop) = flows.stop {
            self.agenda.push(Reverse((stop, Task::Stop(number))));
        }
        Ok(())
    }

    fn again(&mut self, number: usize, now: Duration) -> Result<(), LabError> {
        let flows = &self.scenario.flow[self.senders[number].group];
        let end = self.scenario.duration;
        if now >= flows.stop.map_or(end, |stop| stop.min(end)) {
            return Ok(());
        }
        if let Some(every) = flows.every {
            self.agenda.push(Reverse((now + every, Task::Again(number))));
        }
        self.senders[number].again(now)
    }

    /// Opens a probe the first time, and lets it ask every other.
    fn ask(&mut self, number: usize, now: Duration) -> Result<(), LabError> {
        if number == self.probers.len() {
            let group = &self.scenario.probe[number];
            let namespace = &self.network.senders[self.scenario.flow.len() + number];
            match group.kind {
                ProbeKind::Ping => {
                    let ping = Ping::open(namespace, group.interval)?;
                    let when = EpollFlags::EPOLLIN;
                    watch(&self.epoll, &ping.socket, when, Ready::Prober(number))?;
                    self.probers.push(Prober::Ping(ping));
                }
                ProbeKind::Ssh => {
                    let to = SocketAddrV4::new(RECEIVER, PROBE_PORT + number as u16);
                    let opening = self.opening(group.cc);
                    let probe = Probe::open(namespace, to, opening, group.interval)?;
                    let when = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
                    watch(&self.epoll, &probe.socket, when, Ready::Prober(number))?;
                    self.probers.push(Prober::Ssh(probe));
                    return Ok(());
                }
                ProbeKind::Request => {
                    let to = SocketAddrV4::new(RECEIVER, PROBE_PORT + number as u16);
                    let what = (group.answer_size(), group.interval);
                    let exchange = Exchange::open(namespace, to, self.opening(group.cc), what)?;
                    let when = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
                    watch(&self.epoll, &exchange.server, when, Ready::Prober(number))?;
                    self.probers.push(Prober::Request(exchange));
                    return Ok(());
                }
            }
        }
        match &mut self.probers[number] {
            Prober::Ssh(probe) => probe.ask(now),
            Prober::Request(exchange) => exchange.ask(now),
            Prober::Ping(ping) => {
                ping.send(now)?;
                self.agenda.push(Reverse((now + ping.interval, Task::Ask(number))));
                Ok(())
            }
        }
    }

    fn answered(&mut self, number: usize) -> Result<(), LabError> {
        let now = self.now()?;
        match &mut self.probers[number] {
            Prober::Ssh(probe) => {
                if let Some(took) = probe.ready(now)? {
                    // A program that sleeps wakes that much later; this loop's timer does not.
                    let pause = probe.interval + TIMER_SLACK;
                    self.agenda.push(Reverse((now + pause, Task::Ask(number))));
                    self.record.round_trip(number, now, took);
                }
            }
            Prober::Request(exchange) => {
                if let Some(took) = exchange.read(now)? {
                    let pause = exchange.interval + TIMER_SLACK;
                    self.agenda.push(Reverse((now + pause, Task::Ask(number))));
                    self.record.round_trip(number, now, took);
                }
            }
            Prober::Ping(ping) => {
                if let Some(took) = ping.take(now)? {
                    self.record.round_trip(number, now, took);
                }
            }
        }
        Ok(())
    }

    fn mark_warmup(&mut self) -> Result<(), LabError> {
        for sender in &mut self.senders {
            sender.at_warmup = sender.info()?;
        }
        for receiver in &mut self.receivers.0 {
            receiver.ce_at_warmup = receiver.received_ce()?.unwrap_or(0);
        }
        for prober in &mut self.probers {
            match prober {
                Prober::Ssh(probe) => probe.retransmits_at_warmup = probe.info()?.retransmits,
                Prober::Request(exchange) => {
                    exchange.retransmits_at_warmup = exchange.info()?.retransmits;
                }
                Prober::Ping(_) => {}
            }
        }
        self.record.mark_warmup(&self.network.middle.queues()?);
        Ok(())
    }

    fn sample(&mut self) -> Result<(), LabError> {
        self.read_taps()?;
        for sender in &self.senders {
            self.record.sample(sender.group, &sender.info()?);
        }
        Ok(())
    }

    /// Tells how connections are.
    fn look(&mut self, now: Duration) -> Result<(), LabError> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let mut numbers = vec![0; self.scenario.flow.len()];
        for sender in &self.senders {
            let group = sender.group;
            let cc = self.scenario.flow[group].cc;
            watcher.look(now, (group, numbers[group]), cc, &sender.info()?);
            numbers[group] += 1;
        }
        let probes = self.scenario.probe.iter().zip(&self.probers);
        for (group, (probe, prober)) in (self.scenario.flow.len()..).zip(probes) {
            let info = match prober {
                Prober::Ssh(open) => open.info()?,
                Prober::Request(open) => open.info()?,
                Prober::Ping(_) => continue,
            };
            watcher.look(now, (group, 0), probe.cc, &info);
        }
        Ok(())
    }

    fn read_taps(&mut self) -> Result<(), LabError> {
        if let Some(watcher) = &mut self.watcher {
            watcher.read(self.began, &self.network.middle)?;
            watcher.tell(self.network.middle.known_until(self.began)?);
        }
        let (record, began) = (&mut self.record, self.began);
        for (queue, taps) in &mut self.taps {
            taps.read(&mut |passed| {
                record.passed(*queue, passed.left.saturating_sub(began.real), &passed);
            })?;
        }
        self.network.middle.read(&mut |queue, passed| {
            record.passed(queue, passed.left.saturating_sub(began.monotonic), &passed);
        });
        Ok(())
    }

    fn end_interval(&mut self, now: Duration) -> Result<(), LabError> {
        self.read_taps()?;
        let mut groups = vec![Looks::default(); self.scenario.flow.len()];
        for sender in &self.senders {
            groups[sender.group].add(&crate::watch::look(&sender.info()?));
        }
        let queue = self.network.middle.queue()?;
        self.record.end_interval(now, groups, &queue);
        Ok(())
    }

    fn close(mut self, now: Duration) -> Result<Outcome, LabError> {
        if self.record.is_within_interval(now) {
            self.end_interval(now)?;
        }
        let mut echoed = vec![0; self.scenario.flow.len()];
        for sender in &mut self.senders {
            sender.check_repeats(self.began.real)?;
        }
        for sender in &self.senders {
            let info = sender.info()?;
            echoed[sender.group] +=
                u64::from(info.delivered_ce.saturating_sub(sender.at_warmup.delivered_ce));
            self.record.flow(sender, &info);
        }
        for receiver in &self.receivers.0 {
            if let Some(received) = receiver.received_ce()? {
                // The receivers know better than what was echoed to the senders.
                echoed[receiver.group] = 0;
                let marks = received.saturating_sub(receiver.ce_at_warmup);
                self.record.ce_marks(receiver.group, u64::from(marks));
            }
        }
        for (group, marks) in echoed.into_iter().enumerate() {
            self.record.ce_marks(group, marks);
        }
        for (number, prober) in self.probers.iter().enumerate() {
            match prober {
                Prober::Ssh(probe) => {
                    let before = probe.retransmits_at_warmup;
                    self.record.probe(number, Some((&probe.info()?, before)));
                }
                Prober::Request(exchange) => {
                    let before = exchange.retransmits_at_warmup;
                    self.record.probe(number, Some((&exchange.info()?, before)));
                }
                Prober::Ping(ping) => self.record.ping(number, &ping.echoes),
            }
        }
        self.read_taps()?;
        if let Some(watcher) = &mut self.watcher {
            watcher.tell(Duration::MAX);
        }
        self.read_udp()?;
        let window = self.scenario.duration - self.scenario.warmup;
        let udp = self.udp.iter().map(|streams| streams.finish(window)).collect();
        let queues = self.network.middle.queues()?;
        let mut by_taps = 0;
        for (_, tap) in &mut self.taps {
            by_taps += tap.unseen()?;
        }
        let by_watcher = self.watcher.as_mut().map_or(Ok(0), Watcher::unseen)?;
        let udp_unseen = self.udp.iter().map(|streams| u64::from(streams.unseen)).sum();
        let unseen = Unseen { by_taps, by_watcher, udp: udp_unseen };
        let mut limits = self.limits.met(&self.network, unseen)?;
        let outcome = self.record.close(self.scenario, &queues);
        limits.extend(self.network.middle.faults(round_trip(self.scenario, &outcome))?);
        let lateness = self.network.middle.lateness()?;
        Ok(Outcome { limits, udp, lateness, ..outcome })
    }
}

/// The shortest of the mean round trips that an outcome shows, of probes and of flows; without any, that of the path.
fn round_trip(scenario: &Scenario, outcome: &Outcome) -> Duration {
    let probes = outcome.probe.iter().map(|probe| probe.mean_ms);
    let shown = probes.chain(outcome.flow.iter().map(|flow| flow.srtt_ms_mean));
    let shortest = shown.filter(|ms| *ms > 0.0).reduce(f64::min);
    let shortest = shortest.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
    shortest.unwrap_or_else(|| scenario.link.base_rtt())
}

fn watch(
    epoll: &Epoll,
    socket: &impl std::os::fd::AsFd,
    when: EpollFlags,
    whom: Ready,
) -> Result<(), LabError> {
    epoll
        .add(socket.as_fd(), EpollEvent::new(when, whom.token()))
        .map_err(|error| LabError::system("epoll", error))
}

#[cfg(test)]
mod tests {
    use dualq_scenario::{Algorithm, EcnRequest, FlowGroup, Setup};

    use super::*;

    #[test]
    fn what_only_the_model_has_is_refused() {
        let ecn = EcnRequest::Classic;
        let low = FlowGroup { ecn, ecn_low: true, ..FlowGroup::of(Algorithm::Bbr3) };
        let fallback = FlowGroup { ecn_fallback: true, ..FlowGroup::of(Algorithm::Prague) };
        for (flow, name) in [(low, "ecn_low"), (fallback, "ecn_fallback")] {
            let scenario = Scenario::try_from(Setup { flow: vec![flow], ..Setup::default() });
            let refusal = refusal(&scenario.expect("it makes sense")).expect("it is refused");
            assert!(refusal.starts_with(&format!("flow[0].{name}: on real Linux")), "{refusal}");
        }
    }
}
