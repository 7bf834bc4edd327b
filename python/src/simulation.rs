//! `dualq.Simulation`: a scenario that is stepped through. It lives on a thread of its own, which does what it is told.

use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use dualq_model as model;
use dualq_qdisc::{Discipline, show};
use dualq_scenario::{Change, Event, Outcome, Scenario, Seen, Wants, Watch};
use dualq_units::Instant;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};

use crate::interrupt::{LOOK, Stop};
use crate::queue::{Queue, Traits};
use crate::results::{loads, made};
use crate::run::{Options, Source};
use crate::{RunError, ScenarioError, control};

/// Work is looked at for an end after so much of the scenario's time at most.
const SLICE: Duration = Duration::from_millis(100);

/// What the thread is told to do.
enum Order {
    /// Let all happen before this time.
    Advance(Instant),
    /// Run to the end, and tell what came of it.
    Finish,
}

/// What it answers.
enum Answer {
    Now(Now),
    Outcome(Box<Outcome>),
    Refused(String),
}

/// How all is at a moment.
#[derive(Clone)]
struct Now {
    at: Instant,
    flows: Vec<Flow>,
    queue: QueueNow,
}

/// A connection at a moment, as `ss -ti` shows it.
#[pyclass(frozen, get_all, module = "dualq")]
#[derive(Clone)]
pub(crate) struct Flow {
    cwnd: u32,
    ssthresh: Option<u32>,
    in_flight: u32,
    srtt_ms: Option<f64>,
    rttvar_ms: Option<f64>,
    pacing_mbit: Option<f64>,
    acknowledged_bytes: u64,
    retransmits: u64,
    timeouts: u64,
}

#[pymethods]
impl Flow {
    fn __repr__(&self) -> String {
        let Self { cwnd, in_flight, srtt_ms, acknowledged_bytes, .. } = self;
        let srtt = srtt_ms.map_or_else(|| "none".to_owned(), |srtt| format!("{srtt:.3}"));
        format!(
            "<dualq.Flow: cwnd {cwnd}, in_flight {in_flight}, srtt_ms {srtt}, acknowledged_bytes {acknowledged_bytes}>"
        )
    }
}

/// The bottleneck's queue at a moment.
#[pyclass(frozen, module = "dualq")]
#[derive(Clone)]
pub(crate) struct QueueNow {
    #[pyo3(get)]
    packets: usize,
    #[pyo3(get)]
    bytes: u64,
    #[pyo3(get)]
    sent_packets: u64,
    #[pyo3(get)]
    sent_bytes: u64,
    #[pyo3(get)]
    drops: u64,
    #[pyo3(get)]
    marks: u64,
    #[pyo3(get)]
    probability: Option<f64>,
    tc: Arc<serde_json::Map<String, serde_json::Value>>,
}

#[pymethods]
impl QueueNow {
    #[getter]
    fn tc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &*self.tc)
    }

    fn __repr__(&self) -> String {
        let Self { packets, drops, marks, .. } = self;
        format!("<dualq.QueueNow: {packets} packets, {drops} drops, {marks} marks>")
    }
}

impl Now {
    fn of(simulation: &model::Simulation<'_>) -> Self {
        let at = simulation.now();
        let flow = |sender: &dualq_tcp::Sender| Flow {
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            in_flight: sender.in_flight(),
            srtt_ms: sender.rtt_us().map(|(srtt, _)| srtt / 1e3),
            rttvar_ms: sender.rtt_us().map(|(_, rttvar)| rttvar / 1e3),
            pacing_mbit: Some(sender.pacing_rate())
                .filter(|rate| *rate < u64::MAX)
                .map(|rate| rate as f64 * 8.0 / 1e6),
            acknowledged_bytes: sender.acknowledged(),
            retransmits: sender.stats().retransmissions,
            timeouts: sender.stats().timeouts,
        };
        let queue = simulation.queue();
        let stats = queue.stats(at);
        let queue = QueueNow {
            packets: queue.len(),
            bytes: stats.counters.backlog_bytes,
            sent_packets: stats.counters.sent_packets,
            sent_bytes: stats.counters.sent_bytes,
            drops: stats.counters.drops,
            marks: stats.own.marks(),
            probability: stats.own.probability(),
            tc: Arc::new(show::json_with_stats(&queue.config(), &stats)),
        };
        Self { at, flows: simulation.senders().map(flow).collect(), queue }
    }
}

/// What the thread has.
struct Machine {
    scenario: Scenario,
    seed: u64,
    queue: Option<(Py<PyAny>, Traits)>,
    observer: Option<(Py<PyAny>, Wants)>,
    stop: Arc<Stop>,
}

impl Machine {
    fn run(self, orders: &Receiver<Order>, answers: &Sender<Answer>) {
        let Self { scenario, seed, queue, observer, stop } = self;
        control::raise_to(&stop);
        let mut watch =
            observer.map(|(object, wants)| Observer { object, wants, stop: Arc::clone(&stop) });
        let mut simulation = match model::Simulation::new(&scenario, seed) {
            Ok(simulation) => simulation,
            Err(error) => {
                let _ = answers.send(Answer::Refused(error.to_string()));
                return;
            }
        };
        if let Some(watch) = &mut watch {
            simulation = simulation.watched(watch);
        }
        if let Some((object, traits)) = queue {
            let queue = Queue::new(object, traits, &stop);
            simulation = simulation.with_queue(Discipline::Boxed(Box::new(queue)));
        }
        let end = Instant::ZERO + scenario.duration;
        let _ = answers.send(Answer::Now(Now::of(&simulation)));
        while let Ok(order) = orders.recv() {
            let until = match order {
                Order::Advance(until) => until.min(end),
                Order::Finish => end,
            };
            while simulation.now() < until && !stop.is_asked() {
                simulation.advance(until.min(simulation.now() + SLICE));
            }
            if matches!(order, Order::Finish) && !stop.is_asked() {
                let _ = answers.send(Answer::Outcome(Box::new(simulation.run())));
                return;
            }
            if answers.send(Answer::Now(Now::of(&simulation))).is_err() || stop.is_asked() {
                return;
            }
        }
    }
}

/// The way to the thread.
struct Line {
    orders: Sender<Order>,
    answers: Receiver<Answer>,
}

impl Line {
    /// Waits for an answer, while the interpreter is free. After an error the line is gone, and with it the thread.
    fn answer(self, py: Python<'_>, stop: &Stop) -> PyResult<(Self, Answer)> {
        let Self { orders, mut answers } = self;
        loop {
            let (receiver, answer) = py.detach(move || {
                let answer = answers.recv_timeout(LOOK);
                (answers, answer)
            });
            answers = receiver;
            match answer {
                Ok(answer) => {
                    return stop.take().map_or(Ok((Self { orders, answers }, answer)), Err);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = py.check_signals() {
                        stop.raise(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(stop.take().unwrap_or_else(over));
                }
            }
        }
    }
}

/// Who has the line.
enum Held {
    Nobody(Line),
    /// A call that has not come back, which may be one of this very thread: an observer's code runs inside of it.
    Call,
    /// The simulation is over.
    Gone,
}

/// A scenario that is stepped through. It can be looked at while it advances, by observers too: all that is shown is of the time to which it
/// has advanced before.
#[pyclass(frozen, module = "dualq")]
pub(crate) struct Simulation {
    line: Mutex<Held>,
    stop: Arc<Stop>,
    now: Mutex<Now>,
    flows: usize,
    duration: Duration,
}

/// What it guards is whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulation {
    /// Gives an order, and waits for the answer. The line is held meanwhile, but no lock: the interpreter is free.
    fn order(&self, py: Python<'_>, order: Order) -> PyResult<Answer> {
        let line = {
            let mut held = locked(&self.line);
            match mem::replace(&mut *held, Held::Gone) {
                Held::Nobody(line) => {
                    *held = Held::Call;
                    line
                }
                Held::Call => {
                    *held = Held::Call;
                    return Err(advancing());
                }
                Held::Gone => return Err(over()),
            }
        };
        let answered = match line.orders.send(order) {
            Ok(()) => line.answer(py, &self.stop),
            Err(_) => Err(over()),
        };
        let mut held = locked(&self.line);
        match answered {
            Ok((line, answer)) => {
                *held = Held::Nobody(line);
                Ok(answer)
            }
            Err(error) => {
                *held = Held::Gone;
                Err(error)
            }
        }
    }
}

fn over() -> PyErr {
    RunError::new_err("this simulation is over; make another one")
}

fn advancing() -> PyErr {
    RunError::new_err(
        "this simulation is advancing already: meanwhile it can be looked at, also from an observer, and no more",
    )
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(
        py: Python<'_>,
        source: Source,
        options: Options,
        seed: u64,
        queue: Option<(Py<PyAny>, Traits)>,
        observer: Option<(Py<PyAny>, bool, bool)>,
    ) -> PyResult<Self> {
        let mut variants = source.sweep(&options)?.variants();
        let count = variants.len();
        let Some(variant) = variants.pop().filter(|_| count == 1) else {
            let message = format!(
                "a simulation is of one scenario, and these are {count}: give one value of each list"
            );
            return Err(ScenarioError::new_err(message));
        };
        let scenario = variant.scenario;
        let flows = scenario.flow.iter().map(|group| group.count as usize).sum();
        let duration = scenario.duration;
        let stop = Arc::new(Stop::default());
        let observer = observer.map(|(object, packets, connections)| {
            (object, Wants { packets, connections, ..Wants::default() })
        });
        let machine = Machine { scenario, seed, queue, observer, stop: Arc::clone(&stop) };
        let ((orders, ordered), (answer, answers)) = (channel(), channel());
        thread::spawn(move || machine.run(&ordered, &answer));
        match (Line { orders, answers }).answer(py, &stop)? {
            (line, Answer::Now(now)) => {
                let (line, now) = (Mutex::new(Held::Nobody(line)), Mutex::new(now));
                Ok(Self { line, stop, now, flows, duration })
            }
            (_, Answer::Refused(reason)) => Err(ScenarioError::new_err(reason)),
            (_, Answer::Outcome(_)) => Err(over()),
        }
    }

    /// Lets all happen before this time.
    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<f64> {
        let until = Duration::try_from_secs_f64(until_s)
            .map_err(|_| PyValueError::new_err(format!("{until_s} s is no time to advance to")))?;
        match self.order(py, Order::Advance(Instant::ZERO + until))? {
            Answer::Now(now) => *locked(&self.now) = now,
            Answer::Refused(_) | Answer::Outcome(_) => return Err(over()),
        }
        Ok(self.now_s())
    }

    /// Runs to the end.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.order(py, Order::Finish)? {
            Answer::Outcome(outcome) => made(py, &outcome),
            Answer::Now(_) | Answer::Refused(_) => Err(over()),
        }
    }

    #[getter]
    fn now_s(&self) -> f64 {
        locked(&self.now).at.as_nanos() as f64 / 1e9
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.duration.as_secs_f64()
    }

    #[getter]
    fn flows(&self) -> Vec<Flow> {
        let now = locked(&self.now);
        now.flows[..self.flows.min(now.flows.len())].to_vec()
    }

    #[getter]
    fn probes(&self) -> Vec<Flow> {
        locked(&self.now).flows.get(self.flows..).unwrap_or_default().to_vec()
    }

    #[getter]
    fn queue(&self) -> QueueNow {
        locked(&self.now).queue.clone()
    }

    fn __repr__(&self) -> String {
        format!("<dualq.Simulation at {} s of {} s>", self.now_s(), self.duration_s())
    }
}

/// A packet that was seen.
#[pyclass(frozen, get_all, module = "dualq")]
pub(crate) struct PacketEvent {
    t_s: f64,
    event: &'static str,
    flow: u32,
    direction: &'static str,
    kind: &'static str,
    seq: u64,
    bytes: u64,
    ecn: u8,
    sacks: u8,
    delay_ms: Option<f64>,
    reason: Option<&'static str>,
}

#[pymethods]
impl PacketEvent {
    fn __repr__(&self) -> String {
        let Self { t_s, event, flow, kind, seq, bytes, .. } = self;
        format!(
            "<dualq.PacketEvent {event} at {t_s} s: {kind} {seq} of flow {flow}, {bytes} bytes>"
        )
    }
}

/// Something that happened to a connection at its sender.
#[pyclass(frozen, get_all, module = "dualq")]
pub(crate) struct ConnectionEvent {
    t_s: f64,
    flow: u32,
    event: &'static str,
    start: Option<u64>,
    end: Option<u64>,
    length: Option<u32>,
    window: Option<u64>,
    ece: Option<bool>,
    cwnd: Option<u32>,
    ssthresh: Option<u32>,
    in_flight: Option<u32>,
    pacing_mbit: Option<f64>,
    srtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
    phase: Option<String>,
}

impl ConnectionEvent {
    fn of(told: &dualq_scenario::ConnectionEvent) -> Self {
        let mut event = Self {
            t_s: told.at_ns as f64 / 1e9,
            flow: told.flow,
            event: "",
            start: None,
            end: None,
            length: None,
            window: None,
            ece: None,
            cwnd: None,
            ssthresh: None,
            in_flight: None,
            pacing_mbit: None,
            srtt_ms: None,
            min_rtt_ms: None,
            phase: None,
        };
        match &told.change {
            Change::Sent { start, end, length } => {
                event.event = "sent";
                (event.start, event.end, event.length) = (Some(*start), Some(*end), Some(*length));
            }
            Change::Acknowledged { ack, window, ece, .. } => {
                event.event = "acknowledged";
                (event.end, event.window, event.ece) = (Some(*ack), Some(*window), Some(*ece));
            }
            Change::Lost { start, end } => {
                event.event = "lost";
                (event.start, event.end) = (Some(*start), Some(*end));
            }
            Change::Metrics(metrics) => {
                event.event = "metrics";
                (event.cwnd, event.ssthresh) = (Some(metrics.look.cwnd), metrics.look.ssthresh);
                event.in_flight = Some(metrics.look.in_flight);
                event.pacing_mbit = metrics.look.pacing_rate.map(|rate| rate as f64 * 8.0 / 1e6);
                event.srtt_ms = metrics.look.srtt_us.map(|srtt| srtt as f64 / 1e3);
                event.min_rtt_ms = metrics.min_rtt_us.map(|rtt| rtt as f64 / 1e3);
                event.phase = Some(metrics.phase.clone().into_owned());
            }
        }
        event
    }
}

/// Tells Python what happens, as it happens.
struct Observer {
    object: Py<PyAny>,
    wants: Wants,
    stop: Arc<Stop>,
}

impl Observer {
    fn tell<T: PyClass>(&self, method: &str, event: impl Into<PyClassInitializer<T>>) {
        if self.stop.is_asked() {
            return;
        }
        let told = Python::attach(|py| {
            self.object.call_method1(py, method, (Py::new(py, event)?,)).map(drop)
        });
        if let Err(error) = told {
            self.stop.raise(error);
        }
    }
}

impl Watch for Observer {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn packet(&mut self, event: Event) {
        let is_down = event.direction == dualq_scenario::Direction::Down;
        self.tell(
            "packet",
            PacketEvent {
                t_s: event.at_ns as f64 / 1e9,
                event: if event.seen == Seen::Out && event.ecn == 3 {
                    "out_ce"
                } else {
                    event.seen.name()
                },
                flow: event.flow,
                direction: if is_down { "down" } else { "up" },
                kind: event.kind.name(),
                seq: event.seq,
                bytes: event.bytes,
                ecn: event.ecn,
                sacks: event.sacks,
                delay_ms: event.waited_ns.map(|waited| waited as f64 / 1e6),
                reason: event.reason.map(dualq_qdisc::DropReason::name),
            },
        );
    }

    fn connection(&mut self, event: &dualq_scenario::ConnectionEvent) {
        self.tell("connection", ConnectionEvent::of(event));
    }
}
