//! A simulation that stands still between its steps.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use dualq_model::Simulation;
use dualq_qdisc::show;
use dualq_scenario::{ConnectionEvent, Event, Headers, Outcome, Scenario, Wants, Watch};
use dualq_units::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::packed;
use crate::passages::Passages;
use crate::request::{Refusal, Status, text};

/// What an observer wants to be told.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Packets at the queues and hosts, as records.
    packets: bool,
    /// Instead of these what becomes of packets, a record for each.
    passages: bool,
    /// Their headers.
    headers: bool,
    /// What connections do.
    connections: bool,
}

/// What was seen since the last step.
#[derive(Default)]
struct Seen {
    packets: Vec<u8>,
    passages: Option<Passages>,
    headers: Vec<Headers<'static>>,
    connections: Vec<ConnectionEvent>,
}

struct Observer {
    wants: Wants,
    seen: Rc<RefCell<Seen>>,
}

impl Watch for Observer {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn packet(&mut self, event: Event) {
        let Seen { packets, passages, .. } = &mut *self.seen.borrow_mut();
        match passages {
            Some(passages) => passages.take(&event, packets),
            None => packed::pack(&event, packets),
        }
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        let Headers { at_ns, point, length, bytes } = headers;
        let bytes = bytes.clone().into_owned().into();
        let headers = Headers { at_ns: *at_ns, point: *point, length: *length, bytes };
        self.seen.borrow_mut().headers.push(headers);
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        self.seen.borrow_mut().connections.push(event.clone());
    }
}

/// A simulation at work.
pub(crate) struct Stepwise {
    simulation: Simulation<'static>,
    seen: Rc<RefCell<Seen>>,
    end: Instant,
}

/// What is known between two steps.
#[derive(Serialize)]
struct State {
    now_s: f64,
    is_done: bool,
    /// The queue under test, as `tc -j -s qdisc show` has it.
    queue: Map<String, Value>,
    /// That of the other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_queue: Option<Map<String, Value>>,
    /// The senders: of the flows, then of the probes.
    senders: Vec<Sender>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<Headers<'static>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<ConnectionEvent>,
}

#[derive(Serialize)]
struct Sender {
    /// In segments.
    cwnd: u32,
    ssthresh: Option<u32>,
    in_flight: u32,
    srtt_ms: Option<f64>,
    /// None if nothing is paced.
    pacing_mbit: Option<f64>,
    acknowledged_bytes: u64,
}

impl Stepwise {
    pub(crate) fn begin(
        scenario: Scenario,
        seed: u64,
        Wanted { packets, passages, headers, connections }: Wanted,
    ) -> Result<Self, Refusal> {
        let end = Instant::from_nanos(scenario.duration.as_nanos() as u64);
        let told = Seen { passages: passages.then(Passages::default), ..Seen::default() };
        let seen = Rc::new(RefCell::new(told));
        let wants = Wants { packets: packets || passages, headers, connections };
        // A simulation borrows both. They stay until the instance of the module goes, which has one simulation after another at most.
        let scenario: &'static Scenario = Box::leak(Box::new(scenario));
        let observer = Box::leak(Box::new(Observer { wants, seen: Rc::clone(&seen) }));
        let simulation = Simulation::new(scenario, seed)
            .map_err(|error| Refusal { status: Status::Usage, message: error.to_string() })?;
        Ok(Self { simulation: simulation.watched(observer), seen, end })
    }

    pub(crate) fn advance(&mut self, until: Duration) {
        let until_ns = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.simulation.advance(Instant::from_nanos(until_ns));
    }

    pub(crate) fn take_packets(&self) -> Vec<u8> {
        std::mem::take(&mut self.seen.borrow_mut().packets)
    }

    pub(crate) fn state(&self) -> String {
        let now = self.simulation.now();
        let senders = self.simulation.senders().map(|sender| Sender {
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            in_flight: sender.in_flight(),
            srtt_ms: sender.rtt_us().map(|(srtt_us, _)| srtt_us / 1e3),
            pacing_mbit: Some(sender.pacing_rate())
                .filter(|rate| *rate < u64::MAX)
                .map(|bytes| bytes as f64 * 8.0 / 1e6),
            acknowledged_bytes: sender.acknowledged(),
        });
        let mut seen = self.seen.borrow_mut();
        let mut queues = self
            .simulation
            .queues()
            .map(|queue| show::json_with_stats(&queue.config(), &queue.stats(now)));
        text(&State {
            now_s: now.as_nanos() as f64 / 1e9,
            is_done: now >= self.end,
            queue: queues.next().unwrap_or_default(),
            up_queue: queues.next(),
            senders: senders.collect(),
            headers: std::mem::take(&mut seen.headers),
            connections: std::mem::take(&mut seen.connections),
        })
    }

    /// What came of it so far, as if it ended now; none within the warm-up.
    pub(crate) fn so_far(&mut self) -> Option<Outcome> {
        self.simulation.outcome()
    }

    /// The outcome, and the packets that were seen on the way there.
    pub(crate) fn finish(self) -> (Outcome, Vec<u8>) {
        let Self { simulation, seen, .. } = self;
        let outcome = simulation.run();
        let Seen { mut packets, passages, .. } = seen.take();
        if let Some(passages) = passages {
            passages.finish(&mut packets);
        }
        (outcome, packets)
    }
}
