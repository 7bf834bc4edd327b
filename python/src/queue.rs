//! A queue discipline that is written in Python. Slow: each packet goes through the interpreter, twice.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualq_model as model;
use dualq_qdisc::show::{Counters, OwnStats, Stats};
use dualq_qdisc::{
    ChangeError, Config, Departure, DropReason, Dropped, FlowPacket as _, Foreign, ForeignStats,
    Packet as _, Qdisc, Spec,
};
use dualq_units::Instant;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::interrupt::Stop;

/// Packets that Python has dropped since this was last looked at.
type Lost = Arc<Mutex<Vec<u64>>>;

/// A packet in such a queue.
#[pyclass(module = "dualq")]
pub(crate) struct Packet {
    number: u64,
    #[pyo3(get)]
    flow: u32,
    #[pyo3(get)]
    length: u32,
    #[pyo3(get)]
    segments: u32,
    #[pyo3(get)]
    arrived_s: f64,
    #[pyo3(get)]
    ecn: u8,
    lost: Lost,
}

/// The ECN field of a packet that is marked (RFC 3168 §5).
const CE: u8 = 3;

#[pymethods]
impl Packet {
    /// Marks it, and says whether it is ECN-capable, so that it could be marked.
    fn mark(&mut self) -> bool {
        if self.ecn != 0 {
            self.ecn = CE;
        }
        self.ecn == CE
    }

    /// Drops it, wherever it waits.
    fn drop(&self) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }

    fn __repr__(&self) -> String {
        let Self { number, flow, length, .. } = self;
        format!("<dualq.Packet {number} of flow {flow}: {length} bytes>")
    }
}

/// What the class in Python has beside `enqueue` and `dequeue`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Traits {
    kind: String,
    splits_gso: bool,
    interval_s: Option<f64>,
    next_ready: bool,
}

/// The discipline.
pub(crate) struct Queue {
    object: Py<PyAny>,
    traits: Traits,
    kind: &'static str,
    waiting: HashMap<u64, (Instant, model::Packet)>,
    next: u64,
    /// What was asked for before it may leave.
    head: Option<(Instant, Departure<model::Packet>)>,
    /// No packet may leave before.
    ready: Instant,
    timer: Instant,
    counters: Counters,
    marks: u64,
    lost: Lost,
    stop: Arc<Stop>,
}

/// A name that lasts as long as the program: each takes memory once.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name) {
        return known;
    }
    let leaked: &'static str = String::leak(name.to_owned());
    names.insert(leaked);
    leaked
}

/// Of an answer that is none.
fn wrong(answer: &Bound<'_, PyAny>, method: &str, right: &str) -> PyErr {
    PyTypeError::new_err(format!("{method} returned {answer:?}: {right}"))
}

fn seconds(time: Instant) -> f64 {
    time.as_nanos() as f64 / 1e9
}

type Losing<'a> = dyn FnMut(Dropped<model::Packet>) + 'a;

impl Queue {
    pub(crate) fn new(object: Py<PyAny>, traits: Traits, stop: &Arc<Stop>) -> Self {
        let kind = lasting(&traits.kind);
        let timer = traits.interval_s.map_or(Instant::NEVER, |_| Instant::ZERO);
        let (lost, stop) = (Lost::default(), Arc::clone(stop));
        let (waiting, counters) = (HashMap::new(), Counters::default());
        let (next, head, ready, marks) = (0, None, Instant::ZERO, 0);
        Self {
            object,
            traits,
            kind,
            waiting,
            next,
            head,
            ready,
            timer,
            counters,
            marks,
            lost,
            stop,
        }
    }

    /// Calls Python. After an error nothing is called any more, and the run ends soon.
    fn call<R>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Option<R> {
        if self.stop.is_asked() {
            return None;
        }
        let answer = Python::attach(|py| call(self.object.bind(py)));
        answer.map_err(|error| self.stop.raise(error)).ok()
    }

    /// Lets go what Python has dropped.
    fn let_go(&mut self, dropped: &mut Losing<'_>) {
        let lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        for number in lost {
            if let Some((_, packet)) = self.waiting.remove(&number) {
                self.counters.backlog_packets -= 1;
                self.counters.backlog_bytes -= u64::from(packet.length());
                self.counters.drops += 1;
                dropped(Dropped { packet, band: 0, reason: DropReason::Congested });
            }
        }
    }

    fn take_in(&mut self, now: Instant, packet: model::Packet, dropped: &mut Losing<'_>) -> usize {
        let (number, length) = (self.next, packet.length());
        self.next += 1;
        let shown = Packet {
            number,
            flow: packet.addresses(),
            length,
            segments: packet.segments().0,
            arrived_s: seconds(now),
            ecn: packet.ecn().bits(),
            lost: Arc::clone(&self.lost),
        };
        self.waiting.insert(number, (now, packet));
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += u64::from(length);
        let taken = self.call(|object| {
            let taken = object.call_method1("enqueue", (shown, seconds(now)))?;
            taken.extract::<bool>().map_err(|_| {
                let what = "give True if it took the packet, False if that is dropped";
                wrong(&taken, "enqueue", what)
            })
        });
        if taken != Some(true)
            && let Some((_, packet)) = self.waiting.remove(&number)
        {
            self.counters.backlog_packets -= 1;
            self.counters.backlog_bytes -= u64::from(length);
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
        }
        self.let_go(dropped);
        self.ready = Instant::ZERO;
        usize::from(self.waiting.contains_key(&number))
    }

    /// Asks Python for the packet that leaves next.
    fn choose(&mut self, now: Instant, dropped: &mut Losing<'_>) {
        if self.head.is_some() || self.waiting.is_empty() {
            return;
        }
        let chosen = self.call(|object| {
            let chosen = object.call_method1("dequeue", (seconds(now),))?;
            let chosen = chosen
                .extract::<Option<PyRef<'_, Packet>>>()
                .map_err(|_| wrong(&chosen, "dequeue", "give a packet of this queue, or None"))?;
            Ok(chosen.map(|packet| (packet.number, packet.ecn)))
        });
        self.let_go(dropped);
        match chosen {
            None => self.ready = Instant::NEVER,
            Some(None) if self.waiting.is_empty() => {}
            Some(None) => self.wait(now),
            Some(Some((number, ecn))) => match self.waiting.remove(&number) {
                None => self.fail("dequeue returned a packet that is not in this queue"),
                Some((arrived, mut packet)) => {
                    let is_marked = ecn == CE && packet.ecn().bits() != CE;
                    if is_marked {
                        packet.set_ce();
                    }
                    let departure = Departure {
                        packet,
                        band: 0,
                        sojourn_ns: 0,
                        marked_by_probability: is_marked,
                        marked_by_step: false,
                    };
                    self.head = Some((arrived, departure));
                }
            },
        }
    }

    /// Nothing may leave now.
    fn wait(&mut self, now: Instant) {
        let next = match self.traits.next_ready {
            true => self.call(|object| {
                object.call_method1("next_ready", (seconds(now),))?.extract::<f64>()
            }),
            false => Some(0.0),
        };
        match next {
            Some(next) if next > seconds(now) && next.is_finite() => {
                // Rounded up, and past: who asks again at this very moment would ask for ever.
                let next = Instant::from_nanos((next.min(1e9) * 1e9).ceil() as u64);
                self.ready = next.max(now + Duration::from_nanos(1));
            }
            Some(_) => {
                let count = self.waiting.len();
                self.fail(&format!(
                    "dequeue returned None though {count} packets wait: let one leave, or have next_ready return a later time"
                ));
            }
            None => self.ready = Instant::NEVER,
        }
    }

    fn fail(&mut self, message: &str) {
        self.ready = Instant::NEVER;
        self.stop.raise(PyValueError::new_err(format!("{}: {message}", self.kind)));
    }
}

impl Qdisc<model::Packet> for Queue {
    fn bands(&self) -> &'static [&'static str] {
        &["python"]
    }

    fn enqueue(&mut self, now: Instant, packet: model::Packet, dropped: &mut Losing<'_>) -> usize {
        if !(self.traits.splits_gso && packet.is_gso()) {
            return self.take_in(now, packet, dropped);
        }
        let mut count = 0;
        packet.split(&mut |segment| count += self.take_in(now, segment, dropped));
        count
    }

    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut Losing<'_>,
    ) -> Option<Departure<model::Packet>> {
        self.choose(now, dropped);
        let (arrived, departure) = self.head.take()?;
        let length = u64::from(departure.packet.length());
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= length;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += length;
        self.marks += u64::from(departure.marked_by_probability);
        Some(Departure { sojourn_ns: now.nanos_since(arrived), ..departure })
    }

    fn peek(&mut self, now: Instant, dropped: &mut Losing<'_>) -> Option<&model::Packet> {
        self.choose(now, dropped);
        self.head.as_ref().map(|(_, departure)| &departure.packet)
    }

    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.head.is_some())
    }

    fn next_ready(&self, now: Instant) -> Instant {
        match (self.head.is_some(), self.waiting.is_empty()) {
            (true, _) => now,
            (false, true) => Instant::NEVER,
            (false, false) => self.ready.max(now),
        }
    }

    fn next_timer(&self) -> Instant {
        self.timer
    }

    fn on_timer(&mut self, now: Instant) {
        if let Some(interval) = self.traits.interval_s {
            self.timer = now + Duration::from_secs_f64(interval);
            self.call(|object| object.call_method1("on_timer", (seconds(now),)).map(drop));
        }
    }

    fn reset(&mut self, dropped: &mut Losing<'_>) {
        let head = self.head.take().map(|(_, departure)| departure.packet);
        let waiting = self.waiting.drain().map(|(_, (_, packet))| packet);
        for packet in head.into_iter().chain(waiting) {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
        (self.counters.backlog_packets, self.counters.backlog_bytes) = (0, 0);
    }

    fn change(&mut self, spec: &Spec, _: &mut Losing<'_>) -> Result<(), ChangeError> {
        Err(ChangeError::OtherKind { is: self.kind, asked: spec.kind() })
    }

    fn config(&self) -> Config {
        Config::Foreign(Foreign { kind: self.kind, options: String::new() })
    }

    fn stats(&self, _: Instant) -> Stats {
        Stats {
            counters: self.counters,
            own: OwnStats::Foreign(ForeignStats { marks: self.marks }),
        }
    }
}
